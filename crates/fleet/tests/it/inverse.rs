//! What undoes a commit, and what cannot be undone.

use fleet::{Irreversible, Operation, State, Transaction, apply, inverse};
use serde_json::json;

use crate::common::*;

/// Undoes the last commit of a fleet, confirmed if need be.
fn undo(fleet: &mut Fleet, before: &State) -> Result<(), Irreversible> {
    let operations = inverse(before, fleet.commits.last().expect("a commit"))?;
    let transaction = |confirm| Transaction {
        operations: operations.clone(),
        derived: true,
        confirm,
        origin: origin(900, fleet.now),
    };
    let undone = match apply(&fleet.state, &fleet.policy, &transaction(None)) {
        Err(fleet::Rejection::Confirm(stopped)) => {
            apply(&fleet.state, &fleet.policy, &transaction(Some(stopped.digest)))
        }
        other => other,
    };
    fleet.state = undone.expect("it is undone").next;
    Ok(())
}

#[test]
fn a_changed_a_created_and_a_deleted_document_come_back_as_they_were() {
    let mut fleet = Fleet::small();
    let before = fleet.state.clone();
    fleet.accept(vec![
        strategic("platform_components", "grafana", json!({"oci_tag": "9.9.9"})),
        create("namespaces", json!({"id": "new"})),
        delete("platform_components", "logging"),
    ]);
    undo(&mut fleet, &before).expect("it can be undone");
    assert_eq!(contents(&fleet.state), contents(&before));
}

#[test]
fn a_decommissioned_cluster_comes_back_as_another_one_of_the_same_name() {
    let mut fleet = Fleet::small();
    let before = fleet.state.clone();
    fleet.accept(vec![delete("clusters", "dev-1")]);
    undo(&mut fleet, &before).expect("it can be undone");
    assert_eq!(contents(&fleet.state), contents(&before));
    let uid = |state: &State| state.cluster("dev-1").expect("there").uid;
    assert_ne!(uid(&fleet.state), uid(&before));
    assert!(fleet.state.tombstones().is_empty());
}

#[test]
fn a_created_cluster_leaves_its_tombstone() {
    let mut fleet = Fleet::small();
    let before = fleet.state.clone();
    fleet.accept(vec![create("clusters", cluster("new"))]);
    undo(&mut fleet, &before).expect("it can be undone");
    assert_eq!(fleet.inputs("new", "namespaces"), json!([]), "its Flux is to clean up");
    assert_eq!(fleet.state.tombstones().len(), 1);
}

#[test]
fn a_kind_in_force_and_a_forgotten_record_cannot_be_undone() {
    let mut fleet = Fleet::small();
    let before = fleet.state.clone();
    fleet.accept(vec![tiny_kind(&json!({}))]);
    let kind = undo(&mut fleet, &before).expect_err("it stays");
    assert_eq!(kind.to_string(), "the kind `kinds/tinies` stays in force: documents may depend on it");
    fleet.accept(vec![delete("clusters", "dev-1")]);
    let before = fleet.state.clone();
    fleet.accept(vec![Operation::Forget { dns: "dev-1.k8s.example.com".into() }]);
    let forgotten = undo(&mut fleet, &before).expect_err("it is gone");
    assert!(forgotten.to_string().contains("an empty answer is never made from a guess"), "{forgotten}");
}
