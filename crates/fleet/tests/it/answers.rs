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
        format!("W/\"2.{}\"", fleet.state.head().revision)
    );
    assert_eq!(etag(&fleet, "dev-1", "namespaces"), namespaces);
    fleet.accept(vec![delete("clusters", "dev-1")]);
    assert_eq!(etag(&fleet, "dev-1", "namespaces"), format!("W/\"2.{}\"", fleet.state.head().revision));
}

#[test]
fn an_answer_says_what_it_was_made_from() {
    let fleet = Fleet::small();
    let Answer::Inputs(inputs) = render(&fleet.state, "dev-1.k8s.example.com", "namespaces") else {
        panic!("known")
    };
    assert_eq!(
        (inputs.revision(), inputs.count()),
        (fleet.state.cluster("dev-1").expect("there").revision, 3)
    );
    let body = inputs.body().to_vec();
    assert_eq!(inputs.into_body(), body);
}

/// A state that `apply` would never make: loaded from rows, without a rule being asked.
fn loaded(tinies: usize, note: usize, references: usize) -> fleet::State {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![tiny_kind(&json!({"note": {"type": "string"}}))]);
    let row = |key: fleet::Key, body: String| fleet::Row {
        key,
        body: fleet::Canonical::stored(body),
        revision: fleet::Revision(1),
        uid: fleet::Uid(1),
    };
    let kinds = fleet.state.kinds().iter().map(|kind| {
        let file = serde_json::to_string(kind.file()).expect("JSON");
        row(fleet::Key::Kind(kind.name().clone()), file)
    });
    let mut loader = fleet::Loader::new(kinds).expect("kinds");
    for n in 0..tinies {
        let id = format!("t{n}");
        loader
            .push([row(
                fleet::Key::document("tinies", &*id),
                json!({"id": id, "note": "y".repeat(note)}).to_string(),
            )])
            .expect("a row");
    }
    let mut body = cluster("holder");
    body["tinies"] = (0..references).map(|n| json!({"id": format!("t{n}")})).collect::<serde_json::Value>();
    loader.push([row(fleet::Key::document("clusters", "holder"), body.to_string())]).expect("a row");
    let mut header = fleet.commits.last().expect("a commit").header.clone();
    header.state = loader.digest();
    header.at.hash = header.expected_hash();
    loader.finish(&header, []).expect("it loads")
}

#[test]
fn a_state_that_should_not_be_is_a_fault_and_never_a_shorter_list() {
    let fault = |state: &fleet::State| match render(state, "holder.k8s.example.com", "tinies") {
        Answer::Fault(fault) => fault,
        other => panic!("{other:?}"),
    };
    assert!(
        matches!(render(&loaded(3, 1, 3), "holder.k8s.example.com", "tinies"), Answer::Inputs(inputs) if inputs.count() == 3)
    );
    assert_eq!(
        fault(&loaded(3, 1, 4)).to_string(),
        "the cluster `holder` refers to `t3`, which is not there"
    );
    assert!(matches!(fault(&loaded(20, 50_000, 20)), fleet::Fault::TooLarge { count: 20, .. }));
    assert!(matches!(fault(&loaded(10_001, 0, 10_001)), fleet::Fault::TooLarge { count: 10_001, .. }));
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
    let mut inputs = fleet.inputs("holder", "tinies");
    for input in inputs.as_array_mut().expect("a list") {
        let hash = input.as_object_mut().expect("an object").remove("hash").expect("a hash");
        assert_eq!(hash.as_str().map(str::len), Some(16));
    }
    assert_eq!(
        inputs,
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
    assert_eq!((all.count(), all.etag()), (2, format!("W/\"2.{}\"", fleet.state.head().revision)));
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
        Err(NoClusterList::TooMany { count: 10_001 })
    ));
    assert_eq!(list_clusters(&fleet.state, Some("qa"), false), Err(NoClusterList::NoMatch));
}

#[test]
fn a_cluster_list_is_full_at_921_600_bytes_and_at_a_mebibyte_as_it_is_stored() {
    /// So many clusters with names alike, the first few of them one byte longer.
    fn list(count: usize, name: &str, longer: usize) -> Result<fleet::ClusterList, NoClusterList> {
        let mut fleet = Fleet::empty();
        let make = |n: usize| {
            let name = format!("{name}{}", if n < longer { "x" } else { "" });
            create(
                "clusters",
                json!({"id": format!("c{n:04}"), "cluster_name": name, "cluster_dns": format!("c{n:04}"), "environment": "dev"}),
            )
        };
        fleet.accept((0..count).map(make).collect());
        list_clusters(&fleet.state, None, false)
    }
    let missing = 921_600 - list(3000, &"x".repeat(200), 0).expect("it fits").body().len();
    let name = "x".repeat(200 + missing / 3000);
    let spread = |extra: usize| list(3000, &name, missing % 3000 + extra);
    assert_eq!(spread(0).expect("exactly full").body().len(), 921_600);
    assert!(matches!(spread(1), Err(NoClusterList::TooLarge { count: 3000, bytes: 921_601 })));
    // As it is stored: many `<`, and plain characters for the rest.
    let brackets = "x<".repeat(85);
    let stored = |body: &[u8]| body.len() + 5 * String::from_utf8_lossy(body).matches('<').count();
    let missing = fleet::MAX_STORED - stored(list(1500, &brackets, 0).expect("it fits").body());
    let name = format!("{brackets}{}", "x".repeat(missing / 1500));
    let spread = |extra: usize| list(1500, &name, missing % 1500 + extra);
    assert_eq!(stored(spread(0).expect("exactly full").body()), 1_048_576);
    assert!(matches!(spread(1), Err(NoClusterList::TooLarge { count: 1500, .. })));
}

#[test]
fn the_hash_of_an_input_depends_on_its_other_fields_and_on_nothing_else() {
    let mut fleet = Fleet::small();
    let hash = |fleet: &Fleet, cluster: &str, path: &str, id: &str| {
        fleet.input(cluster, path, id)["hash"].as_str().expect("a text").to_owned()
    };
    let components = "platform-components";
    let catalog = hash(&fleet, "dev-1", components, "grafana");
    // An override that says what the catalog says makes the same input.
    fleet.accept(vec![assign(
        "dev-1",
        "platform_components",
        "grafana",
        json!({"oci_tag": "1.0.0", "enabled": true}),
    )]);
    assert_eq!(hash(&fleet, "dev-1", components, "grafana"), catalog);
    fleet.accept(vec![assign("dev-1", "platform_components", "grafana", json!({"oci_tag": "1.0.1"}))]);
    let overridden = hash(&fleet, "dev-1", components, "grafana");
    assert_ne!(overridden, catalog);
    // The same tag from the catalog.
    fleet.accept(vec![
        assign("dev-1", "platform_components", "grafana", json!(null)),
        strategic("platform_components", "grafana", json!({"oci_tag": "1.0.1"})),
    ]);
    assert_eq!(hash(&fleet, "dev-1", components, "grafana"), overridden);
    // Patches, other fields of the source and the cluster's own name are part of it.
    let mut seen = vec![catalog, overridden];
    for change in [
        strategic("clusters", "dev-1", json!({"patches": {"grafana": {"a": "1"}}})),
        strategic("platform_components", "grafana", json!({"secretRef": {"name": "login"}})),
        strategic("clusters", "dev-1", json!({"cluster_name": "renamed"})),
    ] {
        fleet.accept(vec![change]);
        let now = hash(&fleet, "dev-1", components, "grafana");
        assert!(!seen.contains(&now), "{seen:?}");
        seen.push(now);
    }
    // What is in no input is not.
    let namespace = hash(&fleet, "dev-1", "namespaces", "team-a");
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"labels": {"region": "ap"}, "node_count": 7}))]);
    assert_eq!(hash(&fleet, "dev-1", components, "grafana"), *seen.last().expect("some"));
    assert_eq!(hash(&fleet, "dev-1", "namespaces", "team-a"), namespace);
    fleet.accept(vec![assign("dev-1", "namespaces", "team-a", json!({"labels": {"team": "a"}}))]);
    assert_eq!(hash(&fleet, "dev-1", "namespaces", "team-a"), namespace, "the override says the same");
    fleet.accept(vec![assign("dev-1", "namespaces", "team-a", json!({"labels": {"team": "b"}}))]);
    assert_ne!(hash(&fleet, "dev-1", "namespaces", "team-a"), namespace);
}
