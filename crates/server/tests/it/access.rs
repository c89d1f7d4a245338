//! Every route × every credential. A route without a row here fails the test.

use axum::body::Body;
use http::Request;
use ledger::Memory;
use serde_json::json;
use server::config::Mode;
use server::identity::Action;
use server::routes::{self, QueryOf, RequestBody, RequestHeader};

use crate::api::{ADMIN, Api, POLLER, empty_replica, small_fleet};

/// The route, what one must be allowed to do, an example of its path, and the answers to: no token, a wrong one, the poller's, the
/// admin's.
type Row = (&'static str, &'static str, Option<Action>, &'static str, [u16; 4]);

const SERVICE: [Row; 4] = [
    ("GET", "/health", None, "/health", [200; 4]),
    ("GET", "/ready", None, "/ready", [200; 4]),
    ("GET", "/metrics", None, "/metrics", [200; 4]),
    ("GET", "/whoami", Some(Action::Whoami), "/whoami", [401, 401, 200, 200]),
];

const FLUX: [Row; 2] = [
    (
        "GET",
        "/api/v2/flux/clusters",
        Some(Action::ListClusters),
        "/api/v2/flux/clusters",
        [401, 401, 200, 200],
    ),
    (
        "GET",
        "/api/v2/flux/clusters/{dns}/{kind}",
        Some(Action::Poll),
        "/api/v2/flux/clusters/one.example.com/namespaces",
        [401, 401, 200, 200],
    ),
];

/// Without a body: whoever gets as far as that is told what is wrong with it.
const CRUD: [Row; 22] = [
    ("GET", "/{kind}", Some(Action::Read), "/clusters", [401, 401, 403, 200]),
    ("POST", "/{kind}", Some(Action::Write), "/clusters", [401, 401, 403, 415]),
    ("GET", "/{kind}/{id}", Some(Action::Read), "/clusters/one", [401, 401, 403, 200]),
    ("PUT", "/{kind}/{id}", Some(Action::Write), "/clusters/one", [401, 401, 403, 415]),
    ("PATCH", "/{kind}/{id}", Some(Action::Write), "/clusters/one", [401, 401, 403, 415]),
    ("DELETE", "/{kind}/{id}", Some(Action::Write), "/platform_components/unused", [401, 401, 403, 204]),
    ("GET", "/{kind}/{id}/users", Some(Action::Read), "/namespaces/team-a/users", [401, 401, 403, 200]),
    ("GET", "/{kind}/{id}/history", Some(Action::Read), "/clusters/one/history", [401, 401, 403, 200]),
    (
        "GET",
        "/clusters/{id}/inputs/{kind}",
        Some(Action::Read),
        "/clusters/one/inputs/namespaces",
        [401, 401, 403, 200],
    ),
    (
        "PUT",
        "/clusters/{id}/{kind}/{reference}",
        Some(Action::Write),
        "/clusters/two/namespaces/team-b",
        [401, 401, 403, 200],
    ),
    (
        "PATCH",
        "/clusters/{id}/{kind}/{reference}",
        Some(Action::Write),
        "/clusters/two/namespaces/team-b",
        [401, 401, 403, 415],
    ),
    (
        "DELETE",
        "/clusters/{id}/{kind}/{reference}",
        Some(Action::Write),
        "/clusters/two/namespaces/team-b",
        [401, 401, 403, 204],
    ),
    ("POST", "/batch", Some(Action::Write), "/batch", [401, 401, 403, 415]),
    ("GET", "/revisions", Some(Action::Read), "/revisions", [401, 401, 403, 200]),
    ("GET", "/revisions/{n}", Some(Action::Read), "/revisions/1", [401, 401, 403, 200]),
    ("GET", "/decommissioned", Some(Action::Read), "/decommissioned", [401, 401, 403, 200]),
    (
        "DELETE",
        "/decommissioned/{dns}",
        Some(Action::Write),
        "/decommissioned/gone.example.com",
        [401, 401, 403, 404],
    ),
    ("GET", "/kinds", Some(Action::Read), "/kinds", [401, 401, 403, 200]),
    ("GET", "/kinds/{name}", Some(Action::Read), "/kinds/clusters", [401, 401, 403, 200]),
    ("GET", "/guard", Some(Action::Read), "/guard", [401, 401, 403, 200]),
    ("POST", "/guard/allowances", Some(Action::Allow), "/guard/allowances", [401, 401, 403, 415]),
    (
        "DELETE",
        "/guard/allowances/{id}",
        Some(Action::Allow),
        "/guard/allowances/nobody",
        [401, 401, 403, 404],
    ),
];

async fn answers(api: &Api, method: &str, path: &str) -> [u16; 4] {
    let mut answers = [0; 4];
    for (answer, token) in answers.iter_mut().zip([None, Some("wrong-token"), Some(POLLER), Some(ADMIN)]) {
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
        .map(|route| (route.method.method().to_string(), route.path.to_owned(), route.action))
        .collect();
    let mut expected: Vec<_> = rows
        .iter()
        .map(|(method, path, action, ..)| ((*method).to_owned(), (*path).to_owned(), *action))
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
        for (token, role) in [(POLLER, "poller"), (ADMIN, "admin")] {
            let request =
                Request::builder().uri("/whoami").header("authorization", format!("Bearer {token}"));
            let answer = api.send(request.body(Body::empty()).expect("a request")).await.expect(200);
            assert_eq!(answer.json(), json!({"actor": format!("file:{role}"), "role": role}));
            assert_eq!(answer.header("cache-control"), "private, no-cache");
        }
    }
}

fn kind_file(name: &str, filter: Option<&str>) -> String {
    let mut properties = json!({"id": {"type": "string", "format": "dns-label"}});
    let filter = filter.inspect(|filter| properties[*filter] = json!({"type": "string"}));
    let filters: Vec<_> = filter.iter().map(|filter| json!({"name": filter})).collect();
    let items = json!({"type": "object", "required": ["id"], "properties": properties});
    json!({"kind": name, "apiVersion": "v1", "schema": {"key": {}, "query_params": filters, "items": items}})
        .to_string()
}

#[test]
fn no_kind_can_have_the_name_of_a_route_of_today_or_later() {
    let reserved = routes::reserved();
    for name in [
        "api",
        "batch",
        "changes",
        "credentials",
        "decommissioned",
        "diff",
        "docs",
        "explain",
        "feed",
        "freezes",
        "guard",
        "health",
        "history",
        "inputs",
        "kinds",
        "metrics",
        "openapi",
        "overrides",
        "plans",
        "profiles",
        "ready",
        "revisions",
        "rollouts",
        "static",
        "status",
        "tokens",
        "ui",
        "users",
        "versions",
        "watch",
        "webhooks",
        "whoami",
    ] {
        let bad = fleet::Kind::parse(&kind_file(name, None), &reserved).expect_err(name);
        assert_eq!(bad.problems, [format!("`{name}` is taken by the service itself")]);
    }
    assert!(reserved.kinds.contains(&"openapi.json") && reserved.kinds.contains(&"openapi.yaml"));
    let bad = fleet::Kind::parse(&kind_file("events", None), &reserved).expect_err("beside the polls");
    assert_eq!(bad.problems, ["`events` is taken by the service itself, in the paths that clusters poll"]);
    assert_eq!(reserved.cluster_paths, ["events", "kinds"]);
    assert!(fleet::Kind::parse(&kind_file("network_policies", None), &reserved).is_ok());
}

#[test]
fn no_filter_of_a_kind_can_have_the_name_of_a_parameter_that_the_route_has() {
    let reserved = routes::reserved();
    assert_eq!(
        reserved.query_parameters,
        ["after", "at", "dry_run", "limit", "offset", "replace_decommissioned", "revisions", "selector"]
    );
    for name in &reserved.query_parameters {
        let bad = fleet::Kind::parse(&kind_file("zones", Some(name)), &reserved).expect_err(name);
        assert_eq!(
            bad.problems,
            [format!("the query parameter `{name}` is one that every list has already")]
        );
    }
    assert!(fleet::Kind::parse(&kind_file("zones", Some("colour")), &reserved).is_ok());
}

#[test]
fn no_shipped_kind_has_a_reserved_name() {
    let reserved = routes::reserved();
    for kind in fleet::Kind::shipped() {
        let file = serde_json::to_string(kind.file()).expect("JSON");
        fleet::Kind::parse(&file, &reserved).unwrap_or_else(|bad| panic!("{bad}"));
    }
}

/// A description must be whole before anything can be made from it.
#[test]
fn every_route_is_described_in_full() {
    let all = routes::all();
    for header in RequestHeader::ALL {
        assert!(header.description().ends_with('.'), "{}", header.name());
    }
    for (n, route) in all.iter().enumerate() {
        let name = format!("{:?} {}", route.method, route.path);
        if let RequestBody::Json(what) | RequestBody::OptionalJson(what) | RequestBody::Patch(what) =
            route.body
        {
            assert!(!what.is_empty(), "{name}");
        }
        assert!(route.summary.ends_with('.') && !route.all_answers().is_empty(), "{name}");
        for parameter in route.target.parameters() {
            assert!(
                route.path.contains(&format!("{{{parameter}}}")),
                "{name} has no `{parameter}` for its target"
            );
        }
        for parameter in route.query.parameters() {
            assert!(parameter.description.ends_with('.'), "{name}: `{}`", parameter.name);
        }
        let dry_run = route.query.parameters().contains(&routes::DRY_RUN);
        assert_eq!(dry_run, route.is_write(), "{name}: exactly the writes have a dry run");
        assert!(route.is_write() || route.headers.is_empty(), "{name} reads, and has headers of a write");
        let same = all[..n].iter().any(|other| (other.method, other.path) == (route.method, route.path));
        assert!(!same, "{name} is there twice");
    }
}

#[tokio::test]
async fn an_unknown_query_parameter_is_refused_by_every_route_but_the_polls() {
    let api = Api::crud().await;
    for (method, path, action, example, _) in [&SERVICE[..], &FLUX, &CRUD].concat() {
        let request = Request::builder()
            .method(method)
            .uri(format!("{example}?dryrun=true"))
            .header("authorization", format!("Bearer {ADMIN}"))
            .header("content-type", "application/json");
        let body = if method == "POST" || method == "PUT" || method == "PATCH" { "{}" } else { "" };
        let answer = api.send(request.body(Body::from(body)).expect("a request")).await;
        let route = api.routes.iter().find(|route| route.method.method() == method && route.path == path);
        let is_ignored = route.expect("a route").query == QueryOf::Ignored;
        assert_eq!(is_ignored, action == Some(Action::Poll), "{method} {path}");
        let expected = if is_ignored { 200 } else { 400 };
        assert_eq!(answer.status.as_u16(), expected, "{method} {path}: {}", answer.text());
    }
    assert_eq!(api.get("/revisions").await.json().as_array().map(Vec::len), Some(1), "nothing was written");
}

/// An example of each write that would be made as it stands: method, path, body.
fn writes() -> [(&'static str, &'static str, Option<serde_json::Value>); 12] {
    let three = json!({"id": "three", "cluster_name": "three", "cluster_dns": "three.example.com", "environment": "dev"});
    let label = json!({"labels": {"a": "b"}});
    let team_c = json!({"operations": [{"op": "create", "kind": "namespaces", "body": {"id": "team-c"}}]});
    [
        ("POST", "/clusters", Some(three)),
        ("PUT", "/namespaces/team-b", Some(json!({"id": "team-b"}))),
        ("PATCH", "/namespaces/team-b", Some(label.clone())),
        ("DELETE", "/platform_components/unused", None),
        ("PUT", "/clusters/two/namespaces/team-b", None),
        ("PATCH", "/clusters/one/namespaces/team-b", Some(label)),
        ("DELETE", "/clusters/one/namespaces/team-b", None),
        ("POST", "/batch", Some(team_c)),
        ("DELETE", "/clusters/two", None),
        ("DELETE", "/decommissioned/two.example.com", None),
        ("POST", "/guard/allowances", Some(json!({"for": "file:alice", "deletions": 1, "minutes": 1}))),
        ("DELETE", "/guard/allowances/THE-ONE", None),
    ]
}

/// Which of the routes a path belongs to: the one with the fewest parameters.
fn route_of(api: &Api, method: &str, path: &str) -> &'static routes::Route {
    let fits = |template: &str| {
        let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        template.len() == path.len() && template.iter().zip(&path).all(|(t, p)| t.starts_with('{') || t == p)
    };
    let mut routes: Vec<_> =
        api.routes.iter().filter(|r| r.method.method() == method && fits(r.path)).collect();
    routes.sort_by_key(|route| route.path.matches('{').count());
    routes.first().copied().expect("a route")
}

#[tokio::test]
async fn a_write_honours_the_headers_that_it_describes_and_refuses_the_others() {
    let api = Api::crud().await;
    let mut seen = Vec::new();
    for (method, path, body) in writes() {
        // Only the service knows what it calls an allowance.
        let guard = api.get("/guard").await.json();
        let path = &*path.replace("THE-ONE", guard["allowances"][0]["id"].as_str().unwrap_or_default());
        let route = route_of(&api, method, path);
        seen.push(route);
        for header in RequestHeader::ALL {
            let value = match header {
                RequestHeader::IfMatch => "\"999\"",
                RequestHeader::PlanRevision => "999",
                RequestHeader::Confirm | RequestHeader::IfNoneMatch | RequestHeader::IdempotencyKey => "x",
                RequestHeader::ChangeReason => "\u{9b}",
            };
            let answer = api.call(method, path, &[(header.name(), value)], body.clone()).await;
            let is_honoured = route.headers.contains(&header);
            let is_stale = matches!(header, RequestHeader::IfMatch | RequestHeader::PlanRevision);
            let expected = if is_honoured && is_stale { (412, "stale") } else { (400, "invalid") };
            assert_eq!(answer.problem(), (expected.0, expected.1.to_owned()), "{method} {path} {header:?}");
            let refused =
                answer.text().contains("is not accepted") || answer.text().contains("has no meaning");
            assert_eq!(refused, !is_honoured, "{method} {path} {header:?}: {}", answer.text());
        }
        let answer = api.call(method, path, &[("x-change-reason", "why not")], body).await;
        assert!(answer.status.is_success(), "{method} {path}: {}", answer.text());
    }
    let all: Vec<_> = api.routes.iter().filter(|route| route.is_write()).collect();
    assert!(all.iter().all(|route| seen.contains(route)), "a write has no example here");
}

/// `send` compares each answer with the route's description.
#[tokio::test]
async fn without_a_fleet_a_route_is_unavailable_unless_it_needs_none() {
    let api = Api::on(Mode::Crud, Memory::new().open(), empty_replica());
    let mut others = Vec::new();
    for (method, _, _, example, _) in [&SERVICE[..], &FLUX, &CRUD].concat() {
        let body = ["POST", "PUT", "PATCH"].contains(&method).then(|| json!({"operations": [{}]}));
        let status = api.call(method, example, &[], body).await.status.as_u16();
        if status != 503 {
            others.push((method, example, status));
        }
    }
    assert_eq!(
        others,
        [
            ("GET", "/health", 200),
            ("GET", "/metrics", 200),
            ("GET", "/whoami", 200),
            ("POST", "/batch", 422),
            ("POST", "/guard/allowances", 400)
        ]
    );
}

#[tokio::test]
async fn a_poller_may_not_even_plan_a_write() {
    let api = Api::crud().await;
    for dry_run in ["true", "false", "perhaps", "true&dry_run=false"] {
        let request = Request::builder()
            .method("DELETE")
            .uri(format!("/namespaces/team-b?dry_run={dry_run}"))
            .header("authorization", format!("Bearer {POLLER}"));
        let answer = api.send(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(answer.problem(), (403, "forbidden".to_owned()), "{dry_run}");
    }
}

#[tokio::test]
async fn the_password_of_basic_authentication_is_a_token() {
    let api = Api::with(Mode::ReadOnly, &small_fleet()).await;
    let basic = data_encoding::BASE64.encode(format!("flux:{POLLER}").as_bytes());
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
        .header("authorization", format!("Bearer {POLLER}"))
        .body(Body::empty())
        .expect("a request");
    let answer = api.send(request).await;
    assert_eq!(answer.problem(), (403, "forbidden".to_owned()));
    assert!(!answer.text().contains("one.example.com") && !answer.text().contains(POLLER));
}
