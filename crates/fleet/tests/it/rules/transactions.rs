//! A transaction as a whole: what it comes to, what it expects, and how much of what is wrong is told.

use super::assert_contains;
use crate::common::*;
use fleet::{Reason, Rejection};
use serde_json::{Value, json};

#[test]
fn violations_say_which_operation_of_a_batch_they_are_of() {
    let mut fleet = Fleet::small();
    let rejection = fleet.reject(vec![
        create("namespaces", json!({"id": "fine"})),
        create("namespaces", json!({"id": "Bad"})),
        strategic("clusters", "dev-1", json!({"node_count": "three"})),
    ]);
    let told: Vec<_> = rejection.violations().iter().map(|v| (v.operation, v.pointer.to_string())).collect();
    assert_eq!(told, [(1, "/id".to_owned()), (2, "/node_count".to_owned())]);
    assert_eq!(rejection.reason(), Some(&Reason::Invalid));
}

#[test]
fn rules_are_checked_on_what_all_operations_come_to() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        assign("dev-1", "namespaces", "later", json!(null)),
        strategic("clusters", "prod-1", json!({"environment": "nonsense"})),
        create("namespaces", json!({"id": "later"})),
        strategic("clusters", "prod-1", json!({"environment": "prod"})),
    ]);
    assert!(fleet.ids("dev-1", "namespaces").contains(&"later".to_owned()));
    let broken_then_mended = vec![
        strategic("clusters", "prod-1", json!({"cluster_name": 7})),
        strategic("clusters", "prod-1", json!({"cluster_name": "prod one"})),
    ];
    fleet.accept(broken_then_mended);
    assert_eq!(fleet.document("clusters", "prod-1")["platform_components"].as_array().map(Vec::len), Some(3));
    let patches = |of: Value| strategic("clusters", "dev-1", json!({"patches": of}));
    fleet.accept(vec![
        patches(json!({"podinfo": {"replicaCount": 7}})),
        patches(json!({"podinfo": {"replicaCount": "7"}})),
        patches(json!({"policies": null})),
        patches(json!({"grafana": {"x": "y"}})),
    ]);
    let expected = json!({"grafana": {"x": "y"}, "podinfo": {"replicaCount": "7", "ui.message": "hello"}});
    assert_eq!(fleet.document("clusters", "dev-1")["patches"], expected);
}

#[test]
fn a_write_that_changes_nothing_makes_no_commit() {
    let mut fleet = Fleet::small();
    let head = fleet.state.head();
    let document = fleet.document("clusters", "dev-1");
    let same = vec![
        put("clusters", "dev-1", document),
        strategic("clusters", "prod-1", json!({})),
        assign("dev-1", "namespaces", "team-a", json!({})),
    ];
    assert!(fleet.accept(same).commit.is_none());
    assert_eq!(fleet.state.head(), head);
}

#[test]
fn what_is_not_there_and_what_is_there_already() {
    let mut fleet = Fleet::small();
    let mut reason = |operation| fleet.reject(vec![operation]).reason().cloned();
    assert_eq!(reason(put("clusters", "nobody", cluster("nobody"))), Some(Reason::Missing));
    assert_eq!(reason(strategic("clusters", "nobody", json!({}))), Some(Reason::Missing));
    assert_eq!(reason(delete("namespaces", "nobody")), Some(Reason::Missing));
    assert_eq!(reason(unassign("dev-1", "namespaces", "nobody")), Some(Reason::Missing));
    assert_eq!(
        reason(patch_reference("dev-1", "platform_components", "logging", json!({}))),
        Some(Reason::Missing)
    );
    assert_eq!(reason(assign("nobody", "namespaces", "team-a", json!(null))), Some(Reason::Missing));
    assert_eq!(
        reason(fleet::Operation::Forget { dns: "dev-1.k8s.example.com".into() }),
        Some(Reason::Missing)
    );
    assert_eq!(reason(create("clusters", cluster("dev-1"))), Some(Reason::Exists));
    assert_eq!(reason(assign("dev-1", "clusters", "prod-1", json!(null))), Some(Reason::Invalid));
}

#[test]
fn a_stale_write_is_refused_with_the_revision_there_is() {
    let mut fleet = Fleet::small();
    let revision = fleet.state.cluster("dev-1").expect("there").revision;
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"node_count": 3}))]);
    let stale = fleet::Operation::Put {
        kind: "clusters".into(),
        id: "dev-1".into(),
        body: cluster("dev-1"),
        expect: Some(revision),
    };
    assert_eq!(fleet.reject(vec![stale]).reason(), Some(&Reason::Stale { now: revision.next() }));
    let target = fleet::Target::One { id: "dev-1".into(), expect: Some(revision.next()) };
    let fresh = fleet::Operation::Patch {
        kind: "clusters".into(),
        target,
        patch: fleet::Patch::Merge(json!({"node_count": 4})),
    };
    fleet.accept(vec![fresh]);
    assert_eq!(fleet.document("clusters", "dev-1")["node_count"], 4);
}

#[test]
fn a_revision_cannot_be_expected_of_what_the_same_transaction_makes() {
    let mut fleet = Fleet::small();
    let expected = fleet::Operation::Put {
        kind: "namespaces".into(),
        id: "new".into(),
        body: json!({}),
        expect: Some(fleet::Revision(7)),
    };
    let complaints = fleet.complaints(vec![create("namespaces", json!({"id": "new"})), expected]);
    assert_contains(
        &complaints,
        &["`namespaces/new` is made in this very transaction and has no revision yet; do not expect 7"],
    );
}

#[test]
fn selectors_select_clusters_only_and_at_least_one() {
    let mut fleet = Fleet::small();
    let of = |kind: &str, selector: &str| {
        vec![fleet::Operation::Patch {
            kind: kind.into(),
            target: selected(selector),
            patch: fleet::Patch::Merge(json!({})),
        }]
    };
    assert_contains(
        &fleet.complaints(of("namespaces", "id")),
        &["a selector selects clusters; name each namespace by its id"],
    );
    assert_eq!(fleet.reject(of("clusters", "region=mars")).reason(), Some(&Reason::Missing));
}

#[test]
fn a_confirmation_is_not_a_violation() {
    let mut fleet = Fleet::small();
    let rejection = fleet.reject(vec![strategic("clusters", "dev-1", json!({"namespaces": []}))]);
    assert!(matches!(rejection, Rejection::Confirm(_)));
    assert_eq!((rejection.reason(), rejection.violations().len()), (None, 0));
}

#[test]
fn violations_on_many_clusters_are_sampled_and_counted() {
    let mut fleet = Fleet::empty();
    let make = |n: usize| {
        let mut body = cluster(&format!("c{n:02}"));
        body["platform_components"] = json!([{"id": "web"}]);
        create("clusters", body)
    };
    fleet.accept(
        [
            vec![
                create("platform_components", component("web")),
                create("platform_components", component("db")),
            ],
            (0..30).map(make).collect(),
        ]
        .concat(),
    );
    let complaints =
        fleet.complaints(vec![strategic("platform_components", "web", json!({"depends_on": ["db"]}))]);
    assert_eq!(complaints.len(), 21);
    assert!(complaints.contains(&": and on 10 more clusters".to_owned()), "{complaints:#?}");

    let selected = fleet::Operation::Patch {
        kind: "clusters".into(),
        target: selected("id"),
        patch: fleet::Patch::Merge(json!({"environment": "x"})),
    };
    // The same in every document is told once, and counted.
    let rejection = fleet.reject(vec![selected]);
    let [one] = rejection.violations() else { panic!("{rejection:#?}") };
    assert_eq!((one.pointer.as_str(), one.also, rejection.total()), ("/environment", 29, 30));

    // What is different in each is cut after twenty documents, and counted whole.
    let renamed = fleet::Operation::Patch {
        kind: "clusters".into(),
        target: crate::common::selected("id"),
        patch: fleet::Patch::Merge(json!({"id": "same", "environment": "x"})),
    };
    let rejection = fleet.reject(vec![renamed]);
    let messages: Vec<&str> = rejection.violations().iter().map(|v| v.message.as_str()).collect();
    assert_eq!((messages.len(), rejection.total()), (22, 60), "{messages:#?}");
    assert_eq!(messages[21], "and 10 more things like these");
}

#[test]
fn warnings_about_many_clusters_are_sampled_and_counted() {
    let mut fleet = Fleet::empty();
    fleet.accept((0..30).map(|n| create("clusters", cluster(&format!("c{n}")))).collect());
    let patch = fleet::Patch::Strategic(json!({"namespaces": [{"id": "nowhere", "$patch": "delete"}]}));
    let applied = fleet.accept(vec![fleet::Operation::Patch {
        kind: "clusters".into(),
        target: selected("id"),
        patch,
    }]);
    assert_eq!(applied.warnings.len(), 21);
    assert_eq!(applied.warnings[20], "and 10 more warnings like these");
}

#[test]
fn a_summary_of_many_does_not_change_what_sort_of_refusal_it_is() {
    let mut fleet = Fleet::empty();
    let note = "x".repeat(46_000);
    let mut operations = vec![tiny_kind(&json!({"note": {"type": "string"}}))];
    operations.extend((0..20).map(|n| create("tinies", json!({"id": format!("t{n}"), "note": note}))));
    operations.extend((0..25).map(|n| {
        let mut body = cluster(&format!("c{n}"));
        body["tinies"] = (0..19).map(|n| json!({"id": format!("t{n}")})).collect::<Value>();
        create("clusters", body)
    }));
    fleet.accept(operations);
    let default = "y".repeat(3000);
    let rejection = fleet.reject(vec![tiny_kind(
        &json!({"note": {"type": "string"}, "more": {"type": "string", "default": default}}),
    )]);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
    assert_eq!(rejection.violations().len(), 21);
}

fn told_bytes(rejection: &Rejection) -> usize {
    rejection.violations().iter().map(|v| v.message.len() + v.pointer.as_str().len()).sum()
}

#[test]
fn what_is_told_does_not_grow_with_the_square_of_what_was_sent() {
    let mut fleet = Fleet::small();
    let many: serde_json::Map<String, Value> = (0..2000).map(|n| (format!("k{n}"), json!(1))).collect();
    let mut body = cluster("new");
    body["patches"] = json!({"a".repeat(100_000): many});
    let rejection = fleet.reject(vec![create("clusters", body.clone())]);
    assert!(
        rejection.violations()[0]
            .message
            .contains("has 100002 bytes as JSON, with quotes and escapes; 1024 are the most"),
        "{rejection}"
    );
    body["patches"] = json!({"a".repeat(1000): many});
    assert!(told_bytes(&fleet.reject(vec![create("clusters", body)])) < 400_000);

    let mut operations: Vec<_> = (0..300)
        .map(|n| {
            let mut body = component(&format!("c{n}"));
            body["delivery"] = json!("kustomize");
            body["oci_url"] = json!("oci://registry.example.com/platform");
            create("platform_components", body)
        })
        .collect();
    let mut long = component(&"x".repeat(40_000));
    long["depends_on"] = (0..300).map(|n| json!(format!("c{n}"))).collect::<Value>();
    operations.push(create("platform_components", long));
    assert!(told_bytes(&fleet.reject(operations)) < 1_000);
}
