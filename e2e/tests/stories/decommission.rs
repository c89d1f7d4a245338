//! The end of a cluster's record, and its return.

use anyhow::{Result, ensure};
use e2e::kube::{Kind, Place};
use e2e::world::World;
use serde_json::json;

use crate::{Story, difference};

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("decommission::a_deleted_record_cleans_the_cluster_up_and_touches_nothing_else", clean_up),
    ("decommission::a_record_that_is_made_again_brings_everything_back", return_),
];

fn clean_up(world: &mut World) -> Result<()> {
    let (east, west, service) = (&world.east, &world.west, &world.service);
    let foreign = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "not-ours"}});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "not-ours", "namespace": "not-ours"}, "data": {"a": "b"}});
    east.kube.apply_all(&[foreign, config])?;
    let before = east.everything()?;
    let other = west.everything()?;
    let mut ours = Vec::new();
    for kind in e2e::cluster::KINDS {
        ours.extend(east.inventory(kind)?);
    }
    ensure!(ours.len() >= 15, "{ours:?}");

    service.delete("/clusters/east")?;
    for kind in e2e::cluster::KINDS {
        east.poll(kind)?;
        east.applied(kind)?;
        ensure!(east.inventory(kind)?.is_empty(), "{:?}", east.inventory(kind)?);
    }
    for place in [
        Place::flux(Kind::HELM_RELEASE, "podinfo"),
        Place::flux(Kind::KUSTOMIZATION, "baseline"),
        Place::flux(Kind::CONFIG_MAP, "baseline"),
        Place::new(Kind::DEPLOYMENT, "podinfo", "podinfo"),
        Place::new(Kind::DEPLOYMENT, "exporter", "exporter"),
        Place::global(Kind::NAMESPACE, "team-a"),
        Place::global(Kind::NAMESPACE, "bare"),
        Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers"),
    ] {
        east.kube.gone(&place)?;
    }

    // What is left is what was there before, less what the sets made and what Helm and the overlays made for them.
    let components = ["agent", "baseline", "exporter", "podinfo"];
    let made = |path: &str| {
        let (namespace, name) =
            (path.split('/').next().unwrap_or_default(), path.rsplit('/').next().unwrap_or_default());
        let component = components
            .iter()
            .any(|id| name == *id || name.strip_prefix(id).is_some_and(|rest| rest.starts_with('-')));
        let of_sets = ours.iter().any(|id| id.split('_').nth(1) == Some(name));
        let inside = ["team-a", "bare"].contains(&namespace);
        // Helm made these namespaces, and does not unmake them.
        (component || of_sets || inside) && !(path.starts_with("/namespaces/") && component)
    };
    let expected = before
        .iter()
        .filter(|(path, _)| !made(path))
        .map(|(path, uid)| (path.clone(), uid.clone()))
        .collect();
    let after = east.everything()?;
    ensure!(after == expected, "{:?}", difference(&expected, &after));
    for place in [
        Place::global(Kind::NAMESPACE, "not-ours"),
        Place::flux(Kind::KUSTOMIZATION, "cluster-plane"),
        Place::flux(Kind::CONFIG_MAP, "cluster-identity"),
        Place::flux(Kind::PROVIDER, "namespaces"),
        Place::flux(Kind::RESOURCE_SET, "namespaces"),
    ] {
        east.kube.get(&place)?;
    }
    west.poll_all()?;
    ensure!(west.everything()? == other, "another cluster has changed");
    Ok(())
}

fn return_(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let record = json!({
        "id": "east", "cluster_name": "east", "cluster_dns": "east.k8s.example.com", "environment": "dev",
        "platform_components": [{"id": "podinfo"}], "namespaces": [{"id": "team-a"}], "rolebindings": [{"id": "viewers"}],
    });
    let refused = service.request(reqwest::Method::POST, "/clusters", Some(&record), &[])?;
    ensure!(refused.status == 409, "{}: {}", refused.status, refused.body);
    service.post("/clusters?replace_decommissioned=true", &record)?;
    for kind in e2e::cluster::KINDS {
        east.follow(kind)?;
    }
    east.runs("podinfo", "1.1.0", 1)?;
    east.kube.get(&Place::global(Kind::NAMESPACE, "team-a"))?;
    east.kube.get(&Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers")).map(drop)
}
