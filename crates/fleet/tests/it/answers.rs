//! Answers beyond their bytes: who gets which, entity tags, the cluster list.

use crate::common::*;
use fleet::{Answer, NoClusterList, list_clusters, render};
use serde_json::json;

fn etag(fleet: &Fleet, cluster: &str, path: &str) -> String {
    match render(&fleet.state, &format!("{cluster}.k8s.example.com"), path) {
        Answer::Inputs(inputs) => inputs.etag(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn ten_thousand_unknown_names_get_no_list() {
    let fleet = Fleet::small();
    for n in 0..10_000 {
        assert!(matches!(
            render(&fleet.state, &format!("nobody-{n}.k8s.example.com"), "namespaces"),
            Answer::UnknownCluster
        ));
        assert!(matches!(
            render(&fleet.state, "dev-1.k8s.example.com", &format!("nothing-{n}")),
            Answer::UnknownKind
        ));
    }
    for dns in ["", "dev-1", "DEV-1.k8s.example.com", "dev-1.k8s.example.com.", " dev-1.k8s.example.com"] {
        assert!(matches!(render(&fleet.state, dns, "namespaces"), Answer::UnknownCluster), "{dns:?}");
    }
    for path in ["", "clusters", "platform_components", "Namespaces", "kinds", "decommissioned"] {
        assert!(
            matches!(render(&fleet.state, "dev-1.k8s.example.com", path), Answer::UnknownKind),
            "{path:?}"
        );
    }
    assert!(matches!(
        render(&fleet::State::empty(), "dev-1.k8s.example.com", "namespaces"),
        Answer::UnknownKind
    ));
}

#[test]
fn an_empty_list_is_for_a_cluster_without_references_and_for_a_decommissioned_one() {
    let mut fleet = Fleet::small();
    assert_eq!(fleet.inputs("prod-1", "rolebindings"), json!([]));
    fleet.accept(vec![delete("clusters", "dev-1")]);
    for path in ["platform-components", "namespaces", "rolebindings"] {
        assert_eq!(fleet.inputs("dev-1", path), json!([]));
    }
    assert!(matches!(render(&fleet.state, "dev-1.k8s.example.com", "nonsense"), Answer::UnknownKind));
    fleet.accept(vec![fleet::Operation::Forget { dns: "dev-1.k8s.example.com".into() }]);
    assert!(matches!(render(&fleet.state, "dev-1.k8s.example.com", "namespaces"), Answer::UnknownCluster));
}

#[test]
fn an_entity_tag_changes_with_what_the_answer_is_made_of_and_with_nothing_else() {
    let mut fleet = Fleet::small();
    let (components, namespaces) =
        (etag(&fleet, "dev-1", "platform-components"), etag(&fleet, "dev-1", "namespaces"));
    fleet.accept(vec![strategic("platform_components", "logging", json!({"oci_tag": "v9"}))]);
    fleet.accept(vec![strategic("clusters", "prod-1", json!({"node_count": 3}))]);
    assert_eq!(etag(&fleet, "dev-1", "platform-components"), components, "dev-1 has no logging");
    fleet.accept(vec![strategic("platform_components", "grafana", json!({"oci_tag": "9.0.0"}))]);
    assert_eq!(
        etag(&fleet, "dev-1", "platform-components"),
        format!("W/\"1.{}\"", fleet.state.head().revision)
    );
    assert_eq!(etag(&fleet, "dev-1", "namespaces"), namespaces);
    fleet.accept(vec![delete("clusters", "dev-1")]);
    assert_eq!(etag(&fleet, "dev-1", "namespaces"), format!("W/\"1.{}\"", fleet.state.head().revision));
}

#[test]
fn every_declared_property_is_in_every_input() {
    let mut fleet = Fleet::empty();
    let kind = tiny_kind(&json!({
        "a_text": {"type": "string"}, "b_number": {"type": "integer"}, "c_flag": {"type": "boolean"}, "d_list": {"type": "array"},
        "e_map": {"type": "object"}, "f_default": {"type": "string", "default": "x"}, "zz": {"type": "number"},
    }));
    let mut holder = cluster("holder");
    holder["tinies"] = json!([{"id": "one"}, {"id": "two", "f_default": "z", "d_list": [1]}]);
    fleet.accept(vec![
        kind,
        create("tinies", json!({"id": "one"})),
        create("tinies", json!({"id": "two", "a_text": "t", "f_default": "y"})),
        create("clusters", holder),
    ]);
    let cluster = json!({"dns": "holder.k8s.example.com", "environment": "dev", "name": "holder"});
    assert_eq!(
        fleet.inputs("holder", "tinies"),
        json!([
            {"a_text": "", "b_number": 0, "c_flag": false, "cluster": cluster, "d_list": [], "e_map": {}, "f_default": "x", "id": "one", "zz": 0},
            {"a_text": "t", "b_number": 0, "c_flag": false, "cluster": cluster, "d_list": [1], "e_map": {}, "f_default": "z", "id": "two", "zz": 0},
        ])
    );
}

#[test]
fn the_cluster_list_is_never_empty_by_accident() {
    let mut fleet = Fleet::small();
    let all = list_clusters(&fleet.state, None, false).expect("there are two");
    assert_eq!((all.count(), all.etag()), (2, format!("W/\"1.{}\"", fleet.state.head().revision)));
    let unknown = list_clusters(&fleet.state, Some("production"), true).expect_err("no such environment");
    assert_eq!(unknown.to_string(), "there is no environment `production`; there are dev, qa, uat, prod");
    assert_eq!(list_clusters(&fleet.state, Some("qa"), false), Err(NoClusterList::NoMatch));
    assert_eq!(list_clusters(&fleet.state, Some("qa"), true).expect("asked for").body(), b"{\"inputs\":[]}");
    fleet.accept(vec![delete("clusters", "dev-1")]);
    assert_eq!(list_clusters(&fleet.state, None, false).expect("one is left").body(), br#"{"inputs":[{"cluster_dns":"prod-1.k8s.example.com","cluster_name":"prod-1","environment":"prod","id":"prod-1"}]}"#);
}

#[test]
fn a_cluster_list_that_the_operator_would_cut_is_refused() {
    let mut fleet = Fleet::empty();
    let make = |n: usize| {
        create(
            "clusters",
            json!({"id": format!("c{n}"), "cluster_name": "c", "cluster_dns": format!("c{n}"), "environment": "dev"}),
        )
    };
    fleet.accept((0..10_000).map(make).collect());
    assert_eq!(list_clusters(&fleet.state, None, false).expect("10,000 fit").count(), 10_000);
    fleet.accept(vec![make(10_000)]);
    assert!(matches!(
        list_clusters(&fleet.state, None, false),
        Err(NoClusterList::TooLarge { count: 10_001, .. })
    ));
    assert_eq!(list_clusters(&fleet.state, Some("qa"), false), Err(NoClusterList::NoMatch));
}
