//! Documents: create, read, replace, change, delete, list.

use serde_json::{Value, json};
use server::config::Mode;

use crate::api::Api;

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item["id"].as_str().expect("an id")).collect()
}

#[tokio::test]
async fn a_document_is_created_read_and_replaced_as_it_was_read() {
    let api = Api::crud().await;
    let body = json!({"id": "team-c", "labels": {"team": "c"}, "annotations": null});
    let created = api.call("POST", "/namespaces", &[], body).await.expect(201);
    assert_eq!(created.header("location"), "/namespaces/team-c");
    assert_eq!((created.header("etag"), created.header("x-revision")), ("\"2\"", "2"));
    assert_eq!(created.json(), json!({"id": "team-c", "labels": {"team": "c"}}), "null is absent");
    let read = api.get("/namespaces/team-c").await.expect(200);
    assert_eq!((read.json(), read.header("etag")), (created.json(), "\"2\""));
    // What a GET gave can be PUT: it changes nothing, and makes no revision.
    let put = api.call("PUT", "/namespaces/team-c", &[("if-match", "\"2\"")], read.json()).await.expect(200);
    assert_eq!((put.header("etag"), put.header("x-revision")), ("\"2\"", "2"));
    let put = api.call("PUT", "/namespaces/team-c", &[], json!({"id": "team-c"})).await.expect(200);
    assert_eq!((put.json(), put.header("etag")), (json!({"id": "team-c"}), "\"3\""));
}

#[tokio::test]
async fn creating_twice_and_replacing_nothing_are_refused() {
    let api = Api::crud().await;
    let again = api.call("POST", "/namespaces", &[], json!({"id": "team-a"})).await;
    assert_eq!(again.problem(), (409, "exists".to_owned()));
    let nothing = api.call("PUT", "/namespaces/nobody", &[], json!({"id": "nobody"})).await;
    assert_eq!(nothing.problem(), (404, "missing".to_owned()));
    for path in ["/namespaces/nobody", "/nonsense", "/nonsense/x", "/platform-components"] {
        assert_eq!(api.get(path).await.problem(), (404, "missing".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_decommissioned_cluster_comes_back_only_when_that_is_meant() {
    let api = Api::crud().await;
    let cluster = api.get("/clusters/two").await.json();
    api.call("DELETE", "/clusters/two", &[], None).await.expect(204);
    assert_eq!(api.call("PUT", "/clusters/two", &[], cluster.clone()).await.problem().0, 404);
    let again = api.call("POST", "/clusters", &[], cluster.clone()).await;
    assert_eq!(again.problem(), (409, "exists".to_owned()));
    api.call("POST", "/clusters?replace_decommissioned=true", &[], cluster).await.expect(201);
    assert_eq!(api.get("/decommissioned").await.json(), json!([]));
}

#[tokio::test]
async fn the_three_kinds_of_patch_mean_three_things() {
    let api = Api::crud().await;
    let strategic = json!({"namespaces": [{"id": "team-b"}], "labels": {"region": null, "zone": "1"}});
    let patched = api.call("PATCH", "/clusters/two", &[], strategic).await.expect(200).json();
    assert_eq!(ids(&patched["namespaces"]), ["team-a", "team-b"], "references merge by id");
    assert_eq!(patched["labels"], json!({"zone": "1"}));

    let kind = [("content-type", "application/strategic-merge-patch+json")];
    let removed = json!({"namespaces": [{"id": "team-b", "$patch": "delete"}]});
    let patched = api.call("PATCH", "/clusters/two", &kind, removed).await.expect(200).json();
    assert_eq!(ids(&patched["namespaces"]), ["team-a"]);

    // RFC 7396 replaces the array: two references of cluster one would go, which nobody spelt out.
    let kind = [("content-type", "application/merge-patch+json")];
    let replaced = json!({"namespaces": [{"id": "team-b"}]});
    assert_eq!(
        api.call("PATCH", "/clusters/two", &kind, replaced).await.problem(),
        (409, "confirm".to_owned())
    );

    let kind = [("content-type", "application/json-patch+json; charset=utf-8")];
    let operations = json!([
        {"op": "test", "path": "/platform_components/0/id", "value": "podinfo"},
        {"op": "add", "path": "/platform_components/0/oci_tag", "value": "6.9.9"},
    ]);
    let patched = api.call("PATCH", "/clusters/two", &kind, operations).await.expect(200).json();
    assert_eq!(patched["platform_components"], json!([{"id": "podinfo", "oci_tag": "6.9.9"}]));
}

#[tokio::test]
async fn one_reference_is_set_changed_and_removed_without_touching_others() {
    let api = Api::crud().await;
    let path = "/clusters/two/platform_components/cert-manager";
    let set = api.call("PUT", path, &[], None).await.expect(200);
    assert_eq!(ids(&set.json()["platform_components"]), ["cert-manager", "podinfo"]);
    assert_eq!(set.header("etag"), "\"2\"", "the entity tag is the cluster's");
    let stale = api.call("PATCH", path, &[("if-match", "\"1\"")], json!({"enabled": false})).await;
    assert_eq!(stale.problem(), (412, "stale".to_owned()));
    let changed =
        api.call("PATCH", path, &[("if-match", "\"2\"")], json!({"oci_tag": "v1.16.0"})).await.expect(200);
    assert_eq!(changed.json()["platform_components"][0], json!({"id": "cert-manager", "oci_tag": "v1.16.0"}));
    let other = api.call("PUT", path, &[], json!({"id": "podinfo"})).await;
    assert_eq!(other.problem(), (422, "invalid".to_owned()), "the body's id is not the path's");
    let removed = api.call("DELETE", path, &[], None).await.expect(204);
    assert_eq!(removed.header("etag"), "\"4\"", "the cluster's, after the change");
    assert_eq!(ids(&api.get("/clusters/two").await.json()["platform_components"]), ["podinfo"]);
    assert_eq!(api.call("DELETE", path, &[], None).await.problem().0, 404);
    assert_eq!(api.call("PUT", "/clusters/two/clusters/one", &[], None).await.problem().0, 404);
}

#[tokio::test]
async fn what_is_referred_to_is_not_deleted_and_its_users_are_named() {
    let api = Api::crud().await;
    let refused = api.call("DELETE", "/namespaces/team-a", &[], None).await;
    assert_eq!(refused.problem(), (409, "in-use".to_owned()));
    assert!(refused.text().contains("`one`, `two`"), "{}", refused.text());
    let users = api.get("/namespaces/team-a/users?limit=1").await.expect(200);
    assert_eq!((users.json(), users.header("x-total-count")), (json!(["one"]), "2"));
    assert_eq!(users.header("link"), "</namespaces/team-a/users?limit=1&after=one>; rel=\"next\"");
    let rest = api.get("/namespaces/team-a/users?limit=1&after=one").await.expect(200);
    assert_eq!((rest.json(), rest.header("link")), (json!(["two"]), ""));
    api.call("DELETE", "/platform_components/unused", &[], None).await.expect(204);
    assert_eq!(api.get("/platform_components/unused").await.status, 404);
}

#[tokio::test]
async fn a_list_has_filters_and_pages() {
    let clusters: Vec<Value> = (0..25)
        .map(|n| {
            json!({"id": format!("c{n:02}"), "cluster_name": "c", "cluster_dns": format!("c{n:02}.example.com"),
                   "environment": if n % 2 == 0 { "dev" } else { "prod" }, "labels": {"region": if n < 10 { "eu" } else { "us" }}})
        })
        .collect();
    let api = Api::with(Mode::Crud, &json!({"clusters": clusters})).await;
    let first = api.get("/clusters?environment=dev&limit=5").await.expect(200);
    assert_eq!(ids(&first.json()), ["c00", "c02", "c04", "c06", "c08"]);
    assert_eq!(first.header("x-total-count"), "13");
    assert_eq!(first.header("link"), "</clusters?environment=dev&limit=5&after=c08>; rel=\"next\"");
    let second = api.get("/clusters?environment=dev&limit=5&after=c08").await.expect(200);
    assert_eq!(ids(&second.json()), ["c10", "c12", "c14", "c16", "c18"]);
    let selected = api.get("/clusters?selector=region%3Deu,environment+in+(prod)&offset=3").await.expect(200);
    assert_eq!(ids(&selected.json()), ["c07", "c09"]);
    assert_eq!(ids(&api.get("/clusters?cluster_dns=c07.example.com").await.json()), ["c07"]);
    for (query, told) in [
        (
            "environment=production",
            "`environment` is `production`; it must be one of `dev`, `qa`, `uat`, `prod`",
        ),
        ("limit=0", "`limit` is 0; it must be from 1 to 1000"),
        ("limit=1001", "`limit` is 1001; it must be from 1 to 1000"),
        ("limit=ten", "`limit` is `ten`; it must be a whole number, not negative"),
        (
            "enviroment=dev",
            "there is no query parameter `enviroment`; this route has `environment`, `cluster_dns`, `selector`, `limit`, `offset`, `after`, `revisions`",
        ),
        ("revisions=1", "`revisions` is `1`; it must be `true` or `false`"),
        ("environment=dev&environment=qa", "the query parameter `environment` is given twice"),
        ("selector=%FF", "the query string is not UTF-8 when its percent signs are decoded"),
    ] {
        let answer = api.get(&format!("/clusters?{query}")).await;
        assert_eq!((answer.problem(), &answer.json()["detail"]), ((400, "invalid".to_owned()), &json!(told)));
    }
    let bad = api.get("/clusters?selector=region%3D%3D%3Deu").await;
    assert_eq!(bad.problem(), (400, "invalid".to_owned()));
}

#[tokio::test]
async fn a_list_can_have_the_revisions_that_entity_tags_say() {
    let api = Api::crud().await;
    api.call("PATCH", "/namespaces/team-b", &[], json!({"labels": {"team": "c"}})).await.expect(200);
    let list = api.get("/namespaces?revisions=true").await.expect(200);
    let items: Vec<::api::Revisioned> =
        serde_json::from_value(list.json()).expect("documents with revisions");
    let mut told = Vec::new();
    for item in &items {
        let id = item.document["id"].as_str().expect("an id");
        let read = api.get(&format!("/namespaces/{id}")).await.expect(200);
        assert_eq!(
            (&item.document, format!("\"{}\"", item.revision)),
            (&read.json(), read.header("etag").to_owned())
        );
        told.push((id, item.revision));
    }
    assert_eq!(told, [("team-a", 1), ("team-b", 2)]);

    // Filters and pages are the same.
    let page = api.get("/clusters?revisions=true&limit=1&selector=region").await.expect(200);
    assert_eq!((&page.json()[0]["document"]["id"], page.header("x-total-count")), (&json!("one"), "2"));
    assert_eq!(
        page.header("link"),
        "</clusters?revisions=true&limit=1&selector=region&after=one>; rel=\"next\""
    );
    let filtered = api.get("/clusters?revisions=true&environment=prod").await.expect(200);
    assert_eq!(filtered.json(), json!([{"revision": 1, "document": api.get("/clusters/two").await.json()}]));
    let bare = api.get("/clusters?revisions=false").await.expect(200);
    assert_eq!(bare.bytes, api.get("/clusters").await.bytes);
}

#[tokio::test]
async fn what_a_cluster_gets_can_be_looked_at_by_its_id() {
    let api = Api::crud().await;
    let looked = api.get("/clusters/one/inputs/platform_components").await.expect(200);
    let polled = api.get("/api/v2/flux/clusters/one.example.com/platform-components").await.expect(200);
    assert_eq!(looked.bytes, polled.bytes);
    for path in [
        "/clusters/nobody/inputs/namespaces",
        "/clusters/one/inputs/clusters",
        "/clusters/one/inputs/nonsense",
    ] {
        assert_eq!(api.get(path).await.problem(), (404, "missing".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn the_kinds_tell_what_their_documents_look_like() {
    let api = Api::crud().await;
    let kinds = api.get("/kinds").await.expect(200).json();
    let names: Vec<_> = kinds.as_array().expect("a list").iter().map(|kind| &kind["name"]).collect();
    assert_eq!(names, ["clusters", "namespaces", "platform_components", "rolebindings"]);
    let kind = api.get("/kinds/namespaces").await.expect(200).json();
    assert_eq!(
        (&kind["path"], &kind["singular"], &kind["guard"]),
        (&json!("namespaces"), &json!("namespace"), &json!("each"))
    );
    assert_eq!(kind["schema"]["properties"]["id"]["format"], "dns-label");
    assert_eq!(api.get("/kinds/nonsense").await.problem(), (404, "missing".to_owned()));
}

#[tokio::test]
async fn a_page_of_very_large_documents_ends_early_and_the_next_one_goes_on() {
    let clusters: Vec<Value> = (0..8)
        .map(|n| {
            json!({"id": format!("c{n:02}"), "cluster_name": "c", "cluster_dns": format!("c{n:02}.example.com"), "environment": "dev",
                   "platform_components": [{"id": "big"}], "patches": {"big": {"text": "x".repeat(400_000)}}})
        })
        .collect();
    let big = json!({"id": "big", "component_path": "big", "oci_url": "https://charts.example.com", "oci_tag": "1.0.0"});
    let api = Api::with(Mode::Crud, &json!({"clusters": clusters, "platform_components": [big]})).await;
    let first = api.get("/clusters").await.expect(200);
    assert_eq!((ids(&first.json()).len(), first.header("x-total-count")), (6, "8"), "more than 2 MiB");
    assert_eq!(first.header("link"), "</clusters?after=c05>; rel=\"next\"");
    let second = api.get("/clusters?after=c05").await.expect(200);
    assert_eq!(ids(&second.json()), ["c06", "c07"]);
    assert_eq!(second.header("link"), "");
}
