//! Every route × every credential. A route without a row here fails the test.

use std::collections::BTreeSet;

use axum::body::Body;
use http::Request;
use serde_json::json;
use server::config::Mode;
use server::identity::Access;

use crate::api::{ADMIN, Api, READER, small_fleet};

/// The route, what it gives, an example of its path, and the answers to: no token, a wrong one, the reader's, the admin's.
type Row = (&'static str, &'static str, Access, &'static str, [u16; 4]);

const SERVICE: [Row; 4] = [
    ("GET", "/health", Access::Open, "/health", [200; 4]),
    ("GET", "/ready", Access::Open, "/ready", [200; 4]),
    ("GET", "/metrics", Access::Open, "/metrics", [200; 4]),
    ("GET", "/whoami", Access::Whoami, "/whoami", [401, 401, 200, 200]),
];

const FLUX: [Row; 2] = [
    ("GET", "/api/v2/flux/clusters", Access::ClusterList, "/api/v2/flux/clusters", [401, 401, 200, 200]),
    (
        "GET",
        "/api/v2/flux/clusters/{dns}/{kind}",
        Access::Inputs,
        "/api/v2/flux/clusters/one.example.com/namespaces",
        [401, 401, 200, 200],
    ),
];

/// Without a body: whoever gets as far as that is told what is wrong with it.
const CRUD: [Row; 19] = [
    ("GET", "/{kind}", Access::Read, "/clusters", [401, 401, 403, 200]),
    ("POST", "/{kind}", Access::Write, "/clusters", [401, 401, 403, 415]),
    ("GET", "/{kind}/{id}", Access::Read, "/clusters/one", [401, 401, 403, 200]),
    ("PUT", "/{kind}/{id}", Access::Write, "/clusters/one", [401, 401, 403, 415]),
    ("PATCH", "/{kind}/{id}", Access::Write, "/clusters/one", [401, 401, 403, 415]),
    ("DELETE", "/{kind}/{id}", Access::Write, "/platform_components/unused", [401, 401, 403, 204]),
    ("GET", "/{kind}/{id}/users", Access::Read, "/namespaces/team-a/users", [401, 401, 403, 200]),
    ("GET", "/{kind}/{id}/history", Access::Read, "/clusters/one/history", [401, 401, 403, 200]),
    (
        "GET",
        "/clusters/{id}/inputs/{kind}",
        Access::Read,
        "/clusters/one/inputs/namespaces",
        [401, 401, 403, 200],
    ),
    (
        "PUT",
        "/clusters/{id}/{kind}/{reference}",
        Access::Write,
        "/clusters/two/namespaces/team-b",
        [401, 401, 403, 200],
    ),
    (
        "PATCH",
        "/clusters/{id}/{kind}/{reference}",
        Access::Write,
        "/clusters/two/namespaces/team-b",
        [401, 401, 403, 415],
    ),
    (
        "DELETE",
        "/clusters/{id}/{kind}/{reference}",
        Access::Write,
        "/clusters/two/namespaces/team-b",
        [401, 401, 403, 204],
    ),
    ("POST", "/batch", Access::Write, "/batch", [401, 401, 403, 415]),
    ("GET", "/revisions", Access::Read, "/revisions", [401, 401, 403, 200]),
    ("GET", "/revisions/{n}", Access::Read, "/revisions/1", [401, 401, 403, 200]),
    ("GET", "/decommissioned", Access::Read, "/decommissioned", [401, 401, 403, 200]),
    (
        "DELETE",
        "/decommissioned/{dns}",
        Access::Write,
        "/decommissioned/gone.example.com",
        [401, 401, 403, 404],
    ),
    ("GET", "/kinds", Access::Read, "/kinds", [401, 401, 403, 200]),
    ("GET", "/kinds/{name}", Access::Read, "/kinds/clusters", [401, 401, 403, 200]),
];

async fn answers(api: &Api, method: &str, path: &str) -> [u16; 4] {
    let mut answers = [0; 4];
    for (answer, token) in answers.iter_mut().zip([None, Some("wrong-token"), Some(READER), Some(ADMIN)]) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        *answer = api.send(request.body(Body::empty()).expect("a request")).await.status.as_u16();
    }
    answers
}

async fn check(mode: Mode, rows: &[Row]) {
    let api = Api::with(mode, &small_fleet()).await;
    let mut listed: Vec<_> = api
        .routes
        .iter()
        .map(|route| (route.method.to_string(), route.path.to_owned(), route.access))
        .collect();
    let mut expected: Vec<_> = rows
        .iter()
        .map(|(method, path, access, ..)| ((*method).to_owned(), (*path).to_owned(), *access))
        .collect();
    listed.sort_by_key(|(method, path, _)| (path.clone(), method.clone()));
    expected.sort_by_key(|(method, path, _)| (path.clone(), method.clone()));
    assert_eq!(listed, expected, "every route has a row here, and every row a route");
    for (method, _, _, example, expected) in rows {
        assert_eq!(answers(&api, method, example).await, *expected, "{method} {example}");
    }
}

#[tokio::test]
async fn every_route_of_crud_mode_lets_in_whom_it_should() {
    check(Mode::Crud, &[&SERVICE[..], &FLUX, &CRUD].concat()).await;
}

#[tokio::test]
async fn every_route_of_read_only_mode_lets_in_whom_it_should() {
    check(Mode::ReadOnly, &[&SERVICE[..], &FLUX].concat()).await;
}

#[tokio::test]
async fn a_path_that_the_mode_does_not_have_is_unknown_whatever_the_credential() {
    let api = Api::with(Mode::ReadOnly, &small_fleet()).await;
    for (method, _, _, example, _) in CRUD {
        assert_eq!(answers(&api, method, example).await, [404; 4], "{method} {example}");
    }
}

#[tokio::test]
async fn whoever_has_a_credential_is_told_who_they_are_in_both_modes() {
    for mode in [Mode::Crud, Mode::ReadOnly] {
        let api = Api::with(mode, &small_fleet()).await;
        for (token, actor) in [(READER, "fleet-reader"), (ADMIN, "admin")] {
            let request =
                Request::builder().uri("/whoami").header("authorization", format!("Bearer {token}"));
            let answer = api.send(request.body(Body::empty()).expect("a request")).await.expect(200);
            assert_eq!(answer.json(), json!({"actor": actor, "role": actor}));
            assert_eq!(answer.header("cache-control"), "private, no-cache");
        }
    }
}

#[tokio::test]
async fn no_kind_can_have_the_name_of_a_fixed_route() {
    let api = Api::crud().await;
    let fixed: BTreeSet<&str> = api
        .routes
        .iter()
        .filter_map(|route| route.path.split('/').nth(1))
        .filter(|name| !name.starts_with('{'))
        .collect();
    assert!(fixed.contains("whoami"), "{fixed:?}");
    // That one is a kind itself.
    for name in fixed.into_iter().filter(|name| *name != "clusters") {
        let file = json!({"kind": name, "apiVersion": "v1", "schema": {"key": {}, "items": {
            "type": "object", "required": ["id"], "properties": {"id": {"type": "string", "format": "dns-label"}}}}});
        let bad = fleet::Kind::parse(&file.to_string()).expect_err(name);
        assert!(bad.problems[0].starts_with(&format!("`{name}` is taken by the service itself")), "{bad:?}");
    }
}

#[tokio::test]
async fn an_unknown_query_parameter_is_refused_by_every_route_but_the_polls() {
    let api = Api::crud().await;
    for (method, path, access, example, _) in [&SERVICE[..], &FLUX, &CRUD].concat() {
        let request = Request::builder()
            .method(method)
            .uri(format!("{example}?dryrun=true"))
            .header("authorization", format!("Bearer {ADMIN}"))
            .header("content-type", "application/json");
        let body = if method == "POST" || method == "PUT" || method == "PATCH" { "{}" } else { "" };
        let answer = api.send(request.body(Body::from(body)).expect("a request")).await;
        let expected = if access == Access::Inputs { 200 } else { 400 };
        assert_eq!(answer.status.as_u16(), expected, "{method} {path}: {}", answer.text());
    }
    assert_eq!(api.get("/revisions").await.json().as_array().map(Vec::len), Some(1), "nothing was written");
}

#[tokio::test]
async fn the_password_of_basic_authentication_is_a_token() {
    let api = Api::with(Mode::ReadOnly, &small_fleet()).await;
    let basic = data_encoding::BASE64.encode(format!("flux:{READER}").as_bytes());
    let request = Request::builder()
        .uri("/api/v2/flux/clusters/one.example.com/namespaces")
        .header("authorization", format!("Basic {basic}"));
    assert_eq!(api.send(request.body(Body::empty()).expect("a request")).await.status, 200);
}

#[tokio::test]
async fn who_is_not_let_in_is_told_how_and_nothing_else() {
    let api = Api::crud().await;
    let request = Request::builder().uri("/clusters/one").body(Body::empty()).expect("a request");
    let answer = api.send(request).await;
    assert_eq!(answer.problem(), (401, "unauthorised".to_owned()));
    assert!(answer.header("www-authenticate").starts_with("Bearer"));
    let request = Request::builder()
        .uri("/clusters/one")
        .header("authorization", format!("Bearer {READER}"))
        .body(Body::empty())
        .expect("a request");
    let answer = api.send(request).await;
    assert_eq!(answer.problem(), (403, "forbidden".to_owned()));
    assert!(!answer.text().contains("one.example.com") && !answer.text().contains(READER));
}
