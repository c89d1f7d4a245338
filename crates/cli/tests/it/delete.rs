//! `delete`.

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn documents_that_nothing_refers_to_are_deleted() {
    let world = World::new();
    let text = world.transcript(&[
        "delete namespace spare",
        "delete namespace spare --yes --reason 'nobody wants it'",
        "create namespace one --yes",
        "create namespace two --yes",
        "rm ns one two --yes",
        "get namespaces -o name",
    ]);
    assert_eq!(world.service.head(), 5, "two documents, one revision");
    snapshot!(text);
}

#[test]
fn what_is_in_use_is_not_deleted_and_it_is_said_by_whom() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "delete namespace team-a --yes",
        "delete component cert-manager --yes",
        "delete namespaces spare team-a --yes",
        "delete namespace nobody --yes",
        "delete cluster west --yes",
    ]));
}
