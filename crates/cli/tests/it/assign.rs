//! `assign`, `unassign`, `enable`, `disable`: what clusters refer to.

use serde_json::json;

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn clusters_are_given_things_and_keep_what_they_have_set_on_them() {
    let world = World::new();
    let text = world.transcript(&[
        "assign namespace spare --cluster west --yes",
        "assign component traefik --cluster east --cluster west oci_tag=33.0.0 depends_on=cert-manager --yes",
        "assign component podinfo -l region --yes",
        "assign namespace team-b -c west labels.cost=west --yes",
        "assign rolebinding viewers -l environment=dev --yes",
    ]);
    let east = world.document("/clusters/east");
    assert_eq!(
        east["platform_components"][1],
        json!({"id": "podinfo", "oci_tag": "6.8.0"}),
        "its override stays"
    );
    assert_eq!(
        east["platform_components"][2],
        json!({"id": "traefik", "oci_tag": "33.0.0", "depends_on": ["cert-manager"]})
    );
    assert_eq!(
        world.document("/clusters/north")["platform_components"],
        json!([{"id": "podinfo", "enabled": false}])
    );
    let west = world.document("/clusters/west");
    assert_eq!(west["namespaces"][2], json!({"id": "team-b", "labels": {"cost": "west"}}));
    snapshot!(text);
}

#[test]
fn what_is_taken_away_is_deleted_by_flux() {
    let world = World::new();
    let text = world.transcript(&[
        "unassign namespace team-b --cluster east --yes",
        "unassign component podinfo -l environment=prod --max-removals 2",
        "unassign namespace spare --cluster east --yes",
    ]);
    assert_eq!(world.document("/clusters/west")["platform_components"], json!([{"id": "cert-manager"}]));
    snapshot!(text);
}

/// One of the three has it disabled: Flux has nothing to delete there, though its answer becomes another.
#[test]
fn what_flux_deletes_is_counted_without_what_is_off_already() {
    let world = World::new();
    let run = world.frs("unassign component podinfo -l region --plan").expect(0);
    let told = run.to_string();
    assert!(told.contains("Flux will delete 2 inputs on 2 clusters"), "{told}");
    assert!(told.contains("platform_components/podinfo on 2 clusters: east, west (removed)"), "{told}");
}

#[test]
fn a_component_is_turned_off_and_on() {
    let world = World::new();
    let text = world.transcript(&[
        "disable podinfo --cluster east --yes",
        "disable podinfo --cluster east --yes",
        "enable podinfo -l tier=gold --yes --reason 'the bug is mended'",
        "get clusters",
    ]);
    let podinfo = &world.document("/clusters/east")["platform_components"][1];
    assert_eq!(*podinfo, json!({"id": "podinfo", "oci_tag": "6.8.0", "enabled": true}));
    snapshot!(text);
}

#[test]
fn what_cannot_be_assigned_is_refused() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "assign namespace nobody --cluster east --yes",
        "assign namespace spare --cluster nobody --yes",
        "assign cluster west --cluster east --yes",
        "assign component traefik --cluster east id=other --yes",
        "assign component traefik --cluster east enabled=perhaps --yes",
        "assign component traefik --cluster east oci_url=oci://x/y --yes",
        "unassign namespace team-a --cluster nobody --yes",
        "unassign cluster west --cluster east --yes",
        "enable traefik --cluster east --yes",
        "disable nobody -l region=eu --yes",
        "enable podinfo --cluster north --yes",
    ]));
}
