//! The service is away, in every way that we could think of: nothing is deleted, drift is corrected, and it comes back by itself.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::kube::{Kind, Place, condition, uid};
use e2e::service::CLUSTER_TOKEN;
use e2e::wait::{until, within};
use e2e::world::World;
use serde_json::json;

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("a_minute_without_the_service_deletes_nothing_and_drift_is_corrected", a_minute_away),
    ("killed_and_restarted_it_goes_on_where_it_was", killed),
    ("a_database_that_is_taken_away_deletes_nothing", database_gone),
    ("a_wrong_token_deletes_nothing", wrong_token),
];

/// How long after an outage the operator may take to ask again by itself: it backs off, and the demo asks every 30 seconds.
const BY_ITSELF: Duration = Duration::from_mins(4);

fn a_minute_away(world: &mut World) -> Result<()> {
    let began = Instant::now();
    world.east.poll_all()?;
    let before = world.east.everything()?;
    world.service.stop()?;
    let east = &mut world.east;
    let providers = e2e::cluster::KINDS.map(|kind| Place::flux(Kind::PROVIDER, kind));
    for provider in &providers {
        east.kube.fails(provider, "connection refused")?;
    }

    // Drift: a label, a binding, a Deployment of a chart.
    let team = Place::global(Kind::NAMESPACE, "team-a");
    let binding = Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers");
    east.kube.patch(&team, &json!({"metadata": {"labels": {"team": null}}}))?;
    east.kube.delete(&binding)?;
    for kind in ["namespaces", "rolebindings"] {
        east.applied(kind)?;
    }
    ensure!(east.kube.get(&team)?["metadata"]["labels"]["team"] == "a", "the label is still gone");
    east.kube.get(&binding)?;
    east.puts_replicas_back("podinfo")?;

    // A provider is deleted, and the sync makes it again: it has no inputs, and its set must not believe that.
    east.kube.delete(&providers[1])?;
    east.kube.gone(&providers[1])?;
    east.kube.reconciled(&Place::flux(Kind::KUSTOMIZATION, "cluster-plane"))?;
    east.kube.fails(&providers[1], "connection refused")?;
    let set = Place::flux(Kind::RESOURCE_SET, "namespaces");
    east.kube.fails(&set, "namespaces not ready")?;

    // The operator starts anew meanwhile, and knows only what the cluster knows.
    east.flux.kill_operator()?;
    east.flux.start_operator()?;
    east.kube.fails(&providers[0], "connection refused")?;
    east.applied("platform-components")?;

    std::thread::sleep(Duration::from_mins(1).saturating_sub(began.elapsed()));
    let mut expected = before;
    let during = world.east.everything()?;
    for (place, made_again) in [(&binding, Kind::CLUSTER_ROLE_BINDING), (&providers[1], Kind::PROVIDER)] {
        let object = world.east.kube.get(place)?;
        let path = during
            .iter()
            .find(|(path, _)| path.contains(&made_again.to_string()) && during[*path] == uid(&object));
        let (path, uid) = path.ok_or_else(|| anyhow::anyhow!("{place} is not there"))?;
        expected.insert(path.clone(), uid.clone());
    }
    world.east.same_as(&expected)?;

    world.service.resume()?;
    world.service.patch("/clusters/east", &json!({"patches": {"podinfo": {"replicaCount": "4"}}}))?;
    let back = Instant::now();
    // Nobody asks Flux to hurry.
    within(BY_ITSELF, "the providers recover by themselves", || {
        for provider in &providers {
            let object = world.east.kube.get(provider)?;
            ensure!(condition(&object, "Ready").0 == "True", "{provider}: {}", condition(&object, "Ready").1);
        }
        let deployment = world.east.kube.get(&Place::new(Kind::DEPLOYMENT, "podinfo", "podinfo"))?;
        ensure!(deployment["spec"]["replicas"] == 4, "the change did not arrive");
        Ok(())
    })?;
    crate::figure(format!(
        "followed again by itself {:.0} s after the service was back",
        back.elapsed().as_secs_f32()
    ));
    for kind in e2e::cluster::KINDS {
        world.east.kube.ready(&Place::flux(Kind::RESOURCE_SET, kind))?;
    }
    Ok(())
}

fn killed(world: &mut World) -> Result<()> {
    let before = world.east.everything()?;
    for _ in 0..5 {
        world.service.patch("/clusters/east", &json!({"patches": {"podinfo": {"ui.message": "before"}}}))?;
        for kind in e2e::cluster::KINDS {
            world.east.kube.reconcile(&Place::flux(Kind::PROVIDER, kind))?;
        }
        world.service.kill()?;
        world.service.resume()?;
    }
    world.service.patch("/clusters/east", &json!({"patches": {"podinfo": {"ui.message": "after"}}}))?;
    world.east.unchanged_since(&before)
}

fn database_gone(world: &mut World) -> Result<()> {
    let before = world.east.everything()?;
    let away = world.folder().join("taken-away");
    std::fs::create_dir_all(&away)?;
    let files = world.service.database();
    ensure!(!files.is_empty(), "there is no database");
    for file in &files {
        std::fs::rename(file, away.join(file.file_name().unwrap_or_default()))?;
    }
    let provider = Place::flux(Kind::PROVIDER, "namespaces");
    let answered = |world: &World, status: u16| {
        until(&format!("polls are answered {status}"), || {
            let found = world.service.poll_status(&world.east.identity.dns, "namespaces")?;
            ensure!(found == status, "{found}");
            Ok(())
        })
    };
    let began = Instant::now();
    answered(world, 503)?;
    ensure!(began.elapsed() < Duration::from_secs(30), "it answered for {:?}", began.elapsed());
    world.east.kube.fails(&provider, "503")?;

    // A reader that starts meanwhile makes no new, empty store in its place.
    world.service.restart_reader()?;
    answered(world, 503)?;
    world.east.kube.fails(&provider, "503")?;
    ensure!(world.service.database().is_empty(), "{:?}", world.service.database());

    for file in &files {
        std::fs::rename(away.join(file.file_name().unwrap_or_default()), file)?;
    }
    // It finds its store again by itself, and so do writes.
    answered(world, 200)?;
    world.service.patch("/clusters/east", &json!({"patches": {"podinfo": {"ui.message": "back"}}}))?;
    world.east.unchanged_since(&before)
}

fn wrong_token(world: &mut World) -> Result<()> {
    let east = &world.east;
    let before = east.everything()?;
    east.show_token("not-this-one")?;
    for kind in e2e::cluster::KINDS {
        east.kube.fails(&Place::flux(Kind::PROVIDER, kind), "401")?;
        east.applied(kind)?;
    }
    east.same_as(&before)?;
    east.show_token(CLUSTER_TOKEN)?;
    east.unchanged_since(&before)
}
