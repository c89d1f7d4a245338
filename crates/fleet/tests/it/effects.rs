//! Effects: what a change does to which clusters.

use crate::common::*;
use fleet::{Change, Effects, InputChange, Operation, Totals};
use serde_json::json;

fn effects(fleet: &mut Fleet, operations: Vec<Operation>) -> Effects {
    let before = fleet.state.clone();
    let applied = match fleet.try_apply(operations.clone()) {
        Ok(applied) => applied,
        Err(_) => fleet.confirm(operations),
    };
    let commit = applied.commit.expect("it changes something");
    Effects::between(&before, &applied.next, commit.changes.iter().map(Change::key))
}

fn told(effects: &Effects) -> Vec<String> {
    let tell = |effect: &fleet::Effect| {
        let change = match &effect.change {
            InputChange::Added => "added".to_owned(),
            InputChange::Removed => "removed".to_owned(),
            InputChange::Changed(fields) => {
                let field = |f: &fleet::FieldChange| {
                    format!(
                        "{} {} → {}",
                        f.pointer,
                        f.old.as_deref().unwrap_or("-"),
                        f.new.as_deref().unwrap_or("-")
                    )
                };
                fields.iter().map(field).collect::<Vec<_>>().join(", ")
            }
        };
        let clusters: Vec<_> = effect.clusters.iter().map(fleet::Id::as_str).collect();
        format!("{}/{}: {change} on {}", effect.kind, effect.input, clusters.join(" "))
    };
    effects.effects.iter().map(tell).collect()
}

#[test]
fn a_catalog_change_is_one_effect_on_all_clusters_that_follow_the_catalog() {
    let mut fleet = Fleet::small();
    let effects = effects(
        &mut fleet,
        vec![strategic(
            "platform_components",
            "grafana",
            json!({"oci_tag": "2.0.0", "component_version": "2"}),
        )],
    );
    assert_eq!(
        told(&effects),
        [
            "platform_components/grafana: /component_version \"\" → \"2\" on prod-1",
            "platform_components/grafana: /component_version \"\" → \"2\", /source/oci_tag \"1.0.0\" → \"2.0.0\" on dev-1",
        ]
    );
    assert_eq!(effects.totals["platform_components"], Totals { added: 0, changed: 2, removed: 0 });
    assert_eq!(effects.clusters, 2);
    assert_eq!(effects.on("dev-1").count(), 1);
}

#[test]
fn a_cluster_change_tells_what_is_added_changed_and_removed() {
    let mut fleet = Fleet::small();
    let effects = effects(
        &mut fleet,
        vec![strategic(
            "clusters",
            "dev-1",
            json!({
                "platform_components": [{"id": "podinfo", "enabled": false}, {"id": "logging"}],
                "namespaces": [{"id": "team-b", "$patch": "delete"}],
                "patches": {"podinfo": {"replicaCount": "5", "ui.message": null}},
                "node_count": 4,
            }),
        )],
    );
    assert_eq!(
        told(&effects),
        [
            "namespaces/team-b: removed on dev-1",
            "platform_components/logging: added on dev-1",
            "platform_components/podinfo: /enabled true → false, /patches/replicaCount \"2\" → \"5\", /patches/ui.message \"hello\" → -, /values/replicaCount 2 → 5, /values/ui/message \"hello\" → - on dev-1",
        ]
    );
    assert_eq!(effects.totals["platform_components"], Totals { added: 1, changed: 1, removed: 0 });
    assert_eq!(effects.totals["namespaces"], Totals { added: 0, changed: 0, removed: 1 });
}

#[test]
fn identical_changes_of_many_clusters_are_one_effect() {
    let mut fleet = Fleet::small();
    let assign = Operation::Assign {
        clusters: selected("id"),
        kind: "rolebindings".into(),
        id: "deployer".into(),
        overrides: json!(null),
    };
    assert_eq!(told(&effects(&mut fleet, vec![assign])), ["rolebindings/deployer: added on prod-1 dev-1"]);
}

#[test]
fn a_changed_name_or_environment_changes_every_input() {
    let mut fleet = Fleet::small();
    let effects = effects(&mut fleet, vec![strategic("clusters", "prod-1", json!({"cluster_name": "P"}))]);
    assert_eq!(effects.effects.len(), 4);
    assert_eq!(told(&effects)[0], "namespaces/team-a: /cluster/name \"prod-1\" → \"P\" on prod-1");
}

#[test]
fn a_decommission_removes_everything_and_a_creation_adds_it() {
    let mut fleet = Fleet::small();
    let gone = effects(&mut fleet, vec![delete("clusters", "prod-1")]);
    assert_eq!(
        told(&gone),
        [
            "namespaces/team-a: removed on prod-1",
            "platform_components/cert-manager: removed on prod-1",
            "platform_components/grafana: removed on prod-1",
            "platform_components/policies: removed on prod-1"
        ]
    );
    let mut body = cluster("new");
    body["namespaces"] = json!([{"id": "team-a"}]);
    assert_eq!(
        told(&effects(&mut fleet, vec![create("clusters", body)])),
        ["namespaces/team-a: added on new"]
    );
}

#[test]
fn what_changes_no_answer_has_no_effect() {
    let mut fleet = Fleet::small();
    assert!(
        effects(
            &mut fleet,
            vec![strategic("clusters", "dev-1", json!({"labels": {"x": "y"}, "vm_image": "z"}))]
        )
        .is_empty()
    );
    assert!(effects(&mut fleet, vec![create("namespaces", json!({"id": "unused"}))]).is_empty());
    assert!(effects(&mut fleet, vec![tiny_kind(&json!({}))]).is_empty());
}

#[test]
fn a_changed_delivery_changes_the_values_of_patched_clusters() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"patches": {"podinfo": {"ui.message": null}}}))]);
    fleet.accept(vec![assign("prod-1", "platform_components", "podinfo", json!(null))]);
    let effects = effects(&mut fleet, vec![by_kustomize("podinfo")]);
    assert_eq!(
        told(&effects),
        [
            "platform_components/podinfo: /delivery \"helm\" → \"kustomize\", /source/oci_url \"https://charts.example.com\" → \"oci://registry.example.com/platform\" on prod-1",
            "platform_components/podinfo: /delivery \"helm\" → \"kustomize\", /source/oci_url \"https://charts.example.com\" → \"oci://registry.example.com/platform\", /values/replicaCount 2 → - on dev-1",
        ]
    );
}

#[test]
fn a_changed_kind_changes_the_inputs_that_it_gives() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        tiny_kind(&json!({})),
        create("tinies", json!({"id": "one"})),
        assign("dev-1", "tinies", "one", json!(null)),
    ]);
    let effects = effects(&mut fleet, vec![tiny_kind(&json!({"size": {"type": "integer", "default": 7}}))]);
    assert_eq!(told(&effects), ["tinies/one: /size - → 7 on dev-1"]);
}

#[test]
fn a_kind_and_a_document_of_it_that_change_together_are_one_effect() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        tiny_kind(&json!({})),
        create("tinies", json!({"id": "one"})),
        assign("dev-1", "tinies", "one", json!(null)),
    ]);
    let sized = json!({"size": {"type": "integer", "default": 7}});
    let effects = effects(&mut fleet, vec![tiny_kind(&sized), put("tinies", "one", json!({"size": 8}))]);
    assert_eq!(told(&effects), ["tinies/one: /size - → 8 on dev-1"]);
    assert_eq!(effects.totals["tinies"].changed, 1);
}

#[test]
fn another_life_of_a_cluster_under_another_dns_name_changes_every_input() {
    let mut fleet = Fleet::small();
    let before = fleet.state.clone();
    let mut body = fleet.document("clusters", "prod-1");
    body["cluster_dns"] = json!("elsewhere.k8s.example.com");
    fleet.accept(vec![delete("clusters", "prod-1")]);
    fleet.accept(vec![create("clusters", body)]);
    let effects = Effects::between(&before, &fleet.state, [&fleet::Key::document("clusters", "prod-1")]);
    assert_eq!(effects.effects.len(), 4, "{:#?}", told(&effects));
}
