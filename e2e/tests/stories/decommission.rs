//! The end of a cluster's record, and its return.

use anyhow::{Result, ensure};
use e2e::cluster::Everything;
use e2e::kube::{Kind, Place};
use e2e::wait::until;
use e2e::world::World;
use serde_json::json;

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("a_deleted_record_cleans_the_cluster_up_and_touches_nothing_else", clean_up),
    ("a_record_that_is_made_again_brings_everything_back", comes_back),
];

/// All that goes with east's record, and nothing else. (The namespaces that Helm made for its releases stay.)
const OURS: [&str; 24] = [
    "/clusterrolebindings/viewers",
    "/namespaces/bare",
    "/namespaces/team-a",
    "agent/configmaps/agent-seen",
    "agent/deployments/agent",
    "bare/configmaps/kube-root-ca.crt",
    "exporter/configmaps/exporter-seen",
    "exporter/deployments/exporter",
    "flux-system/configmaps/agent-values",
    "flux-system/configmaps/baseline",
    "flux-system/configmaps/baseline-variables",
    "flux-system/configmaps/exporter-values",
    "flux-system/configmaps/podinfo-values",
    "flux-system/helmreleases/agent",
    "flux-system/helmreleases/exporter",
    "flux-system/helmreleases/podinfo",
    "flux-system/helmrepositories/exporter",
    "flux-system/kustomizations/baseline",
    "flux-system/ocirepositories/agent",
    "flux-system/ocirepositories/baseline",
    "flux-system/ocirepositories/podinfo",
    "podinfo/configmaps/podinfo-seen",
    "podinfo/deployments/podinfo",
    "team-a/configmaps/kube-root-ca.crt",
];

fn clean_up(world: &mut World) -> Result<()> {
    let (east, west, service) = (&world.east, &world.west, &world.service);
    let foreign = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "not-ours"}});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "not-ours", "namespace": "not-ours"}, "data": {"a": "b"}});
    east.kube.apply_all(&[foreign, config])?;
    // Kubernetes puts something into each namespace of its own accord.
    for namespace in ["not-ours", "team-a", "bare"] {
        until("the namespace is complete", || {
            east.kube.get(&Place::new(Kind::CONFIG_MAP, namespace, "kube-root-ca.crt"))
        })?;
    }
    east.follow_all()?;
    let (before, other) = (east.everything()?, west.everything()?);

    service.delete("/clusters/east")?;
    east.follow_all()?;
    for kind in e2e::cluster::KINDS {
        ensure!(east.inventory(kind)?.is_empty(), "{:?}", east.inventory(kind)?);
    }
    for path in OURS {
        ensure!(before.contains_key(path), "{path} was not there before");
    }
    let expected: Everything =
        before.into_iter().filter(|(path, _)| !OURS.contains(&path.as_str())).collect();
    until("everything of ours is gone, and nothing else", || east.same_as(&expected))?;
    east.kube.get(&Place::global(Kind::NAMESPACE, "not-ours"))?;
    west.unchanged_since(&other)
}

fn comes_back(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let record = json!({
        "id": "east", "cluster_name": "east", "cluster_dns": "east.k8s.example.com", "environment": "dev",
        "platform_components": [{"id": "podinfo"}], "namespaces": [{"id": "team-a"}], "rolebindings": [{"id": "viewers"}],
    });
    let refused = service.request(reqwest::Method::POST, "/clusters", Some(&record), &[])?;
    ensure!(refused.status == 409, "{}: {}", refused.status, refused.body);
    service.post("/clusters?replace_decommissioned=true", &record)?;
    east.follow_all()?;
    east.runs("podinfo", &world.tag("podinfo")?, 1)?;
    east.kube.get(&Place::global(Kind::NAMESPACE, "team-a"))?;
    east.kube.get(&Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers")).map(drop)
}
