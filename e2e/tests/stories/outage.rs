//! The service is away, in every way that we could think of: nothing is deleted, drift is corrected, and it comes back by itself.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::kube::{Kind, Place, condition, uid};
use e2e::service::CLUSTER_TOKEN;
use e2e::wait::{until, within};
use e2e::world::World;
use serde_json::json;

use crate::{Story, difference};

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("outage::a_minute_without_the_service_deletes_nothing_and_drift_is_corrected", a_minute_away),
    ("outage::killed_and_restarted_it_goes_on_where_it_was", killed),
    ("outage::a_database_that_is_taken_away_deletes_nothing", database_gone),
    ("outage::a_wrong_token_deletes_nothing", wrong_token),
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

    // A provider is deleted, and the sync makes it again: it has no inputs, and its set must not believe that.
    east.kube.delete(&providers[1])?;
    east.kube.gone(&providers[1])?;
    east.kube.reconciled(&Place::flux(Kind::KUSTOMIZATION, "cluster-plane"))?;
    east.kube.fails(&providers[1], "connection refused")?;
    let set = Place::flux(Kind::RESOURCE_SET, "namespaces");
    east.kube.reconcile(&set)?;
    until("the set waits for its provider", || {
        let set = east.kube.get(&set)?;
        let (status, message) = condition(&set, "Ready");
        ensure!(status == "False" && message.contains("namespaces not ready"), "{status}: {message}");
        Ok(())
    })?;

    // The operator starts anew meanwhile, and knows only what the cluster knows.
    east.flux.kill_operator()?;
    east.flux.start_operator()?;
    east.kube.fails(&providers[0], "connection refused")?;
    east.kube.ready(&Place::flux(Kind::RESOURCE_SET, "platform-components"))?;

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
    ensure!(during == expected, "{:?}", difference(&expected, &during));

    world.service.resume()?;
    world.service.patch("/clusters/east", &json!({"patches": {"podinfo": {"replicaCount": "1"}}}))?;
    let back = Instant::now();
    // Nobody asks Flux to hurry.
    within(BY_ITSELF, "the providers recover by themselves", || {
        for provider in &providers {
            let object = world.east.kube.get(provider)?;
            ensure!(condition(&object, "Ready").0 == "True", "{provider}: {}", condition(&object, "Ready").1);
        }
        let deployment = world.east.kube.get(&Place::new(Kind::DEPLOYMENT, "podinfo", "podinfo"))?;
        ensure!(deployment["spec"]["replicas"] == 1, "the change did not arrive");
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
    for kind in e2e::cluster::KINDS {
        world.east.follow(kind)?;
    }
    let after = world.east.everything()?;
    ensure!(before == after, "{:?}", difference(&before, &after));
    Ok(())
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
    let (east, service) = (&world.east, &world.service);
    let began = Instant::now();
    until("polls are answered 503", || {
        let answer = service.poll("east.k8s.example.com", "namespaces")?;
        ensure!(answer.status == 503, "{}", answer.status);
        Ok(())
    })?;
    ensure!(began.elapsed() < Duration::from_secs(30), "it answered for {:?}", began.elapsed());
    east.kube.fails(&provider, "503")?;
    // A restart does not make a new, empty store in its place.
    world.service.stop()?;
    for file in &files {
        std::fs::rename(away.join(file.file_name().unwrap_or_default()), file)?;
    }
    world.service.resume()?;
    world.east.poll_all()?;
    let after = world.east.everything()?;
    ensure!(before == after, "{:?}", difference(&before, &after));
    Ok(())
}

fn wrong_token(world: &mut World) -> Result<()> {
    let east = &world.east;
    let before = east.everything()?;
    let secret = Place::flux(Kind::SECRET, "flux-resourceset");
    let token = |token: &str| east.kube.patch(&secret, &json!({"stringData": {"token": token}}));
    token("not-this-one")?;
    for kind in e2e::cluster::KINDS {
        east.kube.fails(&Place::flux(Kind::PROVIDER, kind), "401")?;
        east.applied(kind)?;
    }
    let during = east.everything()?;
    token(CLUSTER_TOKEN)?;
    east.poll_all()?;
    ensure!(before == during, "{:?}", difference(&before, &during));
    Ok(())
}
