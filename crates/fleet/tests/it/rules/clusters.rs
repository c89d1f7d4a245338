//! Who a cluster is: its names, its end, and its life after that.

use super::assert_contains;
use crate::common::*;
use fleet::Reason;
use serde_json::{Value, json};

#[test]
fn a_dns_name_is_taken_by_the_living_and_by_the_dead() {
    let mut fleet = Fleet::small();
    let mut body = cluster("other");
    body["cluster_dns"] = json!("dev-1.k8s.example.com");
    let taken = fleet.reject(vec![create("clusters", body.clone())]);
    assert_eq!(taken.reason(), Some(&Reason::Exists));
    assert_eq!(
        taken.violations()[0].message,
        "`dev-1.k8s.example.com` is already the DNS name of the cluster `dev-1`"
    );

    let mut twin = body.clone();
    twin["id"] = json!("twin");
    fleet.accept(vec![delete("clusters", "dev-1")]);
    let buried = fleet.reject(vec![create("clusters", body.clone())]);
    assert_eq!(buried.reason(), Some(&Reason::Exists));
    assert!(buried.violations()[0].message.contains("belongs to a decommissioned cluster"), "{buried:#?}");

    let replacing = |body: &Value| fleet::Operation::Create {
        kind: "clusters".into(),
        body: body.clone(),
        replace_decommissioned: true,
    };
    let twins = fleet.reject(vec![replacing(&body), replacing(&twin)]);
    assert_eq!(twins.reason(), Some(&Reason::Exists));
    fleet.accept(vec![replacing(&body)]);
    assert!(fleet.state.tombstones().is_empty());
}

#[test]
fn identity_never_changes() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![strategic(
        "clusters",
        "dev-1",
        json!({"id": "dev-2", "cluster_dns": "dev-2.k8s.example.com"}),
    )]);
    assert_contains(
        &complaints,
        &[
            "/cluster_dns: `cluster_dns` cannot be changed: it is `dev-1.k8s.example.com`",
            "/id: `id` cannot be changed: it is `dev-1`",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![put("namespaces", "team-a", json!({"id": "team-z"}))]),
        &["/id: `id` cannot be changed"],
    );
}

#[test]
fn a_protected_cluster_is_not_deleted() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"protected": true}))]);
    assert_eq!(fleet.reject(vec![delete("clusters", "dev-1")]).reason(), Some(&Reason::Protected));
    let in_one_go =
        vec![strategic("clusters", "dev-1", json!({"protected": false})), delete("clusters", "dev-1")];
    assert_eq!(fleet.reject(in_one_go).reason(), Some(&Reason::Protected));
    let by_selector = vec![fleet::Operation::Delete { kind: "clusters".into(), target: selected("id") }];
    assert_eq!(fleet.reject(by_selector).reason(), Some(&Reason::Protected));
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"protected": null}))]);
    fleet.accept(vec![delete("clusters", "dev-1")]);
}

#[test]
fn a_cluster_is_not_decommissioned_and_made_again_in_one_transaction() {
    let mut fleet = Fleet::small();
    let again = fleet::Operation::Create {
        kind: "clusters".into(),
        body: cluster("dev-1"),
        replace_decommissioned: true,
    };
    let complaints = fleet.complaints(vec![delete("clusters", "dev-1"), again.clone()]);
    assert_contains(&complaints, &["cannot be decommissioned and made again in one transaction"]);
    let old = fleet.state.cluster("dev-1").expect("there").uid;
    fleet.accept(vec![delete("clusters", "dev-1")]);
    assert_eq!(fleet.state.tombstone("dev-1.k8s.example.com").expect("buried").doc.uid, old);
    fleet.accept(vec![again]);
    assert_ne!(fleet.state.cluster("dev-1").expect("there").uid, old, "another life, another uid");
}
