//! From the identity to what runs.

use anyhow::{Result, ensure};
use e2e::kube::{Kind, Place, name};
use e2e::world::World;
use serde_json::json;

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("boot::a_cluster_becomes_what_its_record_says_from_its_identity_alone", from_identity_alone),
    ("boot::another_identity_gets_another_state_from_the_same_service", another_identity),
];

fn from_identity_alone(world: &mut World) -> Result<()> {
    let east = &world.east;
    east.connect(&world.bootstrap())?;
    for kind in e2e::cluster::KINDS {
        east.kube.ready(&Place::flux(Kind::PROVIDER, kind))?;
        east.kube.ready(&Place::flux(Kind::RESOURCE_SET, kind))?;
    }
    let team = east.kube.get(&Place::global(Kind::NAMESPACE, "team-a"))?;
    ensure!(team["metadata"]["labels"]["team"] == "a", "{team}");
    ensure!(team["metadata"]["annotations"]["example.com/owner"] == "a@example.com", "{team}");
    east.kube.get(&Place::global(Kind::NAMESPACE, "bare"))?;
    let viewers = east.kube.get(&Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers"))?;
    ensure!(viewers["roleRef"]["name"] == "view", "{viewers}");
    let group = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "viewers"}]);
    ensure!(viewers["subjects"] == group, "{viewers}");

    east.runs("podinfo", "1.0.0", 1)?;
    east.runs("agent", "1.0.0", 1)?;
    // From an https:// repository.
    east.runs("exporter", "1.0.0", 1)?;
    let baseline = east.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "baseline"))?;
    ensure!(baseline["spec"]["path"] == "./core/baseline/1.0.0/dev", "{}", baseline["spec"]);
    let seen = east.kube.get(&Place::flux(Kind::CONFIG_MAP, "baseline"))?;
    let expected = json!({"overlay": "dev", "version": "1.0.0", "release": "v1.0.0", "log": "debug", "cluster": "east.k8s.example.com"});
    ensure!(seen["data"] == expected, "{}", seen["data"]);
    Ok(())
}

fn another_identity(world: &mut World) -> Result<()> {
    let west = &world.west;
    west.connect(&world.bootstrap())?;
    west.runs("podinfo", "1.0.0", 2)?;
    west.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "baseline"))?;
    let seen = west.kube.get(&Place::flux(Kind::CONFIG_MAP, "baseline"))?;
    let expected = json!({"overlay": "prod", "version": "1.0.0", "release": "v1.0.0", "log": "info", "cluster": "west.k8s.example.com"});
    ensure!(seen["data"] == expected, "{}", seen["data"]);
    let releases = west.kube.list(Kind::HELM_RELEASE, None)?;
    ensure!(releases.iter().map(name).collect::<Vec<_>>() == ["podinfo"], "{releases:?}");
    for (kind, id) in
        [(Kind::NAMESPACE, "team-a"), (Kind::NAMESPACE, "team-b"), (Kind::CLUSTER_ROLE_BINDING, "operators")]
    {
        west.kube.get(&Place::global(kind, id))?;
    }
    ensure!(
        west.kube.find(&Place::global(Kind::NAMESPACE, "bare"))?.is_none(),
        "west has a namespace of east"
    );
    Ok(())
}
