//! The guard on the command line: what answers its questions, what does not, and allowances.

use crate::fleet::{ALICE, fleet};
use crate::frs::World;
use crate::service::Service;
use crate::snapshot::snapshot;
use crate::terminal::Terminal;

const BY_SELECTOR: &str = "unassign namespace team-a -l environment=prod";

#[test]
fn yes_is_no_answer_to_the_guard_and_a_number_or_the_name_of_the_plan_is() {
    let world = World::new();
    snapshot!(world.harmless(&[
        &format!("{BY_SELECTOR} --yes"),
        BY_SELECTOR,
        &format!("{BY_SELECTOR} --max-removals 1"),
        &format!("{BY_SELECTOR} --max-clusters 1"),
        &format!("{BY_SELECTOR} --plan --max-removals 2"),
    ]));
    world.frs(&format!("{BY_SELECTOR} --max-removals 2")).expect(0);
    let plan = world.frs("unassign component podinfo -l environment=prod --plan -o json").expect(0).json();
    let name = plan["plan"].as_str().expect("a name").to_owned();
    world.frs(&format!("unassign component podinfo -l environment=prod --expect {name}")).expect(0);
    world.frs("unassign rolebinding viewers -l environment=prod --max-clusters 2").expect(0);
    assert_eq!(world.service.head(), 4);
}

#[test]
fn a_number_bounds_a_change_that_the_guard_has_nothing_against() {
    let world = World::new();
    let told = world.frs("assign namespace spare -l region --max-clusters 2").expect(1);
    assert!(
        told.stderr.contains("nothing was changed: 3 clusters would be reached, and `--max-clusters` is 2"),
        "{told}"
    );
    world.frs("assign namespace spare -l region --max-clusters 3").expect(0);
}

/// It walked through the hourly guard: fifteen clusters in seconds.
#[test]
fn a_loop_of_decommissions_with_yes_stops_until_an_admin_allows_more() {
    let world = World::of(Service::with(&fleet(), &[("GUARD_DELETIONS_PER_HOUR", "1")]));
    world.frs(&format!("decommission west --yes --token {ALICE}")).expect(0);
    let stopped = world.frs(&format!("decommission east --yes --token {ALICE}")).expect(1);
    let allow = "frs guard allow --for file:alice --deletions 1 --minutes 60 --reason WHY";
    assert!(stopped.stderr.contains(allow), "{stopped}");
    let grant = world.frs(&allow.replacen("frs ", "", 1).replace("WHY", "'the site closes'")).expect(0);
    assert!(
        grant.stdout.starts_with("file:alice may make 1 deletion and 0 removals beyond the budgets until "),
        "{grant}"
    );
    world.frs("decommission east --yes").expect(1);
    world.frs(&format!("decommission east --yes --token {ALICE}")).expect(0);
    let audit = world.frs("audit --limit 1").expect(0);
    assert!(audit.stdout.contains("1 cluster, allowed"), "{audit}");
}

#[test]
fn allowances_are_granted_shown_and_revoked() {
    let world = World::new();
    let mut text = world.transcript(&[
        "guard status",
        "guard allow --for file:alice --deletions 40 --reason 'the site closes'",
        "guard status",
    ]);
    let id = world.frs("guard status -o name").expect(0).stdout.trim().to_owned();
    text += "\n";
    text += &world.transcript(&[
        &format!("guard revoke {id} --reason 'it stays'"),
        &format!("guard revoke {id}"),
        "guard status -o name",
    ]);
    snapshot!(text);
}

#[test]
fn an_allowance_without_a_number_or_a_reason_or_beyond_what_can_be_allowed_is_refused() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "guard allow --for file:alice --reason 'no number'",
        "guard allow --for file:alice --deletions 1",
        "guard allow --for file:alice --deletions 20000 --minutes 300 --reason 'a lot'",
        "guard allow --for file:alice --deletions many --reason 'words'",
        "guard revoke nobody",
    ]));
}

/// They have no inputs, so they were in no count: a number agreed to any number of them.
#[test]
fn clusters_without_inputs_count_when_they_are_decommissioned() {
    let world = World::new();
    for id in ["empty-1", "empty-2", "empty-3"] {
        world
            .frs(&format!("create cluster {id} --dns {id}.k8s.example.com --environment dev --yes"))
            .expect(0);
    }
    let change = "patch cluster -l 'id in (empty-1,empty-2,empty-3)' --set environment=qa";
    for bound in ["--max-removals 2", "--max-clusters 2"] {
        let told = world.frs(&format!("{change} {bound}")).expect(1);
        assert!(told.stderr.contains("nothing was changed: 3 "), "{told}");
    }
    world.frs(&format!("{change} --max-clusters 3")).expect(0);
}

/// The allowance that it used was part of the plan, so that the plan which an admin had allowed was another one afterwards.
#[test]
fn a_plan_that_was_stopped_has_the_same_name_once_it_is_allowed() {
    let world = World::of(Service::with(&fleet(), &[("GUARD_DELETIONS_PER_HOUR", "0")]));
    let plan = world.frs("decommission west --plan -o json").expect(0).json();
    let name = plan["plan"].as_str().expect("a name").to_owned();
    world.frs(&format!("decommission west --expect {name}")).expect(1);
    world.frs("guard allow --deletions 1 --reason 'as planned'").expect(0);
    let done = world.frs(&format!("decommission west --expect {name} -o name")).expect(0);
    assert!(!done.stdout.contains("allowances"), "{done}");
}

#[test]
fn on_a_terminal_the_number_of_removals_is_typed() {
    for (answer, head) in [("y\n", 1), ("3\n", 1), ("2\n", 2)] {
        let world = World::new();
        let terminal = Terminal::start(&world.desk, BY_SELECTOR);
        let (code, screen) = terminal.until("Type 2 to delete 2 inputs on 2 clusters: ").types(answer).end();
        assert_eq!((code, world.service.head()), (Some(i32::from(head == 1)), head), "{answer:?}: {screen}");
    }
}

#[test]
fn on_a_terminal_the_name_of_a_cluster_is_typed_to_decommission_it() {
    for (answer, head) in [("y\n", 1), ("east\n", 1), ("west\n", 2)] {
        let world = World::new();
        let terminal = Terminal::start(&world.desk, "decommission west");
        let (code, screen) = terminal.until("Type west to decommission this cluster: ").types(answer).end();
        assert_eq!((code, world.service.head()), (Some(i32::from(head == 1)), head), "{answer:?}: {screen}");
    }
}

#[test]
fn a_change_that_reaches_more_clusters_than_configured_asks_for_their_number() {
    let world = World::of(Service::with(&fleet(), &[("GUARD_CHANGED_CLUSTERS", "1")]));
    let change = "patch component cert-manager --set oci_tag=v1.16.0";
    snapshot!(world.harmless(&[&format!("{change} --yes"), &format!("{change} --max-removals 5")]));
    world.frs(&format!("{change} --max-clusters 2")).expect(0);
}
