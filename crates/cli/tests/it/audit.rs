//! `audit`.

use crate::fleet::ALICE;
use crate::frs::World;
use crate::snapshot::snapshot;

/// A fleet that two people have changed.
fn changed() -> World {
    let world = World::new();
    for line in [
        "patch namespace spare --set labels.team=c --yes --reason 'c takes it'",
        "unassign namespace team-b --cluster east --yes --token {ALICE} --reason 'not in use'",
        "decommission west --yes --token {ALICE}",
    ] {
        world.frs(&line.replace("{ALICE}", ALICE)).expect(0);
    }
    world
}

#[test]
fn the_log_says_who_did_what_when_and_why() {
    let world = changed();
    snapshot!(world.harmless(&[
        "audit",
        "audit -o wide",
        "audit -o name",
        "audit --limit 1",
        "audit --limit 1 -o json",
        "audit --limit 1 -o yaml",
    ]));
}

#[test]
fn the_log_can_be_narrowed() {
    let world = changed();
    snapshot!(world.harmless(&[
        "audit --actor file:alice -o name",
        "audit --kind namespaces -o name",
        "audit --kind cluster --id east -o name",
        "audit --id west -o name",
        "audit --kind decommissioned -o name",
        "audit --since 1h -o name",
        "audit --until 1h",
        "audit --since 2026-01-01T00:00:00Z --until 2026-01-02T00:00:00+01:00 -o json",
        "audit --since yesterday",
        "audit --kind pods",
        "audit --actor file:nobody",
    ]));
}

#[test]
fn one_revision_is_told_field_by_field() {
    let world = changed();
    snapshot!(world.harmless(&[
        "audit 2",
        "audit 3",
        "audit 4 -o name",
        "audit 3 -o json",
        "audit 3 -o yaml",
        "audit 99",
        "audit first",
    ]));
}
