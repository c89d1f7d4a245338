//! How much work one transaction may be: whoever else writes waits for it.

use crate::common::*;
use fleet::{MAX_CHANGES, Operation, Patch, Reason, Target};
use serde_json::{Value, json};

/// A fleet of so many clusters, each with nothing but a namespace; every hundredth has a component.
fn fleet_of(clusters: usize) -> Fleet {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![
        create("namespaces", json!({"id": "team-a"})),
        create("platform_components", component("podinfo")),
    ]);
    let numbers: Vec<usize> = (0..clusters).collect();
    for some in numbers.chunks(MAX_CHANGES) {
        let made = some.iter().map(|n| {
            let mut body = cluster(&format!("c{n:05}"));
            body["namespaces"] = json!([{"id": "team-a"}]);
            if n % 100 == 0 {
                body["platform_components"] = json!([{"id": "podinfo"}]);
            }
            create("clusters", body)
        });
        fleet.accept(made.collect());
    }
    fleet
}

fn label(target: Target, value: &str) -> Operation {
    let patch = Patch::Strategic(json!({"labels": {"wave": value}}));
    Operation::Patch { kind: "clusters".into(), target, patch }
}

/// The one thing that is said of a transaction that is too large.
#[track_caller]
fn too_large(fleet: &mut Fleet, operations: Vec<Operation>) -> (usize, String) {
    let rejection = fleet.reject(operations);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge), "{}", rejection.violations()[0].message);
    let [violation] = rejection.violations() else { panic!("more than that is said") };
    (violation.operation, violation.message.clone())
}

#[test]
fn a_selector_of_more_clusters_than_one_transaction_changes_is_refused_whatever_it_would_do_to_them() {
    let mut fleet = fleet_of(MAX_CHANGES + 1);
    let said = "`id` selects 10001 clusters; at most 10000 are changed at once: split it into several changes, for example by a narrower selector";
    let expected = (0, said.to_owned());
    let all = || selected("id");
    assert_eq!(too_large(&mut fleet, vec![label(all(), "1")]), expected);
    let delete = Operation::Delete { kind: "clusters".into(), target: all() };
    assert_eq!(too_large(&mut fleet, vec![delete]), expected);
    let assign = Operation::Assign {
        clusters: all(),
        kind: "namespaces".into(),
        id: "team-a".into(),
        overrides: json!({}),
    };
    assert_eq!(too_large(&mut fleet, vec![assign]), expected);
    // What is done only where something is, counts only those clusters.
    let values =
        Operation::PatchValues { clusters: all(), component: "podinfo".into(), values: json!({"a": "b"}) };
    assert_eq!(fleet.accept(vec![values]).changes().count(), 101);
    let unassign = |kind: &str, id: &str| Operation::RemoveReference {
        clusters: all(),
        kind: kind.into(),
        id: id.into(),
    };
    assert_eq!(too_large(&mut fleet, vec![unassign("namespaces", "team-a")]), expected);
    let but_one = label(selected("id!=c00000"), "1");
    assert_eq!(fleet.accept(vec![but_one]).changes().count(), MAX_CHANGES);
}

#[test]
fn ten_thousand_patches_of_a_whole_fleet_are_refused_and_those_that_fit_are_named() {
    let mut fleet = fleet_of(800);
    let patches =
        |count: usize| (0..count).map(|n| label(selected("id"), &n.to_string())).collect::<Vec<_>>();
    let (operation, said) = too_large(&mut fleet, patches(10_000));
    let expected = format!(
        "this is too much work for one transaction: the first {operation} of its 10000 operations fit; send the others separately"
    );
    assert_eq!(said, expected);
    assert!((100..1_000).contains(&operation), "{operation} patches of 800 clusters fit");
    // The count is of the work, not of the time that it takes: it is the same every time, and what it says is so.
    assert_eq!(too_large(&mut fleet, patches(operation + 1)).0, operation);
    assert_eq!(fleet.accept(patches(operation)).changes().count(), 800);
}

#[test]
fn a_json_patch_whose_items_push_each_other_along_is_refused_before_it_is_done() {
    let mut fleet = fleet_of(800);
    let item = json!({"op": "add", "path": "/namespaces/0", "value": {"id": "x"}});
    let items = Value::Array(vec![item; 20_000]);
    let patch = |target: Target| Operation::Patch {
        kind: "clusters".into(),
        target,
        patch: Patch::Json(items.clone()),
    };
    let advice = "this is too much work for one transaction: split it into several changes, for example by a narrower selector";
    assert_eq!(too_large(&mut fleet, vec![patch(selected("id"))]), (0, advice.to_owned()));
    // The same on one cluster is looked at, and is wrong for another reason.
    assert_eq!(fleet.reject(vec![patch(Target::one("c00001"))]).reason(), Some(&Reason::Invalid));
    // What is carried around counts, too.
    let back_and_forth = (0..60_000).map(|n| {
        let (from, to) = if n % 2 == 0 { ("/namespaces", "/labels") } else { ("/labels", "/namespaces") };
        json!({"op": "move", "from": from, "path": to})
    });
    let mut items = vec![item_of_many(5_000)];
    items.extend(back_and_forth);
    let moves = Operation::Patch {
        kind: "clusters".into(),
        target: Target::one("c00001"),
        patch: Patch::Json(Value::Array(items)),
    };
    assert_eq!(too_large(&mut fleet, vec![moves]), (0, advice.to_owned()));
}

/// An item that makes a list of so many references.
fn item_of_many(count: usize) -> Value {
    let many: Vec<Value> = (0..count).map(|n| json!({"id": format!("n{n}")})).collect();
    json!({"op": "replace", "path": "/namespaces", "value": many})
}

#[test]
fn so_many_documents_of_the_catalog_at_once_are_too_many_for_a_large_fleet() {
    let mut fleet = fleet_of(3_000);
    let namespaces = |count: usize, owner: &str| {
        let body = move |n: usize| json!({"id": format!("n{n}"), "annotations": {"owner": owner}});
        (0..count).map(move |n| (format!("n{n}"), body(n))).collect::<Vec<_>>()
    };
    let created = namespaces(9_000, "a").into_iter().map(|(_, body)| create("namespaces", body));
    fleet.accept(created.collect());
    let replaced = |count: usize, owner: &str| {
        namespaces(count, owner)
            .into_iter()
            .map(|(id, body)| put("namespaces", &id, body))
            .collect::<Vec<_>>()
    };
    // What no cluster refers to need not be compared with any.
    assert_eq!(fleet.accept(replaced(9_000, "b")).changes().count(), 9_000);
    let used = (0..45).map(|n| {
        let ids: Vec<Value> = (n * 200..(n + 1) * 200).map(|n| json!({"id": format!("n{n}")})).collect();
        strategic("clusters", &format!("c{n:05}"), json!({"namespaces": ids}))
    });
    fleet.accept(used.collect());
    let expected = "this is too much work for one transaction: every changed document of the catalog is compared with every cluster; change fewer of them at once";
    // Also if none of them grows: effects and removals are worked out for each.
    for owner in ["c", "somebody else"] {
        assert_eq!(too_large(&mut fleet, replaced(9_000, owner)).1, expected, "{owner}");
    }
    assert_eq!(fleet.accept(replaced(3_000, "somebody else")).changes().count(), 3_000);
}
