//! What holds for every document: its schema, its size, what survives the way to a cluster.

use super::assert_contains;
use crate::common::*;
use fleet::Reason;
use serde_json::json;

#[test]
fn three_errors_in_one_document_are_all_reported() {
    let mut fleet = Fleet::small();
    let mut body = cluster("new");
    body["environment"] = json!("staging");
    body["colour"] = json!("red");
    body["namespaces"] = json!([{"id": "nowhere"}]);
    let complaints = fleet.complaints(vec![create("clusters", body)]);
    assert_contains(
        &complaints,
        &[
            "/colour: unknown field `colour`; known are cluster_dns, cluster_name, environment, id,",
            "/environment: must be one of \"dev\", \"qa\", \"uat\", \"prod\", not \"staging\"",
            "/namespaces/0: there is no namespace `nowhere`; create it first",
        ],
    );
}

#[test]
fn wrong_types_and_missing_fields() {
    let mut fleet = Fleet::small();
    assert_contains(
        &fleet.complaints(vec![create(
            "platform_components",
            json!({"id": "x", "component_path": 7, "oci_tag": "v1", "depends_on": "y"}),
        )]),
        &[
            "/component_path: must be a string, not 7",
            "/depends_on: must be an array, not \"y\"",
            "/oci_url: `oci_url` is required and missing",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![create("namespaces", json!("team"))]),
        &[": must be an object, not \"team\""],
    );
    assert_contains(
        &fleet.complaints(vec![create("namespaces", json!({"labels": {}}))]),
        &["/id: `id` is required"],
    );
    assert_contains(
        &fleet.complaints(vec![create("nonsense", json!({"id": "x"}))]),
        &["there is no kind `nonsense`; there are clusters, namespaces,"],
    );
}

#[test]
fn null_is_absent_references_are_sorted_and_empty_is_absent() {
    let mut fleet = Fleet::small();
    let mut body = cluster("new");
    body["namespaces"] = json!([{"id": "team-b", "labels": null}, {"id": "team-a"}]);
    body["rolebindings"] = json!([]);
    body["patches"] = json!({"podinfo": {}});
    body["vm_image"] = json!(null);
    body["node_count"] = json!(3);
    fleet.accept(vec![create("clusters", body)]);
    let mut expected = cluster("new");
    expected["namespaces"] = json!([{"id": "team-a"}, {"id": "team-b"}]);
    expected["node_count"] = json!(3);
    assert_eq!(fleet.document("clusters", "new"), expected);
}

#[test]
fn a_document_is_at_most_64_kib_and_a_cluster_1_mib() {
    let mut fleet = Fleet::empty();
    let namespace = |note: usize| json!({"id": "big", "annotations": {"note": "x".repeat(note)}});
    let frame = namespace(0).to_string().len();
    let too_large = fleet.reject(vec![create("namespaces", namespace(64 * 1024 - frame + 1))]);
    assert_eq!(too_large.reason(), Some(&Reason::TooLarge));
    assert_eq!(too_large.violations()[0].message, "the document has 65537 bytes; 65536 are the most");
    fleet.accept(vec![create("namespaces", namespace(64 * 1024 - frame))]);

    let body = |note: usize| {
        let mut body = cluster("big");
        body["patches"] = json!({"podinfo": {"note": "x".repeat(note)}});
        body["platform_components"] = json!([{"id": "podinfo"}]);
        body
    };
    fleet.accept(vec![create("platform_components", component("podinfo"))]);
    let frame = body(0).to_string().len();
    let rejection = fleet.reject(vec![create("clusters", body(1024 * 1024 - frame + 1))]);
    assert!(
        rejection
            .violations()
            .iter()
            .any(|v| v.message == "the document has 1048577 bytes; 1048576 are the most")
    );
}

#[test]
fn overrides_are_no_larger_than_a_document() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![assign(
        "dev-1",
        "namespaces",
        "team-a",
        json!({"annotations": {"a": "x".repeat(70_000)}}),
    )]);
    assert!(
        complaints[0].starts_with("/namespaces/0: the overrides of `team-a` have 700")
            && complaints[0].ends_with("65536 are the most"),
        "{complaints:?}"
    );
}

#[test]
fn numbers_beyond_two_to_the_53_and_control_characters_are_refused() {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![tiny_kind(&json!({"size": {"type": "integer"}, "note": {"type": "string"}}))]);
    fleet.accept(vec![create(
        "tinies",
        json!({"id": "fits", "size": 9_007_199_254_740_992_u64, "note": "tab\t"}),
    )]);
    let complaints = fleet.complaints(vec![create(
        "tinies",
        json!({"id": "x", "size": 9_007_199_254_740_993_u64, "note": "nul\u{0}"}),
    )]);
    assert_contains(
        &complaints,
        &["/note: the text has the character U+0000", "/size: 9007199254740993 is beyond ±2^53"],
    );
}

#[test]
fn a_document_nested_without_end_is_refused_and_only_a_whole_new_one_mends_it() {
    let mut fleet = Fleet::small();
    let deep = (0..120).fold(json!("x"), |inner, _| json!({"a": inner}));
    let nested = || assign("dev-1", "namespaces", "team-a", json!({"labels": deep}));
    let touch = || {
        vec![
            nested(),
            strategic("clusters", "dev-1", json!({"node_count": 2})),
            unassign("dev-1", "namespaces", "team-b"),
        ]
    };
    assert_contains(&fleet.complaints(touch()), &[": nested too deeply: 32 levels are the most"]);
    let whole = fleet.document("clusters", "dev-1");
    assert!(fleet.accept(vec![nested(), put("clusters", "dev-1", whole)]).commit.is_none());
}
