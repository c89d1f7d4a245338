//! `set patch` and `unset patch`.

use serde_json::json;

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn values_of_a_component_are_set_and_taken_away() {
    let world = World::new();
    let patches = |cluster: &str| world.document(&format!("/clusters/{cluster}"))["patches"].clone();
    let set = world.transcript(&[
        "set patch podinfo --cluster west replicaCount=2 'ui.message=a=b, c' --yes --reason 'more traffic'",
        "set patch podinfo -l region replicaCount=5 --yes",
    ]);
    assert_eq!(patches("west"), json!({"podinfo": {"replicaCount": "5", "ui.message": "a=b, c"}}));
    assert_eq!(patches("east"), json!({"podinfo": {"replicaCount": "5", "ui.message": "hello east"}}));
    let unset = world.transcript(&[
        "unset patch podinfo --cluster east ui.message --yes",
        "unset patch podinfo -l region --yes",
        "unset patch podinfo -l region --yes",
    ]);
    assert_eq!(patches("east"), json!(null));
    snapshot!([set, unset].join("\n"));
}

/// One cluster without the component refused the whole wave.
#[test]
fn of_the_selected_clusters_those_without_the_component_are_passed_over() {
    let world = World::new();
    let told = world.transcript(&[
        "set patch cert-manager -l region crds.enabled=true --yes",
        "set patch traefik -l region a=b --yes",
        "set patch podinfo -l region=moon a=b --yes",
    ]);
    let patches = |cluster: &str| world.document(&format!("/clusters/{cluster}"))["patches"].clone();
    assert_eq!(patches("west"), json!({"cert-manager": {"crds.enabled": "true"}}));
    assert_eq!(patches("east")["cert-manager"], json!({"crds.enabled": "true"}));
    assert_eq!(patches("north"), json!(null));
    snapshot!(told);
}

#[test]
fn what_is_no_value_is_refused() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "set patch podinfo --cluster east replicaCount --yes",
        "set patch podinfo --cluster east =3 --yes",
        "set patch podinfo --cluster nobody a=b --yes",
        "set patch traefik --cluster east a=b --yes",
        "set patch podinfo --cluster east ui=x --yes",
        "unset patch traefik --cluster east --yes",
    ]));
}

/// `tolerations='[{"key":"a"}]'` silently became a string.
#[test]
fn a_list_is_not_silently_a_text() {
    let world = World::new();
    let told = world.harmless(&[
        r#"set patch podinfo --cluster west 'tolerations=[{"key":"a","operator":"Exists"}]' --yes"#,
        "set patch podinfo --cluster west 'tolerations=[]' --yes",
    ]);
    assert_eq!(world.document("/clusters/west")["patches"], json!(null));
    world
        .frs("set patch podinfo --cluster west 'tolerations[0].key=a' 'tolerations[0].operator=Exists' --yes")
        .expect(0);
    let values = world.document("/clusters/west/inputs/platform_components");
    assert!(values.to_string().contains(r#""tolerations":[{"key":"a","operator":"Exists"}]"#), "{values}");
    snapshot!(told);
}
