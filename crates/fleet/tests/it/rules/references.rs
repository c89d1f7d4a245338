//! References: they lead somewhere, once, and override what their kind allows.

use super::assert_contains;
use crate::common::*;
use fleet::Reason;
use serde_json::{Value, json};

#[test]
fn duplicate_and_dangling_references() {
    let mut fleet = Fleet::small();
    let mut body = cluster("new");
    body["namespaces"] = json!([{"id": "team-b"}, {"id": "team-a"}, {"id": "team-b"}]);
    body["platform_components"] = json!([{"id": "ghost"}]);
    assert_contains(
        &fleet.complaints(vec![create("clusters", body)]),
        &[
            "/namespaces/2: `team-b` is there twice; list each namespace once",
            "/platform_components/0: there is no platform_component `ghost`",
        ],
    );
    let both =
        vec![strategic("clusters", "dev-1", json!({"namespaces": [{"id": "team-a"}, {"id": "team-a"}]}))];
    assert_contains(&fleet.complaints(both), &["/namespaces/1: the patch names `team-a` twice"]);
}

#[test]
fn what_refers_to_a_document_that_cannot_be_read_is_not_wrong_on_top_of_that() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![
        create("namespaces", json!({"id": "odd", "labels": {"a": 1}})),
        create(
            "platform_components",
            json!({"id": "odd", "component_path": 1, "oci_url": "https://x.io", "oci_tag": "1"}),
        ),
        assign("dev-1", "namespaces", "odd", json!(null)),
        assign("dev-1", "platform_components", "odd", json!(null)),
    ]);
    assert_contains(
        &complaints,
        &["/labels/a: must be a string, not 1", "/component_path: must be a string, not 1"],
    );
}

#[test]
fn what_is_in_use_is_not_deleted() {
    let mut fleet = Fleet::small();
    let rejection = fleet.reject(vec![delete("namespaces", "team-a")]);
    let Some(Reason::InUse { by }) = rejection.reason() else { panic!("{rejection:#?}") };
    assert_eq!(
        (by.total, by.first.iter().map(fleet::Id::as_str).collect::<Vec<_>>()),
        (2, vec!["dev-1", "prod-1"])
    );
    let needed = fleet.complaints(vec![delete("platform_components", "cert-manager")]);
    assert_contains(
        &needed,
        &[
            "still referred to by the clusters `dev-1`, `prod-1`",
            "the components `traefik` still depend on `cert-manager`",
        ],
    );

    fleet.accept(vec![unassign("dev-1", "namespaces", "team-c"), delete("namespaces", "team-c")]);
    fleet.accept(vec![assign(
        "prod-1",
        "platform_components",
        "grafana",
        json!({"enabled": false, "depends_on": ["podinfo"]}),
    )]);
    assert_contains(
        &fleet.complaints(vec![
            unassign("dev-1", "platform_components", "podinfo"),
            delete("platform_components", "podinfo"),
        ]),
        &["`platform_components/podinfo` is still referred to by the clusters `prod-1`"],
    );
}

#[test]
fn overrides_are_checked_by_the_schema_of_their_kind() {
    let mut fleet = Fleet::small();
    assert_contains(
        &fleet.complaints(vec![assign(
            "dev-1",
            "namespaces",
            "team-b",
            json!({"labels": {"team": 7}, "role": "x"}),
        )]),
        &[
            "/namespaces/1/labels/team: must be a string, not 7",
            "/namespaces/1/role: unknown field `role`; known are annotations, id, labels",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![assign(
            "dev-1",
            "platform_components",
            "podinfo",
            json!({"oci_url": "https://x.io"}),
        )]),
        &[
            "/platform_components/2/oci_url: unknown field `oci_url`; known are component_path, depends_on, enabled, id, oci_tag",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![assign("dev-1", "rolebindings", "viewers", json!({"subjects": []}))]),
        &["/rolebindings/0/subjects: must have at least 1 item"],
    );
    assert_contains(
        &fleet.complaints(vec![assign("dev-1", "namespaces", "team-b", json!({"id": "team-c"}))]),
        &["/id: must be `team-b`, the reference that the operation is about, or absent"],
    );
}

#[test]
fn overrides_need_nothing_by_themselves_but_must_fit_the_definition() {
    let mut fleet = Fleet::small();
    let entangled = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let fleet::Operation::Define(kind) = tiny_kind(&entangled) else { panic!("a kind") };
    let mut file = Value::Object(kind.file().clone());
    file["schema"]["items"]["dependentRequired"] = json!({"a": ["b"]});
    let kind = fleet::Operation::Define(std::sync::Arc::new(
        fleet::Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect("good"),
    ));
    fleet.accept(vec![
        kind,
        create("tinies", json!({"id": "with", "b": "x"})),
        create("tinies", json!({"id": "without"})),
    ]);
    fleet.accept(vec![assign("dev-1", "tinies", "with", json!({"a": "y"}))]);
    let complaints = fleet.complaints(vec![assign("dev-1", "tinies", "without", json!({"a": "y"}))]);
    assert_eq!(complaints.len(), 1, "{complaints:#?}");
    assert!(
        complaints[0].starts_with("/tinies/1") && complaints[0].contains("with the overrides of `without`: "),
        "{complaints:#?}"
    );
    let complaints = fleet.complaints(vec![put("tinies", "with", json!({}))]);
    assert!(
        complaints[0].contains("on the cluster `dev-1`: with the overrides of `with`: "),
        "{complaints:#?}"
    );
}

#[test]
fn a_refused_patch_of_a_reference_points_into_the_cluster() {
    let mut fleet = Fleet::small();
    let patch = fleet::Patch::Json(json!([{"op": "remove", "path": "/labels/x"}]));
    let one = fleet::Operation::PatchReference {
        clusters: fleet::Target::one("dev-1"),
        kind: "namespaces".into(),
        id: "team-b".into(),
        patch: patch.clone(),
    };
    let complaints = fleet.complaints(vec![one]);
    assert!(complaints[0].starts_with("/namespaces/1/labels/x: item 0 of the patch:"), "{complaints:?}");
    let none = fleet::Operation::PatchReference {
        clusters: selected("id"),
        kind: "rolebindings".into(),
        id: "deployer".into(),
        patch,
    };
    let rejection = fleet.reject(vec![none]);
    assert_eq!((rejection.reason(), &rejection.violations()[0].key), (Some(&Reason::Missing), &None));
}

#[test]
fn every_problem_of_a_strategic_patch_is_told() {
    let mut fleet = Fleet::small();
    let body =
        json!({"namespaces": [{"labels": {}}, {"id": "team-a", "$patch": "merge"}], "environment": "moon"});
    let complaints = fleet.complaints(vec![strategic("clusters", "dev-1", body)]);
    assert_contains(
        &complaints,
        &[
            "/environment: must be one of",
            "/namespaces/0/id: each item",
            "/namespaces/1/$patch: the only directive",
        ],
    );
}

#[test]
fn a_json_patch_adds_to_a_list_that_is_not_there_yet() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![json_patch(
        "clusters",
        "prod-1",
        json!([{"op": "add", "path": "/rolebindings/-", "value": {"id": "viewers"}}]),
    )]);
    assert_eq!(fleet.ids("prod-1", "rolebindings"), ["viewers"]);
}
