//! A Kubernetes API as its users have it: `kubectl` for manifests, and plain requests (through `kubectl proxy`) for all that is looked at
//! a thousand times.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use reqwest::StatusCode;
use reqwest::blocking::{Client, Response};
use serde_json::{Value, json};

use crate::wait::until;

/// Where Flux and everything of the plane lives.
pub const FLUX: &str = "flux-system";

/// A kind of object: how its path begins, and its plural.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kind {
    api: &'static str,
    plural: &'static str,
}

impl Kind {
    pub const CLUSTER_ROLE_BINDING: Self =
        Self { api: "apis/rbac.authorization.k8s.io/v1", plural: "clusterrolebindings" };
    pub const CONFIG_MAP: Self = Self { api: "api/v1", plural: "configmaps" };
    pub const CRD: Self = Self { api: "apis/apiextensions.k8s.io/v1", plural: "customresourcedefinitions" };
    pub const DEPLOYMENT: Self = Self { api: "apis/apps/v1", plural: "deployments" };
    pub const HELM_RELEASE: Self = Self { api: "apis/helm.toolkit.fluxcd.io/v2", plural: "helmreleases" };
    pub const HELM_REPOSITORY: Self =
        Self { api: "apis/source.toolkit.fluxcd.io/v1", plural: "helmrepositories" };
    pub const KUSTOMIZATION: Self =
        Self { api: "apis/kustomize.toolkit.fluxcd.io/v1", plural: "kustomizations" };
    pub const NAMESPACE: Self = Self { api: "api/v1", plural: "namespaces" };
    pub const NODE: Self = Self { api: "api/v1", plural: "nodes" };
    pub const OCI_REPOSITORY: Self =
        Self { api: "apis/source.toolkit.fluxcd.io/v1", plural: "ocirepositories" };
    pub const POD: Self = Self { api: "api/v1", plural: "pods" };
    pub const PROVIDER: Self =
        Self { api: "apis/fluxcd.controlplane.io/v1", plural: "resourcesetinputproviders" };
    pub const RESOURCE_SET: Self = Self { api: "apis/fluxcd.controlplane.io/v1", plural: "resourcesets" };
    pub const SECRET: Self = Self { api: "api/v1", plural: "secrets" };

    fn path(self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = self.api.to_owned();
        if let Some(namespace) = namespace {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.plural)
    }
}

/// An object's place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    kind: Kind,
    namespace: Option<String>,
    name: String,
}

impl Place {
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: Some(namespace.to_owned()), name: name.to_owned() }
    }

    /// In the namespace of Flux.
    pub fn flux(kind: Kind, name: &str) -> Self {
        Self::new(kind, FLUX, name)
    }

    /// In no namespace.
    pub fn global(kind: Kind, name: &str) -> Self {
        Self { kind, namespace: None, name: name.to_owned() }
    }

    fn path(&self) -> String {
        self.kind.path(self.namespace.as_deref(), Some(&self.name))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// One Kubernetes API.
#[derive(Clone, Debug)]
pub struct Kube {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    proxy: String,
    client: Client,
}

impl Kube {
    /// `proxy` is the address of a `kubectl proxy`.
    pub fn new(kubectl: &Path, kubeconfig: &Path, proxy: &str) -> Result<Self> {
        // With a name of its own: what kubectl has set, Flux takes over.
        let client = Client::builder().user_agent("e2e").build()?;
        Ok(Self {
            kubectl: kubectl.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            proxy: proxy.to_owned(),
            client,
        })
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The command, for this cluster.
    fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).stdin(Stdio::null());
        command
    }

    /// What `kubectl` prints.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_with(arguments, "")
    }

    /// What `kubectl` prints, with something on its stdin.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = self.kubectl();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        child.stdin.take().context("stdin")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "kubectl {}: {out}{err}", arguments.join(" "));
        Ok(out.into_owned())
    }

    /// Applies manifests, as a user would.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        self.run_with(&["apply", "--server-side", "--force-conflicts", "-f", "-"], manifests)
    }

    /// Applies objects, as a user would a file of them.
    pub fn apply_all(&self, objects: &[Value]) -> Result<String> {
        self.apply(&objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.proxy)
    }

    /// The object, if it is there.
    pub fn find(&self, place: &Place) -> Result<Option<Value>> {
        let answer = self.client.get(self.url(&place.path())).send()?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        accepted(answer).map(Some)
    }

    pub fn get(&self, place: &Place) -> Result<Value> {
        self.find(place)?.with_context(|| format!("{place} is not there"))
    }

    /// All of a kind, in one namespace or everywhere.
    pub fn list(&self, kind: Kind, namespace: Option<&str>) -> Result<Vec<Value>> {
        let mut list = accepted(self.client.get(self.url(&kind.path(namespace, None))).send()?)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            other => bail!("no list of {}: {other}", kind.plural),
        }
    }

    /// Changes an object by an RFC 7396 patch.
    pub fn patch(&self, place: &Place, patch: &Value) -> Result<Value> {
        let request =
            self.client.patch(self.url(&place.path())).header("Content-Type", "application/merge-patch+json");
        accepted(request.body(patch.to_string()).send()?)
    }

    pub fn delete(&self, place: &Place) -> Result<()> {
        accepted(self.client.delete(self.url(&place.path())).send()?).map(drop)
    }

    /// Asks Flux to look at an object now.
    pub fn reconcile(&self, place: &Place) -> Result<()> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
        self.patch(
            place,
            &json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": now.to_string()}}}),
        )
        .map(drop)
    }

    /// Asks Flux to look at an object now, and waits until it has.
    pub fn reconciled(&self, place: &Place) -> Result<Value> {
        self.reconcile(place)?;
        until(&format!("{place} is looked at"), || {
            let object = self.get(place)?;
            let asked = &object["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"];
            ensure!(&object["status"]["lastHandledReconcileAt"] == asked, "it was not yet");
            Ok(object)
        })
    }

    /// Waits until an object is there and Ready, and its controller has seen its newest form.
    pub fn ready(&self, place: &Place) -> Result<Value> {
        until(&format!("{place} is ready"), || {
            let object = self.get(place)?;
            let (status, message) = condition(&object, "Ready");
            ensure!(status == "True", "Ready is {status:?}: {message}");
            if let Some(observed) = object["status"]["observedGeneration"].as_i64() {
                ensure!(
                    Some(observed) == object["metadata"]["generation"].as_i64(),
                    "its newest form is not seen yet"
                );
            }
            Ok(object)
        })
    }

    /// Asks Flux to look at an object now, and waits until it says that it cannot, and says this about it.
    pub fn fails(&self, place: &Place, saying: &str) -> Result<()> {
        self.reconcile(place)?;
        until(&format!("{place} fails"), || {
            let object = self.get(place)?;
            // Not what it said before it was asked.
            let asked = &object["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"];
            ensure!(&object["status"]["lastHandledReconcileAt"] == asked, "it was not looked at");
            let (status, message) = condition(&object, "Ready");
            ensure!(status == "False" && message.contains(saying), "Ready is {status:?}: {message}");
            Ok(())
        })
    }

    /// Waits until an object is gone.
    pub fn gone(&self, place: &Place) -> Result<()> {
        until(&format!("{place} is gone"), || {
            ensure!(self.find(place)?.is_none(), "it is there");
            Ok(())
        })
    }
}

fn accepted(answer: Response) -> Result<Value> {
    let status = answer.status();
    let url = answer.url().clone();
    let body = answer.text()?;
    ensure!(status.is_success(), "{url}: {status}: {body}");
    Ok(serde_json::from_str(&body)?)
}

/// The status and the message of a condition.
pub fn condition<'a>(object: &'a Value, kind: &str) -> (&'a str, &'a str) {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind);
    let text = |field: &str| found.and_then(|condition| condition[field].as_str()).unwrap_or_default();
    (text("status"), text("message"))
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
