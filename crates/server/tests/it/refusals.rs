//! Bad requests: each gets a problem that says what is wrong, and changes nothing.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::api::{ADMIN, Api};

async fn raw(api: &Api, method: &str, path: &str, kind: &str, body: impl Into<Body>) -> crate::api::Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {ADMIN}"))
        .header("content-type", kind);
    api.send(request.body(body.into()).expect("a request")).await
}

#[tokio::test]
async fn what_the_framework_refuses_is_a_problem_like_any_other() {
    let api = Api::crud().await;
    let json_type = "application/json";
    for (method, path, kind, body, expected) in [
        ("POST", "/namespaces", json_type, "{\"id\":", (400, "invalid")),
        ("POST", "/namespaces", json_type, "", (400, "invalid")),
        ("POST", "/namespaces", json_type, "{\"id\":\"a\",\"id\":\"b\"}", (400, "invalid")),
        ("POST", "/namespaces", "text/plain", "{}", (415, "invalid")),
        ("PATCH", "/namespaces/team-a", "application/yaml", "{}", (415, "invalid")),
        ("PUT", "/namespaces/team-a", "application/merge-patch+json", "{}", (415, "invalid")),
        ("POST", "/namespaces", json_type, "[]", (422, "invalid")),
        ("DELETE", "/namespaces/team-b", json_type, "{}", (400, "invalid")),
        ("GET", "/no/such/path/here/at/all", json_type, "", (404, "missing")),
        ("PUT", "/namespaces", json_type, "{}", (405, "invalid")),
        ("BREW", "/namespaces", json_type, "", (405, "invalid")),
        ("POST", "/health", json_type, "", (405, "invalid")),
        ("GET", "/namespaces/%FF", json_type, "", (400, "invalid")),
        ("GET", "/namespaces/team-a?at=1", json_type, "", (400, "invalid")),
    ] {
        let answer = raw(&api, method, path, kind, body).await;
        assert_eq!(answer.problem(), (expected.0, expected.1.to_owned()), "{method} {path} {body}");
    }
    let bad_utf8 = raw(&api, "POST", "/namespaces", json_type, vec![b'"', 0xff, b'"']).await;
    assert_eq!(bad_utf8.problem(), (400, "invalid".to_owned()));
    assert_eq!(raw(&api, "PUT", "/namespaces", json_type, "").await.header("allow"), "GET,HEAD,POST");
    assert_eq!(api.get("/revisions").await.json().as_array().map(Vec::len), Some(1), "nothing has changed");
}

#[tokio::test]
async fn a_body_of_eight_mebibytes_is_read_and_one_byte_more_is_not() {
    let api = Api::crud().await;
    let of = |size: usize| vec![b' '; size];
    let most = 8 * 1024 * 1024;
    assert_eq!(
        raw(&api, "POST", "/batch", "application/json", of(most)).await.problem(),
        (400, "invalid".to_owned())
    );
    assert_eq!(
        raw(&api, "POST", "/batch", "application/json", of(most + 1)).await.problem(),
        (413, "too-large".to_owned())
    );
}

#[tokio::test]
async fn all_violations_are_told_with_their_pointers() {
    let api = Api::crud().await;
    let body = json!({"id": "three", "cluster_name": "three", "cluster_dns": "UPPER.example.com", "environment": "production",
                      "namespaces": [{"id": "nowhere"}], "colour": "red"});
    let answer = api.call("POST", "/clusters", &[], body).await;
    assert_eq!(answer.problem(), (422, "invalid".to_owned()));
    let problem = answer.json();
    let pointers: Vec<&Value> =
        problem["violations"].as_array().expect("a list").iter().map(|v| &v["pointer"]).collect();
    for pointer in ["/cluster_dns", "/environment", "/colour"] {
        assert!(pointers.contains(&&json!(pointer)), "{pointer} is not in {problem}");
    }
    assert!(
        problem["violations"][0]["operation"] == 0
            && problem["violations"][0]["document"] == "clusters/three"
    );
}

#[tokio::test]
async fn headers_that_cannot_be_honoured_are_not_ignored() {
    let api = Api::crud().await;
    let put = async |name: &str, value: &str| {
        api.call("PUT", "/namespaces/team-a", &[(name, value)], json!({"id": "team-a", "labels": {"x": "y"}}))
            .await
    };
    for (name, value) in [
        ("idempotency-key", "abc"),
        ("if-none-match", "*"),
        ("if-match", "1"),
        ("if-match", "\"one\""),
        ("if-match", "\"1\", \"2\""),
        ("x-confirm", "yes"),
        ("x-change-reason", &"x".repeat(1_025)),
        ("x-plan-revision", ""),
        ("x-plan-revision", "one"),
        ("x-plan-revision", "-1"),
        ("x-plan-revision", "01"),
        ("x-plan-revision", "\"1\""),
    ] {
        assert_eq!(put(name, value).await.problem(), (400, "invalid".to_owned()), "{name}: {value}");
    }
    assert_eq!(put("if-match", "\"7\"").await.problem(), (412, "stale".to_owned()));
    let created = api.call("POST", "/namespaces", &[("if-match", "\"1\"")], json!({"id": "new"})).await;
    assert_eq!(created.problem(), (400, "invalid".to_owned()));
    put("if-match", "W/\"1\"").await.expect(200);
    put("if-match", "*").await.expect(200);
}

#[tokio::test]
async fn a_request_without_a_usable_id_gets_one() {
    let api = Api::crud().await;
    for given in ["with space", &"x".repeat(129)] {
        let id = api
            .call("GET", "/health", &[("x-request-id", given)], None)
            .await
            .header("x-request-id")
            .to_owned();
        assert_eq!(id.len(), 36, "{id}");
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_is_a_500_without_its_message_and_the_next_request_is_answered() {
    let metrics = server::metrics::Metrics::new();
    let routes = axum::Router::new()
        .route("/boom", axum::routing::get(async || if true { panic!("a secret detail") } else { "never" }))
        .route("/fine", axum::routing::get(async || "fine"));
    let routes = server::routes::Routes::from(routes);
    let answer = async |path: &str| {
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        let (response, _) = server::requests::answer(&routes, &metrics, request).await;
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        (status, String::from_utf8_lossy(&bytes).into_owned())
    };
    let (status, body) = answer("/boom").await;
    assert!(
        status == 500 && body.contains("urn:flux-resourceset:internal") && !body.contains("secret"),
        "{body}"
    );
    assert_eq!(answer("/fine").await, (200, "fine".to_owned()));
}

#[tokio::test]
async fn a_reason_is_one_line_of_any_language_without_anything_that_a_terminal_obeys() {
    let api = Api::crud().await;
    let patch = async |reason: &str, region: &str| {
        let body = json!({"labels": {"region": region}});
        api.call("PATCH", "/clusters/one", &[("x-change-reason", reason)], body).await
    };
    patch("größer für alle", "us").await.expect(200);
    assert_eq!(api.get("/revisions?limit=1").await.json()[0]["reason"], "größer für alle");
    let refused = patch("harmless\u{9b}2J", "ap").await;
    assert_eq!(refused.problem(), (400, "invalid".to_owned()));
    assert_eq!(refused.json()["detail"], "`X-Change-Reason` must be one line without control characters");
}
