//! A plan, and the write that does exactly what it showed.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{Answer, Api};

fn stale(answer: &Answer) -> String {
    assert_eq!(answer.problem(), (412, "stale".to_owned()));
    answer.json()["detail"].as_str().expect("a sentence").to_owned()
}

#[tokio::test]
async fn a_plan_names_the_documents_that_the_write_changes() {
    let api = Api::crud().await;
    let operations = json!({"operations": [
        {"op": "create", "kind": "namespaces", "body": {"id": "team-c"}},
        {"op": "delete", "kind": "clusters", "id": "two"},
        {"op": "patch", "kind": "clusters", "id": "one", "body": {"labels": {"region": "us"}}},
        {"op": "delete", "kind": "platform_components", "id": "unused"},
        {"op": "patch", "kind": "platform_components", "id": "podinfo", "body": {"oci_tag": "6.7.0"}},
    ]});
    let plan = api.call("POST", "/batch?dry_run=true", &[], operations.clone()).await.expect(200).json();
    // Those that stay or come are told as they were and would be.
    let one = &plan["documents"][0];
    assert_eq!(
        (&one["before"]["labels"], &one["after"]["labels"]),
        (&json!({"region": "eu"}), &json!({"region": "us"}))
    );
    let (before, after) = (one["before"].clone(), one["after"].clone());
    assert_eq!(
        plan["documents"],
        json!([
            {"kind": "clusters", "id": "one", "change": "changed", "before": before, "after": after},
            {"kind": "clusters", "id": "two", "change": "removed"},
            {"kind": "namespaces", "id": "team-c", "change": "added", "after": {"id": "team-c"}},
            {"kind": "platform_components", "id": "unused", "change": "removed"},
            {"kind": "decommissioned", "id": "two.example.com", "change": "added"},
        ])
    );
    assert_eq!(plan["changed"], 5);

    let done = api.call("POST", "/batch", &[("x-plan-revision", "1")], operations).await.expect(200).json();
    assert_eq!((&done["revision"], &done["changed"]), (&json!(2), &plan["changed"]));
    let keys = |documents: &Value| {
        let documents = documents.as_array().expect("a list").iter();
        documents.map(|document| (document["kind"].clone(), document["id"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(keys(&done["documents"]), keys(&plan["documents"]));

    let forget = "/decommissioned/two.example.com?dry_run=true";
    let plan = api.call("DELETE", forget, &[], None).await.expect(200).json();
    assert_eq!(
        (&plan["changed"], &plan["documents"]),
        (&json!(1), &json!([{"kind": "decommissioned", "id": "two.example.com", "change": "removed"}]))
    );
    let same = api.call("PUT", "/namespaces/team-a?dry_run=true", &[], json!({"id": "team-a"})).await;
    let plan = same.expect(200).json();
    assert_eq!((&plan["changed"], &plan["documents"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn two_plans_have_the_same_digest_exactly_if_they_do_the_same() {
    let api = Api::crud().await;
    let digest = async |path: &str, body: Value| {
        let plan = api.call("PATCH", &format!("{path}?dry_run=true"), &[], body).await.expect(200).json();
        plan["digest"].as_str().expect("a digest").to_owned()
    };
    let label = digest("/clusters/one", json!({"labels": {"wave": "1"}})).await;
    // What no cluster sees is a difference too.
    assert_ne!(label, digest("/clusters/one", json!({"labels": {"wave": "2"}})).await);
    assert_ne!(label, digest("/clusters/one", json!({"protected": true})).await);
    let upgrade = digest("/platform_components/podinfo", json!({"oci_tag": "6.8.0"})).await;

    // Another revision is no difference, as long as nothing of it matters.
    api.call("POST", "/namespaces", &[], json!({"id": "team-z"})).await.expect(201);
    assert_eq!(label, digest("/clusters/one", json!({"labels": {"wave": "1"}})).await);
    assert_eq!(upgrade, digest("/platform_components/podinfo", json!({"oci_tag": "6.8.0"})).await);
    let decommission = async || {
        let plan = api.call("DELETE", "/clusters/two?dry_run=true", &[], None).await.expect(200).json();
        plan["digest"].clone()
    };
    assert_eq!(decommission().await, decommission().await);

    // A cluster that runs it no longer is.
    let path = "/clusters/two/platform_components/podinfo";
    api.call("DELETE", path, &[], None).await.expect(204);
    assert_ne!(upgrade, digest("/platform_components/podinfo", json!({"oci_tag": "6.8.0"})).await);
}

#[tokio::test]
async fn a_plan_of_many_clusters_has_another_digest_if_one_beyond_the_names_is_another() {
    let api = Api::crud().await;
    let cluster = |n: u32| {
        json!({"op": "create", "kind": "clusters", "body": {
            "id": format!("c{n:03}"), "cluster_name": "c", "cluster_dns": format!("c{n:03}.example.com"), "environment": "dev",
            "namespaces": if n < 149 { json!([{"id": "team-a"}]) } else { json!([]) },
        }})
    };
    let body = json!({"operations": (0..150).map(cluster).collect::<Value>()});
    api.call("POST", "/batch", &[], body).await.expect(200);
    let plan = async || {
        let body = json!({"labels": {"team": "other"}});
        api.call("PATCH", "/namespaces/team-a?dry_run=true", &[], body).await.expect(200).json()
    };
    let before = plan().await;
    api.call("PUT", "/clusters/c149/namespaces/team-a", &[], None).await.expect(200);
    api.call("DELETE", "/clusters/c148/namespaces/team-a", &[], None).await.expect(204);
    let after = plan().await;
    // As many, and the same first hundred: but not the same.
    assert_eq!(before["effects"], after["effects"]);
    assert_ne!(before["digest"], after["digest"]);
}

#[tokio::test]
async fn a_plan_tells_documents_only_as_long_as_that_is_not_too_much() {
    let api = Api::crud().await;
    let namespace = |n: u32| json!({"op": "create", "kind": "namespaces", "body": {"id": format!("big-{n}"), "annotations": {"a": "x".repeat(60_000)}}});
    let body = json!({"operations": (0..8).map(namespace).collect::<Value>()});
    let plan = api.call("POST", "/batch?dry_run=true", &[], body).await.expect(200).json();
    let told =
        plan["documents"].as_array().expect("a list").iter().filter(|one| one["after"].is_object()).count();
    assert_eq!((told, &plan["changed"]), (4, &json!(8)));
}

#[tokio::test]
async fn a_plan_and_the_write_name_the_first_thousand_documents_and_count_all() {
    let api = Api::crud().await;
    let create = |n: u32| json!({"op": "create", "kind": "namespaces", "body": {"id": format!("n{n:04}")}});
    let body = json!({"operations": (0..1_001).map(create).collect::<Value>()});
    for path in ["/batch?dry_run=true", "/batch"] {
        let answer = api.call("POST", path, &[], body.clone()).await.expect(200).json();
        let last = answer["documents"].as_array().and_then(|documents| documents.last());
        assert_eq!((&answer["changed"], &last.expect("a document")["id"]), (&json!(1_001), &json!("n0999")));
    }
}

#[tokio::test]
async fn no_write_goes_through_on_another_revision_than_it_was_planned_on() {
    let api = Api::crud().await;
    api.call("DELETE", "/clusters/two", &[], None).await.expect(204);
    let namespace = json!({"id": "team-a", "labels": {"x": "y"}});
    let batch =
        json!({"operations": [{"op": "put", "kind": "namespaces", "id": "team-a", "body": namespace}]});
    let writes = [
        ("POST", "/namespaces", Some(json!({"id": "new"}))),
        ("PUT", "/namespaces/team-a", Some(namespace.clone())),
        ("PATCH", "/namespaces/team-a", Some(namespace)),
        ("DELETE", "/platform_components/unused", None),
        ("PUT", "/clusters/one/platform_components/unused", None),
        ("PATCH", "/clusters/one/platform_components/podinfo", Some(json!({"oci_tag": "1.0.0"}))),
        ("DELETE", "/clusters/one/namespaces/team-b", None),
        ("POST", "/batch", Some(batch)),
        ("DELETE", "/decommissioned/two.example.com", None),
        // That there is no such document is not said of another fleet than the one that was looked at.
        ("DELETE", "/namespaces/nobody", None),
    ];
    for planned in ["0", "1", "3"] {
        for (method, path, body) in &writes {
            for query in ["", "?dry_run=true"] {
                let headers = [("x-plan-revision", planned)];
                let answer = api.call(method, &format!("{path}{query}"), &headers, body.clone()).await;
                let told = format!(
                    "the fleet is at revision 2, and this was planned on revision {planned}; plan it again"
                );
                assert_eq!(stale(&answer), told, "{method} {path}{query}");
            }
        }
    }
    assert_eq!(api.get("/revisions").await.json().as_array().map(Vec::len), Some(2), "nothing has changed");
}

#[tokio::test]
async fn a_plan_holds_until_the_fleet_changes() {
    let api = Api::crud().await;
    let put = async |headers: &[(&str, &str)], labels: Value| {
        api.call("PUT", "/namespaces/team-a", headers, json!({"id": "team-a", "labels": labels})).await
    };
    let planned = [("x-plan-revision", "1")];
    // A write that changes nothing keeps the revision, and so do a dry run and one that is refused.
    for _ in 0..2 {
        let same = put(&planned, Value::Null).await.expect(200);
        assert_eq!((same.header("x-revision"), same.header("etag")), ("1", "\"1\""));
    }
    api.call("DELETE", "/namespaces/team-b?dry_run=true", &planned, None).await.expect(409);
    api.call("DELETE", "/namespaces/team-b", &planned, None).await.expect(409);
    assert_eq!(put(&planned, json!({"a": "1"})).await.expect(200).header("x-revision"), "2");
    // Sent again it would change nothing, and still is no longer what was looked at.
    assert!(stale(&put(&planned, json!({"a": "1"})).await).starts_with("the fleet is at revision 2,"));
    // It is about the fleet; `If-Match` about the document. Both must hold.
    let both = |plan, tag| [("x-plan-revision", plan), ("if-match", tag)];
    let told = stale(&put(&both("2", "\"1\""), json!({"b": "2"})).await);
    assert_eq!(told, "`namespaces/team-a` is at revision 2, not 1; read it again and decide anew");
    put(&both("2", "\"2\""), json!({"b": "2"})).await.expect(200);
}

#[tokio::test]
async fn a_write_that_waits_for_a_confirmation_waits_on_the_revision_of_its_plan() {
    let api = Api::crud().await;
    let empty = async |headers: &[(&str, &str)]| {
        api.call("PATCH", "/clusters/one", headers, json!({"namespaces": []})).await
    };
    let problem = empty(&[("x-plan-revision", "1")]).await.expect(409).json();
    assert!(
        problem["curl"].as_str().is_some_and(|line| line.contains(" -H 'x-plan-revision: 1' ")),
        "{problem}"
    );
    let digest = problem["confirm"].as_str().expect("a digest");
    api.call("POST", "/namespaces", &[], json!({"id": "team-z"})).await.expect(201);
    stale(&empty(&[("x-plan-revision", "1"), ("x-confirm", digest)]).await);
    empty(&[("x-plan-revision", "2"), ("x-confirm", digest)]).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_writes_with_the_same_plan_exactly_one_goes_through() {
    let api = Arc::new(Api::crud().await);
    for revision in 1..=50 {
        let write = |writer: &'static str| {
            let api = api.clone();
            tokio::spawn(async move {
                let body = json!({"id": format!("{writer}-{revision}")});
                let planned = revision.to_string();
                api.call("POST", "/namespaces", &[("x-plan-revision", &planned)], body).await.status.as_u16()
            })
        };
        let (one, other) = (write("one"), write("other"));
        let mut statuses = [one.await.expect("answered"), other.await.expect("answered")];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 412], "at revision {revision}");
    }
    let created = api.get("/namespaces?limit=1").await;
    assert_eq!(created.header("x-total-count"), "52", "50 beside the two that were there");
}
