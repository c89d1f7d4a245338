//! Tags and patches fit how a component is delivered.

use super::assert_contains;
use crate::common::*;
use fleet::Reason;
use serde_json::{Value, json};

#[test]
fn patches_name_assigned_components_and_fit_their_delivery() {
    let mut fleet = Fleet::small();
    let patches = |of: Value| vec![strategic("clusters", "dev-1", json!({"patches": of}))];
    assert_contains(
        &fleet.complaints(patches(json!({"logging": {"A": "b"}}))),
        &["/patches/logging: `logging` is not among the cluster's platform_components"],
    );
    assert_contains(
        &fleet.complaints(patches(
            json!({"policies": {"a.b": "x", "CLUSTER_DNS": "x", "OK": "a: b", "LAST": "x:"}}),
        )),
        &[
            "/patches/policies/CLUSTER_DNS: `CLUSTER_DNS` is given by the cluster's identity",
            "/patches/policies/LAST: the value is put into YAML",
            "/patches/policies/OK: the value is put into YAML",
            "/patches/policies/a.b: `a.b` cannot be a substitution variable",
        ],
    );
    assert_contains(
        &fleet.complaints(patches(json!({"podinfo": {"a": "1", "a.b": "2", "l[1]": "x"}}))),
        &["/patches/podinfo/a.b: contradicts", "/patches/podinfo: the list `l` has a gap"],
    );
    assert_contains(
        &fleet.complaints(patches(json!({"podinfo": {"replicas": [3]}}))),
        &["/patches/podinfo/replicas: must be a string, not [3]"],
    );
    let token = format!("glpat-{}", "a1B2".repeat(6));
    assert_contains(
        &fleet.complaints(patches(json!({"podinfo": {"token": token}}))),
        &["/patches/podinfo/token: this looks like a GitLab token; keep secrets in a secret store"],
    );
}

#[test]
fn patches_that_stop_fitting_because_the_catalog_changes_are_refused() {
    let mut fleet = Fleet::small();
    let change = vec![by_kustomize("podinfo")];
    assert_contains(
        &fleet.complaints(change),
        &[": on the cluster `dev-1`: `ui.message` cannot be a substitution variable"],
    );
}

#[test]
fn a_substitution_variable_fits_a_key_of_a_config_map() {
    let mut fleet = Fleet::small();
    let patches = |length: usize| {
        vec![strategic("clusters", "dev-1", json!({"patches": {"policies": {"A".repeat(length): "x"}}}))]
    };
    fleet.accept(patches(253));
    assert!(fleet.complaints(patches(254))[0].contains("cannot be a substitution variable"));
}

#[test]
fn a_directory_comes_from_an_oci_artifact_and_not_from_a_chart_repository() {
    let mut fleet = Fleet::small();
    let complaint = ["/oci_url: an `https://` source is a chart repository"];
    let moved = json!({"oci_url": "https://charts.example.com"});
    // What the document does not say, its source says: then it is a chart, and its patches no variables.
    fleet.accept(vec![strategic("platform_components", "logging", moved.clone())]);
    let said = json!({"delivery": "kustomize"});
    assert_contains(
        &fleet.complaints(vec![strategic("platform_components", "logging", said.clone())]),
        &complaint,
    );
    fleet.accept(vec![strategic("platform_components", "policies", said)]);
    assert_contains(&fleet.complaints(vec![strategic("platform_components", "policies", moved)]), &complaint);
}

#[test]
fn a_plus_in_a_tag_is_for_chart_repositories_only() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![strategic("platform_components", "podinfo", json!({"oci_tag": "1.0.0+up2"}))]);
    assert_contains(
        &fleet.complaints(vec![strategic("platform_components", "logging", json!({"oci_tag": "1.0.0+up2"}))]),
        &["/oci_tag: a tag in an OCI registry cannot have a `+`"],
    );
    assert_contains(
        &fleet.complaints(vec![assign(
            "dev-1",
            "platform_components",
            "policies",
            json!({"oci_tag": "1+2"}),
        )]),
        &["/platform_components/3/oci_tag: a tag in an OCI registry cannot have a `+`"],
    );
    fleet.accept(vec![assign("dev-1", "platform_components", "podinfo", json!({"oci_tag": "2.0.0+x"}))]);
    let moved = vec![strategic(
        "platform_components",
        "podinfo",
        json!({"oci_url": "oci://registry.example.com/podinfo", "delivery": "helm", "oci_tag": "1.0.0"}),
    )];
    assert_contains(
        &fleet.complaints(moved),
        &[": on the cluster `dev-1`: a tag in an OCI registry cannot have a `+`"],
    );
}

#[test]
fn a_delivery_that_begins_to_send_values_cannot_make_an_answer_too_large() {
    let mut fleet = Fleet::empty();
    let mut body = cluster("big");
    body["platform_components"] = json!([{"id": "web"}]);
    let patches: serde_json::Map<String, Value> =
        (0..12).map(|n| (format!("K{n}"), json!("x".repeat(50_000)))).collect();
    body["patches"] = json!({"web": patches});
    let mut web = component("web");
    web["delivery"] = json!("kustomize");
    web["oci_url"] = json!("oci://registry.example.com/platform");
    fleet.accept(vec![create("platform_components", web), create("clusters", body)]);
    let rejection = fleet.reject(vec![strategic("platform_components", "web", json!({"delivery": "helm"}))]);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
}

#[test]
fn a_source_may_need_a_login_and_a_signature_only_an_artifact() {
    let mut fleet = Fleet::small();
    let verify = json!({"provider": "cosign", "matchOIDCIdentity": [{"issuer": "^https://token.example.com$", "subject": "^ci$"}]});
    fleet.accept(vec![strategic(
        "platform_components",
        "logging",
        json!({"secretRef": {"name": "registry-login"}, "verify": verify}),
    )]);
    fleet.accept(vec![strategic("platform_components", "grafana", json!({"secretRef": {"name": "charts"}}))]);
    assert_eq!(
        fleet.complaints(vec![strategic(
            "platform_components",
            "grafana",
            json!({"verify": {"provider": "cosign", "secretRef": {"name": "keys"}}})
        )]),
        [
            "/verify: Flux verifies signatures of `oci://` artifacts only; remove `verify`, or use an `oci://` source"
        ]
    );
    assert_eq!(
        fleet.complaints(vec![strategic(
            "platform_components",
            "logging",
            json!({"verify": {"provider": "gpg", "secretRef": {"name": "keys"}}})
        )]),
        ["/verify/provider: must be one of \"cosign\", \"notation\", not \"gpg\""]
    );
    assert_eq!(
        fleet.complaints(vec![merge(
            "platform_components",
            "logging",
            json!({"verify": {"provider": "cosign", "matchOIDCIdentity": null}})
        )]),
        [
            "/verify: without `secretRef` (the keys) or `matchOIDCIdentity` (who signs), Flux accepts anybody's signature (this is {\"provider\":\"cosign\"})"
        ]
    );
}
