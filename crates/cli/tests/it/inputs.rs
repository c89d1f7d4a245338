//! `inputs`.

use serde_json::Value;

use crate::fleet::READER;
use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn what_a_cluster_gets_is_shown_in_every_form() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "inputs east components",
        "inputs east namespaces",
        "inputs east rolebindings",
        "inputs north components",
        "inputs north rolebindings",
        "inputs east namespaces -o json",
        "inputs east namespaces -o yaml",
        "inputs east namespaces -o raw",
        "inputs east namespaces -o name",
        "inputs east namespaces -o flux",
        "inputs north rolebindings -o flux",
        "inputs nobody namespaces",
        "inputs east clusters",
        "inputs east pods",
    ]));
}

#[test]
fn the_file_for_flux_is_the_list_alone() {
    let world = World::new();
    world.frs("set patch podinfo --cluster east 'ui.message=a\u{2028}b' --yes").expect(0);
    let file = world.frs("inputs east components -o flux").expect(0);
    assert!(file.stdout.contains("a\\u2028b"), "a YAML reader ends a line there: {file}");
    let answer: Value = serde_json::from_slice(
        &world.service.ask("GET", "/clusters/east/inputs/platform_components", None).body,
    )
    .expect("JSON");
    assert_eq!(file.json(), answer["inputs"]);
}

#[test]
fn asking_as_the_cluster_does_gives_the_same_with_the_token_for_polls() {
    let world = World::new();
    let managed = world.frs("inputs east components -o raw").expect(0).stdout;
    assert_eq!(world.frs("inputs east components -o raw --as-polled").expect(0).stdout, managed);
    let world = world.with("FLUX_API_TOKEN", READER).with("FLUX_API_WRITE_TOKEN", crate::fleet::ADMIN);
    assert_eq!(world.frs("inputs east components -o raw --as-polled").expect(0).stdout, managed);
    let world = world.with("FLUX_API_TOKEN", "wrong");
    snapshot!(
        world.harmless(&["inputs east components --as-polled", "inputs nobody components --as-polled"])
    );
}
