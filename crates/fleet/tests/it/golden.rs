//! Answers byte for byte: one changed byte re-reconciles every fleet at its next upgrade. `make golden` writes the files anew.

use std::path::Path;

use crate::common::*;
use fleet::{Answer, list_clusters, render};
use serde_json::json;

/// A fleet with everything that an answer can show.
fn fleet() -> Fleet {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        create("platform_components", json!({
            "id": "all-set", "component_path": "x/all-set", "component_version": "1.2.3 \"beta\"", "oci_url": "oci://registry.example.com/all-set",
            "oci_tag": "v1", "cluster_env_enabled": true, "delivery": "helm", "depends_on": ["podinfo", "cert-manager"],
            "secretRef": {"name": "registry-login"}, "verify": {"provider": "cosign", "secretRef": {"name": "cosign-keys"}},
        })),
        create("rolebindings", json!({"id": "mixed", "role": "system:view", "subjects": [
            {"kind": "User", "name": "jo <jo@example.com>", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "Group", "name": "g"}]})),
        create("clusters", json!({
            "id": "uat-1", "cluster_name": "U&T <1> \"ü\"", "cluster_dns": "uat-1.k8s.example.com", "environment": "uat", "protected": true, "node_count": 3,
            "platform_components": [
                {"id": "all-set", "enabled": false, "oci_tag": "v2", "component_path": "y", "depends_on": ["podinfo"]},
                {"id": "logging", "enabled": true}, {"id": "podinfo"},
            ],
            "namespaces": [{"id": "team-a", "annotations": {"note": "line\nbreak\t<<x>> ${Y} {{ z }} --- #"}}, {"id": "team-b", "labels": {}}],
            "rolebindings": [{"id": "mixed"}, {"id": "viewers", "role": "edit"}],
            "patches": {
                "all-set": {"a.b\\.c": "\"3\"", "list[0].x": "true", "list[1].x": "null", "n": "-7", "s": "007", "t": "a,b={c}"},
                "logging": {"LEVEL": "3", "URL": "https://x.io/a=b" },
            },
        })),
        create("clusters", json!({"id": "bare", "cluster_name": "bare", "cluster_dns": "bare.k8s.example.com", "environment": "qa"})),
        create("clusters", json!({"id": "gone", "cluster_name": "gone", "cluster_dns": "gone.k8s.example.com", "environment": "qa"})),
    ]);
    fleet.accept(vec![delete("clusters", "gone")]);
    fleet
}

fn compare(name: &str, body: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, body).expect("the golden files can be written");
    }
    let golden =
        std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}; `make golden` writes it"));
    assert_eq!(String::from_utf8_lossy(body), String::from_utf8_lossy(&golden), "{name} is not what it was");
}

#[test]
fn answers_are_what_they_were() {
    let fleet = fleet();
    for cluster in ["dev-1", "prod-1", "uat-1", "bare", "gone"] {
        for path in ["platform-components", "namespaces", "rolebindings"] {
            let Answer::Inputs(inputs) = render(&fleet.state, &format!("{cluster}.k8s.example.com"), path)
            else {
                panic!("{cluster} is known")
            };
            compare(&format!("{cluster}.{path}.json"), inputs.body());
        }
    }
    compare("clusters.json", list_clusters(&fleet.state, None, false).expect("there are some").body());
    compare(
        "clusters.uat.json",
        list_clusters(&fleet.state, Some("uat"), false).expect("there is one").body(),
    );
}

#[test]
fn digests_are_what_they_were() {
    // They are stored with every commit: if they change, no store of an earlier version loads any more.
    let note = json!({"note": {"type": "string"}});
    let operations = vec![
        tiny_kind(&note),
        create("tinies", json!({"id": "one", "note": "ü"})),
        create("tinies", json!({"id": "two"})),
    ];
    let transaction = fleet::Transaction {
        operations,
        derived: false,
        confirm: None,
        origin: origin(7, 1_800_000_000_000),
    };
    let applied =
        fleet::apply(&fleet::State::empty(), &fleet::Policy::default(), &transaction).expect("good");
    let commit = applied.commit.expect("a commit");
    compare(
        "digests.txt",
        format!("state {}\ncommit {}\n", commit.header.state, commit.header.at.hash).as_bytes(),
    );
}
