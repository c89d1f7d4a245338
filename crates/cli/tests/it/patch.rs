//! `patch`.

use serde_json::json;

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn fields_are_set_and_taken_away() {
    let world = World::new();
    let text = world.transcript(&[
        "patch cluster east --set labels.tier=silver --set node_count=5 --set platform_components.podinfo.oci_tag=6.9.0 --unset labels.region --unset namespaces.team-b --yes --reason 'tidy up'",
        "patch cluster east --unset patches --unset rolebindings --max-removals 1",
        "patch component podinfo --set depends_on= --set delivery=kustomize --max-removals 2",
        "patch rolebinding viewers --set 'subjects=[{\"kind\": \"User\", \"name\": \"eve\"}]' --yes",
    ]);
    assert_eq!(
        world.document("/clusters/east"),
        json!({
            "id": "east", "cluster_name": "east", "cluster_dns": "east.k8s.example.com", "environment": "prod",
            "labels": {"tier": "silver"}, "node_count": 5, "namespaces": [{"id": "team-a"}],
            "platform_components": [{"id": "cert-manager"}, {"id": "podinfo", "oci_tag": "6.9.0"}],
        })
    );
    snapshot!(text);
}

#[test]
fn a_selector_patches_many_clusters_in_one_change() {
    let world = World::new();
    let text = world.transcript(&[
        "patch cluster -l environment=prod --set labels.wave=2 --set platform_components.podinfo.oci_tag=6.9.1 --yes",
        "patch cluster --selector region=nowhere --set labels.wave=2 --yes",
        "get clusters -l wave=2 -o name",
    ]);
    assert_eq!(world.service.head(), 2);
    snapshot!(text);
}

#[test]
fn a_file_is_meant_as_its_type_says() {
    let world = World::new();
    world.desk.file("strategic.yaml", "platform_components:\n  - {id: podinfo, $patch: delete}\n");
    world.desk.file("merge.json", r#"{"namespaces": [{"id": "spare"}], "labels": {"tier": null}}"#);
    world.desk.file("json.yaml", "- {op: replace, path: /node_count, value: 7}\n");
    let text = world.transcript(&[
        "patch cluster east --file strategic.yaml --yes",
        "patch cluster east --file merge.json --type merge --max-removals 2",
        "patch cluster east --file json.yaml --type json --yes",
    ]);
    let east = world.document("/clusters/east");
    assert_eq!(east["platform_components"], json!([{"id": "cert-manager"}]));
    assert_eq!(east["namespaces"], json!([{"id": "spare"}]));
    assert_eq!((&east["labels"], &east["node_count"]), (&json!({"region": "eu"}), &json!(7)));
    world.desk.piped("patch cluster east --file - --yes", "labels: {from: stdin}\n").expect(0);
    assert_eq!(world.document("/clusters/east")["labels"]["from"], "stdin");
    snapshot!(text);
}

#[test]
fn what_cannot_be_patched_is_refused() {
    let world = World::new();
    world.desk.file("patch.yaml", "labels: {a: b}\n");
    world.desk.file("wrong.json", r#"[{"op": "test", "path": "/node_count", "value": 99}]"#);
    snapshot!(world.harmless(&[
        "patch cluster east --yes",
        "patch cluster east --set labels.a=b --file patch.yaml --yes",
        "patch cluster east --set labels.a=b --type merge --yes",
        "patch namespace -l team=a --set labels.a=b --yes",
        "patch cluster nobody --set labels.a=b --yes",
        "patch cluster east --set id=other --yes",
        "patch cluster east --set cluster_dns=other.example.com --yes",
        "patch cluster east --set environment=moon --set labels.team=-x- --yes",
        "patch cluster east --set node_count=-1 --yes",
        "patch cluster east --set colour=red --yes",
        "patch cluster east --set platform_components.podinfo=6.9.0 --yes",
        "patch cluster east --set platform_components=podinfo --yes",
        "patch cluster east --file nowhere.yaml --yes",
        "patch cluster east --file wrong.json --type json --yes",
        "patch cluster -l 'region in' --set labels.a=b --yes",
    ]));
}
