//! The guard: what counts as a removal, what is named, and what needs a confirmation.

use crate::common::*;
use fleet::{
    Cause, ConfirmDigest, Grant, Operation, Passed, Patch, Policy, Rejection, Target, Timestamp, Transaction,
    apply, plan,
};
use serde_json::{Value, json};

const HOUR: i64 = 3_600_000;

#[track_caller]
fn because(fleet: &mut Fleet, operations: Vec<Operation>) -> String {
    match fleet.reject(operations) {
        Rejection::Confirm(confirmation) => confirmation.because,
        other => panic!("{other:#?}"),
    }
}

/// Why nothing but an allowance lets it through.
#[track_caller]
fn exceeded(fleet: &mut Fleet, operations: Vec<Operation>) -> String {
    match fleet.reject(operations) {
        Rejection::Allowance(stopped) => stopped.because,
        other => panic!("{other:#?}"),
    }
}

#[track_caller]
fn removed(fleet: &mut Fleet, operations: Vec<Operation>) -> Vec<(String, Cause, bool)> {
    let removals = match fleet.try_apply(operations) {
        Ok(applied) => applied.removals,
        Err(Rejection::Confirm(confirmation)) => confirmation.removals,
        Err(Rejection::Allowance(stopped)) => stopped.removals,
        Err(refused) => panic!("{refused:#?}"),
    };
    removals
        .inputs
        .iter()
        .map(|r| (format!("{}/{}/{}", r.cluster, r.kind, r.input), r.cause, r.named))
        .collect()
}

/// A cluster with that many components `c00`, `c01`, … and namespaces `n00`, `n01`, …
fn wide(clusters: &[&str], components: usize, namespaces: usize) -> Fleet {
    let mut fleet = Fleet::empty();
    let ids = |letter: char, count: usize| (0..count).map(move |n| format!("{letter}{n:02}"));
    let mut operations = Vec::new();
    operations.extend(ids('c', components).map(|id| create("platform_components", component(&id))));
    operations.extend(ids('n', namespaces).map(|id| create("namespaces", json!({"id": id}))));
    let list = |ids: &mut dyn Iterator<Item = String>| ids.map(|id| json!({"id": id})).collect::<Value>();
    for id in clusters {
        let mut body = cluster(id);
        body["platform_components"] = list(&mut ids('c', components));
        body["namespaces"] = list(&mut ids('n', namespaces));
        operations.push(create("clusters", body));
    }
    fleet.accept(operations);
    fleet
}

fn disable(cluster: &str, id: &str) -> Operation {
    patch_reference(cluster, "platform_components", id, json!({"enabled": false}))
}

#[test]
fn named_removals_are_those_that_the_request_spells() {
    use Cause::{Disabled, Removed};
    let of = |operation: Operation| removed(&mut wide(&["a"], 9, 9), vec![operation]);
    let c = "a/platform_components/c01".to_owned();
    assert_eq!(of(unassign("a", "platform_components", "c01")), [(c.clone(), Removed, true)]);
    assert_eq!(of(disable("a", "c01")), [(c.clone(), Disabled, true)]);
    assert_eq!(
        of(assign("a", "platform_components", "c01", json!({"enabled": false}))),
        [(c.clone(), Disabled, true)]
    );
    assert_eq!(
        of(strategic("clusters", "a", json!({"platform_components": [{"id": "c01", "$patch": "delete"}]}))),
        [(c.clone(), Removed, true)]
    );
    assert_eq!(
        of(strategic("clusters", "a", json!({"platform_components": [{"id": "c01", "enabled": false}]}))),
        [(c.clone(), Disabled, true)]
    );

    let test = json!([{"op": "remove", "path": "/platform_components/1"}]);
    assert_eq!(of(json_patch("clusters", "a", test)), [(c.clone(), Removed, false)]);
    let clusters = || selected("id=a");
    let (kind, id): (Box<str>, Box<str>) = ("platform_components".into(), "c01".into());
    assert_eq!(
        of(Operation::RemoveReference { clusters: clusters(), kind: kind.clone(), id: id.clone() }),
        [(c.clone(), Removed, false)]
    );
    let patch = Patch::Strategic(json!({"enabled": false}));
    assert_eq!(
        of(Operation::PatchReference { clusters: clusters(), kind: kind.clone(), id: id.clone(), patch }),
        [(c.clone(), Disabled, false)]
    );
    assert_eq!(
        of(Operation::Assign { clusters: clusters(), kind, id, overrides: json!({"enabled": false}) }),
        [(c.clone(), Disabled, false)]
    );
    let patch = Patch::Strategic(json!({"platform_components": [{"id": "c01", "$patch": "delete"}]}));
    assert_eq!(
        of(Operation::Patch { kind: "clusters".into(), target: clusters(), patch }),
        [(c, Removed, false)]
    );
}

#[test]
fn a_put_that_leaves_one_out_is_stopped_and_goes_through_when_confirmed() {
    let mut fleet = Fleet::small();
    let mut body = fleet.document("clusters", "dev-1");
    body["namespaces"] = json!([{"id": "team-a"}, {"id": "team-b"}]);
    assert_eq!(
        because(&mut fleet, vec![put("clusters", "dev-1", body.clone())]),
        "1 removal was not asked for by name, on `dev-1`"
    );
    let applied = fleet.confirm(vec![put("clusters", "dev-1", body)]);
    let tally = applied.commit.expect("a commit").header.removals;
    assert_eq!((tally.each, tally.ordinary, tally.decommissions, tally.passed), (1, 0, 0, Passed::Confirmed));
}

#[test]
fn a_disabled_input_was_not_there_and_enabling_removes_nothing() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![disable("prod-1", "grafana")]);
    assert_eq!(removed(&mut fleet, vec![unassign("prod-1", "platform_components", "grafana")]), []);
}

#[test]
fn a_changed_delivery_uninstalls_and_counts_on_every_user() {
    let mut fleet = Fleet::small();
    let change = by_kustomize("grafana");
    let gone = [
        ("dev-1/platform_components/grafana".to_owned(), Cause::Redelivered, false),
        ("prod-1/platform_components/grafana".to_owned(), Cause::Redelivered, false),
    ];
    assert_eq!(removed(&mut fleet, vec![change.clone()]), gone);
    let by_url =
        strategic("platform_components", "grafana", json!({"oci_url": "oci://registry.example.com/grafana"}));
    assert_eq!(removed(&mut fleet, vec![by_url]), gone);
    // The cluster changes in the same transaction: still a removal, and what is disabled is not counted twice.
    let with_cluster =
        vec![change, strategic("clusters", "dev-1", json!({"node_count": 5})), disable("prod-1", "grafana")];
    assert_eq!(
        removed(&mut fleet, with_cluster),
        [gone[0].clone(), ("prod-1/platform_components/grafana".to_owned(), Cause::Disabled, true)]
    );
}

#[test]
fn a_changed_environment_moves_what_follows_it() {
    let mut fleet = Fleet::small();
    let change = vec![strategic("clusters", "dev-1", json!({"environment": "qa"}))];
    assert_eq!(
        removed(&mut fleet, change),
        [
            ("dev-1/clusters/dev".to_owned(), Cause::LeftEnvironment, true),
            ("dev-1/platform_components/policies".to_owned(), Cause::Moved, false)
        ]
    );
    fleet.confirm(vec![
        unassign("prod-1", "platform_components", "policies"),
        unassign("prod-1", "platform_components", "grafana"),
        unassign("prod-1", "platform_components", "cert-manager"),
    ]);
    assert_eq!(
        removed(&mut fleet, vec![strategic("clusters", "prod-1", json!({"environment": "uat"}))]),
        [("prod-1/clusters/prod".to_owned(), Cause::LeftEnvironment, true)]
    );
}

#[test]
fn rule_a_emptying_a_kind_of_a_cluster_needs_a_confirmation() {
    let mut fleet = wide(&["a"], 2, 1);
    fleet.accept(vec![unassign("a", "namespaces", "n00")]);
    assert_eq!(
        because(&mut fleet, vec![disable("a", "c00"), disable("a", "c01")]),
        "`a` would be left without any platform_components"
    );
    fleet.accept(vec![disable("a", "c00")]);
    fleet.accept(vec![disable("a", "c01")]);
}

#[test]
fn rule_b_removing_three_and_more_than_half_needs_a_confirmation() {
    let three = |fleet: &mut Fleet| {
        fleet.try_apply(vec![disable("a", "c00"), disable("a", "c01"), disable("a", "c02")])
    };
    assert!(three(&mut wide(&["a"], 6, 0)).is_ok());
    let Err(Rejection::Confirm(stopped)) = three(&mut wide(&["a"], 5, 0)) else { panic!("not stopped") };
    assert_eq!(stopped.because, "`a` would lose 3 of its 5 platform_components");
    assert!(
        wide(&["a"], 3, 0).try_apply(vec![disable("a", "c00"), disable("a", "c01")]).is_ok(),
        "two of three"
    );
}

#[test]
fn rule_c_removing_on_more_than_three_clusters_needs_a_confirmation() {
    let names = ["a", "b", "c", "d"];
    let on = |count: usize| names[..count].iter().map(|id| disable(id, "c00")).collect::<Vec<_>>();
    let mut fleet = wide(&names, 9, 0);
    assert_eq!(because(&mut fleet, on(4)), "something is removed on 4 clusters, more than 3 at once");
    fleet.policy = Policy { guard_clusters: 4, ..Policy::default() };
    fleet.accept(on(4));
    wide(&names, 9, 0).accept(on(3));
}

#[test]
fn rule_d_decommissioning_two_clusters_at_once_needs_a_confirmation() {
    let mut fleet = wide(&["a", "b", "c"], 5, 5);
    assert_eq!(
        because(&mut fleet, vec![delete("clusters", "a"), delete("clusters", "b")]),
        "2 clusters are decommissioned at once, the first of them `a`"
    );
    let by_selector = Operation::Delete { kind: "clusters".into(), target: selected("id=c") };
    assert_eq!(because(&mut fleet, vec![by_selector]), "the decommission of `c` was not asked for by name");
    let applied = fleet.accept(vec![delete("clusters", "a")]);
    assert_eq!(applied.removals.decommissions.len(), 1);
    assert_eq!(applied.removals.inputs.len(), 10);
    let tally = applied.commit.expect("a commit").header.removals;
    assert_eq!(
        (tally.decommissions, tally.each, tally.ordinary),
        (1, 0, 0),
        "its inputs are counted with it"
    );
}

#[test]
fn an_empty_cluster_is_not_decommissioned_by_a_selector_without_confirmation() {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![create("clusters", cluster("bare"))]);
    let by_selector = Operation::Delete { kind: "clusters".into(), target: selected("id=bare") };
    assert_eq!(
        because(&mut fleet, vec![by_selector]),
        "the decommission of `bare` was not asked for by name"
    );
}

#[test]
fn the_eleventh_deletion_of_an_hour_needs_an_allowance_and_no_digest_helps() {
    let mut fleet = wide(&["a"], 1, 30);
    for n in 0..10 {
        fleet.now += 1000;
        fleet.accept(vec![unassign("a", "namespaces", &format!("n{n:02}"))]);
    }
    let eleventh = || vec![unassign("a", "namespaces", "n10")];
    let why = "11 deletions within an hour (clusters, and kinds that are guarded each), and 10 are the most; more need an allowance";
    assert_eq!(exceeded(&mut fleet, eleventh()), why);
    assert_eq!(exceeded(&mut fleet, vec![delete("clusters", "a")]), why);
    let digest = fleet.plan(eleventh()).confirm;
    let Err(Rejection::Allowance(stopped)) = fleet.send(eleventh(), Some(digest)) else {
        panic!("it went through")
    };
    assert_eq!(stopped.because, why, "the digest of its own dry run is no allowance");
    fleet.accept(vec![disable("a", "c00")]);
    fleet.now += HOUR - 9_000;
    fleet.accept(eleventh());
    assert!(
        exceeded(&mut fleet, vec![unassign("a", "namespaces", "n11")]).starts_with("11 deletions"),
        "only the first of the ten is an hour old"
    );
}

#[test]
fn the_fifty_first_ordinary_removal_of_an_hour_needs_an_allowance() {
    let mut fleet = wide(&["a"], 60, 1);
    for n in 0..50 {
        fleet.accept(vec![disable("a", &format!("c{n:02}"))]);
    }
    assert_eq!(
        exceeded(&mut fleet, vec![disable("a", "c50")]),
        "51 removals within an hour, and 50 are the most; more need an allowance"
    );
    fleet.accept(vec![unassign("a", "namespaces", "n00")]);
}

#[test]
fn a_clock_that_runs_backwards_opens_no_new_hour() {
    let mut fleet = wide(&["a"], 1, 30);
    for n in 0..10 {
        fleet.accept(vec![unassign("a", "namespaces", &format!("n{n:02}"))]);
    }
    fleet.now -= 10 * HOUR;
    let before = fleet.state.time();
    assert!(exceeded(&mut fleet, vec![unassign("a", "namespaces", "n10")]).starts_with("11 deletions"));
    fleet.accept(vec![create("namespaces", json!({"id": "x"}))]);
    assert_eq!(fleet.state.time(), before, "commit times do not run backwards");
}

#[test]
fn deleting_what_nobody_refers_to_counts_nothing() {
    let mut fleet = wide(&["a"], 1, 1);
    let unused: Vec<String> = (0..20).map(|n| format!("unused-{n}")).collect();
    fleet.accept(unused.iter().map(|id| create("namespaces", json!({"id": id}))).collect());
    let applied = fleet.accept(unused.iter().map(|id| delete("namespaces", id)).collect());
    assert!(applied.removals.is_empty());
}

#[test]
fn a_confirmation_is_for_exactly_those_removals() {
    let mut fleet = Fleet::small();
    let clear = || vec![strategic("clusters", "dev-1", json!({"namespaces": []}))];
    let Rejection::Confirm(stopped) = fleet.reject(clear()) else { panic!("not stopped") };
    let send = |fleet: &Fleet, digest: ConfirmDigest, operations: Vec<Operation>| {
        apply(
            &fleet.state,
            &fleet.policy,
            &Transaction { operations, derived: false, confirm: Some(digest), origin: origin(99, fleet.now) },
        )
    };
    // An unrelated write does not spoil it; neither does reading it back from text.
    fleet.accept(vec![strategic("clusters", "prod-1", json!({"node_count": 9}))]);
    let digest = ConfirmDigest::parse(&stopped.digest.to_string()).expect("it was printed");
    assert!(send(&fleet, digest, clear()).is_ok());
    // Another removal in its place does.
    fleet.accept(vec![unassign("dev-1", "namespaces", "team-c")]);
    let Err(Rejection::Confirm(moved)) = send(&fleet, digest, clear()) else { panic!("it went through") };
    assert_eq!(moved.because, "this is not what was confirmed, or it was confirmed more than an hour ago");
    assert!(send(&fleet, moved.digest, clear()).is_ok());
    // So does a confirmation where nothing is removed.
    assert!(
        send(&fleet, moved.digest, vec![strategic("clusters", "dev-1", json!({"node_count": 1}))]).is_err()
    );
}

#[test]
fn a_plan_shows_what_would_happen_and_that_it_would_be_stopped() {
    let fleet = Fleet::small();
    let operations = vec![strategic("clusters", "dev-1", json!({"namespaces": []}))];
    let planned = plan(
        &fleet.state,
        &fleet.policy,
        &Transaction { operations, derived: false, confirm: None, origin: origin(99, fleet.now) },
    )
    .expect("valid");
    assert_eq!(
        planned.questions.removals.as_deref(),
        Some("3 removals were not asked for by name, on `dev-1`")
    );
    assert_eq!(planned.applied.removals.inputs.len(), 3);
    assert!(planned.applied.next.cluster("dev-1").expect("there").doc.references_to("namespaces").is_empty());
}

#[test]
fn a_renamed_cluster_on_the_same_dns_counts_as_a_decommission() {
    let mut fleet = wide(&["a"], 3, 0);
    let mut body = fleet.document("clusters", "a");
    body["id"] = json!("b");
    let renamed = vec![
        Operation::Delete { kind: "clusters".into(), target: Target::one("a") },
        Operation::Create { kind: "clusters".into(), body, replace_decommissioned: true },
    ];
    let applied = fleet.accept(renamed);
    assert_eq!(applied.removals.decommissions.len(), 1);
    assert_eq!(
        fleet.ids("a", "platform-components"),
        ["c00", "c01", "c02"],
        "the DNS name is served by the new one"
    );
    assert!(fleet.state.tombstones().is_empty());
}

#[test]
fn a_confirmed_request_that_is_sent_again_has_nothing_left_to_do() {
    let mut fleet = Fleet::small();
    let clear = || vec![strategic("clusters", "dev-1", json!({"namespaces": []}))];
    let Rejection::Confirm(stopped) = fleet.reject(clear()) else { panic!("not stopped") };
    fleet.confirm(clear());
    let again = Transaction {
        operations: clear(),
        derived: false,
        confirm: Some(stopped.digest),
        origin: origin(99, fleet.now),
    };
    assert!(apply(&fleet.state, &fleet.policy, &again).expect("nothing happens").commit.is_none());
}

#[test]
fn a_namespace_that_a_release_lives_in_does_not_go_without_a_confirmation() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        create("namespaces", json!({"id": "podinfo"})),
        create("namespaces", json!({"id": "policies"})),
        assign("dev-1", "namespaces", "podinfo", json!(null)),
        assign("dev-1", "namespaces", "policies", json!(null)),
    ]);
    // By name, and only one: and yet it takes a component along that stays.
    let Rejection::Confirm(confirmation) = fleet.reject(vec![unassign("dev-1", "namespaces", "podinfo")])
    else {
        panic!("no confirmation was asked for")
    };
    let evicted = confirmation.removals.inputs.iter().find(|removal| removal.cause == Cause::Evicted);
    let evicted = evicted.expect("the component");
    assert_eq!((evicted.kind.as_str(), evicted.input.as_str()), ("platform_components", "podinfo"));
    fleet.confirm(vec![unassign("dev-1", "namespaces", "podinfo")]);
    // A directory of manifests lives where it says; a component that goes as well, or is disabled, is not evicted.
    fleet.accept(vec![unassign("dev-1", "namespaces", "policies")]);
    fleet.accept(vec![assign("dev-1", "namespaces", "podinfo", json!(null))]);
    fleet.accept(vec![
        patch_reference("dev-1", "platform_components", "podinfo", json!({"enabled": false})),
        unassign("dev-1", "namespaces", "podinfo"),
    ]);
}

#[test]
fn a_namespace_called_like_a_redelivered_component_is_not_removed() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        create("namespaces", json!({"id": "grafana"})),
        assign("dev-1", "namespaces", "grafana", json!(null)),
    ]);
    let change = by_kustomize("grafana");
    let gone = removed(&mut fleet, vec![change, strategic("clusters", "dev-1", json!({"node_count": 5}))]);
    let gone: Vec<&str> = gone.iter().map(|(removal, ..)| removal.as_str()).collect();
    assert_eq!(gone, ["dev-1/platform_components/grafana", "prod-1/platform_components/grafana"]);
}

/// Its namespace goes, and it is installed in another way: it went twice, in the counts and in the digest.
#[test]
fn a_component_that_goes_for_two_reasons_goes_once() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        create("namespaces", json!({"id": "policies"})),
        assign("dev-1", "namespaces", "policies", json!(null)),
    ]);
    let operations = vec![
        strategic("platform_components", "policies", json!({"delivery": "helm"})),
        unassign("dev-1", "namespaces", "policies"),
    ];
    let gone = removed(&mut fleet, operations);
    assert_eq!(
        gone.iter().filter(|(what, ..)| what == "dev-1/platform_components/policies").collect::<Vec<_>>(),
        [&("dev-1/platform_components/policies".to_owned(), Cause::Redelivered, false)]
    );
}

#[test]
fn an_hour_that_is_full_for_one_sort_of_removal_is_not_full_for_the_other() {
    let mut fleet = wide(&["a"], 9, 9);
    fleet.accept(vec![unassign("a", "namespaces", "n00"), unassign("a", "namespaces", "n01")]);
    fleet.accept(vec![disable("a", "c00"), disable("a", "c01")]);
    fleet.policy = Policy { deletions_per_hour: 1, ..Policy::default() };
    fleet.accept(vec![disable("a", "c02")]);
    fleet.policy = Policy { removals_per_hour: 1, ..Policy::default() };
    fleet.accept(vec![unassign("a", "namespaces", "n02")]);
}

#[test]
fn what_a_revert_removes_is_never_named() {
    let mut fleet = Fleet::small();
    let before = fleet.state.clone();
    let mut body = fleet.document("clusters", "prod-1");
    (body["id"], body["cluster_dns"]) = (json!("prod-2"), json!("prod-2.k8s.example.com"));
    let commit = fleet.accept(vec![create("clusters", body)]).commit.expect("a commit");
    let operations = fleet::inverse(&before, &commit).expect("it can be undone");
    let revert = Transaction { operations, derived: true, confirm: None, origin: origin(99, fleet.now) };
    let Err(Rejection::Confirm(stopped)) = apply(&fleet.state, &fleet.policy, &revert) else {
        panic!("not stopped")
    };
    assert_eq!(stopped.because, "the decommission of `prod-2` was not asked for by name");
}

#[test]
fn a_touch_by_name_does_not_name_what_a_selector_or_a_put_disabled() {
    let mut fleet = Fleet::small();
    let by_selector = Operation::PatchReference {
        clusters: selected("id"),
        kind: "platform_components".into(),
        id: "grafana".into(),
        patch: Patch::Strategic(json!({"enabled": false})),
    };
    let touch = |cluster: &str, body: Value| patch_reference(cluster, "platform_components", "grafana", body);
    let laundered = vec![by_selector, touch("dev-1", json!({})), touch("prod-1", json!({"oci_tag": "2"}))];
    assert_eq!(because(&mut fleet, laundered), "2 removals were not asked for by name, on `dev-1`, `prod-1`");
    let mut body = fleet.document("clusters", "prod-1");
    body["platform_components"][1]["enabled"] = json!(false);
    let by_put = vec![put("clusters", "prod-1", body), touch("prod-1", json!({}))];
    assert_eq!(because(&mut fleet, by_put), "1 removal was not asked for by name, on `prod-1`");
}

#[test]
fn a_kind_that_stops_being_guarded_each_still_counts_so_in_that_transaction() {
    let mut fleet = Fleet::small();
    fleet.policy.deletions_per_hour = 1;
    let shipped = fleet::Kind::shipped()
        .into_iter()
        .find(|kind| kind.name().as_str() == "namespaces")
        .expect("shipped");
    let mut file = Value::Object(shipped.file().clone());
    file["metadata"]["x-flux"].as_object_mut().expect("ours").remove("guard");
    let unguarded = Operation::Define(std::sync::Arc::new(
        fleet::Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect("good"),
    ));
    let operations =
        vec![unguarded, unassign("dev-1", "namespaces", "team-a"), unassign("dev-1", "namespaces", "team-b")];
    assert!(exceeded(&mut fleet, operations).starts_with("2 deletions within an hour"));
}

fn grant(deletions: u32, removals: u32, minutes: u32) -> Grant {
    Grant { to: "tester".into(), deletions, removals, minutes }
}

/// The digest of a redelivery on clusters was accepted for unassigning on the same ones.
#[test]
fn a_confirmation_covers_the_cause() {
    let mut fleet = Fleet::small();
    let by_selector = || {
        let (kind, id) = ("platform_components".into(), "grafana".into());
        vec![Operation::RemoveReference { clusters: selected("id"), kind, id }]
    };
    let redelivery = fleet.plan(vec![by_kustomize("grafana")]).confirm;
    let unassigning = fleet.plan(by_selector()).confirm;
    assert_ne!(redelivery, unassigning);
    assert!(matches!(fleet.send(by_selector(), Some(redelivery)), Err(Rejection::Confirm(_))));
    fleet.send(by_selector(), Some(unassigning)).expect("what was confirmed");
}

#[test]
fn a_confirmation_ages() {
    let mut fleet = Fleet::small();
    let clear = || vec![strategic("clusters", "dev-1", json!({"namespaces": []}))];
    let digest = fleet.plan(clear()).confirm;
    fleet.now += 2 * HOUR;
    assert!(matches!(fleet.send(clear(), Some(digest)), Err(Rejection::Confirm(_))), "two hours old");
    fleet.now -= HOUR;
    fleet.send(clear(), Some(digest)).expect("one hour old");
}

/// `X-Confirm` freed a transaction from the budget even if no rule had asked for it.
#[test]
fn a_confirmation_that_no_rule_asked_for_counts_for_nothing() {
    let mut fleet = wide(&["a"], 1, 30);
    for n in 0..10 {
        let one = || vec![unassign("a", "namespaces", &format!("n{n:02}"))];
        let digest = fleet.plan(one()).confirm;
        let applied = fleet.send(one(), Some(digest)).expect("within the budget");
        assert_eq!(applied.commit.expect("a commit").header.removals.passed, Passed::OnBudget);
    }
    assert!(exceeded(&mut fleet, vec![unassign("a", "namespaces", "n10")]).starts_with("11 deletions"));
}

#[test]
fn the_sixth_confirmation_of_an_hour_needs_an_allowance() {
    let mut fleet = wide(&["a", "b", "c", "d"], 9, 0);
    let on_all = |n: usize| -> Vec<Operation> {
        ["a", "b", "c", "d"].iter().map(|cluster| disable(cluster, &format!("c{n:02}"))).collect()
    };
    for n in 0..5 {
        fleet.confirm(on_all(n));
    }
    let sixth = fleet.plan(on_all(5));
    assert_eq!(
        sixth.questions.confirmation().as_deref(),
        Some("something is removed on 4 clusters, more than 3 at once")
    );
    let why = "5 changes were confirmed within an hour, and 5 are the most; one more needs an allowance";
    assert_eq!(sixth.questions.allowance.as_deref(), Some(why), "the plan says so before anybody confirms");
    let Err(Rejection::Allowance(stopped)) = fleet.send(on_all(5), Some(sixth.confirm)) else {
        panic!("made")
    };
    assert_eq!(stopped.because, why);
    fleet.reasoned("a migration", vec![Operation::Allow(grant(0, 4, 60))]);
    let applied = fleet.send(on_all(5), Some(sixth.confirm)).expect("allowed and confirmed");
    assert_eq!(applied.commit.expect("a commit").header.removals.passed, Passed::Allowed);
    assert!(fleet.state.allowances(Timestamp(fleet.now)).is_empty(), "it is used up");
    assert!(matches!(fleet.reject(on_all(6)), Rejection::Confirm(_)), "an allowance confirms nothing");
}

#[test]
fn an_allowance_is_used_up_by_what_it_lets_through_and_frees_nobody_else() {
    let mut fleet = wide(&["a", "b", "c"], 9, 9);
    fleet.policy = Policy { deletions_per_hour: 1, ..Policy::default() };
    fleet.accept(vec![delete("clusters", "a")]);
    let second = || vec![unassign("b", "namespaces", "n00"), unassign("b", "namespaces", "n01")];
    fleet.reasoned("b is emptied", vec![Operation::Allow(grant(1, 0, 60))]);
    exceeded(&mut fleet, second());
    fleet.reasoned("b is emptied", vec![Operation::Allow(grant(3, 0, 60))]);
    let others = Operation::Allow(Grant { to: "somebody else".into(), ..grant(100, 100, 60) });
    fleet.reasoned("theirs", vec![others]);
    fleet.accept(second());
    let left: Vec<u32> =
        fleet.state.allowances(Timestamp(fleet.now)).iter().map(|(_, a)| a.deletions).collect();
    assert_eq!(left, [1, 1, 100], "two of three are used, whole by one");
    fleet.accept(vec![unassign("b", "namespaces", "n02")]);
    fleet.accept(vec![unassign("b", "namespaces", "n03")]);
    exceeded(&mut fleet, vec![unassign("b", "namespaces", "n04")]);
    assert_eq!(fleet.state.spent(Timestamp(fleet.now)).deletions, 1, "what is allowed is not on the budget");
}

#[test]
fn an_allowance_ends_is_taken_back_and_says_what_is_wrong_with_it() {
    let mut fleet = wide(&["a"], 0, 9);
    fleet.policy = Policy { deletions_per_hour: 0, ..Policy::default() };
    let one = || vec![unassign("a", "namespaces", "n00")];
    fleet.reasoned("for an hour", vec![Operation::Allow(grant(5, 0, 60))]);
    assert!(fleet.plan(one()).questions.allowance.is_none());
    fleet.now += HOUR;
    exceeded(&mut fleet, one());
    fleet.reasoned("again", vec![Operation::Allow(grant(5, 0, 60))]);
    let ids: Vec<String> =
        fleet.state.allowances(Timestamp(fleet.now)).iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(ids.len(), 1, "the one that has ended went");
    fleet.accept(vec![Operation::Disallow { id: (&*ids[0]).into() }]);
    exceeded(&mut fleet, one());
    assert_eq!(
        fleet.complaints(vec![Operation::Disallow { id: (&*ids[0]).into() }]),
        [format!(": there is no allowance `{}`; it may have ended or been used up", ids[0])]
    );
    assert_eq!(
        fleet.complaints(vec![Operation::Allow(Grant { to: "".into(), ..grant(0, 0, 241) })]),
        [
            "/deletions: an allowance of no deletions and no removals allows nothing",
            "/for: must be an actor as the audit log shows it, such as `file:alice`, of at most 256 bytes",
            "/minutes: is 241; it must be 1 to 240",
            "/reason: an allowance is granted for a reason, which is the reason of the change",
        ]
    );
    assert_eq!(
        fleet.complaints(vec![Operation::Allow(grant(10_001, 0, 1))])[0],
        "/deletions: is 10001; at most 10000 can be allowed at once"
    );
}

#[test]
fn an_allowance_does_not_let_its_own_transaction_through() {
    let mut fleet = wide(&["a"], 0, 9);
    fleet.policy = Policy { deletions_per_hour: 0, ..Policy::default() };
    let operations = vec![Operation::Allow(grant(5, 0, 60)), unassign("a", "namespaces", "n00")];
    let mut origin = origin(99, fleet.now);
    origin.reason = Some("for myself".into());
    let transaction = Transaction { operations, derived: false, confirm: None, origin };
    assert!(matches!(apply(&fleet.state, &fleet.policy, &transaction), Err(Rejection::Allowance(_))));
}

/// One batch took eight components from a DNS name: the cluster went, and another took its place with nothing.
#[test]
fn the_same_dns_name_under_another_id_is_compared_with_what_it_was_served() {
    let mut fleet = wide(&["a"], 3, 1);
    let renamed = |keep: &[&str]| {
        let mut body = cluster("b");
        body["cluster_dns"] = json!("a.k8s.example.com");
        body["platform_components"] = keep.iter().map(|id| json!({"id": id})).collect::<Value>();
        vec![
            delete("clusters", "a"),
            Operation::Create { kind: "clusters".into(), body, replace_decommissioned: true },
        ]
    };
    assert_eq!(
        removed(&mut fleet, renamed(&["c00", "c01"])),
        [
            ("a/namespaces/n00".to_owned(), Cause::Replaced, false),
            ("a/platform_components/c02".to_owned(), Cause::Replaced, false)
        ]
    );
    assert_eq!(because(&mut fleet, renamed(&[])), "4 removals were not asked for by name, on `a`");
}

#[test]
fn another_artifact_or_another_path_of_a_directory_of_manifests_moves_it_on_every_user() {
    let mut fleet = Fleet::small();
    let moved =
        |id: &str, cluster: &str| (format!("{cluster}/platform_components/{id}"), Cause::Moved, false);
    let both = [moved("policies", "dev-1"), moved("policies", "prod-1")];
    let change = |body: Value| vec![strategic("platform_components", "policies", body)];
    assert_eq!(removed(&mut fleet, change(json!({"cluster_env_enabled": false}))), both);
    assert_eq!(removed(&mut fleet, change(json!({"oci_url": "oci://registry.example.com/other"}))), both);
    assert_eq!(removed(&mut fleet, change(json!({"component_path": "core/policies/2.0.0"}))), []);
    assert_eq!(removed(&mut fleet, change(json!({"oci_tag": "v2"}))), []);
    // A Helm release keeps what it has.
    let other_repository = json!({"oci_url": "https://charts.example.org"});
    assert_eq!(removed(&mut fleet, vec![strategic("platform_components", "grafana", other_repository)]), []);
}

/// `environment` by selector moved 13 of 14 clusters without a question, and the list of an environment shrank.
#[test]
fn a_cluster_that_leaves_the_list_of_its_environment_is_a_deletion() {
    let mut fleet = wide(&["a", "b", "c", "d"], 1, 0);
    let left = |id: &str, named| (format!("{id}/clusters/dev"), Cause::LeftEnvironment, named);
    let to_qa = || json!({"environment": "qa"});
    let by_selector = |selector: &str| Operation::Patch {
        kind: "clusters".into(),
        target: selected(selector),
        patch: Patch::Strategic(to_qa()),
    };
    assert_eq!(removed(&mut fleet, vec![by_selector("id in (a,b)")]), [left("a", false), left("b", false)]);
    assert_eq!(because(&mut fleet, vec![by_selector("id=a")]), "1 removal was not asked for by name, on `a`");
    let applied = fleet.accept(vec![strategic("clusters", "a", to_qa())]);
    assert_eq!(applied.commit.expect("a commit").header.removals.each, 1, "it counts as a deletion");
    let mut body = fleet.document("clusters", "b");
    body["environment"] = json!("qa");
    assert_eq!(removed(&mut fleet, vec![put("clusters", "b", body)]), [left("b", true)]);
    assert_eq!(
        because(
            &mut fleet,
            ["a", "b", "c", "d"].map(|id| strategic("clusters", id, json!({"environment": "prod"}))).into()
        ),
        "something is removed on 4 clusters, more than 3 at once"
    );
}

#[test]
fn a_change_that_reaches_more_clusters_than_configured_is_confirmed_by_what_it_does() {
    let mut fleet = wide(&["a", "b", "c"], 2, 0);
    let tag = |tag: &str| vec![strategic("platform_components", "c00", json!({"oci_tag": tag}))];
    fleet.accept(tag("2"));
    fleet.policy.changed_clusters = Some(2);
    let planned = fleet.plan(tag("3"));
    assert_eq!(planned.questions.reach.as_deref(), Some("it changes what 3 clusters get, more than 2"));
    assert_eq!(because(&mut fleet, tag("3")), "it changes what 3 clusters get, more than 2");
    assert!(
        matches!(fleet.send(tag("4"), Some(planned.confirm)), Err(Rejection::Confirm(_))),
        "another change"
    );
    let applied = fleet.send(tag("3"), Some(planned.confirm)).expect("confirmed");
    assert_eq!(applied.commit.expect("a commit").header.removals.passed, Passed::Confirmed);
    fleet.accept(vec![patch_reference("a", "platform_components", "c00", json!({"oci_tag": "9"}))]);
}

/// With nothing to take from it, an allowance covered such changes without end.
#[test]
fn a_change_that_removes_nothing_uses_an_allowance_up_all_the_same() {
    let mut fleet = wide(&["a", "b", "c"], 2, 0);
    fleet.policy = Policy { changed_clusters: Some(2), confirmations_per_hour: 0, ..Policy::default() };
    let tag = |tag: &str| vec![strategic("platform_components", "c00", json!({"oci_tag": tag}))];
    fleet.reasoned("one upgrade", vec![Operation::Allow(grant(0, 1, 60))]);
    let confirm = fleet.plan(tag("2")).confirm;
    fleet.send(tag("2"), Some(confirm)).expect("allowed");
    let confirm = fleet.plan(tag("3")).confirm;
    assert!(matches!(fleet.send(tag("3"), Some(confirm)), Err(Rejection::Allowance(_))), "it is used up");
}

#[test]
fn a_confirmation_of_removals_is_not_spoilt_by_what_else_the_clusters_get() {
    let mut fleet = wide(&["a"], 2, 2);
    fleet.policy.changed_clusters = Some(5);
    let clear = || {
        let also = patch_reference("a", "platform_components", "c00", json!({"oci_tag": "9"}));
        vec![strategic("clusters", "a", json!({"namespaces": []})), also]
    };
    let confirm = fleet.plan(clear()).confirm;
    fleet.accept(vec![strategic("platform_components", "c00", json!({"component_path": "elsewhere"}))]);
    fleet.send(clear(), Some(confirm)).expect("the same is removed");
}

/// A digest for one registry was accepted for another one.
#[test]
fn a_confirmation_covers_where_a_component_moves_to() {
    let mut fleet = Fleet::small();
    let to = |url: &str| vec![strategic("platform_components", "policies", json!({"oci_url": url}))];
    let confirm = fleet.plan(to("oci://registry.example.com/mirror")).confirm;
    let elsewhere = fleet.send(to("oci://other.example.com/empty"), Some(confirm));
    assert!(matches!(elsewhere, Err(Rejection::Confirm(_))));
    fleet.send(to("oci://registry.example.com/mirror"), Some(confirm)).expect("what was confirmed");
    let environment = |to: &str| {
        let patch = Patch::Strategic(json!({"environment": to}));
        vec![Operation::Patch { kind: "clusters".into(), target: selected("id=prod-1"), patch }]
    };
    let confirm = fleet.plan(environment("uat")).confirm;
    assert!(matches!(fleet.send(environment("qa"), Some(confirm)), Err(Rejection::Confirm(_))));
    let redelivery = fleet.plan(vec![by_kustomize("grafana")]).confirm;
    assert!(fleet.send(vec![by_kustomize("grafana")], Some(redelivery)).is_ok());
}

#[test]
fn what_a_commit_removed_under_an_allowance_can_be_undone() {
    let mut fleet = Fleet::small();
    fleet.policy.deletions_per_hour = 0;
    fleet.reasoned("one", vec![Operation::Allow(grant(1, 0, 60))]);
    let before = fleet.state.clone();
    let commit = fleet.accept(vec![unassign("dev-1", "namespaces", "team-a")]).commit.expect("a commit");
    let operations = fleet::inverse(&before, &commit).expect("it can be undone");
    assert_eq!(operations.len(), 1, "the allowance stays used");
}
