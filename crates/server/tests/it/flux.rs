//! What clusters are answered.

use axum::body::Body;
use http::Request;
use ledger::Memory;
use serde_json::json;
use server::config::Mode;
use std::io::Read;

use crate::api::{Api, POLLER, empty_replica, small_fleet};

#[tokio::test]
async fn a_known_cluster_gets_its_inputs_with_the_headers_of_the_contract() {
    let api = Api::with(Mode::ReadOnly, &small_fleet()).await;
    let answer = api.get("/api/v2/flux/clusters/two.example.com/namespaces?utm=ignored").await.expect(200);
    assert_eq!(
        answer.json(),
        json!({"inputs": [{"annotations": {}, "cluster": {"dns": "two.example.com", "environment": "prod", "name": "two"}, "hash": "96f762e3ab197fa1", "id": "team-a", "labels": {}}]})
    );
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("etag"), "W/\"2.1\"");
    assert_eq!(answer.header("cache-control"), "private, no-cache");
    assert_eq!(answer.header("vary"), "Accept-Encoding, Authorization");
}

#[tokio::test]
async fn an_unknown_cluster_or_kind_is_404_and_never_an_empty_list() {
    let api = Api::crud().await;
    for path in [
        "/api/v2/flux/clusters/nobody.example.com/namespaces",
        "/api/v2/flux/clusters/one.example.com/platform_components",
        "/api/v2/flux/clusters/one.example.com/clusters",
        "/api/v2/flux/clusters/one.example.com/nonsense",
        "/api/v2/flux/clusters/ONE.example.com/namespaces",
        "/api/v2/flux/clusters/one.example.com/namespaces/",
    ] {
        assert_eq!(api.get(path).await.problem(), (404, "missing".to_owned()), "{path}");
    }
    for n in 0..10_000 {
        let answer = api.get(&format!("/api/v2/flux/clusters/c{n}.example.com/namespaces")).await;
        assert_eq!(answer.status, 404);
    }
}

/// A poll does not go through the router unless its path has escapes: nothing may depend on which way it went.
#[tokio::test]
async fn a_poll_is_answered_alike_with_and_without_the_router() {
    let loaded = Api::crud().await;
    loaded.call("DELETE", "/clusters/two", &[], None).await.expect(204);
    let empty = Api::on(Mode::ReadOnly, Memory::new().open(), empty_replica());
    let bearer = format!("Bearer {POLLER}");
    let authorizations: [&[&str]; 5] =
        [&[&bearer], &[], &["Bearer nobody-knows-it"], &["Digest x"], &[&bearer, &bearer]];
    let mut statuses = std::collections::BTreeSet::new();
    for api in [&loaded, &empty] {
        for dns in ["one.example.com", "two.example.com", "nobody.example.com"] {
            for kind in ["platform-components", "namespaces", "clusters", "nonsense"] {
                for authorization in authorizations {
                    for query in ["", "?utm=ignored&utm=twice"] {
                        let ask = async |dns: &str| {
                            let mut request = Request::builder()
                                .uri(format!("/api/v2/flux/clusters/{dns}/{kind}{query}"))
                                .header("accept-encoding", "gzip")
                                .header("x-request-id", "the-same");
                            for value in authorization {
                                request = request.header("authorization", *value);
                            }
                            let mut answer = api.send(request.body(Body::empty()).expect("a request")).await;
                            // The router says the length itself; of a poll the connection says it (`sockets` in the process tests).
                            answer.headers.remove("content-length");
                            answer
                        };
                        let (straight, routed) = (ask(dns).await, ask(&dns.replace('.', "%2E")).await);
                        assert_eq!(
                            (straight.status, straight.text(), &straight.headers),
                            (routed.status, routed.text(), &routed.headers),
                            "{dns} {kind} {authorization:?}"
                        );
                        statuses.insert(straight.status.as_u16());
                    }
                }
            }
        }
    }
    assert_eq!(Vec::from_iter(statuses), [200, 401, 404, 503]);
    let counted = |status: u16| {
        let text = loaded.app.metrics.text();
        let label =
            format!("method=\"GET\",route=\"/api/v2/flux/clusters/{{dns}}/{{kind}}\",status=\"{status}\"}} ");
        text.lines().find_map(|line| line.split_once(&label)?.1.parse::<u32>().ok())
    };
    assert_eq!((counted(200), counted(404), counted(401)), (Some(16), Some(32), Some(192)));
}

#[tokio::test]
async fn a_decommissioned_cluster_gets_an_empty_list_until_it_is_forgotten() {
    let api = Api::crud().await;
    api.call("DELETE", "/clusters/two", &[], None).await.expect(204);
    for kind in ["platform-components", "namespaces", "rolebindings"] {
        let answer = api.get(&format!("/api/v2/flux/clusters/two.example.com/{kind}")).await.expect(200);
        assert_eq!(answer.text(), "{\"inputs\":[]}");
    }
    let graves = api.get("/decommissioned").await.expect(200).json();
    assert_eq!((&graves[0]["dns"], &graves[0]["id"]), (&json!("two.example.com"), &json!("two")));
    api.call("DELETE", "/decommissioned/two.example.com", &[], None).await.expect(204);
    let answer = api.get("/api/v2/flux/clusters/two.example.com/namespaces").await;
    assert_eq!(answer.problem(), (404, "missing".to_owned()));
}

#[tokio::test]
async fn nothing_is_answered_before_the_fleet_is_loaded() {
    let api = Api::on(Mode::Crud, Memory::new().open(), empty_replica());
    for path in
        ["/api/v2/flux/clusters/one.example.com/namespaces", "/api/v2/flux/clusters", "/clusters", "/kinds"]
    {
        assert_eq!(api.get(path).await.problem(), (503, "unavailable".to_owned()), "{path}");
    }
    assert_eq!(api.get("/ready").await.status, 503);
    assert_eq!(api.get("/health").await.status, 200);
    let answer = api.call("POST", "/namespaces", &[], json!({"id": "x"})).await;
    assert_eq!(answer.problem(), (503, "unavailable".to_owned()));
}

#[tokio::test]
async fn the_operator_is_told_that_its_connection_ends_and_others_are_not() {
    let api = Api::with(Mode::ReadOnly, &small_fleet()).await;
    let connection = async |agent: &str| {
        let request = Request::builder()
            .uri("/api/v2/flux/clusters/one.example.com/namespaces")
            .header("authorization", format!("Bearer {POLLER}"))
            .header("user-agent", agent);
        api.send(request.body(Body::empty()).expect("a request")).await.header("connection").to_owned()
    };
    assert_eq!(connection("flux-operator/v0.58.0").await, "close");
    assert_eq!(connection("curl/8").await, "");
}

#[tokio::test]
async fn a_client_that_asks_for_gzip_gets_the_same_answer_packed() {
    let namespaces: Vec<_> = (0..50).map(|n| json!({"id": format!("ns-{n}")})).collect();
    let seed = json!({
        "namespaces": namespaces,
        "clusters": [{"id": "big", "cluster_name": "big", "cluster_dns": "big.example.com", "environment": "dev", "namespaces": namespaces}],
    });
    let api = Api::with(Mode::Crud, &seed).await;
    let path = "/api/v2/flux/clusters/big.example.com/namespaces";
    let plain = api.get(path).await.expect(200);
    let packed = api.call("GET", path, &[("accept-encoding", "gzip")], None).await.expect(200);
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.bytes.len() * 4 < plain.bytes.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*packed.bytes).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, plain.bytes);
}

#[tokio::test]
async fn the_cluster_list_is_whole_or_not_there() {
    let api = Api::crud().await;
    let all = api.get("/api/v2/flux/clusters").await.expect(200);
    assert_eq!(
        all.json(),
        json!({"inputs": [
            {"cluster_dns": "one.example.com", "cluster_name": "one", "environment": "dev", "id": "one"},
            {"cluster_dns": "two.example.com", "cluster_name": "two", "environment": "prod", "id": "two"},
        ]})
    );
    assert_eq!(all.header("etag"), "W/\"2.1\"");
    let of = async |query: &str| api.get(&format!("/api/v2/flux/clusters?{query}")).await;
    assert_eq!(of("environment=prod").await.expect(200).json()["inputs"][0]["id"], "two");
    assert_eq!(of("environment=production").await.problem(), (400, "invalid".to_owned()));
    assert_eq!(of("environment=qa").await.problem(), (404, "missing".to_owned()));
    assert_eq!(of("environment=qa&allow_empty=true").await.expect(200).text(), "{\"inputs\":[]}");
    assert_eq!(of("environment=qa&allow_empty=yes").await.problem(), (400, "invalid".to_owned()));
    assert_eq!(of("enviroment=prod").await.problem(), (400, "invalid".to_owned()), "a misspelt filter");
}

#[tokio::test]
async fn a_change_is_seen_by_the_next_poll() {
    let api = Api::crud().await;
    let patch = json!({"platform_components": [{"id": "podinfo", "oci_tag": "6.8.0-rc1"}]});
    api.call("PATCH", "/clusters/one", &[], patch).await.expect(200);
    let tags = async |dns: &str| {
        let inputs = api.inputs(dns, "platform-components").await;
        let tag = |input: &serde_json::Value| input["source"]["oci_tag"].as_str().expect("a tag").to_owned();
        inputs.as_array().expect("a list").iter().map(tag).collect::<Vec<_>>()
    };
    assert_eq!(
        tags("one.example.com").await,
        ["v1.15.0", "6.8.0-rc1"],
        "the canary keeps its other components"
    );
    assert_eq!(tags("two.example.com").await, ["6.7.0"]);
}
