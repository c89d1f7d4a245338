//! Labels and annotations of namespaces: what Flux would obey, and what Kubernetes would refuse. One refused namespace stops all.

use super::assert_contains;
use crate::common::*;
use serde_json::{Value, json};

fn labelled(labels: &Value) -> Vec<fleet::Operation> {
    vec![create("namespaces", json!({"id": "new", "labels": labels}))]
}

fn annotated(annotations: &Value) -> Vec<fleet::Operation> {
    vec![create("namespaces", json!({"id": "new", "annotations": annotations}))]
}

#[test]
fn an_annotation_cannot_tell_flux_to_delete_a_namespace_past_the_guard() {
    let mut fleet = Fleet::small();
    let orders = json!({"fluxcd.controlplane.io/reconcile": "disabled"});
    let told = "the name `fluxcd.controlplane.io/reconcile` is not free to use: Flux takes orders from keys under `fluxcd.controlplane.io` and `toolkit.fluxcd.io`, even to delete the object; leave it out, or choose another prefix. Only the annotation `fluxcd.controlplane.io/prune` may be set, to `disabled` or `enabled`";
    assert_eq!(
        fleet.complaints(vec![strategic("namespaces", "team-a", json!({"annotations": orders}))]),
        [format!("/annotations/fluxcd.controlplane.io~1reconcile: {told}")]
    );
    assert_eq!(
        fleet.complaints(vec![assign("dev-1", "namespaces", "team-a", json!({"annotations": orders}))]),
        [format!("/namespaces/0/annotations/fluxcd.controlplane.io~1reconcile: {told}")]
    );
    assert_eq!(
        fleet.complaints(vec![patch_reference(
            "dev-1",
            "namespaces",
            "team-a",
            json!({"annotations": orders})
        )]),
        [format!("/namespaces/0/annotations/fluxcd.controlplane.io~1reconcile: {told}")]
    );
}

#[test]
fn no_label_and_no_annotation_gives_orders_to_flux() {
    let mut fleet = Fleet::small();
    for key in [
        "fluxcd.controlplane.io/reconcile",
        "fluxcd.controlplane.io/force",
        "fluxcd.controlplane.io/copyFrom",
        "fluxcd.controlplane.io/convertKubeConfigFrom",
        "fluxcd.controlplane.io/checksumFrom",
        "fluxcd.controlplane.io/recreateOnFailure",
        "resourceset.fluxcd.controlplane.io/name",
        "kustomize.toolkit.fluxcd.io/ssa",
        "toolkit.fluxcd.io/tenant",
    ] {
        let told = format!("the name `{key}` is not free to use: Flux takes orders");
        let entry = json!({key: "enabled"});
        assert_contains(&fleet.complaints(annotated(&entry)), &[&told]);
        assert_contains(&fleet.complaints(labelled(&entry)), &[&told]);
        let overridden = vec![assign("dev-1", "namespaces", "team-a", json!({"labels": entry}))];
        assert_contains(&fleet.complaints(overridden), &[&told]);
    }
    fleet.accept(labelled(&json!({"example.com/toolkit.fluxcd.io": "x", "fluxcd.io/x": "y"})));
}

#[test]
fn a_namespace_may_be_kept_from_being_deleted_by_flux() {
    let mut fleet = Fleet::small();
    let prune = |value: &str| json!({"fluxcd.controlplane.io/prune": value});
    fleet.accept(annotated(&prune("disabled")));
    fleet.accept(vec![assign("dev-1", "namespaces", "new", json!({"annotations": prune("enabled")}))]);
    assert_eq!(fleet.input("dev-1", "namespaces", "new")["annotations"], prune("enabled"));

    let other = strategic("namespaces", "new", json!({"annotations": prune("Disabled")}));
    assert_contains(
        &fleet.complaints(vec![other]),
        &[
            "/annotations/fluxcd.controlplane.io~1prune: must be one of \"disabled\", \"enabled\", not \"Disabled\"",
        ],
    );
    let capitals = json!({"annotations": {"FluxCD.controlplane.io/prune": "disabled"}});
    assert_contains(
        &fleet.complaints(vec![strategic("namespaces", "new", capitals)]),
        &["the name `FluxCD.controlplane.io/prune` is not free to use"],
    );
    let as_a_label = strategic("namespaces", "new", json!({"labels": prune("disabled")}));
    assert_contains(
        &fleet.complaints(vec![as_a_label]),
        &["Only the annotation `fluxcd.controlplane.io/prune` may be set"],
    );
}

#[test]
fn the_label_that_kubernetes_sets_itself_is_not_ours_to_set() {
    let mut fleet = Fleet::small();
    let name = json!({"kubernetes.io/metadata.name": "new"});
    assert_contains(
        &fleet.complaints(labelled(&name)),
        &[
            "/labels/kubernetes.io~1metadata.name: Kubernetes itself gives every namespace this label, with the namespace's name; leave it out",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![assign("dev-1", "namespaces", "team-b", json!({"labels": name}))]),
        &["/namespaces/1/labels/kubernetes.io~1metadata.name: Kubernetes itself gives"],
    );
    fleet.accept(annotated(&name));
}

#[test]
fn pod_security_has_the_levels_and_versions_that_the_api_server_takes() {
    let mut fleet = Fleet::small();
    for mode in ["enforce", "audit", "warn"] {
        let level = format!("pod-security.kubernetes.io/{mode}");
        let version = format!("{level}-version");
        assert_contains(
            &fleet.complaints(labelled(&json!({&level: "strict", &version: "1.31"}))),
            &[
                &format!(
                    "/labels/pod-security.kubernetes.io~1{mode}: must be one of \"privileged\", \"baseline\", \"restricted\", not \"strict\""
                ),
                &format!(
                    "/labels/pod-security.kubernetes.io~1{mode}-version: \"1.31\" is not `latest`, or `v1.` and a number such as `v1.31`"
                ),
            ],
        );
        let empty = assign("dev-1", "namespaces", "team-a", json!({"labels": {&level: "", &version: ""}}));
        assert_eq!(fleet.complaints(vec![empty]).len(), 2);
        assert_contains(
            &fleet.complaints(labelled(&json!({&version: 1.31}))),
            &[&format!("/labels/pod-security.kubernetes.io~1{mode}-version: must be a string, not 1.31")],
        );
        for (right, versioned) in [("privileged", "latest"), ("baseline", "v1.0"), ("restricted", "v1.31")] {
            let labels = json!({"labels": {&level: right, &version: versioned}});
            fleet.accept(vec![strategic("namespaces", "team-a", labels)]);
        }
    }
    // The API server ignores what else there is under the prefix.
    fleet.accept(labelled(&json!({"pod-security.kubernetes.io/enforced": "strict"})));
}

#[test]
fn labels_and_annotations_are_what_kubernetes_accepts() {
    let mut fleet = Fleet::small();
    assert_contains(
        &fleet.complaints(labelled(&json!({"Example.com/a": "x", "a b": "x", "a": "x y", "b": 1}))),
        &[
            "/labels/Example.com~1a: the name `Example.com/a` is not a Kubernetes label key",
            "/labels/a b: the name `a b` is not a Kubernetes label key",
            "/labels/a: \"x y\" is not a Kubernetes label value",
            "/labels/b: must be a string, not 1",
        ],
    );
    assert_contains(
        &fleet.complaints(annotated(&json!({"a/b/c": "x", "b": true}))),
        &[
            "/annotations/a~1b~1c: the name `a/b/c` is not a Kubernetes annotation key",
            "/annotations/b: must be a string, not true",
        ],
    );
    fleet.accept(annotated(&json!({"Example.com/a": "any text\n{}"})));
}

#[test]
fn annotations_stay_far_below_what_kubernetes_takes_in_all() {
    // Kubernetes takes 256 KiB of keys and values. A document has 64 KiB at most, an override replaces what it overrides.
    let mut fleet = Fleet::small();
    let long = "x".repeat(65_000);
    fleet.accept(annotated(&json!({"a": long})));
    fleet.accept(vec![assign("dev-1", "namespaces", "new", json!({"annotations": {"b": long}}))]);
    assert_eq!(fleet.input("dev-1", "namespaces", "new")["annotations"], json!({"b": long}));
}
