//! The whole loop: one service, one registry, one chart repository, two clusters with different identities.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::artifacts;
use crate::cluster::{Bootstrap, Cluster, Identity};
use crate::listener::{self, Response};
use crate::parts::Parts;
use crate::registry::{Content, Registry};
use crate::service::Service;
use crate::tls::Authority;

/// All of it. Dropping it ends every process.
#[derive(Debug)]
pub struct World {
    pub parts: Parts,
    /// A cluster of environment `dev`.
    pub east: Cluster,
    /// A cluster of environment `prod`.
    pub west: Cluster,
    pub service: Service,
    pub registry: Registry,
    /// Where the chart repository listens, behind TLS.
    pub charts: SocketAddr,
    pub authority: Authority,
    folder: PathBuf,
}

impl World {
    /// Starts everything with its logs and data in a folder, connects both clusters, and says how far it is.
    pub fn start(folder: &Path) -> Result<Self> {
        let parts = Parts::build()?;
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let logs = folder.join("logs");
        std::fs::create_dir_all(&logs)?;
        let began = Instant::now();
        let say = |what: &str| eprintln!("e2e: {:5.1} s  {what}", began.elapsed().as_secs_f32());
        say(&format!("logs are in {}", logs.display()));

        let authority = Authority::new()?;
        let trusted = folder.join("trusted.pem");
        authority.write(&trusted)?;
        let registry = Registry::start(&parts, &logs)?;
        fill(&registry)?;
        let charts = chart_repository()?;
        let seed = fleet(&registry, authority.front(charts)?);
        let service = Service::start(&folder.join("service"), &logs, &seed)?;
        say("the service, the registry and the chart repository answer");

        let start = |name: &str, environment: &str| {
            let identity = Identity::new(name, environment);
            Cluster::start(&parts, identity, &trusted, &folder.join(name), &logs.join(name))
        };
        let east = start("east", "dev")?;
        say("the control plane and Flux of east run");
        let west = start("west", "prod")?;
        say("the control plane and Flux of west run");
        let world = Self { parts, east, west, service, registry, charts, authority, folder };
        for cluster in [&world.east, &world.west] {
            cluster.connect(&world.bootstrap())?;
            say(&format!("{} follows the service", cluster.identity.name));
        }
        Ok(world)
    }

    /// An error if something has ended that should run.
    pub fn alive(&mut self) -> Result<()> {
        self.east.alive()?;
        self.west.alive()?;
        self.service.alive()
    }

    /// The version of a component that the catalog has.
    pub fn tag(&self, component: &str) -> Result<String> {
        let document = self.service.get(&format!("/platform_components/{component}"))?;
        Ok(document["oci_tag"].as_str().context("a tag")?.to_owned())
    }

    /// What both clusters are connected with.
    pub fn bootstrap(&self) -> Bootstrap {
        Bootstrap::demo(&self.service, &self.registry)
    }

    /// Ends all of it, and removes its data; its logs too, unless they are to be kept. Says where they are.
    pub fn end(self, keep_logs: bool) -> Result<PathBuf> {
        let folder = self.folder.clone();
        drop(self);
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            match (path.is_dir(), keep_logs && path.ends_with("logs")) {
                (_, true) => {}
                (true, false) => std::fs::remove_dir_all(&path)?,
                (false, false) => std::fs::remove_file(&path)?,
            }
        }
        if !keep_logs {
            std::fs::remove_dir(&folder)?;
        }
        Ok(folder.join("logs"))
    }

    /// Where logs and data of this run are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Charts, overlays and the plane, as they would be published.
fn fill(registry: &Registry) -> Result<()> {
    for chart in ["podinfo", "agent"] {
        for version in ["1.0.0", "1.1.0", "2.0.0"] {
            registry.push(
                &format!("charts/{chart}"),
                version,
                Content::Chart,
                &artifacts::chart(chart, version)?,
            )?;
        }
    }
    for release in ["v1.0.0", "v1.0.0-1"] {
        let overlays = artifacts::overlays("baseline", "1.0.0", release)?;
        registry.push("platform/manifests", release, Content::Folder, &overlays)?;
    }
    Bootstrap::publish(registry)
}

/// A repository of charts as plain files: an index, and an archive for each version.
fn chart_repository() -> Result<SocketAddr> {
    let versions = ["1.0.0", "1.1.0"];
    let entries: Vec<Value> = versions
        .iter()
        .map(|version| {
            json!({
                "apiVersion": "v2", "name": "exporter", "version": version, "created": "2026-01-01T00:00:00Z",
                "urls": [format!("exporter-{version}.tgz")],
            })
        })
        .collect();
    let index =
        json!({"apiVersion": "v1", "generated": "2026-01-01T00:00:00Z", "entries": {"exporter": entries}})
            .to_string();
    let mut files = vec![("/index.yaml".to_owned(), index.into_bytes())];
    for version in versions {
        files.push((format!("/exporter-{version}.tgz"), artifacts::chart("exporter", version)?));
    }
    listener::serve(move |request| match files.iter().find(|(path, _)| *path == request.path) {
        Some((_, content)) => Response { body: content.clone(), ..Response::status(200) },
        None => Response::status(404),
    })
}

/// The fleet that the stories begin with.
fn fleet(registry: &Registry, charts: SocketAddr) -> Value {
    json!({
        "platform_components": [
            {"id": "podinfo", "component_path": "podinfo", "delivery": "helm", "oci_url": registry.url("charts/podinfo"), "oci_tag": "1.0.0"},
            {"id": "agent", "component_path": "agent", "delivery": "helm", "oci_url": registry.url("charts/agent"), "oci_tag": "1.0.0", "depends_on": ["podinfo"]},
            {"id": "exporter", "component_path": "exporter", "oci_url": format!("https://{charts}"), "oci_tag": "1.0.0"},
            {"id": "baseline", "component_path": "core/baseline/1.0.0", "oci_url": registry.url("platform/manifests"), "oci_tag": "v1.0.0", "cluster_env_enabled": true},
        ],
        "namespaces": [
            {"id": "team-a", "labels": {"team": "a"}, "annotations": {"example.com/owner": "a@example.com"}},
            {"id": "team-b", "labels": {"team": "b"}},
            {"id": "bare"},
        ],
        "rolebindings": [
            {"id": "viewers", "role": "view", "subjects": [{"kind": "Group", "name": "viewers"}]},
            {"id": "operators", "role": "edit", "subjects": [
                {"kind": "User", "name": "jo", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "ServiceAccount", "name": "deployer", "namespace": "team-a"},
            ]},
        ],
        "clusters": [
            {
                "id": "east", "cluster_name": "east", "cluster_dns": "east.k8s.example.com", "environment": "dev",
                "platform_components": [{"id": "podinfo"}, {"id": "agent"}, {"id": "exporter"}, {"id": "baseline"}],
                "namespaces": [{"id": "team-a"}, {"id": "bare"}],
                "rolebindings": [{"id": "viewers"}],
                "patches": {"baseline": {"LOG_LEVEL": "debug"}},
            },
            {
                "id": "west", "cluster_name": "west", "cluster_dns": "west.k8s.example.com", "environment": "prod",
                "platform_components": [{"id": "podinfo"}, {"id": "baseline"}],
                "namespaces": [{"id": "team-a"}, {"id": "team-b"}],
                "rolebindings": [{"id": "viewers"}, {"id": "operators"}],
                "patches": {"podinfo": {"replicaCount": "2", "ui.message": "west"}},
            },
        ],
    })
}
