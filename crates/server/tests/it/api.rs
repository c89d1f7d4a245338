//! A service in this process, with a small fleet, and a client for it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use clap::Parser;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use ledger::{Ledger, Memory};
use serde_json::{Value, json};
use server::config::{Args, Config, Mode};
use server::metrics::Metrics;
use server::replica::{self, Replica};
use server::routes::{self, App, Route};
use server::writer::Writer;
use server::{follower, requests, start};

pub(crate) const READER: &str = "reader-token";
pub(crate) const ADMIN: &str = "admin-token";

/// A small fleet: two clusters, three components, two namespaces, a rolebinding.
pub(crate) fn small_fleet() -> Value {
    json!({
        "clusters": [
            {"id": "one", "cluster_name": "one", "cluster_dns": "one.example.com", "environment": "dev",
             "labels": {"region": "eu"},
             "platform_components": [{"id": "cert-manager"}, {"id": "podinfo"}],
             "namespaces": [{"id": "team-a"}, {"id": "team-b"}],
             "rolebindings": [{"id": "viewers"}],
             "patches": {"podinfo": {"replicaCount": "2"}}},
            {"id": "two", "cluster_name": "two", "cluster_dns": "two.example.com", "environment": "prod",
             "labels": {"region": "us"},
             "platform_components": [{"id": "podinfo"}],
             "namespaces": [{"id": "team-a"}]},
        ],
        "platform_components": [
            {"id": "cert-manager", "component_path": "cert-manager", "oci_url": "https://charts.jetstack.io", "oci_tag": "v1.15.0"},
            {"id": "podinfo", "component_path": "podinfo", "oci_url": "https://stefanprodan.github.io/podinfo", "oci_tag": "6.7.0"},
            {"id": "unused", "component_path": "unused", "oci_url": "https://charts.example.com", "oci_tag": "1.0.0"},
        ],
        "namespaces": [{"id": "team-a"}, {"id": "team-b", "labels": {"team": "b"}}],
        "rolebindings": [{"id": "viewers", "role": "view", "subjects": [{"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}]}],
    })
}

/// A service in this process.
pub(crate) struct Api {
    pub(crate) app: Arc<App>,
    pub(crate) routes: Vec<Route>,
    router: Router,
}

/// What it answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The answer, which must have this status.
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    /// The sort of problem and its status.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        assert!(problem["request_id"].is_string() && problem["detail"].is_string(), "{problem}");
        let urn = problem["type"].as_str().expect("a type");
        (self.status.as_u16(), urn.strip_prefix("urn:flux-resourceset:").expect("our urn").to_owned())
    }
}

impl Api {
    /// A service in `crud` mode with a small fleet.
    pub(crate) async fn crud() -> Self {
        Self::with(Mode::Crud, &small_fleet()).await
    }

    pub(crate) async fn with(mode: Mode, seed: &Value) -> Self {
        let store = Arc::new(Memory::new());
        Self::on_store(mode, seed, store.clone(), store).await
    }

    /// A service on a ledger, whose store is filled first if it is new.
    pub(crate) async fn on_store(
        mode: Mode,
        seed: &Value,
        store: Arc<dyn Ledger>,
        ledger: Arc<dyn Ledger>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("seed.json");
        std::fs::write(&file, seed.to_string()).expect("written");
        let config = config(mode, &file);
        let state = start::prepare(&*store, &config).await.expect("the seed is good");
        let replica = Arc::new(Replica::new(Some(Duration::from_mins(1))));
        replica.publish(Arc::new(state));
        follower::catch_up(&*ledger, &replica).await.expect("the head is confirmed");
        Self::on(mode, config, ledger, replica)
    }

    /// A service on a store and a replica.
    pub(crate) fn on(mode: Mode, config: Config, ledger: Arc<dyn Ledger>, replica: Arc<Replica>) -> Self {
        let metrics = Metrics::new();
        let writer = (mode == Mode::Crud).then(|| {
            Writer::start(ledger.clone(), replica.clone(), config.policy, metrics.clone())
                .expect("a thread")
                .0
        });
        let app = Arc::new(App {
            mode,
            replica,
            ledger,
            writer,
            identity: config.identity,
            policy: config.policy,
            metrics,
            serves_metrics: true,
        });
        let (router, all) = routes::routes(&app);
        Self { app, routes: all, router }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = requests::answer(self.router.clone(), &self.app.metrics, request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes().to_vec();
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    /// Sends a request as the admin, with these headers, and with a body if there is one.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Option<Value>>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).expect("a method"))
            .uri(path)
            .header("host", "fleet.example.com")
            .header("authorization", format!("Bearer {ADMIN}"));
        for (name, value) in headers {
            request = request.header(*name, value.as_bytes());
        }
        let body = match body.into() {
            Some(value) => {
                if !headers.iter().any(|(name, _)| *name == "content-type") {
                    request = request.header("content-type", "application/json");
                }
                Body::from(value.to_string())
            }
            None => Body::empty(),
        };
        self.send(request.body(body).expect("a request")).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], None).await
    }

    /// The inputs of a cluster, by id.
    pub(crate) async fn inputs(&self, dns: &str, kind: &str) -> Value {
        self.get(&format!("/api/v2/flux/clusters/{dns}/{kind}")).await.expect(200).json()["inputs"].clone()
    }
}

/// A configuration with a seed file.
pub(crate) fn config(mode: Mode, seed: &std::path::Path) -> Config {
    let mode = mode.to_string();
    let seed = seed.to_str().expect("text");
    let args = Args::parse_from([
        "flux-resourceset",
        "--api-mode",
        &mode,
        "--store-backend",
        "memory",
        "--auth-token",
        READER,
        "--crud-auth-token",
        ADMIN,
        "--seed-file",
        seed,
    ]);
    Config::from_args(&args).expect("a good configuration")
}

/// A replica that has never loaded anything.
pub(crate) fn empty_replica() -> Arc<Replica> {
    let replica = Arc::new(Replica::new(Some(Duration::from_mins(1))));
    replica.confirm(replica::now());
    replica
}
