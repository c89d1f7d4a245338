//! The management plane: clusters are made from the list of their records, and never unmade.

use anyhow::{Result, ensure};
use e2e::artifacts;
use e2e::kube::{Kind, Place};
use e2e::registry::Content;
use e2e::world::World;
use serde_json::json;

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("a_new_record_makes_the_management_plane_provision_a_cluster", a_new_record),
    ("a_wrong_filter_or_a_decommission_takes_no_machine_away", nothing_is_taken_away),
];

fn provider() -> Place {
    Place::flux(Kind::PROVIDER, "clusters")
}

fn machines(cluster: &str) -> Place {
    Place::new(Kind::CONFIG_MAP, "clusters", &format!("{cluster}-machines"))
}

fn a_new_record(world: &mut World) -> Result<()> {
    let (west, service) = (&world.west, &world.service);
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${CLUSTER_ID}-machines', namespace: clusters}\n\
                    data: {dns: '${CLUSTER_DNS}', environment: '${ENVIRONMENT}'}\n";
    let files = ["dev", "prod", "qa"].map(|environment| format!("clusters/{environment}/machines.yaml"));
    let archive = artifacts::archive(files.iter().map(|path| (path.as_str(), manifest.as_bytes())))?;
    world.registry.push("platform/cluster-provisioning", "latest", Content::Folder, &archive)?;
    let sync = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "flux-resourceset-management", "namespace": "flux-system"},
        "spec": {
            "interval": "10m", "prune": true, "deletionPolicy": "Orphan", "path": "./management",
            "sourceRef": {"kind": "OCIRepository", "name": "cluster-plane"},
            "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-identity"}]},
            "patches": [
                {"target": {"kind": "ResourceSetInputProvider"}, "patch": r#"[{"op": "add", "path": "/spec/insecure", "value": true}]"#},
                {"target": {"kind": "OCIRepository"}, "patch": json!([
                    {"op": "replace", "path": "/spec/url", "value": world.registry.url("platform/cluster-provisioning")},
                ]).to_string()},
            ],
        },
    });
    west.kube.apply(&sync.to_string())?;
    west.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "flux-resourceset-management"))?;
    west.kube.ready(&provider())?;
    for (id, environment) in [("east", "dev"), ("west", "prod")] {
        west.kube.ready(&Place::new(Kind::KUSTOMIZATION, "clusters", id))?;
        let made = west.kube.get(&machines(id))?["data"].clone();
        ensure!(
            made == json!({"dns": format!("{id}.k8s.example.com"), "environment": environment}),
            "{made}"
        );
    }

    service.post(
        "/clusters",
        &json!({"id": "north", "cluster_name": "North \"<1>\" ü", "cluster_dns": "north.k8s.example.com", "environment": "qa"}),
    )?;
    west.kube.reconciled(&provider())?;
    west.kube.ready(&Place::new(Kind::KUSTOMIZATION, "clusters", "north"))?;
    let made = west.kube.get(&machines("north"))?["data"].clone();
    ensure!(made == json!({"dns": "north.k8s.example.com", "environment": "qa"}), "{made}");
    let identity =
        west.kube.get(&Place::new(Kind::CONFIG_MAP, "clusters", "north-identity"))?["data"].clone();
    let expected = json!({"CLUSTER_NAME": "North \"<1>\" ü", "CLUSTER_DNS": "north.k8s.example.com", "ENVIRONMENT": "qa"});
    ensure!(identity == expected, "{identity}");
    Ok(())
}

fn nothing_is_taken_away(world: &mut World) -> Result<()> {
    let (west, service) = (&world.west, &world.service);
    let before = west.everything()?;
    let url = west.kube.get(&provider())?["spec"]["url"].as_str().unwrap_or_default().to_owned();
    west.kube.patch(
        &Place::flux(Kind::KUSTOMIZATION, "flux-resourceset-management"),
        &json!({"spec": {"suspend": true}}),
    )?;
    // An environment that does not exist, one without a cluster, a filter that does not exist.
    for (query, status) in
        [("environment=production", "400"), ("environment=uat", "404"), ("env=prod", "400")]
    {
        west.kube.patch(&provider(), &json!({"spec": {"url": format!("{url}?{query}")}}))?;
        west.kube.fails(&provider(), status)?;
    }
    west.kube.patch(&provider(), &json!({"spec": {"url": url}}))?;
    service.delete("/clusters/north")?;
    west.kube.reconciled(&provider())?;
    west.kube.ready(&provider())?;
    // The operator waits a minute for what it does not delete.
    west.kube.reconciled(&Place::flux(Kind::RESOURCE_SET, "clusters"))?;
    west.same_as(&before)?;

    // The stories after this one have a cluster plane only.
    for place in [
        Place::flux(Kind::RESOURCE_SET, "clusters"),
        provider(),
        Place::flux(Kind::KUSTOMIZATION, "flux-resourceset-management"),
    ] {
        west.kube.delete(&place)?;
        west.kube.gone(&place)?;
    }
    west.kube.get(&machines("north")).map(drop)
}
