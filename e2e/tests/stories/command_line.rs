//! The command line beside real parts: manifests that connect a cluster, inputs that the operator's own command reads, TLS.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::checkout::our_command_line;
use e2e::cluster::{KINDS, Source};
use e2e::kube::{Kind, Place};
use e2e::service::{ADMIN_TOKEN, CLUSTER_TOKEN};
use e2e::tls::Authority;
use e2e::world::World;
use serde_json::{Value, json};

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("what_bootstrap_prints_connects_the_cluster", bootstrap),
    ("inputs_are_rendered_without_a_cluster_as_on_it", rendered),
    ("over_tls_it_trusts_the_ca_that_it_is_given_and_no_other", trusting),
];

/// `frs` with a token, asking at an address.
fn command(world: &World, url: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(our_command_line()?);
    command
        .args(arguments)
        .env("FLUX_API_URL", url)
        .env("FLUX_API_TOKEN", ADMIN_TOKEN)
        .env("FLUX_CLUSTER_TOKEN", CLUSTER_TOKEN)
        .env("FLUX_API_CONFIG", world.folder().join("frs.yaml"));
    Ok(command)
}

/// What `frs` prints.
fn frs(world: &World, arguments: &[&str]) -> Result<String> {
    let output = command(world, &world.service.manage_url(), arguments)?.output()?;
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
            let live = world.east.kube.run_with(&["get", "-o", "json", "-f", "-"], &object.to_string())?;
            let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
            // What comes from a file, kubectl answers as a list.
            let live: Value = serde_json::from_str(&live)?;
            is_in(&what, &object, live["items"].get(0).unwrap_or(&live))?;
        }
    }
    Ok(())
}

/// An error unless everything that one value says is in the other, which may say more.
fn is_in(place: &str, part: &Value, whole: &Value) -> Result<()> {
    match (part, whole) {
        // Kubernetes does not keep what is empty.
        (Value::Object(part), Value::Null) if part.is_empty() => Ok(()),
        (Value::Array(part), Value::Null) if part.is_empty() => Ok(()),
        (Value::Object(part), Value::Object(whole)) => part.iter().try_for_each(|(name, value)| {
            is_in(&format!("{place}/{name}"), value, whole.get(name).unwrap_or(&Value::Null))
        }),
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => part
            .iter()
            .zip(whole)
            .enumerate()
            .try_for_each(|(number, (part, whole))| is_in(&format!("{place}/{number}"), part, whole)),
        _ => {
            ensure!(part == whole, "{place} is {part} when it is rendered, and {whole} on the cluster");
            Ok(())
        }
    }
}

fn trusting(world: &mut World) -> Result<()> {
    let front = world.authority.front(world.service.manage_address().parse()?)?;
    let url = format!("https://{front}");
    let arguments = ["get", "cluster", "east", "-o", "name"];

    let output = command(world, &url, &arguments)?.output()?;
    let told = String::from_utf8(output.stderr)?;
    ensure!(
        output.status.code() == Some(1) && output.stdout.is_empty() && told.contains("certificate"),
        "{told}"
    );

    let ca = world.folder().join("ca.crt");
    world.authority.write(&ca)?;
    let output = command(world, &url, &arguments)?.env("FLUX_API_CA_FILE", &ca).output()?;
    let told = String::from_utf8(output.stderr)?;
    ensure!(output.status.success() && output.stdout == b"clusters/east\n", "{told}{:?}", output.stdout);

    let another = world.folder().join("another-ca.crt");
    Authority::new()?.write(&another)?;
    let output = command(world, &url, &arguments)?.env("FLUX_API_CA_FILE", &another).output()?;
    ensure!(output.status.code() == Some(1) && output.stdout.is_empty(), "it trusts anybody");
    Ok(())
}
