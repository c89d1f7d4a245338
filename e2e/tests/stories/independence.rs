//! One kind does not wait for another.

use anyhow::{Result, ensure};
use e2e::kube::{Kind, Place};
use e2e::listener::{self, Response};
use e2e::world::World;
use serde_json::json;

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("one_kind_that_answers_503_leaves_the_others_following", one_kind_fails),
    ("a_namespace_change_does_not_move_the_components", other_revisions_stay),
];

fn one_kind_fails(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let failing = listener::serve(|_| Response::status(503))?;
    let provider = Place::flux(Kind::PROVIDER, "namespaces");
    // The sync would put the URL back.
    east.resync(&json!({"suspend": true}))?;
    east.kube.patch(
        &provider,
        &json!({"spec": {"url": format!("http://{failing}/api/v2/flux/clusters/x/namespaces")}}),
    )?;
    east.kube.fails(&provider, "503")?;
    let before = east.inventory("namespaces")?;

    service.patch("/clusters/east/rolebindings/viewers", &json!({"role": "edit"}))?;
    service.patch("/clusters/east", &json!({"patches": {"podinfo": {"replicaCount": "2"}}}))?;
    east.follow("rolebindings")?;
    east.follow("platform-components")?;
    east.runs("podinfo", &world.tag("podinfo")?, 2)?;
    let binding = east.kube.get(&Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers"))?;
    ensure!(binding["roleRef"]["name"] == "edit", "{binding}");
    ensure!(east.inventory("namespaces")? == before, "namespaces have changed");
    east.kube.get(&Place::global(Kind::NAMESPACE, "team-a"))?;

    service.patch("/clusters/east/rolebindings/viewers", &json!({"role": null}))?;
    east.resync(&json!({"suspend": false}))?;
    east.poll_all().map(drop)
}

fn other_revisions_stay(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let [components, namespaces, bindings] =
        east.poll_all()?.try_into().map_err(|other| anyhow::anyhow!("{other:?}"))?;
    let applied = east.kube.get(&Place::flux(Kind::RESOURCE_SET, "platform-components"))?["status"]["lastAppliedRevision"].clone();
    service.patch("/namespaces/team-a", &json!({"labels": {"tier": "gold"}}))?;
    let after = east.poll_all()?;
    ensure!(after[0] == components && after[2] == bindings, "{components}, {bindings} became {after:?}");
    ensure!(after[1] != namespaces, "the change did not arrive");
    east.applied("platform-components")?;
    let still = east.kube.get(&Place::flux(Kind::RESOURCE_SET, "platform-components"))?["status"]["lastAppliedRevision"].clone();
    ensure!(applied == still, "components were applied anew: {applied} became {still}");
    east.applied("namespaces")?;
    let team = east.kube.get(&Place::global(Kind::NAMESPACE, "team-a"))?;
    ensure!(team["metadata"]["labels"]["tier"] == "gold", "{team}");
    Ok(())
}
