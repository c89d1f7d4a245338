//! The Flux Operator and Flux's controllers, unmodified, on one cluster.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::control_plane::ControlPlane;
use crate::kube::{FLUX, Kind, Kube, Place};
use crate::parts::Parts;
use crate::ports;
use crate::process::{Process, Program};

/// What a plane needs of Flux.
const CONTROLLERS: [&str; 5] = [
    "flux-operator",
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
];

/// Flux on one cluster.
#[derive(Debug)]
pub struct Flux {
    operator: Option<Process>,
    operator_program: Program,
    operator_metrics: String,
    controllers: Vec<Process>,
}

impl Flux {
    /// Adds the kinds of Flux and starts its controllers. `trusted` is a file with the certificates that its sources may show.
    pub fn start(
        parts: &Parts,
        plane: &ControlPlane,
        trusted: &Path,
        folder: &Path,
        logs: &Path,
    ) -> Result<Self> {
        // source-controller ends at once without its kinds.
        for controller in CONTROLLERS {
            plane.establish(&parts.crds(controller))?;
        }
        let_alerts_name_sets(&plane.kube)?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FLUX}});
        plane.kube.apply(&namespace.to_string())?;

        let kubeconfig = plane.kube.kubeconfig().display().to_string();
        let [storage, events, receiver] = ports::free()?;
        let events = format!("127.0.0.1:{events}");
        let program = |name: &str| -> Result<(Program, String)> {
            let [metrics, health] = ports::free()?;
            let metrics = format!("127.0.0.1:{metrics}");
            let program = Program::new(name, &parts.binary(name), logs)
                .arguments([format!("--metrics-addr={metrics}"), format!("--health-addr=127.0.0.1:{health}")])
                .arguments(["--enable-leader-election=false", "--log-level=info"])
                .with("KUBECONFIG", &kubeconfig)
                .with("RUNTIME_NAMESPACE", FLUX);
            Ok((program, metrics))
        };
        let watching = |name: &str| -> Result<Program> {
            Ok(program(name)?
                .0
                .arguments(["--watch-all-namespaces=true"])
                .with("TMPDIR", folder.display().to_string()))
        };
        let storage = format!("127.0.0.1:{storage}");
        let events_arguments = [format!("--events-addr=http://{events}/")];
        let source = watching("source-controller")?.with("SSL_CERT_FILE", trusted.display().to_string());
        let source = source.arguments(events_arguments.clone()).arguments([
            format!("--storage-path={}", folder.join("artifacts").display()),
            format!("--storage-addr={storage}"),
            format!("--storage-adv-addr={storage}"),
        ]);
        let kustomize = watching("kustomize-controller")?
            .arguments(events_arguments.clone())
            .arguments(["--requeue-dependency=5s"]);
        let helm =
            watching("helm-controller")?.arguments(events_arguments).arguments(["--requeue-dependency=5s"]);
        let notification = watching("notification-controller")?
            .arguments([format!("--events-addr={events}"), format!("--receiverAddr=127.0.0.1:{receiver}")]);
        std::fs::create_dir_all(folder.join("artifacts"))?;

        let (operator_program, operator_metrics) = program("flux-operator")?;
        let operator_program = operator_program
            // Polls come when a story expects them.
            .arguments(["--web-server-port=0", "--interval-jitter-percentage=0"])
            .arguments([format!("--storage-path={}", folder.join("operator").display())])
            // It ends at once without.
            .with("GODEBUG", "fips140=on")
            .with("NOTIFICATION_CONTROLLER_ADDRESS", format!("http://{events}/"));

        let controllers =
            [notification, source, kustomize, helm].iter().map(Program::start).collect::<Result<_>>()?;
        let operator = Some(operator_program.start()?);
        Ok(Self { operator, operator_program, operator_metrics, controllers })
    }

    /// Ends the operator, as a node that dies does.
    pub fn kill_operator(&mut self) -> Result<()> {
        self.operator.take().context("the operator runs")?.kill()
    }

    pub fn start_operator(&mut self) -> Result<()> {
        self.operator = Some(self.operator_program.start()?);
        Ok(())
    }

    /// What the operator tells Prometheus.
    pub fn operator_metrics(&self) -> Result<String> {
        Ok(reqwest::blocking::get(format!("http://{}/metrics", self.operator_metrics))?
            .error_for_status()?
            .text()?)
    }

    /// An error if one of them has ended.
    pub fn alive(&mut self) -> Result<()> {
        self.operator.iter_mut().chain(&mut self.controllers).try_for_each(Process::alive)
    }

    /// The memory of all its processes, in MiB.
    pub fn memory(&self) -> u64 {
        self.operator.iter().chain(&self.controllers).map(Process::memory).sum()
    }
}

/// The operator lets an Alert name its own kinds, where it installs Flux. Here nothing installs Flux, so it is done by hand.
fn let_alerts_name_sets(kube: &Kube) -> Result<()> {
    let place = Place::global(Kind::CRD, "alerts.notification.toolkit.fluxcd.io");
    let mut alerts = kube.get(&place)?;
    let versions = alerts["spec"]["versions"].as_array_mut().context("versions of Alert")?;
    for version in versions.iter_mut() {
        let kinds = version
            .pointer_mut(
                "/schema/openAPIV3Schema/properties/spec/properties/eventSources/items/properties/kind/enum",
            )
            .and_then(|kinds| kinds.as_array_mut())
            .context("the kinds that an Alert may name")?;
        kinds.extend(["ResourceSet", "ResourceSetInputProvider"].map(Into::into));
    }
    let patch = json!({"spec": {"versions": versions}});
    kube.patch(&place, &patch).map(drop)
}
