//! A small fleet in a folder of its own, and the requests that the tests make.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http;

pub(crate) const READER: &str = "reader-token";
pub(crate) const ADMIN: &str = "admin-token";

/// What the cluster `one` polls, and the list of clusters.
pub(crate) const POLLS: [&str; 4] = [
    "/api/v2/flux/clusters/one.example.com/platform-components",
    "/api/v2/flux/clusters/one.example.com/namespaces",
    "/api/v2/flux/clusters/one.example.com/rolebindings",
    "/api/v2/flux/clusters",
];

/// Two clusters, three components, two namespaces, a rolebinding; and namespaces that no cluster has, to write to.
pub(crate) fn small_fleet(spare: impl IntoIterator<Item = String>) -> Value {
    let mut namespaces = vec![json!({"id": "team-a"}), json!({"id": "team-b", "labels": {"team": "b"}})];
    namespaces.extend(spare.into_iter().map(|id| json!({"id": id})));
    json!({
        "clusters": [
            {"id": "one", "cluster_name": "one", "cluster_dns": "one.example.com", "environment": "dev",
             "platform_components": [{"id": "cert-manager"}, {"id": "podinfo"}],
             "namespaces": [{"id": "team-a"}, {"id": "team-b"}],
             "rolebindings": [{"id": "viewers"}],
             "patches": {"podinfo": {"replicaCount": "2"}}},
            {"id": "two", "cluster_name": "two", "cluster_dns": "two.example.com", "environment": "prod",
             "platform_components": [{"id": "podinfo"}],
             "namespaces": [{"id": "team-a"}]},
        ],
        "platform_components": [
            {"id": "cert-manager", "component_path": "cert-manager", "oci_url": "https://charts.jetstack.io", "oci_tag": "v1.15.0"},
            {"id": "podinfo", "component_path": "podinfo", "oci_url": "https://stefanprodan.github.io/podinfo", "oci_tag": "6.7.0"},
        ],
        "namespaces": namespaces,
        "rolebindings": [{"id": "viewers", "role": "view",
                          "subjects": [{"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}]}],
    })
}

/// A folder with a seed file and, once a process has made it, a store.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new(seed: &Value) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        fs::write(folder.seed(), seed.to_string()).expect("written");
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn seed(&self) -> PathBuf {
        self.file("seed.json")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.file("store.db")
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("a folder");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries.map(|e| name(e).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// A poll, as a cluster asks, on a connection of its own.
pub(crate) fn poll(path: &str) -> Vec<u8> {
    let bearer = format!("Bearer {READER}");
    http::request("GET", path, &[("authorization", &bearer), ("connection", "close")], None)
}

/// A request as the admin, on a connection that is kept.
pub(crate) fn admin(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Vec<u8> {
    let bearer = format!("Bearer {ADMIN}");
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend_from_slice(headers);
    http::request(method, path, &all, body)
}

/// A change of one label of one namespace, with its reason.
pub(crate) fn label(namespace: &str, name: &str, value: &str, reason: &str) -> Vec<u8> {
    let labels = json!({"labels": {name: value}});
    admin("PATCH", &format!("/namespaces/{namespace}"), &[("x-change-reason", reason)], Some(&labels))
}
