//! Dependencies of components: no circles, one delivery, and on each cluster what they need.

use super::assert_contains;
use crate::common::*;
use serde_json::json;

#[test]
fn a_dependency_cycle_over_five_components() {
    let mut fleet = Fleet::empty();
    let link = |id: &str, next: &str| {
        let mut body = component(id);
        body["depends_on"] = json!([next]);
        create("platform_components", body)
    };
    let ring = vec![link("a", "b"), link("b", "c"), link("c", "d"), link("d", "e"), link("e", "a")];
    let complaints = fleet.complaints(ring.clone());
    assert_eq!(complaints.len(), 5, "{complaints:#?}");
    assert_eq!(
        complaints[0],
        "/depends_on: the dependencies go round in a circle: `a` → `b` → `c` → `d` → `e` → `a`"
    );

    fleet.accept([ring[..4].to_vec(), vec![create("platform_components", component("e"))]].concat());
    let closed = fleet.complaints(vec![strategic("platform_components", "e", json!({"depends_on": ["a"]}))]);
    assert_contains(&closed, &["`e` → `a` → `b` → `c` → `d` → `e`"]);
    let alone = fleet.complaints(vec![strategic("platform_components", "e", json!({"depends_on": ["e"]}))]);
    assert_contains(&alone, &["/depends_on/0: a component cannot depend on itself"]);
}

#[test]
fn a_cluster_cannot_close_a_circle_with_its_own_dependencies() {
    let mut fleet = Fleet::small();
    let own = assign("dev-1", "platform_components", "cert-manager", json!({"depends_on": ["traefik"]}));
    assert_contains(
        &fleet.complaints(vec![own]),
        &[
            "/platform_components: the dependencies go round in a circle: `cert-manager` → `traefik` → `cert-manager`",
        ],
    );
}

#[test]
fn helm_cannot_depend_on_kustomize() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![strategic(
        "platform_components",
        "podinfo",
        json!({"depends_on": ["logging"]}),
    )]);
    assert_contains(
        &complaints,
        &[
            "/depends_on/0: `podinfo` is delivered by helm and depends on `logging`, which is delivered by kustomize: Flux would wait for ever",
            ": on the cluster `dev-1`: `podinfo` depends on `logging`, which is not assigned to this cluster",
        ],
    );
    let own = assign("dev-1", "platform_components", "podinfo", json!({"depends_on": ["policies"]}));
    assert_contains(
        &fleet.complaints(vec![own]),
        &["/platform_components/2/depends_on/0: `podinfo` is delivered by helm and depends on `policies`"],
    );
    let redelivered = by_kustomize("cert-manager");
    assert_contains(
        &fleet.complaints(vec![redelivered]),
        &[
            "/delivery: `traefik` is delivered by helm and depends on `cert-manager`, which is delivered by kustomize",
        ],
    );
}

#[test]
fn dependencies_are_assigned_and_enabled_or_overridden() {
    let mut fleet = Fleet::small();
    let without = strategic(
        "clusters",
        "dev-1",
        json!({"platform_components": [{"id": "cert-manager", "$patch": "delete"}]}),
    );
    assert_contains(
        &fleet.complaints(vec![without.clone()]),
        &[
            "/platform_components/3: `traefik` depends on `cert-manager`, which is not assigned to this cluster",
        ],
    );
    let disabled = patch_reference("dev-1", "platform_components", "cert-manager", json!({"enabled": false}));
    assert_contains(
        &fleet.complaints(vec![disabled]),
        &["/platform_components/4: `traefik` depends on `cert-manager`, which is disabled here"],
    );
    fleet.accept(vec![assign("dev-1", "platform_components", "traefik", json!({"depends_on": []})), without]);
    assert_eq!(fleet.input("dev-1", "platform-components", "traefik")["depends_on"], json!([]));
    let disabled_needs_nothing =
        vec![assign("prod-1", "platform_components", "traefik", json!({"enabled": false}))];
    fleet.accept(disabled_needs_nothing);
}

#[test]
fn the_catalog_cannot_close_a_circle_that_a_cluster_began() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![assign("dev-1", "platform_components", "podinfo", json!({"depends_on": ["grafana"]}))]);
    let complaints = fleet.complaints(vec![strategic(
        "platform_components",
        "grafana",
        json!({"depends_on": ["podinfo"]}),
    )]);
    assert!(
        complaints.iter().any(|c| c.contains(
            "on the cluster `dev-1`: the dependencies go round in a circle: `podinfo` → `grafana` → `podinfo`"
        )),
        "{complaints:#?}"
    );
}

#[test]
fn the_catalog_cannot_change_a_delivery_under_a_cluster_that_depends_on_it_by_itself() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![assign("dev-1", "platform_components", "podinfo", json!({"depends_on": ["grafana"]}))]);
    let complaints = fleet.complaints(vec![by_kustomize("grafana")]);
    assert_contains(
        &complaints,
        &[
            "on the cluster `dev-1`: `podinfo` is delivered by helm and depends on `grafana`, which is delivered by kustomize",
        ],
    );
}

#[test]
fn a_long_chain_of_components_is_accepted_in_time_that_grows_with_its_length() {
    let mut fleet = Fleet::empty();
    let link = |n: usize| {
        let mut body = component(&format!("c{n:05}"));
        body["depends_on"] = if n == 0 { json!([]) } else { json!([format!("c{:05}", n - 1)]) };
        create("platform_components", body)
    };
    fleet.accept((0..3000).map(link).collect());
    let closed =
        fleet.complaints(vec![strategic("platform_components", "c00000", json!({"depends_on": ["c00002"]}))]);
    assert_contains(&closed, &["`c00000` → `c00002` → `c00001` → `c00000`"]);
}
