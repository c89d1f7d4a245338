//! The audit log.

use serde_json::{Value, json};

use crate::api::Api;

#[tokio::test]
async fn every_change_is_recorded_with_who_when_why_and_what() {
    let api = Api::crud().await;
    let headers = [("x-change-reason", "CVE-2026-1"), ("x-request-id", "pipeline-42")];
    let answer = api
        .call("PATCH", "/platform_components/podinfo", &headers, json!({"oci_tag": "6.7.1"}))
        .await
        .expect(200);
    assert_eq!(answer.header("x-request-id"), "pipeline-42");
    let revisions = api.get("/revisions").await.expect(200).json();
    let newest = &revisions[0];
    assert_eq!(
        (&newest["revision"], &newest["actor"], &newest["reason"], &newest["request_id"], &newest["changed"]),
        (&json!(2), &json!("file:admin"), &json!("CVE-2026-1"), &json!("pipeline-42"), &json!(1))
    );
    assert_eq!(newest["documents"], json!([{"kind": "platform_components", "id": "podinfo"}]));
    let time = newest["time"].as_str().expect("a time");
    assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
    assert_eq!(revisions[1]["actor"], "flux-resourceset");

    let detail = api.get("/revisions/2").await.expect(200).json();
    let change = &detail["changes"][0];
    assert_eq!(
        (&change["before"]["oci_tag"], &change["after"]["oci_tag"]),
        (&json!("6.7.0"), &json!("6.7.1"))
    );
    let first = api.get("/revisions/1?limit=2").await.expect(200);
    assert_eq!(first.json()["changes"].as_array().map(Vec::len), Some(2));
    assert_eq!(first.json()["changes"][0]["before"], Value::Null);
    assert_eq!(first.header("link"), "</revisions/1?limit=2&offset=2>; rel=\"next\"");
    for n in ["0", "3", "-1", "x", "99999999999999999999"] {
        assert_eq!(api.get(&format!("/revisions/{n}")).await.problem(), (404, "missing".to_owned()), "{n}");
    }
}

#[tokio::test]
async fn a_document_has_a_history_even_when_it_is_gone() {
    let api = Api::crud().await;
    api.call("POST", "/namespaces", &[], json!({"id": "short"})).await.expect(201);
    api.call("PATCH", "/namespaces/short", &[], json!({"labels": {"a": "b"}})).await.expect(200);
    api.call("DELETE", "/namespaces/short", &[], None).await.expect(204);
    let history = api.get("/namespaces/short/history").await.expect(200).json();
    let told: Vec<_> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|v| (v["revision"].clone(), v["before"].clone(), v["after"].clone()))
        .collect();
    let labelled = json!({"id": "short", "labels": {"a": "b"}});
    assert_eq!(
        told,
        [
            (json!(4), labelled.clone(), Value::Null),
            (json!(3), json!({"id": "short"}), labelled),
            (json!(2), Value::Null, json!({"id": "short"})),
        ]
    );
    let page = api.get("/namespaces/short/history?limit=1").await.expect(200);
    assert_eq!(page.header("link"), "</namespaces/short/history?limit=1&before=4>; rel=\"next\"");
    assert_eq!(api.get("/namespaces/never/history").await.problem(), (404, "missing".to_owned()));
}

#[tokio::test]
async fn the_log_is_filtered_by_actor_document_and_time() {
    let api = Api::crud().await;
    api.call("POST", "/namespaces", &[], json!({"id": "a1"})).await.expect(201);
    api.call("POST", "/namespaces", &[], json!({"id": "a2"})).await.expect(201);
    let revisions = async |query: &str| {
        let list = api.get(&format!("/revisions?{query}")).await.expect(200).json();
        list.as_array()
            .expect("a list")
            .iter()
            .map(|r| r["revision"].as_u64().expect("a number"))
            .collect::<Vec<_>>()
    };
    assert_eq!(revisions("actor=file:admin").await, [3, 2]);
    assert_eq!(revisions("actor=flux-resourceset").await, [1]);
    assert_eq!(revisions("kind=namespaces&id=a1").await, [2]);
    assert_eq!(revisions("kind=kinds").await, [1]);
    assert_eq!(revisions("until=2020-01-01T00:00:00Z").await, Vec::<u64>::new());
    assert_eq!(revisions("since=2020-01-01T00:00:00%2B02:00&before=3").await, [2, 1]);
    let paged = api.get("/revisions?limit=2").await.expect(200);
    assert_eq!(paged.header("link"), "</revisions?limit=2&before=2>; rel=\"next\"");
    assert_eq!(api.get("/revisions?since=yesterday").await.problem(), (400, "invalid".to_owned()));
}
