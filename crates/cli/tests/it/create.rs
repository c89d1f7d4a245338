//! `create`.

use serde_json::json;

use crate::frs::World;
use crate::snapshot::snapshot;

#[test]
fn a_document_is_made_from_flags() {
    let world = World::new();
    let text = world.transcript(&[
        "create namespace team-c --set labels.team=c --set 'annotations.example\\.com/owner=c@example.com' --yes",
        "create component agent --set component_path=agent --set oci_url=oci://ghcr.io/example/agent --set oci_tag=1.0.0 --set delivery=helm --set depends_on=podinfo,cert-manager --set cluster_env_enabled=true --yes",
        "create cluster south --dns south.k8s.example.com --environment dev --set node_count=2 --set platform_components.traefik.oci_tag=33.0.0 --set namespaces.team-a={} --yes",
        "create rolebinding editors --set role=edit --set 'subjects=[{\"kind\": \"User\", \"name\": \"eve\"}]' --yes",
    ]);
    assert_eq!(
        world.document("/namespaces/team-c"),
        json!({"id": "team-c", "labels": {"team": "c"}, "annotations": {"example.com/owner": "c@example.com"}})
    );
    assert_eq!(
        world.document("/platform_components/agent")["depends_on"],
        json!(["cert-manager", "podinfo"])
    );
    assert_eq!(
        world.document("/clusters/south"),
        json!({
            "id": "south", "cluster_name": "south", "cluster_dns": "south.k8s.example.com", "environment": "dev", "node_count": 2,
            "platform_components": [{"id": "traefik", "oci_tag": "33.0.0"}], "namespaces": [{"id": "team-a"}],
        })
    );
    assert_eq!(world.document("/rolebindings/editors")["subjects"][0]["name"], "eve");
    snapshot!(text);
}

#[test]
fn a_document_is_made_from_a_file_or_from_stdin() {
    let world = World::new();
    world.desk.file("a.yaml", "kind: namespace\nid: from-yaml\nlabels: {team: '007'}\n");
    world.desk.file("b.json", r#"{"labels": {"team": "b"}}"#);
    world.frs("create namespace from-yaml --file a.yaml --yes").expect(0);
    world.frs("create namespace from-json --file b.json --set labels.more=1 --yes").expect(0);
    world
        .desk
        .piped("create namespace from-stdin --file - --yes", "annotations: {example.com/a: b}\n")
        .expect(0);
    assert_eq!(world.document("/namespaces/from-yaml")["labels"], json!({"team": "007"}));
    assert_eq!(world.document("/namespaces/from-json")["labels"], json!({"team": "b", "more": "1"}));
    assert_eq!(world.document("/namespaces/from-stdin")["annotations"], json!({"example.com/a": "b"}));
}

#[test]
fn a_cluster_can_be_made_like_another() {
    let world = World::new();
    let text = world.transcript(&[
        "create cluster south --like east --environment uat --set labels.region=sa --yes",
        "create cluster far --like west --dns far.example.org --yes -o name",
    ]);
    let (mut south, east) = (world.document("/clusters/south"), world.document("/clusters/east"));
    assert_eq!(south["cluster_dns"], "south.k8s.example.com");
    assert_eq!(south["labels"], json!({"region": "sa", "tier": "gold"}));
    for field in ["id", "cluster_name", "cluster_dns", "environment", "labels"] {
        south[field] = east[field].clone();
    }
    assert_eq!(south, east, "the rest is the same");
    assert_eq!(world.document("/clusters/far")["cluster_dns"], "far.example.org");
    snapshot!(text);
}

#[test]
fn a_dns_name_of_a_decommissioned_cluster_is_taken_on_purpose_only() {
    let world = World::new();
    world.frs("decommission west --yes").expect(0);
    let again = "create cluster west --dns west.k8s.example.com --environment dev --yes";
    snapshot!(world.transcript(&[again, &format!("{again} --replace-decommissioned"), "get decommissioned"]));
}

#[test]
fn what_cannot_be_made_is_refused() {
    let world = World::new();
    world.desk.file("other.yaml", "kind: namespace\nid: somebody\n");
    world.desk.file("cluster.yaml", "kind: cluster\nid: x\n");
    world.desk.file("broken.yaml", "a: [\n");
    world.desk.file("two.yaml", "id: x\n---\nid: y\n");
    world.desk.file("list.yaml", "- a\n");
    snapshot!(world.harmless(&[
        "create namespace team-a --yes",
        "create namespace kube-system --yes",
        "create namespace Wrong_Name --yes",
        "create namespace x --set colour=red --yes",
        "create namespace x --set labels --yes",
        "create namespace x --set labels..a=b --yes",
        "create namespace x --like east --yes",
        "create namespace x --file other.yaml --yes",
        "create namespace x --file cluster.yaml --yes",
        "create namespace x --file broken.yaml --yes",
        "create namespace x --file two.yaml --yes",
        "create namespace x --file list.yaml --yes",
        "create namespace x --file nowhere.yaml --yes",
        "create cluster x --yes",
        "create cluster x --environment prod --dns x.example.com --set node_count=many --yes",
        "create cluster x --environment prod --dns x.example.com --set protected=maybe --yes",
        "create cluster x --environment prod --dns x.example.com --set namespaces.nobody={} --yes",
        "create cluster x --environment prod --dns x.example.com --set namespaces.team-a=yes --yes",
        "create cluster x --environment prod --dns east.k8s.example.com --yes",
        "create cluster x --like nobody --yes",
        "create pod x --yes",
    ]));
    world.frs("create cluster far --like west --dns elsewhere.example.org --yes").expect(0);
    snapshot!("like_needs_a_name", world.harmless(&["create cluster x --like far --yes"]));
}
