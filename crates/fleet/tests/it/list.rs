//! Lists: what filters and selectors let through, how many there are, and which page is given.

use std::sync::Arc;

use crate::common::*;
use fleet::{Kind, Listing, Operation, Page, Revision, Selector};
use serde_json::{Value, json};

fn kind(fleet: &Fleet, name: &str) -> Arc<Kind> {
    fleet.state.kinds().get(name).unwrap_or_else(|| panic!("no kind {name}")).clone()
}

fn ids(page: &Page<'_>) -> String {
    page.ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" ")
}

/// The ids of what filters let through; their number is checked on the way.
#[track_caller]
fn filtered(fleet: &Fleet, of: &str, filters: &[(&str, &str)]) -> String {
    let kind = kind(fleet, of);
    let page = fleet.state.list(&Listing { filters: filters.to_vec(), ..Listing::all(&kind) });
    assert_eq!((page.total, page.more), (page.ids.len(), false));
    ids(&page)
}

fn selected(fleet: &Fleet, of: &str, selector: &str) -> String {
    let (kind, selector) = (kind(fleet, of), Selector::parse(selector).expect("a good selector"));
    ids(&fleet.state.list(&Listing { selector: Some(&selector), ..Listing::all(&kind) }))
}

fn clusters(bodies: &[(&str, Value)]) -> Fleet {
    let mut fleet = Fleet::empty();
    let make = |(id, extra): &(&str, Value)| {
        let mut body = cluster(id);
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        create("clusters", body)
    };
    fleet.accept(bodies.iter().map(make).collect());
    fleet
}

#[test]
fn a_list_without_conditions_is_everything_sorted_by_id() {
    let fleet = Fleet::small();
    let everything = |of| filtered(&fleet, of, &[]);
    assert_eq!(everything("clusters"), "dev-1 prod-1");
    assert_eq!(everything("platform_components"), "cert-manager grafana logging podinfo policies traefik");
    assert_eq!(everything("namespaces"), "team-a team-b team-c");
    assert_eq!(everything("rolebindings"), "deployer viewers");
}

#[test]
fn clusters_are_filtered_by_their_own_fields_and_by_those_that_the_core_does_not_read() {
    let fleet = clusters(&[
        ("a", json!({"environment": "prod", "protected": true, "node_count": 3, "vm_image": "true"})),
        (
            "b",
            json!({"environment": "prod", "protected": false, "node_count": 30, "cluster_name": "the \"b\""}),
        ),
        ("c", json!({"vm_image": "say \"hi\"\n"})),
    ]);
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("environment", "prod")], "a b"),
        (&[("environment", "pro")], ""),
        (&[("environment", "prod"), ("protected", "true")], "a"),
        (&[("environment", "prod"), ("environment", "dev")], ""),
        (&[("cluster_name", "the \"b\"")], "b"),
        (&[("node_count", "3")], "a"),
        (&[("node_count", "03")], ""),
        (&[("vm_image", "true")], "a"),
        (&[("vm_image", "say \"hi\"\n")], "c"),
        (&[("vm_image", "")], ""),
        (&[("no_such_field", "x")], ""),
    ];
    for (filters, expected) in cases {
        assert_eq!(filtered(&fleet, "clusters", filters), *expected, "{filters:?}");
    }
}

#[test]
fn a_field_that_is_left_out_has_its_default() {
    let fleet =
        clusters(&[("a", json!({"protected": true})), ("b", json!({"protected": false})), ("c", json!({}))]);
    assert_eq!(filtered(&fleet, "clusters", &[("protected", "false")]), "b c");
    assert_eq!(filtered(&fleet, "clusters", &[("protected", "true")]), "a");

    let mut fleet = Fleet::empty();
    fleet.accept(vec![
        tiny_kind(&json!({
            "mtu": {"type": "integer", "default": 1500}, "open": {"type": "boolean", "default": true},
            "zone": {"type": "string", "default": "north"}, "note": {"type": "string"},
        })),
        create("tinies", json!({"id": "left-out"})),
        create("tinies", json!({"id": "same", "mtu": 1500, "open": true, "zone": "north", "note": ""})),
        create("tinies", json!({"id": "other", "mtu": 9000, "open": false, "zone": "south"})),
    ]);
    for (filter, expected) in [
        (("mtu", "1500"), "left-out same"),
        (("mtu", "9000"), "other"),
        (("open", "true"), "left-out same"),
        (("zone", "north"), "left-out same"),
        (("zone", "\"north\""), ""),
        (("note", ""), "same"),
    ] {
        assert_eq!(filtered(&fleet, "tinies", &[filter]), expected, "{filter:?}");
    }
}

#[test]
fn components_are_filtered_by_the_delivery_they_get() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![create(
        "platform_components",
        json!({"id": "chart", "component_path": "chart", "oci_url": "oci://ghcr.io/charts/chart", "oci_tag": "2.0.0", "delivery": "helm", "component_version": "two"}),
    )]);
    for (filter, expected) in [
        (("delivery", "helm"), "cert-manager chart grafana podinfo traefik"),
        (("delivery", "kustomize"), "logging policies"),
        (("oci_tag", "2.0.0"), "chart"),
        (("oci_url", "oci://ghcr.io/charts/chart"), "chart"),
        (("component_path", "podinfo"), "podinfo"),
        (("component_version", "two"), "chart"),
        (("cluster_env_enabled", "true"), "policies"),
        (("cluster_env_enabled", "false"), "cert-manager chart grafana logging podinfo traefik"),
        (("id", "podinfo"), "podinfo"),
        (("id", "nobody"), ""),
    ] {
        assert_eq!(filtered(&fleet, "platform_components", &[filter]), expected, "{filter:?}");
    }
    assert_eq!(filtered(&fleet, "rolebindings", &[("role", "view")]), "viewers");
    assert_eq!(filtered(&fleet, "namespaces", &[("id", "team-b")]), "team-b");
}

#[test]
fn what_is_looked_up_by_id_or_dns_must_match_the_rest_as_well() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![create("clusters", cluster("old"))]);
    fleet.accept(vec![delete("clusters", "old")]);
    let dns = "dev-1.k8s.example.com";
    for (filters, expected) in [
        (vec![("cluster_dns", dns)], "dev-1"),
        (vec![("cluster_dns", dns), ("environment", "prod")], ""),
        (vec![("cluster_dns", dns), ("cluster_dns", "prod-1.k8s.example.com")], ""),
        (vec![("id", "dev-1"), ("cluster_dns", dns)], "dev-1"),
        (vec![("id", "prod-1"), ("cluster_dns", dns)], ""),
        (vec![("id", "nobody")], ""),
        (vec![("cluster_dns", "old.k8s.example.com")], ""),
    ] {
        assert_eq!(filtered(&fleet, "clusters", &filters), expected, "{filters:?}");
    }
}

#[test]
fn selectors_select_clusters_and_whatever_else_has_labels() {
    let fleet = Fleet::small();
    assert_eq!(selected(&fleet, "clusters", "environment=prod,region in (eu,us),legacy"), "prod-1");
    assert_eq!(selected(&fleet, "clusters", "id"), "dev-1 prod-1");
    assert_eq!(selected(&fleet, "namespaces", "team=a"), "team-a");
    assert_eq!(selected(&fleet, "namespaces", "team!=a"), "team-b team-c");
    assert_eq!(selected(&fleet, "namespaces", "id notin (team-b)"), "team-a team-c");
    assert_eq!(selected(&fleet, "rolebindings", "team"), "", "they have no labels");
    assert_eq!(selected(&fleet, "platform_components", "id=podinfo,!team"), "podinfo");
}

#[test]
fn a_selector_and_a_filter_hold_at_once() {
    let fleet = Fleet::small();
    let (kind, selector) = (kind(&fleet, "clusters"), Selector::parse("region=eu").expect("good"));
    let filtered = |environment| {
        let filters = vec![("environment", environment)];
        ids(&fleet.state.list(&Listing { filters, selector: Some(&selector), ..Listing::all(&kind) }))
    };
    assert_eq!((filtered("dev"), filtered("prod")), ("dev-1".to_owned(), String::new()));
}

#[test]
fn a_page_tells_how_many_there_are_and_whether_more_follow() {
    let fleet = clusters(&["a", "b", "c", "d", "e"].map(|id| (id, json!({}))));
    let kind = kind(&fleet, "clusters");
    // With and without a condition: the one looks at every cluster, the other does not.
    for filters in [vec![], vec![("environment", "dev")]] {
        let page = |after, offset, limit| {
            let filters = filters.clone();
            let page =
                fleet.state.list(&Listing { kind: &kind, filters, selector: None, after, offset, limit });
            assert_eq!(page.total, 5, "whatever page it is");
            (ids(&page), page.more)
        };
        let (given, last) = (|ids: &str| (ids.to_owned(), true), |ids: &str| (ids.to_owned(), false));
        assert_eq!(page(None, 0, 2), given("a b"));
        assert_eq!(page(None, 2, 2), given("c d"));
        assert_eq!(page(None, 3, 2), last("d e"));
        assert_eq!(page(None, 4, 2), last("e"));
        assert_eq!(page(None, 5, 2), last(""));
        assert_eq!(page(None, usize::MAX, usize::MAX), last(""));
        assert_eq!(page(None, 0, 5), last("a b c d e"));
        assert_eq!(page(None, 0, 0), given(""));
        assert_eq!(page(Some("b"), 0, 2), given("c d"));
        assert_eq!(page(Some("b"), 1, 2), last("d e"));
        assert_eq!(page(Some("bb"), 0, 9), last("c d e"), "the cursor's document may be gone");
        assert_eq!(page(Some(""), 0, 1), given("a"));
        assert_eq!(page(Some("e"), 0, 2), last(""));
    }
}

#[test]
fn a_page_of_the_catalog_is_cut_after_sorting() {
    let fleet = Fleet::small();
    let kind = kind(&fleet, "platform_components");
    let page =
        fleet.state.list(&Listing { after: Some("grafana"), offset: 1, limit: 2, ..Listing::all(&kind) });
    assert_eq!((page.total, ids(&page).as_str(), page.more), (6, "podinfo policies", true));
}

#[test]
fn a_body_is_the_canonical_text_that_was_recorded() {
    let mut fleet = Fleet::small();
    let extended = |name: &str, extra: Value| {
        let mut file = Value::Object(kind(&fleet, name).file().clone());
        let properties = file["schema"]["items"]["properties"].as_object_mut().expect("an object");
        properties.extend(extra.as_object().expect("an object").clone());
        Operation::Define(Arc::new(
            Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect("a good kind"),
        ))
    };
    let define =
        extended("platform_components", json!({"a_note": {"type": "string"}, "weight": {"type": "number"}}));
    fleet.accept(vec![
        define,
        create("platform_components", json!({
            "id": "full", "component_path": "full", "component_version": "1 \"one\"", "oci_url": "oci://x.io/full", "oci_tag": "1.0.0",
            "cluster_env_enabled": false, "depends_on": ["policies", "logging"], "delivery": "kustomize", "a_note": "ü\n", "weight": 0.5,
        })),
    ]);
    let body = |kind: &str, id: &str| {
        let (body, revision) = fleet.state.body(kind, id).unwrap_or_else(|| panic!("no {kind}/{id}"));
        (body.as_str().to_owned(), revision)
    };
    assert_eq!(
        body("platform_components", "full"),
        (
            r#"{"a_note":"ü\n","cluster_env_enabled":false,"component_path":"full","component_version":"1 \"one\"","delivery":"kustomize","depends_on":["logging","policies"],"id":"full","oci_tag":"1.0.0","oci_url":"oci://x.io/full","weight":0.5}"#.to_owned(),
            Revision(3)
        )
    );
    assert_eq!(
        body("namespaces", "team-a"),
        (r#"{"id":"team-a","labels":{"team":"a"}}"#.to_owned(), Revision(2))
    );
    assert_eq!(
        body("rolebindings", "viewers"),
        (
            r#"{"id":"viewers","role":"view","subjects":[{"kind":"Group","name":"all"}]}"#.to_owned(),
            Revision(2)
        )
    );
    // What was recorded is what is read, of every document there is.
    let recorded = fleet.commits.iter().flat_map(|commit| &commit.changes);
    let mut compared = 0;
    for (change, key) in recorded.filter_map(|change| Some((change, change.key().as_document()?))) {
        assert_eq!(
            fleet.state.body(key.kind.as_str(), key.id.as_str()).map(|(body, _)| body).as_ref(),
            change.after()
        );
        compared += 1;
    }
    assert_eq!(compared, 14);
    assert_eq!(fleet.state.body("namespaces", "nobody"), None);
    assert_eq!(fleet.state.body("nonsense", "team-a"), None);
}
