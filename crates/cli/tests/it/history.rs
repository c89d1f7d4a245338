//! `history`.

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn the_past_of_a_document_is_told_even_if_it_is_gone() {
    let world = World::new();
    for line in [
        "patch namespace spare --set labels.team=c --yes --reason 'c takes it'",
        "patch namespace spare --set labels.team=d --set labels.cost=1 --yes",
        "delete namespace spare --yes --reason 'nobody wants it'",
    ] {
        world.frs(line).expect(0);
    }
    snapshot!(world.harmless(&[
        "history namespace spare",
        "history namespace spare -o wide",
        "history namespace spare -o name",
        "history namespace spare --limit 1",
        "history namespace spare --limit 1 -o json",
        "history namespace spare --limit 1 -o yaml",
        "history cluster east",
        "history cluster nobody",
    ]));
}
