//! Batches, and many writers at once.

use std::sync::Arc;

use serde_json::json;

use crate::api::Api;

#[tokio::test]
async fn a_batch_is_one_revision_or_nothing() {
    let api = Api::crud().await;
    let good = json!({"operations": [
        {"op": "create", "kind": "namespaces", "body": {"id": "team-c"}},
        {"op": "assign", "kind": "namespaces", "id": "team-c", "selector": "environment in (dev,prod)"},
        {"op": "patch", "kind": "clusters", "id": "one", "body": {"labels": {"region": "us"}}, "revision": 1},
        {"op": "patch_reference", "kind": "platform_components", "id": "podinfo", "cluster": "two", "body": {"oci_tag": "6.7.9"}},
        {"op": "unassign", "kind": "rolebindings", "id": "viewers", "cluster": "one"},
        {"op": "delete", "kind": "platform_components", "id": "unused"},
    ]});
    let answer = api.call("POST", "/batch", &[], good).await.expect(200);
    assert_eq!(answer.header("x-revision"), "2");
    assert_eq!(
        answer.json(),
        json!({"revision": 2, "changed": 4, "documents": [
            {"kind": "clusters", "id": "one", "deleted": false},
            {"kind": "clusters", "id": "two", "deleted": false},
            {"kind": "namespaces", "id": "team-c", "deleted": false},
            {"kind": "platform_components", "id": "unused", "deleted": true},
        ]})
    );
    let half = json!({"operations": [
        {"op": "create", "kind": "namespaces", "body": {"id": "team-d"}},
        {"op": "assign", "kind": "namespaces", "id": "nowhere", "cluster": "one"},
    ]});
    let refused = api.call("POST", "/batch", &[], half).await;
    assert_eq!(refused.problem(), (422, "invalid".to_owned()));
    assert_eq!(refused.json()["violations"][0]["operation"], 1);
    assert_eq!(api.get("/namespaces/team-d").await.status, 404);
}

#[tokio::test]
async fn a_create_in_a_batch_may_say_its_id_beside_the_body_but_no_other() {
    let api = Api::crud().await;
    let create = |id: &str| json!({"operations": [{"op": "create", "kind": "namespaces", "id": id, "body": {"id": "team-c"}}]});
    let refused = api.call("POST", "/batch", &[], create("team-d")).await;
    assert_eq!(refused.problem(), (422, "invalid".to_owned()));
    let message = "`id` is `team-d`, and `/body/id` is not; leave `id` out, or say the same";
    assert_eq!(refused.json()["violations"][0]["message"], message);
    api.call("POST", "/batch", &[], create("team-c")).await.expect(200);
    assert_eq!(api.get("/namespaces/team-c").await.status, 200);
}

#[tokio::test]
async fn everything_that_cannot_be_read_in_a_batch_is_told_at_once() {
    let api = Api::crud().await;
    let body = json!({"operations": [
        {"op": "explode", "kind": "clusters"},
        {"op": "delete", "kind": "clusters"},
        {"op": "delete", "kind": "clusters", "id": "one", "selector": "id"},
        {"op": "patch", "kind": "clusters", "selector": "region=", "body": {}, "revision": 3},
        {"op": "create", "kind": "namespaces", "body": {"id": "x"}, "extra": 1},
        {"op": "patch", "kind": "clusters", "selector": "region in (", "body": {}},
    ]});
    let refused = api.call("POST", "/batch", &[], body).await;
    assert_eq!(refused.problem(), (422, "invalid".to_owned()));
    let problem = refused.json();
    let operations: Vec<_> =
        problem["violations"].as_array().expect("a list").iter().map(|v| &v["operation"]).collect();
    assert_eq!(operations, [0, 1, 2, 3, 4, 5]);
    for (body, status) in [
        (json!({"operations": []}), 400),
        (json!({"operations": {}}), 400),
        (json!([]), 400),
        (json!({"operations": [{"op": "forget", "dns": "x"}], "dry_run": true}), 400),
    ] {
        assert_eq!(api.call("POST", "/batch", &[], body.clone()).await.problem().0, status, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_writers_of_one_document_lose_nothing() {
    let api = Arc::new(Api::crud().await);
    let writers: Vec<_> = (0..64)
        .map(|writer| {
            let api = api.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    let patch = json!({"patches": {"podinfo": {format!("writer{writer}"): n.to_string()}}});
                    api.call("PATCH", "/clusters/one", &[], patch).await.expect(200);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("it wrote");
    }
    let cluster = api.get("/clusters/one").await.json();
    let patches = cluster["patches"]["podinfo"].as_object().expect("patches");
    assert_eq!(patches.values().filter(|value| *value == "99").count(), 64, "{patches:?}");
    assert_eq!(
        api.get("/revisions?limit=1").await.json()[0]["revision"],
        6_401,
        "each of them is a revision"
    );
}

#[tokio::test]
async fn a_warning_of_the_core_reaches_the_client() {
    let api = Api::crud().await;
    let answer = api.call("DELETE", "/clusters/one/platform_components/podinfo", &[], None).await.expect(204);
    assert!(answer.header("warning").starts_with("299 - \""), "{:?}", answer.headers);
}
