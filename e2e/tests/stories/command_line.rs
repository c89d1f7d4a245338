//! What the command line writes for others: manifests that connect a cluster, inputs that the operator's own command reads.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::checkout::our_command_line;
use e2e::cluster::{KINDS, Source};
use e2e::kube::{Kind, Place};
use e2e::service::{ADMIN_TOKEN, CLUSTER_TOKEN};
use e2e::world::World;
use serde_json::{Value, json};

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("what_bootstrap_prints_connects_the_cluster", bootstrap),
    ("inputs_are_rendered_without_a_cluster_as_on_it", rendered),
];

/// What `frs` prints.
fn frs(world: &World, arguments: &[&str]) -> Result<String> {
    let output = Command::new(our_command_line()?)
        .args(arguments)
        .env("FLUX_API_URL", world.service.manage_url())
        .env("FLUX_API_TOKEN", ADMIN_TOKEN)
        .env("FLUX_CLUSTER_TOKEN", CLUSTER_TOKEN)
        .env("FLUX_API_CONFIG", world.folder().join("frs.yaml"))
        .output()?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn bootstrap(world: &mut World) -> Result<()> {
    let west = &world.west;
    // All of it is there before it is compared with what is there after.
    west.follow_all()?;
    west.kube.ready(&Place::flux(Kind::HELM_RELEASE, "podinfo"))?;
    west.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "baseline"))?;
    let before = west.everything()?;
    let Source::Oci(plane) = world.bootstrap().source else {
        anyhow::bail!("the world's plane is an artifact")
    };
    let service = world.service.poll_url();
    let arguments =
        ["cluster", "bootstrap", "west", "--plane", &plane, "--service-url", &service, "--path", "./demo"];
    let manifests = frs(world, &arguments)?;
    // A registry on this machine has no certificate: the one thing that is not as on a cluster of somebody's.
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&manifests)?;
    let source = objects.iter_mut().find(|object| object["kind"] == "OCIRepository").context("a source")?;
    source["spec"]["insecure"] = true.into();
    // As if it had neither its token nor its own name.
    west.kube.delete(&Place::flux(Kind::SECRET, "flux-resourceset"))?;
    let identity = Place::flux(Kind::CONFIG_MAP, "cluster-identity");
    let known = west.kube.get(&identity)?["data"].clone();
    west.kube.patch(&identity, &json!({"data": {"CLUSTER_NAME": "nobody", "ENVIRONMENT": "none"}}))?;
    west.kube.apply_all(&objects)?;
    let data = west.kube.get(&identity)?["data"].clone();
    ensure!(data == known, "{data} is not {known}");
    west.kube.reconciled(&Place::flux(Kind::KUSTOMIZATION, "cluster-plane"))?;
    west.unchanged_since(&before)?;
    west.connect(&world.bootstrap())
}

fn rendered(world: &mut World) -> Result<()> {
    for kind in KINDS {
        let file = world.folder().join(format!("{kind}.inputs"));
        std::fs::write(&file, frs(world, &["inputs", "east", kind, "-o", "flux"])?)?;
        let rendered = world.parts.rendered(kind, &file)?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(rendered)?)?;
        ensure!(!objects.is_empty(), "{kind}: nothing was rendered");
        // Each of them is on the cluster, as the operator there made it of what it polled.
        for object in objects {
            world.east.kube.run_with(&["get", "-f", "-"], &object.to_string())?;
        }
    }
    Ok(())
}
