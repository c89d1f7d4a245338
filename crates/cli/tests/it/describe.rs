//! `describe`.

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn a_document_is_told_with_everything_around_it() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "describe cluster east",
        "describe cluster north",
        "describe component podinfo",
        "describe component traefik",
        "describe namespace team-a",
        "describe rolebinding viewers",
    ]));
}

#[test]
fn its_last_changes_are_told_with_who_and_why() {
    let world = World::new();
    world.frs("patch cluster east --set node_count=5 --yes --reason 'more load'").expect(0);
    world.frs("set patch podinfo --cluster east replicaCount=4 a=b --yes").expect(0);
    snapshot!(world.harmless(&["describe cluster east"]));
}

#[test]
fn what_is_not_there_cannot_be_described() {
    let world = World::new();
    snapshot!(world.harmless(&["describe cluster nobody", "describe pod x"]));
}
