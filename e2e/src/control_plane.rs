//! A Kubernetes control plane: etcd, API server, controller manager, scheduler, and KWOK, which plays one node and its pods. No kubelet, no
//! containers: a Deployment is scheduled and its pods are Running, but nothing runs in them.

use std::path::Path;

use anyhow::Result;
use rcgen::KeyPair;
use serde_json::json;

use crate::kube::{Kind, Kube, Place, condition};
use crate::parts::Parts;
use crate::ports;
use crate::process::{Process, Program};
use crate::wait::until;

/// What its only user shows. It listens on the loopback, and holds nothing.
const TOKEN: &str = "e2e-kubernetes-admin";

/// The control plane of one cluster.
#[derive(Debug)]
pub struct ControlPlane {
    pub kube: Kube,
    processes: Vec<Process>,
}

impl ControlPlane {
    /// Starts it in a folder of its own, with its node Ready.
    pub fn start(parts: &Parts, folder: &Path, logs: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let [etcd_client, etcd_peer, api, manager, scheduler, proxy] = ports::free()?;
        let file = |name: &str| folder.join(name).display().to_string();
        let program = |name: &str| Program::new(name, &parts.binary(name), logs);

        std::fs::write(folder.join("tokens.csv"), format!("{TOKEN},admin,admin,system:masters\n"))?;
        let service_accounts = KeyPair::generate()?;
        std::fs::write(folder.join("service-accounts.pem"), service_accounts.serialize_pem())?;
        std::fs::write(folder.join("service-accounts.pub"), service_accounts.public_key_pem())?;
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_of(api))?;
        let kubeconfig = kubeconfig.display().to_string();

        let etcd_url = format!("http://127.0.0.1:{etcd_client}");
        let peer_url = format!("http://127.0.0.1:{etcd_peer}");
        let etcd = program("etcd").arguments([
            format!("--data-dir={}", file("etcd")),
            // Nobody needs what it holds after a power cut, and everything is quicker.
            "--unsafe-no-fsync".to_owned(),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
        ]);
        let api_server = program("kube-apiserver").arguments([
            format!("--etcd-servers={etcd_url}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={api}"),
            format!("--cert-dir={}", file("certificates")),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--service-account-issuer=https://127.0.0.1:{api}"),
            format!("--service-account-key-file={}", file("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", file("service-accounts.pem")),
            "--authorization-mode=RBAC".to_owned(),
            // Pods would wait for tokens that nobody mounts.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // Two control planes have the same address; neither is to be found through a Service.
            "--endpoint-reconciler-type=none".to_owned(),
        ]);
        let manager = program("kube-controller-manager").arguments([
            format!("--kubeconfig={kubeconfig}"),
            format!("--service-account-private-key-file={}", file("service-accounts.pem")),
            format!("--secure-port={manager}"),
            format!("--cert-dir={}", file("manager-certificates")),
            "--bind-address=127.0.0.1".to_owned(),
            "--leader-elect=false".to_owned(),
        ]);
        let scheduler = program("kube-scheduler").arguments([
            format!("--kubeconfig={kubeconfig}"),
            format!("--secure-port={scheduler}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--leader-elect=false".to_owned(),
        ]);
        let kwok = program("kwok").arguments([
            format!("--kubeconfig={kubeconfig}"),
            format!("--config={}", parts.stages().display()),
            "--manage-all-nodes=true".to_owned(),
            // Without a lease the node is taken for dead every 45 seconds.
            "--node-lease-duration-seconds=40".to_owned(),
        ]);
        let proxy_program = Program::new("kubectl-proxy", &parts.binary("kubectl"), logs).arguments([
            format!("--kubeconfig={kubeconfig}"),
            "proxy".to_owned(),
            format!("--port={proxy}"),
        ]);

        let kube = Kube::new(
            &parts.binary("kubectl"),
            Path::new(&kubeconfig),
            &format!("http://127.0.0.1:{proxy}"),
        )?;
        let mut plane = Self { kube, processes: vec![etcd.start()?, api_server.start()?] };
        plane.wait_for("the API server answers", |kube| kube.run(&["get", "--raw", "/readyz"]).map(drop))?;
        for program in [manager, scheduler, kwok, proxy_program] {
            plane.processes.push(program.start()?);
        }
        plane.wait_for("kubectl proxy answers", |kube| kube.list(Kind::NAMESPACE, None).map(drop))?;
        plane.add_node()?;
        Ok(plane)
    }

    fn wait_for(&mut self, what: &str, seen: impl Fn(&Kube) -> Result<()>) -> Result<()> {
        until(what, || {
            // One that has ended does not come back: no need to wait for it.
            match self.alive() {
                Ok(()) => seen(&self.kube).map(Ok),
                Err(ended) => Ok(Err(ended)),
            }
        })?
    }

    fn add_node(&mut self) -> Result<()> {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
            "status": {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "1000"}, "capacity": {"cpu": "32", "memory": "256Gi", "pods": "1000"}},
        });
        self.kube.run_with(&["create", "-f", "-"], &node.to_string())?;
        self.wait_for("the node is ready", |kube| {
            let node = kube.get(&Place::global(Kind::NODE, "node-1"))?;
            anyhow::ensure!(condition(&node, "Ready").0 == "True", "{}", node["status"]["conditions"]);
            Ok(())
        })
    }

    /// An error if one of its processes has ended.
    pub fn alive(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::alive)
    }

    /// Adds kinds, and waits until they can be used.
    pub fn establish(&self, crds: &Path) -> Result<()> {
        let crds = crds.display().to_string();
        self.kube.run(&["apply", "--server-side", "-f", &crds])?;
        self.kube.run(&["wait", "--for=condition=Established", "--timeout=60s", "-f", &crds]).map(drop)
    }

    /// The memory of all its processes, in MiB.
    pub fn memory(&self) -> u64 {
        self.processes.iter().map(Process::memory).sum()
    }
}

fn kubeconfig_of(port: u16) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": format!("https://127.0.0.1:{port}"), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "admin", "namespace": "flux-system"}}],
    })
    .to_string()
}
