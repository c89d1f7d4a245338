//! A plan, and the write that does exactly what it showed.

use std::collections::BTreeSet;
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
    assert_eq!(
        plan["documents"],
        json!([
            // Production first.
            {"kind": "clusters", "change": "removed", "count": 1, "ids": ["two"]},
            {"kind": "clusters", "change": "changed", "fields": [{"pointer": "/labels/region", "old": "eu", "new": "us"}], "count": 1, "ids": ["one"]},
            {"kind": "namespaces", "change": "added", "document": {}, "count": 1, "ids": ["team-c"]},
            {"kind": "platform_components", "change": "removed", "count": 1, "ids": ["unused"]},
            {"kind": "decommissioned", "change": "added", "count": 1, "ids": ["two.example.com"]},
        ])
    );
    assert_eq!(plan["changed"], 5);

    let done = api.call("POST", "/batch", &[("x-plan-revision", "1")], operations).await.expect(200).json();
    assert_eq!((&done["revision"], &done["changed"]), (&json!(2), &plan["changed"]));
    let names = |list: &Value, id: &str| {
        let name = |one: &Value| {
            format!("{} {}", one["kind"], one.pointer(id).unwrap_or_else(|| panic!("{id} of {one}")))
        };
        list.as_array().expect("a list").iter().map(name).collect::<BTreeSet<_>>()
    };
    assert_eq!(names(&done["documents"], "/id"), names(&plan["documents"], "/ids/0"));

    let forget = "/decommissioned/two.example.com?dry_run=true";
    let plan = api.call("DELETE", forget, &[], None).await.expect(200).json();
    assert_eq!(
        (&plan["changed"], &plan["documents"]),
        (
            &json!(1),
            &json!([{"kind": "decommissioned", "change": "removed", "count": 1, "ids": ["two.example.com"]}])
        )
    );
    // Which is no effect on any cluster that is there, and not nothing.
    assert_eq!(
        (&plan["effects"]["clusters"], &plan["notes"]),
        (
            &json!(0),
            &json!([
                "polls of `two.example.com` get 404 instead of an empty list: a cluster that still polls keeps what it has"
            ])
        )
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
    // As many, but not the same.
    assert_eq!(before["effects"]["totals"], after["effects"]["totals"]);
    assert_ne!(before["digest"], after["digest"]);
    assert_eq!(before["effects"]["changes"][0]["clusters"].as_array().map(Vec::len), Some(151));
}

/// A batch that makes clusters, every tenth of them in production.
fn clusters(from: usize, to: usize) -> Value {
    let cluster = |n: usize| {
        json!({"op": "create", "kind": "clusters", "body": {
            "id": format!("c{n:05}"), "cluster_name": "c", "cluster_dns": format!("c{n:05}.example.com"),
            "environment": if n.is_multiple_of(10) { "prod" } else { "dev" },
            "labels": {"fleet": "large"},
            "namespaces": [{"id": "team-a"}],
            "platform_components": if n.is_multiple_of(4) { json!([]) } else { json!([{"id": "unused"}]) },
        }})
    };
    json!({"operations": (from..to).map(cluster).collect::<Value>()})
}

/// From about 330 clusters on a plan said that what changes is too much to tell, and named a hundred of them.
#[tokio::test]
async fn a_label_on_hundreds_of_clusters_is_one_group_with_all_of_them_production_first() {
    let api = Api::crud().await;
    api.call("POST", "/batch", &[], clusters(0, 725)).await.expect(200);
    let label = json!({"operations": [{"op": "patch", "kind": "clusters", "selector": "fleet=large", "body": {"labels": {"wave": "2"}}}]});
    let plan = api.call("POST", "/batch?dry_run=true", &[], label).await.expect(200).json();
    let (prod, dev): (Vec<usize>, Vec<usize>) = (0..725_usize).partition(|n| n.is_multiple_of(10));
    let ids: Vec<String> = prod.into_iter().chain(dev).map(|n| format!("c{n:05}")).collect();
    assert_eq!(
        plan["documents"],
        json!([{"kind": "clusters", "change": "changed", "fields": [{"pointer": "/labels/wave", "new": "2"}], "count": 725, "ids": ids}])
    );
    let patch = json!({"labels": {"team": "other"}});
    let plan = api.call("PATCH", "/namespaces/team-a?dry_run=true", &[], patch).await.expect(200).json();
    assert_eq!(
        plan["environments"],
        json!([{"environment": "prod", "clusters": 74, "removals": 0}, {"environment": "dev", "clusters": 653, "removals": 0}])
    );
    let seen = &plan["effects"]["changes"][0]["clusters"];
    assert_eq!(
        (seen.as_array().map(Vec::len), &seen[0], &seen[74]),
        (Some(727), &json!("c00000"), &json!("c00001"))
    );
}

#[tokio::test]
async fn clusters_that_a_selector_chose_and_that_lack_the_component_are_counted() {
    let api = Api::crud().await;
    api.call("POST", "/batch", &[], clusters(0, 100)).await.expect(200);
    let change = json!({"operations": [{"op": "patch_reference", "kind": "platform_components", "id": "unused", "selector": "fleet=large", "body": {"oci_tag": "2.0.0"}}]});
    let plan = api.call("POST", "/batch?dry_run=true", &[], change).await.expect(200).json();
    let lacking = &plan["lacking"][0];
    let some: Vec<&str> =
        lacking["clusters"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(
        (&lacking["selector"], &lacking["id"], &lacking["selected"], &lacking["lacking"]),
        (&json!("fleet=large"), &json!("unused"), &json!(100), &json!(25))
    );
    assert_eq!(some[..6], ["c00000", "c00020", "c00040", "c00060", "c00080", "c00004"], "production first");
    assert_eq!(plan["changed"], 75);
    // One that has it on all of them lacks nothing, and says nothing.
    let change = json!({"operations": [{"op": "unassign", "kind": "namespaces", "id": "team-a", "selector": "fleet=large"}]});
    let plan = api.call("POST", "/batch?dry_run=true", &[], change).await.expect(200).json();
    assert!(plan.get("lacking").is_none(), "{plan}");
}

/// Every page of a dry run, and the sizes of these.
async fn pages(api: &Api, body: &Value) -> (::api::Plan, Vec<usize>) {
    let answer = api.call("POST", "/batch?dry_run=true", &[], body.clone()).await.expect(200);
    let mut sizes = vec![answer.bytes.len()];
    let mut plan: ::api::Plan = serde_json::from_value(answer.json()).expect("a plan");
    while let Some(next) = plan.next.take() {
        let path = format!("/batch?dry_run=true&after={next}");
        let answer = api.call("POST", &path, &[], body.clone()).await.expect(200);
        sizes.push(answer.bytes.len());
        plan.append(serde_json::from_value(answer.json()).expect("a plan"));
    }
    (plan, sizes)
}

/// Documents that are all different, with 30 KB each: about 1 MiB goes on a page.
#[tokio::test]
async fn a_plan_that_is_too_large_for_one_answer_comes_in_pages_and_is_complete() {
    let api = Api::crud().await;
    let namespace = |n: u32| json!({"op": "create", "kind": "namespaces", "body": {"id": format!("big-{n:03}"), "annotations": {"a": format!("{n:03}{}", "x".repeat(30_000))}}});
    let body = json!({"operations": (0..100).map(namespace).collect::<Value>()});
    let (plan, sizes) = pages(&api, &body).await;
    assert_eq!(sizes.len(), 3, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size < 1_100_000), "{sizes:?}");
    assert_eq!((plan.changed, plan.documents.len()), (100, 100));
    for (n, group) in plan.documents.iter().enumerate() {
        let annotation = group.document.as_ref().and_then(|document| document["annotations"]["a"].as_str());
        assert_eq!(group.ids, [format!("big-{n:03}")]);
        assert_eq!(annotation, Some(&*format!("{n:03}{}", "x".repeat(30_000))));
    }
}

/// The names alone are more than one page holds.
#[tokio::test]
async fn a_group_of_very_many_goes_on_from_page_to_page() {
    let api = Api::crud().await;
    for from in (0..9_900).step_by(4_950) {
        api.call("POST", "/batch", &[], clusters(from, from + 4_950)).await.expect(200);
    }
    let mut operations =
        vec![json!({"op": "unassign", "kind": "namespaces", "id": "team-a", "selector": "fleet=large"})];
    operations.extend((0..15).map(|n| json!({"op": "create", "kind": "namespaces", "body": {"id": format!("large-{n}"), "annotations": {"a": format!("{n}{}", "z".repeat(60_000))}}})));
    let (plan, sizes) = pages(&api, &json!({"operations": operations})).await;
    assert_eq!(sizes.len(), 2, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size < 1_100_000), "{sizes:?}");
    let of_clusters = &plan.documents[0];
    assert_eq!((&*of_clusters.kind, of_clusters.count, of_clusters.ids.len()), ("clusters", 9_900, 9_900));
    for group in &plan.effects.changes {
        assert_eq!(group.clusters.len(), group.count, "{}/{}", group.kind, group.input);
    }
    let removed = &plan.removals.groups[0];
    assert_eq!((removed.count, removed.clusters.len()), (9_900, 9_900));
    assert_eq!((&*removed.clusters[0], &*removed.clusters[990]), ("c00000", "c00001"), "production first");
}

#[tokio::test]
async fn there_is_no_next_page_of_a_plan_that_is_another_by_now() {
    let api = Api::crud().await;
    let namespace = |n: u32| json!({"op": "create", "kind": "namespaces", "body": {"id": format!("big-{n}"), "annotations": {"a": format!("{n}{}", "x".repeat(60_000))}}});
    let mut operations: Vec<Value> = (0..20).map(namespace).collect();
    operations
        .push(json!({"op": "patch", "kind": "namespaces", "id": "team-a", "body": {"labels": {"a": "1"}}}));
    let body = json!({"operations": operations});
    let plan = api.call("POST", "/batch?dry_run=true", &[], body.clone()).await.expect(200).json();
    let path = format!("/batch?dry_run=true&after={}", plan["next"].as_str().expect("a next page"));
    api.call("POST", &path, &[], body.clone()).await.expect(200);
    // What the plan does not touch makes no difference.
    api.call("POST", "/namespaces", &[], json!({"id": "other"})).await.expect(201);
    api.call("POST", &path, &[], body.clone()).await.expect(200);
    api.call("PATCH", "/namespaces/team-a", &[], json!({"labels": {"a": "0"}})).await.expect(200);
    let moved = api.call("POST", &path, &[], body.clone()).await;
    assert_eq!(moved.problem(), (409, "stale".to_owned()));
    assert_eq!(
        moved.json()["detail"],
        "this is another plan by now than the one that the pages before were of; ask again without `after`"
    );
    // And `after` is for that alone.
    let refused = api.call("POST", "/batch?after=x.1.2", &[], body.clone()).await;
    assert_eq!(refused.json()["detail"], "`after` is for the pages of a dry run; add `dry_run=true`");
    let refused = api.call("POST", "/batch?dry_run=true&after=x", &[], body).await;
    assert_eq!(refused.json()["detail"], "`after` is `x`; it must be what a dry run gave as `next`");
    assert_eq!(refused.problem(), (400, "invalid".to_owned()));
}

#[tokio::test]
async fn the_write_names_the_first_thousand_documents_and_the_plan_all() {
    let api = Api::crud().await;
    let create = |n: u32| json!({"op": "create", "kind": "namespaces", "body": {"id": format!("n{n:04}")}});
    let body = json!({"operations": (0..1_001).map(create).collect::<Value>()});
    let plan = api.call("POST", "/batch?dry_run=true", &[], body.clone()).await.expect(200).json();
    assert_eq!((&plan["changed"], &plan["documents"][0]["ids"][1_000]), (&json!(1_001), &json!("n1000")));
    let done = api.call("POST", "/batch", &[], body).await.expect(200).json();
    let last = done["documents"].as_array().and_then(|documents| documents.last());
    assert_eq!((&done["changed"], &last.expect("a document")["id"]), (&json!(1_001), &json!("n0999")));
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
