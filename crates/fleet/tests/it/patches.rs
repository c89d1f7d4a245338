//! The three patch types, on the canary that the documents of the mission send and on what careless clients send.

use crate::common::*;
use fleet::{Operation, Patch, Reason, Rejection};
use serde_json::json;

fn canary() -> serde_json::Value {
    json!({"platform_components": [{"id": "grafana", "component_path": "observability/grafana/17.1.0", "oci_tag": "v1.1.0-rc1"}]})
}

#[test]
fn the_canary_as_a_strategic_patch_changes_one_component_of_one_cluster() {
    let mut fleet = Fleet::small();
    let (dev, prod) =
        (fleet.inputs("dev-1", "platform-components"), fleet.inputs("prod-1", "platform-components"));
    let applied = fleet.accept(vec![strategic("clusters", "dev-1", canary())]);
    assert!(applied.removals.is_empty());
    let grafana = fleet.input("dev-1", "platform-components", "grafana");
    assert_eq!(grafana["component_path"], "observability/grafana/17.1.0");
    assert_eq!(
        grafana["source"],
        json!({"oci_tag": "v1.1.0-rc1", "oci_url": "https://charts.example.com", "secretRef": {}, "verify": {}})
    );
    let now = fleet.inputs("dev-1", "platform-components");
    let others = |inputs: &serde_json::Value| {
        inputs
            .as_array()
            .expect("a list")
            .iter()
            .filter(|i| i["id"] != "grafana")
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(others(&now), others(&dev), "the other four are as they were");
    assert_eq!(fleet.inputs("prod-1", "platform-components"), prod);
}

#[test]
fn the_canary_as_an_rfc_7396_patch_would_uninstall_the_rest_and_is_stopped() {
    let mut fleet = Fleet::small();
    let Rejection::Confirm(stopped) = fleet.reject(vec![merge("clusters", "prod-1", canary())]) else {
        panic!("not stopped")
    };
    let gone: Vec<_> = stopped.removals.inputs.iter().map(|removal| removal.input.as_str()).collect();
    assert_eq!(gone, ["cert-manager", "policies"]);
    let complaints = fleet.complaints(vec![merge("clusters", "dev-1", canary())]);
    assert!(
        complaints[0]
            .starts_with("/patches/podinfo: `podinfo` is not among the cluster's platform_components"),
        "{complaints:?}"
    );
}

#[test]
fn the_canary_as_an_rfc_6902_patch_is_no_list_of_operations() {
    let mut fleet = Fleet::small();
    assert_eq!(
        fleet.complaints(vec![json_patch("clusters", "dev-1", canary())]),
        [
            ": a JSON patch is an array of operations, not {\"platform_components\":[{\"component_path\":\"observability/gra…"
        ]
    );
}

#[test]
fn rfc_6902_works_on_the_stored_order_and_the_result_is_sorted() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![json_patch(
        "clusters",
        "dev-1",
        json!([
            {"op": "test", "path": "/platform_components/1/id", "value": "grafana"},
            {"op": "add", "path": "/platform_components/1/oci_tag", "value": "v1.1.0-rc1"},
            {"op": "add", "path": "/rolebindings/0", "value": {"id": "deployer"}},
            {"op": "copy", "from": "/cluster_name", "path": "/vm_image"},
        ]),
    )]);
    let document = fleet.document("clusters", "dev-1");
    assert_eq!(document["platform_components"][1], json!({"id": "grafana", "oci_tag": "v1.1.0-rc1"}));
    assert_eq!(document["rolebindings"], json!([{"id": "deployer"}, {"id": "viewers"}]));
    assert_eq!(document["vm_image"], "dev one");
}

#[test]
fn a_failing_rfc_6902_operation_is_named() {
    let mut fleet = Fleet::small();
    let mut complaint = |patch| fleet.complaints(vec![json_patch("clusters", "dev-1", patch)]).remove(0);
    assert!(complaint(json!([{"op": "remove", "path": "/nope"}])).starts_with("/nope: item 0 of the patch:"));
    assert!(
        complaint(json!([{"op": "test", "path": "/id", "value": "x"}]))
            .starts_with("/id: item 0 of the patch:")
    );
    assert!(
        complaint(json!([{"op": "sing", "path": "/id"}]))
            .starts_with(": item 0 of the patch is no operation of RFC 6902")
    );
    assert!(
        complaint(json!([{"op": "replace", "path": "", "value": 7}]))
            .contains("something that is not an object")
    );
}

#[test]
fn copies_cannot_grow_a_document_without_bound_nor_nest_it_without_end() {
    let mut fleet = Fleet::small();
    let mut doubling = vec![json!({"op": "add", "path": "/x", "value": ["y".repeat(1000)]})];
    doubling.extend((0..40).map(|_| json!({"op": "copy", "from": "/x", "path": "/x/-"})));
    let complaints = fleet.complaints(vec![json_patch("clusters", "dev-1", doubling.into())]);
    assert!(
        complaints[0].contains("nests too deeply")
            || complaints[0].contains("the copies of the patch are over"),
        "{complaints:?}"
    );
    let wide: Vec<_> = (0..40)
        .flat_map(|n| {
            let (from, to) = (format!("/x{n}"), format!("/x{}", n + 1));
            [
                json!({"op": "add", "path": to, "value": {}}),
                json!({"op": "copy", "from": from, "path": format!("{to}/a")}),
                json!({"op": "copy", "from": from, "path": format!("{to}/b")}),
            ]
        })
        .collect();
    let wide = [vec![json!({"op": "add", "path": "/x0", "value": "y".repeat(1000)})], wide].concat();
    let complaints = fleet.complaints(vec![json_patch("clusters", "dev-1", wide.into())]);
    assert!(complaints[0].contains("the copies of the patch are over 2097152 bytes"), "{complaints:?}");
}

#[test]
fn a_strategic_patch_merges_creates_deletes_and_clears_by_id() {
    let mut fleet = Fleet::small();
    let applied = fleet.accept(vec![strategic(
        "clusters",
        "dev-1",
        json!({
            "platform_components": [{"id": "grafana", "oci_tag": "2.0.0"}, {"id": "logging"}],
            "namespaces": [{"id": "team-c", "$patch": "delete"}],
            "labels": {"tier": "gold", "region": null},
            "patches": {"podinfo": {"replicaCount": "5"}},
        }),
    )]);
    assert_eq!(applied.removals.inputs.len(), 1);
    let document = fleet.document("clusters", "dev-1");
    let ids: Vec<_> = document["platform_components"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|r| r["id"].as_str().expect("an id"))
        .collect();
    assert_eq!(ids, ["cert-manager", "grafana", "logging", "podinfo", "policies", "traefik"]);
    assert_eq!(document["namespaces"], json!([{"id": "team-a"}, {"id": "team-b"}]));
    assert_eq!(document["labels"], json!({"tier": "gold"}));
    assert_eq!(document["patches"]["podinfo"], json!({"replicaCount": "5", "ui.message": "hello"}));
    fleet.accept(vec![strategic(
        "clusters",
        "dev-1",
        json!({"platform_components": [{"id": "grafana", "oci_tag": null}]}),
    )]);
    assert_eq!(fleet.document("clusters", "dev-1")["platform_components"][1], json!({"id": "grafana"}));
    fleet.confirm(vec![strategic("clusters", "dev-1", json!({"namespaces": []}))]);
    assert_eq!(fleet.document("clusters", "dev-1").get("namespaces"), None);
}

#[test]
fn odd_strategic_patches_are_refused_in_words() {
    let mut fleet = Fleet::small();
    let mut complaint = |body| fleet.complaints(vec![strategic("clusters", "dev-1", body)]).remove(0);
    assert_eq!(complaint(json!([])), ": a patch that merges is an object, not []");
    assert_eq!(
        complaint(json!({"namespaces": [{"labels": {}}]})),
        "/namespaces/0/id: each item of the patch names the reference that it is about by `id`"
    );
    assert_eq!(
        complaint(json!({"namespaces": ["team-a"]})),
        "/namespaces/0/id: each item of the patch names the reference that it is about by `id`"
    );
    assert_eq!(
        complaint(json!({"namespaces": [{"id": "team-a", "$patch": "replace"}]})),
        "/namespaces/0/$patch: the only directive is \"delete\", not \"replace\""
    );
    assert!(complaint(json!({"namespaces": {"id": "team-a"}})).starts_with("/namespaces: must be an array"));
}

#[test]
fn deleting_what_is_not_there_warns_and_removing_a_component_takes_its_patches() {
    let mut fleet = Fleet::small();
    let applied = fleet.accept(vec![strategic(
        "clusters",
        "dev-1",
        json!({"platform_components": [{"id": "podinfo", "$patch": "delete"}, {"id": "ghost", "$patch": "delete"}]}),
    )]);
    assert_eq!(
        applied.warnings,
        [
            "the patches of `dev-1` for `podinfo` were removed with it",
            "`ghost` was to be removed from platform_components of `dev-1`, but is not there"
        ]
    );
    assert_eq!(fleet.document("clusters", "dev-1")["patches"], json!({"policies": {"LEVEL": "strict"}}));
    fleet.accept(vec![unassign("dev-1", "platform_components", "policies")]);
    assert_eq!(fleet.document("clusters", "dev-1").get("patches"), None);
    let mut fleet = Fleet::small();
    fleet.confirm(vec![strategic("clusters", "dev-1", json!({"platform_components": []}))]);
    assert_eq!(fleet.document("clusters", "dev-1").get("patches"), None, "clearing takes all of them");
}

#[test]
fn one_reference_is_set_merged_into_and_removed() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![assign(
        "dev-1",
        "platform_components",
        "grafana",
        json!({"oci_tag": "2.0.0", "component_path": "g2"}),
    )]);
    fleet.accept(vec![patch_reference(
        "dev-1",
        "platform_components",
        "grafana",
        json!({"oci_tag": null, "enabled": false}),
    )]);
    assert_eq!(
        fleet.document("clusters", "dev-1")["platform_components"][1],
        json!({"id": "grafana", "component_path": "g2", "enabled": false})
    );
    fleet.accept(vec![assign("dev-1", "platform_components", "grafana", json!(null))]);
    assert_eq!(fleet.document("clusters", "dev-1")["platform_components"][1], json!({"id": "grafana"}));
    fleet.accept(vec![unassign("dev-1", "platform_components", "grafana")]);
    assert!(!fleet.ids("dev-1", "platform-components").contains(&"grafana".to_owned()));
    let renamed = Operation::PatchReference {
        clusters: fleet::Target::one("dev-1"),
        kind: "namespaces".into(),
        id: "team-a".into(),
        patch: Patch::Merge(json!({"id": "team-b"})),
    };
    assert_eq!(
        fleet.complaints(vec![renamed]),
        ["/namespaces/0/id: the `id` of a reference cannot be changed"]
    );
}

#[test]
fn values_reach_every_selected_cluster_that_has_the_component() {
    let mut fleet = Fleet::small();
    let values = |clusters: fleet::Target, component: &str, values: serde_json::Value| {
        Operation::PatchValues { clusters, component: component.into(), values }
    };
    let all = || selected("environment in (dev,prod)");
    let before = fleet.document("clusters", "prod-1");
    let of = |fleet: &Fleet, cluster: &str| fleet.document("clusters", cluster)["patches"]["podinfo"].clone();
    fleet.accept(vec![values(all(), "podinfo", json!(null))]);
    assert_eq!(of(&fleet, "dev-1"), json!(null));
    fleet.accept(vec![values(all(), "podinfo", json!({"replicaCount": "3", "ui.color": "red"}))]);
    assert_eq!(of(&fleet, "dev-1"), json!({"replicaCount": "3", "ui.color": "red"}));
    fleet.accept(vec![values(all(), "podinfo", json!({"replicaCount": "4", "ui.color": null}))]);
    assert_eq!(of(&fleet, "dev-1"), json!({"replicaCount": "4"}));
    fleet.accept(vec![values(all(), "podinfo", json!({"replicaCount": null}))]);
    assert_eq!(of(&fleet, "dev-1"), json!(null), "nothing is left of it");
    assert_eq!(fleet.document("clusters", "prod-1"), before, "it has no podinfo");

    let one = || fleet::Target::one("prod-1");
    let rejection = fleet.reject(vec![values(one(), "podinfo", json!({"a": "b"}))]);
    assert_eq!(rejection.reason(), Some(&Reason::Missing));
    assert_eq!(
        fleet.complaints(vec![values(all(), "podinfo", json!(["a"]))]),
        [": the values must be an object, or `null` to remove all of them"]
    );
    assert_eq!(fleet.complaints(vec![values(all(), "podinfo", json!({"a": [1]}))]).len(), 1);
}

#[test]
fn operations_reach_every_selected_cluster_that_has_the_reference() {
    let mut fleet = Fleet::small();
    let clusters = || selected("environment in (dev,prod)");
    let (kind, id) = ("platform_components", "grafana");
    let patch = Patch::Strategic(json!({"oci_tag": "3.0.0"}));
    fleet.accept(vec![Operation::PatchReference {
        clusters: clusters(),
        kind: kind.into(),
        id: id.into(),
        patch,
    }]);
    for cluster in ["dev-1", "prod-1"] {
        assert_eq!(fleet.input(cluster, "platform-components", "grafana")["source"]["oci_tag"], "3.0.0");
    }
    let patch = Patch::Strategic(json!({"oci_tag": "4.0.0"}));
    fleet.accept(vec![Operation::PatchReference {
        clusters: clusters(),
        kind: kind.into(),
        id: "podinfo".into(),
        patch,
    }]);
    assert_eq!(
        fleet.ids("prod-1", "platform-components"),
        ["cert-manager", "grafana", "policies"],
        "it has no podinfo and gets none"
    );
    fleet.accept(vec![Operation::Assign {
        clusters: clusters(),
        kind: "namespaces".into(),
        id: "team-b".into(),
        overrides: json!({"labels": {"x": "y"}}),
    }]);
    assert_eq!(fleet.input("prod-1", "namespaces", "team-b")["labels"], json!({"x": "y"}));
    let target = selected("legacy");
    fleet.accept(vec![Operation::Patch {
        kind: "clusters".into(),
        target,
        patch: Patch::Merge(json!({"labels": {"legacy": null}})),
    }]);
    assert_eq!(fleet.document("clusters", "prod-1")["labels"], json!({"region": "us"}));
}

/// `replicaCount: 3` in a file was refused, while the command line took `replicaCount=3`.
#[test]
fn integers_and_switches_in_patches_are_the_text_that_they_look_like() {
    let mut fleet = Fleet::small();
    let patches =
        |values: serde_json::Value| strategic("clusters", "dev-1", json!({"patches": {"podinfo": values}}));
    fleet.accept(vec![patches(json!({"replicaCount": 3, "ui.message": null, "debug": true}))]);
    let stored = fleet.document("clusters", "dev-1")["patches"]["podinfo"].clone();
    assert_eq!(stored, json!({"replicaCount": "3", "debug": "true"}));
    assert_eq!(fleet.input("dev-1", "platform-components", "podinfo")["values"]["replicaCount"], 3);
    // Said in the other way it is no change.
    assert!(fleet.accept(vec![patches(json!({"replicaCount": "3"}))]).commit.is_none());
    assert_eq!(
        fleet.complaints(vec![patches(json!({"list": [1]}))]),
        ["/patches/podinfo/list: must be a string, not [1]"]
    );
    // It would arrive as a text.
    assert_eq!(
        fleet.complaints(vec![patches(json!({"ratio": 0.5}))]),
        ["/patches/podinfo/ratio: must be a string, not 0.5"]
    );
}

/// It rewrote 77 documents with what they meant already.
#[test]
fn enabling_what_is_enabled_changes_no_document() {
    let mut fleet = Fleet::small();
    let set = |enabled: bool| {
        patch_reference("dev-1", "platform_components", "podinfo", json!({"enabled": enabled}))
    };
    assert!(fleet.accept(vec![set(true)]).commit.is_none());
    fleet.accept(vec![set(false)]);
    assert_eq!(fleet.input("dev-1", "platform-components", "podinfo")["enabled"], false);
    fleet.accept(vec![set(true)]);
    assert_eq!(fleet.input("dev-1", "platform-components", "podinfo")["enabled"], true);
    assert!(fleet.accept(vec![set(true)]).commit.is_none());
    // A kind without the field has none.
    let wrong = patch_reference("dev-1", "namespaces", "team-a", json!({"enabled": true}));
    let complaints = fleet.complaints(vec![wrong]);
    assert!(complaints[0].contains("unknown field `enabled`"), "{complaints:#?}");
}
