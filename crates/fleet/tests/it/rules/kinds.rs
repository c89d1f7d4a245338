//! Kinds that are added or changed, and the documents that are there already.

use super::assert_contains;
use crate::common::*;
use serde_json::{Value, json};

/// The shipped file of a kind, changed.
fn changed_kind(name: &str, change: impl Fn(&mut Value)) -> fleet::Operation {
    let shipped =
        fleet::Kind::shipped().into_iter().find(|kind| kind.name().as_str() == name).expect("shipped");
    let mut file = Value::Object(shipped.file().clone());
    change(&mut file);
    fleet::Operation::Define(std::sync::Arc::new(
        fleet::Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect("a good kind"),
    ))
}

#[test]
fn a_kind_changes_only_if_every_document_satisfies_it() {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![
        tiny_kind(&json!({"size": {"type": "string"}})),
        create("tinies", json!({"id": "one", "size": "large"})),
    ]);
    let complaints = fleet.complaints(vec![tiny_kind(&json!({"size": {"type": "integer"}}))]);
    assert_contains(
        &complaints,
        &[
            "/size: the stored `tinies/one` does not satisfy the new schema: must be an integer, not \"large\"",
        ],
    );
    fleet.accept(vec![
        tiny_kind(&json!({"size": {"type": "integer"}})),
        put("tinies", "one", json!({"size": 3})),
    ]);

    let mut holder = cluster("holder");
    holder["tinies"] = json!([{"id": "one", "size": 5}]);
    fleet.accept(vec![create("clusters", holder)]);
    let complaints = fleet.complaints(vec![tiny_kind(&json!({"size": {"type": "integer", "maximum": 4}}))]);
    assert_contains(
        &complaints,
        &[
            "/tinies/0/size: the stored `clusters/holder` does not satisfy the new schema: must be at most 4, not 5",
        ],
    );
}

#[test]
fn a_changed_kind_changes_the_inputs_of_documents_that_did_not_change() {
    let mut fleet = Fleet::empty();
    let mut holder = cluster("holder");
    holder["tinies"] = json!([{"id": "one"}]);
    fleet.accept(vec![
        tiny_kind(&json!({})),
        create("tinies", json!({"id": "one"})),
        create("clusters", holder),
    ]);
    let before = fleet.input("holder", "tinies", "one");
    fleet.accept(vec![tiny_kind(&json!({"size": {"type": "integer", "default": 7}}))]);
    let after = fleet.input("holder", "tinies", "one");
    assert_eq!(before.get("size"), None);
    assert_eq!(after["size"], 7);
}

#[test]
fn a_redefined_kind_is_checked_against_overrides_merged_with_definitions() {
    let mut fleet = Fleet::small();
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
    fleet.accept(vec![
        tiny_kind(&properties),
        create("tinies", json!({"id": "one", "a": 1})),
        assign("dev-1", "tinies", "one", json!({"b": 2})),
    ]);
    let fleet::Operation::Define(kind) = tiny_kind(&properties) else { panic!("a kind") };
    let mut file = Value::Object(kind.file().clone());
    file["schema"]["items"]["not"] = json!({"required": ["a", "b"]});
    let kind = fleet::Operation::Define(std::sync::Arc::new(
        fleet::Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect("good"),
    ));
    let complaints = fleet.complaints(vec![kind]);
    assert!(complaints[0].starts_with("/tinies/0: with the overrides of `one`: "), "{complaints:?}");
}

#[test]
fn a_new_kind_does_not_turn_stored_fields_of_clusters_into_references() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![changed_kind("clusters", |file| {
        file["schema"]["items"]["properties"]["tinies"] = json!({"type": "array"});
    })]);
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"tinies": [{"id": "one"}]}))]);
    let complaints = fleet.complaints(vec![tiny_kind(&json!({})), create("tinies", json!({"id": "one"}))]);
    assert_contains(
        &complaints,
        &[
            "/tinies: the stored `clusters/dev-1` has a field `tinies` already, which would become its references",
        ],
    );
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"tinies": null}))]);
    fleet.accept(vec![
        tiny_kind(&json!({})),
        create("tinies", json!({"id": "one"})),
        assign("dev-1", "tinies", "one", json!(null)),
    ]);
    assert_eq!(fleet.ids("dev-1", "tinies"), ["one"]);
}

#[test]
fn a_shipped_kind_may_be_extended_but_not_robbed_of_what_the_core_reads() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        changed_kind("clusters", |file| {
            file["schema"]["items"]["properties"]["owner"] = json!({"type": "string"});
        }),
        strategic("clusters", "dev-1", json!({"owner": "team-a"})),
    ]);
    assert_eq!(fleet.document("clusters", "dev-1")["owner"], "team-a");
    let shipped =
        fleet::Kind::shipped().into_iter().find(|kind| kind.name().as_str() == "clusters").expect("shipped");
    let mut file = Value::Object(shipped.file().clone());
    file["schema"]["items"]["properties"]["patches"] = json!({"type": "string"});
    let bad = fleet::Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect_err("retyped");
    assert_eq!(
        bad.problems,
        ["`schema.items.properties.patches` must be there, of type object: the service reads it"]
    );
}

#[test]
fn a_clusters_file_that_requires_references_is_satisfied_by_those_that_are_there() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![changed_kind("clusters", |file| {
        file["schema"]["items"]["required"] =
            json!(["id", "cluster_name", "cluster_dns", "environment", "namespaces"]);
    })]);
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"node_count": 4}))]);
    assert_contains(
        &fleet.complaints(vec![create("clusters", cluster("bare"))]),
        &["/namespaces: `namespaces` is required and missing"],
    );
}

#[test]
fn ids_that_a_kind_reserves_later_are_found_among_the_stored() {
    let mut fleet = Fleet::small();
    let reserve =
        changed_kind("namespaces", |file| file["metadata"]["x-flux"]["reserved"] = json!(["team-*"]));
    let complaints = fleet.complaints(vec![reserve]);
    assert_eq!(complaints.len(), 3, "{complaints:#?}");
    assert!(
        complaints[0].starts_with(
            "/id: the stored `namespaces/team-a` does not satisfy the new schema: `team-a` is reserved"
        ),
        "{complaints:#?}"
    );
}

#[test]
fn a_default_must_be_of_its_own_type() {
    let file = json!({"kind": "tinies", "apiVersion": "v1", "schema": {"key": {}, "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "format": "dns-label"}, "n": {"type": "string", "default": 3}}}}});
    let bad = fleet::Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect_err("a wrong default");
    assert_eq!(bad.problems, ["`schema.items.properties.n.default` must be a string, not 3"]);
}

#[test]
fn an_added_kind_has_ids_that_kubernetes_takes_and_no_references_into_other_schemas() {
    let parse = |properties: Value| {
        let file = json!({"kind": "tinies", "apiVersion": "v1", "schema": {"key": {}, "items": {"type": "object", "required": ["id"], "properties": properties}}});
        fleet::Kind::parse(&file.to_string(), &fleet::Reserved::none())
            .map(|_| ())
            .map_err(|bad| bad.problems)
    };
    let problems = parse(json!({"id": {"type": "string"}})).expect_err("any id at all");
    assert!(
        problems[0].starts_with("`schema.items.properties.id.format` must be `dns-label`"),
        "{problems:?}"
    );
    let id = json!({"type": "string", "format": "dns-label"});
    let problems = parse(json!({"id": id, "x": {"type": "string", "$ref": "#/properties/id"}}))
        .expect_err("a reference");
    assert!(problems[0].starts_with("`schema.items` uses `$ref`"), "{problems:?}");
}

#[test]
fn a_kind_file_brings_no_poison_into_answers() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![tiny_kind(&json!({"n": {"type": "integer", "default": 9_007_199_254_740_993_u64}, "t": {"type": "string", "default": "\u{1}"}}))]);
    assert_contains(
        &complaints,
        &[
            "/schema/items/properties/n/default: 9007199254740993 is beyond",
            "/schema/items/properties/t/default: the text has the character U+0001",
        ],
    );
}
