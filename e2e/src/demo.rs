//! The demo: the service with the fleet of `data/seed.json`, and one cluster of that fleet that follows it. What the fleet's components come
//! from is on the Internet; here a registry of our own serves something of the same name and version in its place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::artifacts;
use crate::checkout::repository;
use crate::cluster::{Bootstrap, Cluster, Identity};
use crate::kube::{Kind, Place};
use crate::parts::Parts;
use crate::registry::{Content, Registry};
use crate::service::{ADMIN_TOKEN, CLUSTER_TOKEN, Service};

/// The cluster that is there. Of the others the service has the records, and that is all there is of them.
const CLUSTER: &str = "demo-cluster-01";

/// Versions that no record names yet.
const NEWER: [(&str, &str); 1] = [("podinfo", "6.9.0")];

/// All of it. Dropping it ends every process.
#[derive(Debug)]
pub struct Demo {
    parts: Parts,
    cluster: Cluster,
    pub service: Service,
    _registry: Registry,
}

impl Demo {
    /// Starts everything with its logs and data in a folder, waits until the cluster has what its record says, and says how far it is.
    pub fn start(folder: &Path) -> Result<Self> {
        let parts = Parts::build()?;
        let folder = folder.canonicalize()?;
        let logs = folder.join("logs");
        std::fs::create_dir_all(&logs)?;
        let began = Instant::now();
        let say = |what: &str| eprintln!("demo: {:5.1} s  {what}", began.elapsed().as_secs_f32());
        say(&format!("logs are in {}", logs.display()));

        let seed = std::fs::read_to_string(repository().join("data/seed.json"))?;
        let mut seed: Value = serde_json::from_str(&seed)?;
        let registry = Registry::start(&parts, &logs)?;
        publish(&registry, &mut seed)?;
        let record = records(&seed, "clusters").iter().find(|cluster| cluster["id"] == CLUSTER);
        let record = record.with_context(|| format!("the seed has no cluster {CLUSTER}"))?.clone();
        let service = Service::start(&folder.join("service"), &logs, &seed)?;
        say("the service and the registry answer");

        let identity = Identity::new(CLUSTER, text(&record, "environment"));
        // Nothing here is fetched over TLS.
        let trusted = PathBuf::from("/dev/null");
        let cluster = Cluster::start(&parts, identity, &trusted, &folder.join(CLUSTER), &logs.join(CLUSTER))?;
        say("Kubernetes and Flux run");
        cluster.connect(&Bootstrap::demo(&service, &registry))?;
        say(&format!("{CLUSTER} follows the service"));
        let mut installed = 0;
        for reference in records(&record, "platform_components").iter().filter(|one| one["enabled"] != false)
        {
            let id = text(reference, "id");
            let component = records(&seed, "platform_components").iter().find(|one| one["id"] == id);
            // `publish` has said so of every chart.
            let is_chart = component.is_some_and(|component| component["delivery"] == "helm");
            let kind = if is_chart { Kind::HELM_RELEASE } else { Kind::KUSTOMIZATION };
            cluster.kube.ready(&Place::flux(kind, id))?;
            installed += 1;
        }
        say(&format!("all {installed} enabled components of its record are installed"));
        Ok(Self { parts, cluster, service, _registry: registry })
    }

    /// What somebody needs to use it, a line each: `name=value`.
    pub fn settings(&self) -> String {
        let kubectl = self.parts.binary("kubectl");
        let settings = [
            ("kubeconfig", self.cluster.kube.kubeconfig().display().to_string()),
            ("programs", kubectl.parent().unwrap_or(&kubectl).display().to_string()),
            ("manage_url", self.service.manage_url()),
            ("manage_token", ADMIN_TOKEN.to_owned()),
            ("poll_url", self.service.poll_url()),
            ("poll_token", CLUSTER_TOKEN.to_owned()),
        ];
        settings.map(|(name, value)| format!("{name}={value}")).join("\n") + "\n"
    }

    /// An error if something has ended that should run.
    pub fn alive(&mut self) -> Result<()> {
        self.cluster.alive()?;
        self.service.alive()
    }
}

fn text<'a>(document: &'a Value, field: &str) -> &'a str {
    document[field].as_str().unwrap_or_default()
}

fn records<'a>(document: &'a Value, field: &str) -> &'a [Value] {
    document[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Puts every version of every component that the seed names into the registry, and has the catalog point there. And the plane.
fn publish(registry: &Registry, seed: &mut Value) -> Result<()> {
    let references: Vec<Value> = records(seed, "clusters")
        .iter()
        .flat_map(|cluster| records(cluster, "platform_components"))
        .cloned()
        .collect();
    let catalog = seed["platform_components"].as_array_mut().context("a catalog")?;
    for component in catalog {
        let id = text(component, "id").to_owned();
        let overridden = references.iter().filter(|reference| text(reference, "id") == id);
        let tags: BTreeSet<String> = overridden
            .chain([&*component])
            .map(|document| text(document, "oci_tag").to_owned())
            .chain(NEWER.iter().filter(|(newer, _)| *newer == id).map(|(_, tag)| (*tag).to_owned()))
            .filter(|tag| !tag.is_empty())
            .collect();
        let path = text(component, "component_path").to_owned();
        let is_chart =
            text(component, "delivery") == "helm" || text(component, "oci_url").starts_with("https://");
        let (place, content) = if is_chart {
            (format!("charts/{path}"), Content::Chart)
        } else {
            (format!("manifests/{id}"), Content::Folder)
        };
        for tag in tags {
            let archive =
                if is_chart { artifacts::chart(&path, &tag)? } else { manifests(&path, &id, &tag)? };
            registry.push(&place, &tag, content, &archive)?;
        }
        component["oci_url"] = registry.url(&place).into();
        if is_chart {
            component["delivery"] = json!("helm");
        }
    }
    Bootstrap::publish(registry)
}

/// Manifests of a component, for each environment and for none: a ConfigMap that says what was applied.
fn manifests(path: &str, id: &str, release: &str) -> Result<Vec<u8>> {
    let objects = format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: {id}
  namespace: flux-system
data:
  release: \"{release}\"
  log: \"${{LOG_LEVEL:=info}}\"
  cluster: \"${{CLUSTER_DNS}}\"
"
    );
    let folders = ["", "/dev", "/qa", "/uat", "/prod"];
    let files: Vec<String> = folders.iter().map(|folder| format!("{path}{folder}/objects.yaml")).collect();
    artifacts::archive(files.iter().map(|file| (file.as_str(), objects.as_bytes())))
}
