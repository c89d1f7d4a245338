//! Fleets of any size, the same every time: made through `apply`, so they are fleets that could exist.

#![expect(clippy::missing_panics_doc, reason = "a benchmark that cannot go on panics")]

mod client;
mod counting;
mod process;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet::{Commit, CommitId, Kind, Operation, Origin, Policy, State, Timestamp, Transaction, apply};
use ledger::{Access, Sqlite};
use serde_json::{Map, Value, json};

pub use client::{Answer, Client};
pub use counting::Counting;
pub use process::{ADMIN, Process, READER, Start};

/// What each cluster of a generated fleet has.
pub const COMPONENTS: usize = 20;
pub const NAMESPACES: usize = 20;
pub const ROLEBINDINGS: usize = 10;
/// How many there are of each kind to choose from: five times what a cluster has.
const CHOICE: usize = 5;
/// How many clusters one transaction of the generator makes.
const BATCH: usize = 1000;

/// Applies operations that must be accepted, and passes on the commit.
fn accept(state: &State, operations: Vec<Operation>, commits: &mut impl FnMut(Commit)) -> State {
    let commit = CommitId(u128::from(state.head().revision.0) + 1);
    let origin =
        Origin { commit, time: Timestamp(1_800_000_000_000), actor: "bench".into(), ..Origin::default() };
    let transaction = Transaction { operations, derived: false, confirm: None, origin };
    match apply(state, &Policy::default(), &transaction) {
        Ok(applied) => {
            applied.commit.into_iter().for_each(commits);
            applied.next
        }
        Err(rejection) => panic!("a generated transaction was rejected: {rejection:#?}"),
    }
}

fn create(kind: &str, body: Value) -> Operation {
    Operation::Create { kind: kind.into(), body, replace_decommissioned: false }
}

/// A fleet of that many clusters, each with 20 components, 20 namespaces, 10 rolebindings and 20 patch values.
#[must_use]
pub fn fleet(clusters: usize) -> State {
    fleet_by_commits(clusters, |_| {})
}

/// A store that holds such a fleet.
pub fn store(path: &Path, clusters: usize) {
    let opened = Sqlite::open(path, Access::Write).expect("a store");
    let mut append = opened.append.expect("it is opened for writing");
    let mut at = fleet::Position::default();
    fleet_by_commits(clusters, |commit| {
        let next = commit.header.at;
        append.append(at, &[commit]).expect("appended");
        at = next;
    });
}

/// The service that is measured: the one of `BENCH_BINARY`, or the one that was built with this program.
#[must_use]
pub fn binary() -> PathBuf {
    let beside = || {
        let this = std::env::current_exe().expect("this program");
        let folder = this.ancestors().find(|folder| folder.join("flux-resourceset").is_file());
        folder.expect("the service is built beside this program").join("flux-resourceset")
    };
    std::env::var_os("BENCH_BINARY").map_or_else(beside, PathBuf::from)
}

/// The same fleet, with every commit that leads to it.
pub fn fleet_by_commits(clusters: usize, mut commits: impl FnMut(Commit)) -> State {
    let mut operations: Vec<Operation> =
        Kind::shipped().into_iter().map(|kind| Operation::Define(Arc::new(kind))).collect();
    for (kind, documents) in catalog() {
        operations.extend(documents.into_iter().map(|document| create(kind, document)));
    }
    let catalog = accept(&State::empty(), operations, &mut commits);
    (0..clusters).step_by(BATCH).fold(catalog, |state, from| {
        let batch = (from..clusters.min(from + BATCH)).map(|n| create("clusters", cluster(n))).collect();
        accept(&state, batch, &mut commits)
    })
}

/// What clusters refer to, by kind.
fn catalog() -> [(&'static str, Vec<Value>); 3] {
    [
        ("platform_components", (0..CHOICE * COMPONENTS).map(component).collect()),
        ("namespaces", (0..CHOICE * NAMESPACES).map(namespace).collect()),
        ("rolebindings", (0..CHOICE * ROLEBINDINGS).map(rolebinding).collect()),
    ]
}

/// The same fleet as a seed file.
pub fn write_seed(mut out: impl Write, clusters: usize) -> std::io::Result<()> {
    out.write_all(b"{")?;
    for (kind, documents) in catalog() {
        write!(out, "{}:{},", Value::from(kind), Value::from(documents))?;
    }
    write!(out, "\"clusters\":[")?;
    for n in 0..clusters {
        write!(out, "{}{}", if n > 0 { "," } else { "" }, cluster(n))?;
    }
    out.write_all(b"]}")
}

/// The id of the nth cluster of a generated fleet.
#[must_use]
pub fn cluster_id(n: usize) -> String {
    format!("cluster-{n:06}")
}

/// The DNS name of the nth cluster of a generated fleet.
#[must_use]
pub fn cluster_dns(n: usize) -> String {
    format!("cluster-{n:06}.k8s.example.com")
}

/// The id of the nth component of the catalog.
#[must_use]
pub fn component_id(n: usize) -> String {
    format!("component-{n:03}")
}

fn component(n: usize) -> Value {
    json!({
        "id": component_id(n),
        "component_path": format!("platform/component-{n:03}/1.{n}.0"),
        "component_version": format!("1.{n}.0"),
        "oci_url": "https://charts.example.com/platform",
        "oci_tag": "v1.0.0",
        "delivery": "helm",
    })
}

fn namespace(n: usize) -> Value {
    json!({
        "id": format!("namespace-{n:03}"),
        "labels": {"team": format!("team-{}", n % 7), "pod-security.kubernetes.io/enforce": "restricted"},
        "annotations": {"example.com/owner": format!("team-{}@example.com", n % 7)},
    })
}

fn rolebinding(n: usize) -> Value {
    let group =
        json!({"kind": "Group", "name": format!("team-{n}"), "apiGroup": "rbac.authorization.k8s.io"});
    json!({"id": format!("binding-{n:03}"), "role": "view", "subjects": [group]})
}

/// The references of the nth cluster: a run of what there is, beginning at another place for each cluster.
fn references(n: usize, count: usize, id: impl Fn(usize) -> String) -> Value {
    (0..count).map(|k| json!({"id": id((n * 7 + k) % (CHOICE * count))})).collect()
}

/// The nth cluster of a generated fleet. About half of what its components are told is of its own: a host name, a message.
pub fn cluster(n: usize) -> Value {
    let mut components = references(n, COMPONENTS, component_id);
    for k in (n % 3..COMPONENTS).step_by(3) {
        components[k]["oci_tag"] = json!(format!("v1.{}.0-rc{}", k % 5, n % 4));
    }
    let patches: Map<String, Value> = (0..COMPONENTS)
        .map(|k| {
            let component = component_id((n * 7 + k) % (CHOICE * COMPONENTS));
            let mut patches = json!({"replicaCount": (n % 9).to_string()});
            match k % 4 {
                0 => patches["ingress.host"] = json!(format!("{component}.{}", cluster_dns(n))),
                1 => patches["resources.limits.memory"] = json!(format!("{}Mi", 256 << (n % 3))),
                2 => patches["ui.message"] = json!(format!("this is {} of {}", component, cluster_id(n))),
                _ => {}
            }
            (component, patches)
        })
        .collect();
    json!({
        "id": cluster_id(n),
        "cluster_name": cluster_id(n),
        "cluster_dns": cluster_dns(n),
        "environment": (["dev", "qa", "uat", "prod"][n % 4]),
        "labels": {"region": (["eu", "us", "ap"][n % 3]), "provider": (["aws", "azure", "metal"][n % 3])},
        "platform_components": components,
        "namespaces": references(n, NAMESPACES, |n| format!("namespace-{n:03}")),
        "rolebindings": references(n, ROLEBINDINGS, |n| format!("binding-{n:03}")),
        "patches": patches,
    })
}
