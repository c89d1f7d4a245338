//! The same documents are the same answer: nothing is reconciled because of us.

use std::time::Instant;

use anyhow::{Result, ensure};
use e2e::kube::{Kind, Place};
use e2e::wait::until;
use e2e::world::World;
use serde_json::json;

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("a_restart_or_another_store_changes_no_revision", same_revisions),
    ("any_changed_annotation_of_a_provider_makes_it_ask_at_once", any_annotation),
    ("connections_stay_flat_over_500_polls", flat_connections),
];

fn same_revisions(world: &mut World) -> Result<()> {
    let before = (world.east.poll_all()?, world.west.poll_all()?);
    let documents = world.service.export()?;
    let same = |world: &World, what: &str| -> Result<()> {
        let after = (world.east.poll_all()?, world.west.poll_all()?);
        ensure!(before == after, "{what} changed {before:?} to {after:?}");
        Ok(())
    };
    world.service.stop()?;
    world.service.resume()?;
    same(world, "a restart")?;
    world.service.kill()?;
    world.service.resume()?;
    same(world, "kill -9")?;
    world.service.serve_from_memory(&documents)?;
    same(world, "the memory store")?;
    world.service.stop()?;
    world.service.resume()
}

/// Nobody would ask for ten hours, but for the annotation.
fn any_annotation(world: &mut World) -> Result<()> {
    const CHANGED: &str = "example.com/asked";
    let (east, service) = (&world.east, &world.service);
    let place = Place::flux(Kind::PROVIDER, "seldom");
    east.kube.apply_all(&[json!({
        "apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSetInputProvider",
        "metadata": {
            "name": "seldom", "namespace": "flux-system",
            "annotations": {"fluxcd.controlplane.io/reconcileEvery": "10h"},
        },
        "spec": {
            "type": "ExternalService", "insecure": true, "secretRef": {"name": "flux-resourceset"},
            "url": format!("{}/api/v2/flux/clusters/east.k8s.example.com/namespaces", service.poll_url()),
        },
    })])?;
    east.kube.ready(&place)?;
    // What either annotation does, and which of them the operator takes note of.
    for (annotation, noted) in
        [("fluxcd.controlplane.io/requestedAt", false), ("reconcile.fluxcd.io/requestedAt", true)]
    {
        service.patch("/namespaces/team-a", &json!({"annotations": {CHANGED: annotation}}))?;
        east.kube.patch(&place, &json!({"metadata": {"annotations": {annotation: annotation}}}))?;
        let seen = until("the provider has what is new", || {
            let provider = east.kube.get(&place)?;
            let inputs = provider["status"]["exportedInputs"].as_array().cloned().unwrap_or_default();
            let is_new = inputs.iter().any(|input| input["annotations"][CHANGED] == annotation);
            ensure!(is_new, "{inputs:?}");
            Ok(provider)
        })?;
        let handled = &seen["status"]["lastHandledReconcileAt"];
        ensure!((handled == annotation) == noted, "{annotation}: lastHandledReconcileAt is {handled}");
    }
    east.kube.delete(&place)?;
    service.patch("/namespaces/team-a", &json!({"annotations": {CHANGED: null}})).map(drop)
}

fn flat_connections(world: &mut World) -> Result<()> {
    const POLLERS: usize = 25;
    const POLLS: f64 = 500.0;
    /// The operator asks ten at a time, and we may look while it does.
    const AT_ONCE: f64 = 15.0;
    let (east, service) = (&world.east, &world.service);
    let place = |n: usize| Place::flux(Kind::PROVIDER, &format!("poller-{n}"));
    let polls = || service.metric("flux_resourceset_http_requests_total", "/api/v2/flux/");
    let connections = || service.metric("flux_resourceset_connections", "");
    let (polls_before, connections_before) = (polls()?, connections()?);
    let poller = |n: usize| {
        json!({
            "apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSetInputProvider",
            "metadata": {
                "name": format!("poller-{n}"), "namespace": "flux-system",
                "annotations": {"fluxcd.controlplane.io/reconcileEvery": "1s"},
            },
            "spec": {
                "type": "ExternalService", "insecure": true, "secretRef": {"name": "flux-resourceset"},
                "url": format!("{}/api/v2/flux/clusters/east.k8s.example.com/namespaces", service.poll_url()),
            },
        })
    };
    east.kube.apply_all(&(0..POLLERS).map(poller).collect::<Vec<_>>())?;
    let began = Instant::now();
    let mut most: f64 = 0.0;
    until("the operator has polled so often", || {
        most = most.max(connections()?);
        let polls = polls()? - polls_before;
        ensure!(polls >= POLLS, "{polls} polls");
        Ok(())
    })?;
    crate::figure(format!(
        "{POLLS} polls in {:.0} s, at most {most} connections open",
        began.elapsed().as_secs_f32()
    ));
    for n in 0..POLLERS {
        east.kube.delete(&place(n))?;
    }
    // Go would keep each of them for 90 seconds.
    ensure!(
        most <= connections_before + AT_ONCE,
        "{most} connections were open, {connections_before} before"
    );
    until("all of them are closed", || {
        let open = connections()?;
        ensure!(open <= connections_before, "{open} connections are open, {connections_before} before");
        Ok(())
    })
}
