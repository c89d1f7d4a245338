//! From the identity to what runs.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::artifacts;
use e2e::checkout::repository;
use e2e::cluster::{Bootstrap, Source};
use e2e::git;
use e2e::kube::{Kind, Place, name};
use e2e::registry::Content;
use e2e::world::World;
use serde_json::{Value, json};

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("a_cluster_becomes_what_its_record_says_from_its_identity_alone", from_identity_alone),
    ("another_identity_gets_another_state_from_the_same_service", another_identity),
    ("the_plane_may_come_from_git_as_well", from_git),
    ("a_flux_instance_brings_the_same_sync", flux_instance),
];

fn from_identity_alone(world: &mut World) -> Result<()> {
    let east = &world.east;
    for kind in e2e::cluster::KINDS {
        let provider = east.kube.ready(&Place::flux(Kind::PROVIDER, kind))?;
        let every = &provider["metadata"]["annotations"]["fluxcd.controlplane.io/reconcileEvery"];
        ensure!(every == "30s" && provider["spec"]["insecure"] == true, "this is not the demo: {provider}");
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

fn from_git(world: &mut World) -> Result<()> {
    let west = &world.west;
    let before = west.everything()?;
    let url = git::serve(&world.folder().join("git"), &repository().join("cluster"), "cluster")?;
    west.connect(&Bootstrap { source: Source::Git(url), ..world.bootstrap() })?;
    let sync = west.kube.reconciled(&Place::flux(Kind::KUSTOMIZATION, "cluster-plane"))?;
    let revision = sync["status"]["lastAppliedRevision"].as_str().unwrap_or_default();
    ensure!(revision.starts_with("main@sha1:"), "{revision}");
    west.unchanged_since(&before)?;
    west.connect(&world.bootstrap())
}

/// Nothing here can run the containers that a FluxInstance installs; but its own operator builds what it would apply.
fn flux_instance(world: &mut World) -> Result<()> {
    let repository_of_flux = "flux-operator-manifests";
    let distribution = artifacts::folder(&world.parts.distribution().canonicalize()?)?;
    world.registry.push(repository_of_flux, "latest", Content::Folder, &distribution)?;
    let west = &world.west;
    let folder = repository().join("cluster/bootstrap/flux-instance");
    let output = Command::new(world.parts.binary("flux-operator-cli"))
        .args(["build", "instance", "-f"])
        .arg(folder.join("flux-instance.yaml"))
        .arg(format!("--distribution-artifact={}:latest", world.registry.url(repository_of_flux)))
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(output.stdout)?)?;
    let find = |kind: &str, name: &str| {
        let found =
            objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.with_context(|| format!("it brings no {kind} {name}"))
    };
    let source = find("OCIRepository", "cluster-plane")?;
    ensure!(source["spec"]["url"] == "oci://registry.example.com/platform/cluster-plane", "{source}");
    // The same as by hand, but for what only differs in form.
    let sync = &find("Kustomization", "cluster-plane")?["spec"];
    let by_hand: Vec<Value> =
        serde_saphyr::from_multiple(&std::fs::read_to_string(folder.join("../oci/sync.yaml"))?)?;
    for field in ["path", "prune", "deletionPolicy", "retryInterval", "timeout", "sourceRef", "postBuild"] {
        ensure!(
            sync[field] == by_hand[1]["spec"][field],
            "{field}: {} is not {}",
            sync[field],
            by_hand[1]["spec"][field]
        );
    }
    // An Alert may name the operator's own kinds, which `cluster/alerts` needs.
    let alerts = find("CustomResourceDefinition", "alerts.notification.toolkit.fluxcd.io")?.to_string();
    ensure!(alerts.contains("\"ResourceSetInputProvider\""), "an Alert cannot name a provider");
    let manifests = west.kube.run(&["kustomize", &folder.display().to_string()])?;
    west.kube
        .run_with(&["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-"], &manifests)
        .map(drop)
}
