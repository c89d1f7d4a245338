//! A cluster of the fleet: a control plane with Flux, and `cluster/` applied to it as the book tells a reader to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::artifacts;
use crate::checkout::repository;
use crate::control_plane::ControlPlane;
use crate::flux::Flux;
use crate::kube::{Kind, Kube, Place, name, uid};
use crate::parts::Parts;
use crate::registry::{Content, Registry};
use crate::service::{CLUSTER_TOKEN, Service};
use crate::wait::until;

/// The shipped kinds that a cluster polls for, each with a provider and a set of that name.
pub const KINDS: [&str; 3] = ["platform-components", "namespaces", "rolebindings"];

/// What a plane and its components make.
const MADE: [Kind; 10] = [
    Kind::CLUSTER_ROLE_BINDING,
    Kind::CONFIG_MAP,
    Kind::DEPLOYMENT,
    Kind::HELM_RELEASE,
    Kind::HELM_REPOSITORY,
    Kind::KUSTOMIZATION,
    Kind::NAMESPACE,
    Kind::OCI_REPOSITORY,
    Kind::PROVIDER,
    Kind::RESOURCE_SET,
];

/// What is there: namespace, kind and name of each object, and its uid.
pub type Everything = BTreeMap<String, String>;

/// Who a cluster is.
#[derive(Clone, Debug)]
pub struct Identity {
    pub name: String,
    pub dns: String,
    pub environment: String,
}

impl Identity {
    pub fn new(name: &str, environment: &str) -> Self {
        Self {
            name: name.to_owned(),
            dns: format!("{name}.k8s.example.com"),
            environment: environment.to_owned(),
        }
    }
}

/// Where the plane comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// An OCI artifact that holds the content of `cluster/`.
    Oci(String),
    /// A Git repository that holds `cluster/`.
    Git(String),
}

/// What the bootstrap of a cluster says beside its identity.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Where the service is.
    pub api: String,
    pub token: String,
    pub source: Source,
    /// The folder of `cluster/` that is applied.
    pub path: String,
}

/// Where the artifact with `cluster/` is in a registry.
const PLANE: &str = "platform/cluster-plane";

impl Bootstrap {
    /// Puts `cluster/` into a registry, as whoever connects a fleet does once.
    pub fn publish(registry: &Registry) -> Result<()> {
        registry
            .push(PLANE, "latest", Content::Folder, &artifacts::folder(&repository().join("cluster"))?)
            .map(drop)
    }

    /// With the plane from that registry, to follow a service on this machine.
    pub fn demo(service: &Service, registry: &Registry) -> Self {
        Self {
            api: service.poll_url(),
            token: CLUSTER_TOKEN.to_owned(),
            source: Source::Oci(registry.url(PLANE)),
            path: "demo".to_owned(),
        }
    }
}

/// A cluster.
#[derive(Debug)]
pub struct Cluster {
    pub identity: Identity,
    pub kube: Kube,
    pub flux: Flux,
    plane: ControlPlane,
    folder: PathBuf,
}

impl Cluster {
    /// Starts its control plane and Flux. It follows nobody yet.
    pub fn start(
        parts: &Parts,
        identity: Identity,
        trusted: &Path,
        folder: &Path,
        logs: &Path,
    ) -> Result<Self> {
        std::fs::create_dir_all(logs)?;
        let plane = ControlPlane::start(parts, folder, logs)?;
        let flux = Flux::start(parts, &plane, trusted, folder, logs)?;
        Ok(Self { identity, kube: plane.kube.clone(), flux, plane, folder: folder.to_owned() })
    }

    /// The manifests that connect it: a folder of `cluster/bootstrap` with this cluster's values, by kustomize.
    fn bootstrap_manifests(&self, bootstrap: &Bootstrap) -> Result<String> {
        // Kustomize takes only what is below its own folder, or a relative path to another one.
        let folder = self.folder.join("bootstrap");
        std::fs::create_dir_all(&folder)?;
        let base = folder.join("cluster");
        if !base.exists() {
            std::os::unix::fs::symlink(repository().join("cluster"), &base)?;
        }
        let (bootstrap_folder, source, url, path) = match &bootstrap.source {
            Source::Oci(url) => ("oci", "OCIRepository", url, format!("./{}", bootstrap.path)),
            Source::Git(url) => ("git", "GitRepository", url, format!("./cluster/{}", bootstrap.path)),
        };
        let patched =
            |kind: &str, patch: &Value| json!({"target": {"kind": kind}, "patch": patch.to_string()});
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [format!("cluster/bootstrap/{bootstrap_folder}")],
            "patches": [
                patched("ConfigMap", &json!([
                    {"op": "replace", "path": "/data/CLUSTER_NAME", "value": self.identity.name},
                    {"op": "replace", "path": "/data/CLUSTER_DNS", "value": self.identity.dns},
                    {"op": "replace", "path": "/data/ENVIRONMENT", "value": self.identity.environment},
                    {"op": "replace", "path": "/data/INTERNAL_API_URL", "value": bootstrap.api},
                ])),
                patched("Secret", &json!([{"op": "replace", "path": "/stringData/token", "value": bootstrap.token}])),
                patched(source, &json!([{"op": "replace", "path": "/spec/url", "value": url}])),
                patched("Kustomization", &json!([{"op": "replace", "path": "/spec/path", "value": path}])),
            ],
        });
        std::fs::write(folder.join("kustomization.yaml"), kustomization.to_string())?;
        self.kube.run(&["kustomize", &folder.display().to_string()])
    }

    /// Connects it.
    pub fn connect(&self, bootstrap: &Bootstrap) -> Result<()> {
        self.kube.apply(&self.bootstrap_manifests(bootstrap)?)?;
        self.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "cluster-plane")).map(drop)
    }

    /// Its provider of a kind asks now; waits until it has taken the answer, and says the revision of it.
    pub fn poll(&self, kind: &str) -> Result<String> {
        let place = Place::flux(Kind::PROVIDER, kind);
        self.kube.reconciled(&place)?;
        let provider = self.kube.ready(&place)?;
        let revision = provider["status"]["lastExportedRevision"].as_str().context("a revision")?;
        Ok(revision.to_owned())
    }

    /// [`Cluster::poll`] of every kind.
    pub fn poll_all(&self) -> Result<Vec<String>> {
        KINDS.iter().map(|kind| self.poll(kind)).collect()
    }

    /// The set of a kind is applied as its provider has it now.
    pub fn applied(&self, kind: &str) -> Result<Value> {
        let place = Place::flux(Kind::RESOURCE_SET, kind);
        self.kube.reconciled(&place)?;
        self.kube.ready(&place)
    }

    /// Asks now for what changed in a kind, and has it applied.
    pub fn follow(&self, kind: &str) -> Result<()> {
        self.poll(kind)?;
        self.applied(kind).map(drop)
    }

    /// [`Cluster::follow`] of every kind.
    pub fn follow_all(&self) -> Result<()> {
        KINDS.iter().try_for_each(|kind| self.follow(kind))
    }

    /// Follows, and sees that nothing was made, made again or deleted since.
    pub fn unchanged_since(&self, before: &Everything) -> Result<()> {
        self.follow_all()?;
        self.same_as(before)
    }

    /// Sees that what is there now is this, to the uid.
    pub fn same_as(&self, expected: &Everything) -> Result<()> {
        let found = self.everything()?;
        let lost = expected
            .iter()
            .filter(|entry| found.get(entry.0) != Some(entry.1))
            .map(|entry| format!("- {} {}", entry.0, entry.1));
        let new = found
            .iter()
            .filter(|entry| expected.get(entry.0) != Some(entry.1))
            .map(|entry| format!("+ {} {}", entry.0, entry.1));
        let difference: Vec<String> = lost.chain(new).collect();
        ensure!(difference.is_empty(), "{}", difference.join("\n"));
        Ok(())
    }

    /// Gives its providers another token to show.
    pub fn show_token(&self, token: &str) -> Result<()> {
        self.kube
            .patch(&Place::flux(Kind::SECRET, "flux-resourceset"), &json!({"stringData": {"token": token}}))
            .map(drop)
    }

    /// An error if one of its processes has ended.
    pub fn alive(&mut self) -> Result<()> {
        self.plane.alive()?;
        self.flux.alive()
    }

    /// What a set says it made.
    pub fn inventory(&self, kind: &str) -> Result<Vec<String>> {
        let set = self.kube.get(&Place::flux(Kind::RESOURCE_SET, kind))?;
        let entries = set["status"]["inventory"]["entries"].as_array().cloned().unwrap_or_default();
        Ok(entries.iter().filter_map(|entry| Some(entry["id"].as_str()?.to_owned())).collect())
    }

    /// A release is there, in this version, and its Deployment has so many pods Running.
    pub fn runs(&self, component: &str, version: &str, replicas: usize) -> Result<()> {
        self.kube.ready(&Place::flux(Kind::HELM_RELEASE, component))?;
        until(&format!("{component} {version} runs {replicas} times"), || {
            let deployment = self.kube.get(&Place::new(Kind::DEPLOYMENT, component, component))?;
            let image =
                deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            ensure!(image.ends_with(&format!(":{version}")), "its image is {image}");
            let pods = self.kube.list(Kind::POD, Some(component))?;
            let running = pods.iter().filter(|pod| {
                pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
            });
            let running = running.filter(|pod| pod["spec"]["containers"][0]["image"] == image).count();
            ensure!(running == replicas, "{running} of its pods run");
            Ok(())
        })
    }

    /// Everything that is there, of every kind that the plane or its components make: path and uid.
    pub fn everything(&self) -> Result<Everything> {
        let mut all = Everything::new();
        for kind in MADE {
            for object in self.kube.list(kind, None)? {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                let leaving =
                    if object["metadata"]["deletionTimestamp"].is_null() { "" } else { " (leaving)" };
                all.insert(format!("{namespace}/{kind}/{}{leaving}", name(&object)), uid(&object).to_owned());
            }
        }
        Ok(all)
    }

    /// Changes the sync, and waits until it is applied.
    pub fn resync(&self, spec: &Value) -> Result<()> {
        let place = Place::flux(Kind::KUSTOMIZATION, "cluster-plane");
        self.kube.patch(&place, &json!({"spec": spec}))?;
        if spec["suspend"] == true {
            return Ok(());
        }
        self.kube.reconciled(&place)?;
        self.kube.ready(&place).map(drop)
    }

    /// Somebody scales a release's Deployment by hand; waits until Flux has put it back.
    pub fn puts_replicas_back(&self, component: &str) -> Result<()> {
        let deployment = Place::new(Kind::DEPLOYMENT, component, component);
        let replicas = || -> Result<Value> { Ok(self.kube.get(&deployment)?["spec"]["replicas"].clone()) };
        let before = replicas()?;
        self.kube.patch(&deployment, &json!({"spec": {"replicas": 7}}))?;
        self.kube.reconciled(&Place::flux(Kind::HELM_RELEASE, component))?;
        until("the replicas are put back", || {
            let found = replicas()?;
            ensure!(found == before, "{found}, not {before}");
            Ok(())
        })
    }

    /// The memory of the control plane and of Flux, in MiB.
    pub fn memory(&self) -> (u64, u64) {
        (self.plane.memory(), self.flux.memory())
    }
}
