//! Plans: what is told of a transaction before it happens, besides its effects and removals.

use crate::common::*;
use fleet::{DocumentChange, Operation, Patch, Plan, Transaction, plan};
use serde_json::json;

#[track_caller]
fn planned(fleet: &Fleet, operations: Vec<Operation>) -> Plan {
    let transaction =
        Transaction { operations, derived: false, confirm: None, origin: origin(99, fleet.now) };
    plan(&fleet.state, &fleet.policy, &transaction).unwrap_or_else(|rejection| panic!("{rejection:#?}"))
}

fn told(plan: &Plan) -> Vec<String> {
    let tell = |group: fleet::DocumentGroup<'_>| {
        let what = match group.change {
            DocumentChange::Added(None) => "added".to_owned(),
            DocumentChange::Added(Some(document)) => format!("added {document}"),
            DocumentChange::Removed => "removed".to_owned(),
            DocumentChange::Changed(fields) => {
                let side = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
                let field =
                    |f: fleet::FieldChange| format!("{} {} → {}", f.pointer, side(f.old), side(f.new));
                fields.into_iter().map(field).collect::<Vec<_>>().join(", ")
            }
        };
        let keys = group.keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        format!("{keys}: {what}")
    };
    plan.documents().into_iter().map(tell).collect()
}

#[test]
fn documents_to_which_the_same_happens_are_one_group_with_production_first() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![create("clusters", cluster("dev-0"))]);
    let label = Operation::Patch {
        kind: "clusters".into(),
        target: selected("id"),
        patch: Patch::Strategic(json!({"labels": {"wave": "2"}})),
    };
    // `dev-0` has no labels, the others have different ones: it is the same change.
    assert_eq!(
        told(&planned(&fleet, vec![label])),
        ["clusters/prod-1 clusters/dev-0 clusters/dev-1: /labels/wave - → \"2\""]
    );
    let assign = Operation::Assign {
        clusters: selected("id"),
        kind: "namespaces".into(),
        id: "team-b".into(),
        overrides: json!(null),
    };
    let new = create("namespaces", json!({"id": "new", "labels": {"a": "b"}}));
    let same = create("namespaces", json!({"id": "same", "labels": {"a": "b"}}));
    assert_eq!(
        told(&planned(&fleet, vec![assign, new, same, delete("platform_components", "logging")])),
        [
            "clusters/prod-1 clusters/dev-0: /namespaces/team-b - → {\"id\":\"team-b\"}",
            "namespaces/new namespaces/same: added {\"labels\":{\"a\":\"b\"}}",
            "platform_components/logging: removed",
        ]
    );
    assert_eq!(
        told(&planned(&fleet, vec![delete("clusters", "dev-0")])),
        ["clusters/dev-0: removed", "decommissioned/dev-0.k8s.example.com: added"]
    );
}

#[test]
fn environments_are_counted_where_a_cluster_is_and_production_comes_first() {
    let fleet = Fleet::small();
    let totals = |operations| {
        let plan = planned(&fleet, operations);
        let total = |totals: &fleet::EnvironmentTotals| {
            format!("{} {} {}", totals.environment, totals.clusters, totals.removals)
        };
        plan.environments.iter().map(total).collect::<Vec<_>>()
    };
    let everywhere = strategic("platform_components", "cert-manager", json!({"oci_tag": "2.0.0"}));
    assert_eq!(totals(vec![everywhere.clone()]), ["prod 1 0", "dev 1 0"]);
    // What leaves production is counted there, and a new cluster where it comes.
    let leaves = strategic("clusters", "prod-1", json!({"environment": "dev", "namespaces": []}));
    assert_eq!(totals(vec![leaves])[0].split(' ').next(), Some("prod"));
    let mut new = cluster("new");
    new["environment"] = json!("uat");
    new["namespaces"] = json!([{"id": "team-a"}]);
    assert_eq!(totals(vec![create("clusters", new), everywhere]), ["prod 1 0", "dev 1 0", "uat 1 0"]);
    assert_eq!(totals(vec![unassign("dev-1", "namespaces", "team-b")]), ["dev 1 1"]);
    assert_eq!(totals(vec![strategic("clusters", "dev-1", json!({"labels": {"x": "y"}}))]), [""; 0]);
}

#[test]
fn a_changed_path_says_that_flux_deletes_what_the_new_one_lacks() {
    let fleet = Fleet::small();
    let moved = strategic("platform_components", "policies", json!({"component_path": "policies/v2"}));
    let warning =
        |on: &str| format!("the path of `policies` changes on {on}: Flux deletes what the new path lacks");
    assert_eq!(planned(&fleet, vec![moved]).warnings, [warning("2 clusters")]);
    let one = patch_reference("dev-1", "platform_components", "policies", json!({"component_path": "x"}));
    assert_eq!(planned(&fleet, vec![one]).warnings, [warning("1 cluster")]);
    // A release is upgraded to the other chart in place, and loses what only the old one had.
    let chart = strategic("platform_components", "grafana", json!({"component_path": "grafana-2"}));
    assert_eq!(
        planned(&fleet, vec![chart]).warnings,
        ["the chart of `grafana` changes on 2 clusters: Flux deletes what the new chart lacks"]
    );
    let repository = json!({"oci_url": "https://charts.example.org"});
    let mirror = strategic("platform_components", "grafana", repository);
    assert_eq!(planned(&fleet, vec![mirror]).warnings, [""; 0]);
}

/// `component_version` alone made 638 clusters see a change: true by bytes.
#[test]
fn a_change_that_no_template_uses_says_that_no_object_changes() {
    let fleet = Fleet::small();
    let note = |inputs: &str, what: &str| {
        format!(
            "{inputs} become different only in {what}, which the templates of `cluster/` do not use: no object changes, unless your own templates use it"
        )
    };
    let version = |more| {
        let mut body = json!({"component_version": "2"});
        body.as_object_mut().expect("an object").extend(more);
        strategic("platform_components", "grafana", body)
    };
    let alone = planned(&fleet, vec![version(serde_json::Map::new())]);
    assert_eq!((alone.effects.clusters, &*alone.notes), (2, &[note("2 inputs", "`component_version`")][..]));
    // `prod-1` has a tag of its own, so that it sees nothing but the version.
    let tag = json!({"oci_tag": "2.0.0"}).as_object().expect("an object").clone();
    assert_eq!(
        planned(&fleet, vec![version(tag)]).notes,
        [note("1 input", "`component_version`").replace("become", "becomes")]
    );
    let renamed = planned(&fleet, vec![strategic("clusters", "prod-1", json!({"cluster_name": "P"}))]);
    assert_eq!(renamed.notes, [note("4 inputs", "`cluster.name`")]);
}

#[test]
fn a_forgotten_name_says_what_its_polls_get() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![create("clusters", cluster("a"))]);
    fleet.accept(vec![delete("clusters", "a")]);
    let forget = planned(&fleet, vec![Operation::Forget { dns: "a.k8s.example.com".into() }]);
    assert_eq!(
        forget.notes,
        [
            "polls of `a.k8s.example.com` get 404 instead of an empty list: a cluster that still polls keeps what it has"
        ]
    );
    // A cluster that takes the name is served again.
    let body = cluster("a");
    let again = planned(
        &fleet,
        vec![Operation::Create { kind: "clusters".into(), body, replace_decommissioned: true }],
    );
    assert_eq!(again.notes, [""; 0]);
}
