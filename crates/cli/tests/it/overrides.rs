//! `set override` and `unset override`.

use serde_json::json;

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn a_cluster_has_a_version_of_its_own_and_goes_back_to_the_catalog() {
    let world = World::new();
    let podinfo = |cluster: &str| {
        let document = world.document(&format!("/clusters/{cluster}"));
        let list = document["platform_components"].as_array().expect("a list").clone();
        list.into_iter().find(|reference| reference["id"] == "podinfo").expect("a reference")
    };
    let set = world.transcript(&[
        "set override podinfo --cluster west oci_tag=7.0.0 component_path=charts/podinfo depends_on=cert-manager --yes --reason canary",
        "set override podinfo -l region=eu oci_tag=7.0.0 --yes",
    ]);
    assert_eq!(
        podinfo("west"),
        json!({"id": "podinfo", "oci_tag": "7.0.0", "component_path": "charts/podinfo", "depends_on": ["cert-manager"]})
    );
    let one = world.transcript(&["unset override podinfo --cluster west component_path --yes"]);
    assert_eq!(podinfo("west"), json!({"id": "podinfo", "oci_tag": "7.0.0", "depends_on": ["cert-manager"]}));
    let all = world.transcript(&[
        "unset override podinfo -l region --yes",
        "unset override podinfo -l region --yes",
        "get clusters",
    ]);
    assert_eq!(podinfo("north"), json!({"id": "podinfo", "enabled": false}), "off is no override");
    snapshot!([set, one, all].join("\n"));
}

#[test]
fn what_is_no_override_is_refused() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "set override podinfo --cluster east colour=red --yes",
        "set override podinfo --cluster east oci_tag --yes",
        "set override traefik --cluster east oci_tag=1 --yes",
        "set override podinfo --cluster nobody oci_tag=1 --yes",
        "set override podinfo --cluster east 'oci_tag=not a tag' --yes",
        "unset override podinfo --cluster east enabled --yes",
        "unset override podinfo --cluster east colour --yes",
    ]));
}
