//! A service in this process, with a small fleet, and a client for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use clap::Parser;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use ledger::{Memory, Opened};
use serde_json::{Value, json};
use server::config::{Args, Config, Mode};
use server::heavy::Heavy;
use server::metrics::Metrics;
use server::replica::{self, Replica};
use server::routes::{self, Answer as Success, App, Problem, Route, Routes};
use server::start::{self, NotStarted};
use server::writer::Writer;
use server::{follower, requests};
use tokio_util::sync::CancellationToken;

pub(crate) const POLLER: &str = "poller-token";
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
    pub(crate) routes: Vec<&'static Route>,
    router: Routes,
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

    /// The route's description has this status, and the problem if it is one. Without a route there is no such path or method.
    fn assert_described(&self, route: Option<&'static Route>) {
        let status = self.status.as_u16();
        let Some(route) = route else {
            return assert!([404, 405].contains(&status), "{status} without a route: {}", self.text());
        };
        let is_described = if self.header("content-type") == "application/problem+json" {
            let (_, name) = self.problem();
            route.all_problems().iter().any(|Problem(of, known)| *of == status && known.as_str() == name)
        } else {
            route.all_answers().iter().any(|Success(of, _)| *of == status)
        };
        assert!(
            is_described,
            "{:?} {} does not describe {status}: {}",
            route.method,
            route.path,
            self.text()
        );
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
        let store = Memory::new();
        fill(&store, seed).await;
        Self::on_store(mode, store.open())
    }

    /// A service on a store that holds a fleet.
    pub(crate) fn on_store(mode: Mode, store: Opened) -> Self {
        let replica = Arc::new(Replica::new(Some(Duration::from_mins(1))));
        follower::catch_up(&*store.follow, &replica).expect("the head is confirmed");
        Self::on(mode, store, replica)
    }

    /// A service on a store and a replica.
    pub(crate) fn on(mode: Mode, store: Opened, replica: Arc<Replica>) -> Self {
        let config = config(mode);
        let metrics = Metrics::new();
        let append = store.append.filter(|_| mode == Mode::Crud);
        let writer = append.map(|append| {
            let follow = store.follow.clone();
            let started = Writer::start(append, follow, replica.clone(), config.policy, metrics.clone());
            Arc::new(started.expect("a thread").0)
        });
        let app = Arc::new(App {
            mode,
            replica,
            heavy: Heavy::start(store.history, 4, &metrics).expect("threads"),
            writer,
            identity: config.identity,
            policy: config.policy,
            metrics,
            serves_metrics: true,
        });
        Self { routes: routes::of(&app), router: routes::router(&app), app }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let is_head = request.method() == Method::HEAD;
        let (response, route) = requests::answer(&self.router, &self.app.metrics, request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes().to_vec();
        let answer = Answer { status: parts.status, headers: parts.headers, bytes };
        if !is_head {
            answer.assert_described(route);
        }
        answer
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

/// Fills a new store, or says why it was not.
pub(crate) async fn prepare(store: &Memory, seed: Option<PathBuf>) -> Result<(), NotStarted> {
    prepare_opened(store.open(), seed).await
}

pub(crate) async fn prepare_opened(opened: Opened, seed: Option<PathBuf>) -> Result<(), NotStarted> {
    let Opened { follow, append, .. } = opened;
    let replica = Arc::new(Replica::new(None));
    let append = append.expect("it is opened for writing");
    let policy = fleet::Policy::default();
    let (writer, _) =
        Writer::start(append, follow.clone(), replica.clone(), policy, Metrics::new()).expect("a thread");
    let prepared = tokio::task::spawn_blocking(move || {
        start::prepare(
            (&*follow, None),
            &replica,
            &writer,
            (seed.as_deref(), &policy),
            &CancellationToken::new(),
        )
    });
    prepared.await.expect("no panic")
}

/// Fills a new store from a good seed.
pub(crate) async fn fill(store: &Memory, seed: &Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seed.json");
    std::fs::write(&file, seed.to_string()).expect("written");
    prepare(store, Some(file)).await.expect("the seed is good");
}

fn config(mode: Mode) -> Config {
    let mode = mode.to_string();
    let args = Args::parse_from([
        "flux-resourceset",
        "--api-mode",
        &mode,
        "--store-backend",
        "memory",
        "--auth-token",
        POLLER,
        "--crud-auth-token",
        ADMIN,
    ]);
    Config::from_args(&args).expect("a good configuration")
}

/// A replica that has never loaded anything.
pub(crate) fn empty_replica() -> Arc<Replica> {
    let replica = Arc::new(Replica::new(Some(Duration::from_mins(1))));
    replica.confirm(replica::now());
    replica
}
