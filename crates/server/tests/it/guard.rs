//! The guard, as a client meets it.

use serde_json::json;

use crate::api::Api;

#[tokio::test]
async fn an_emptied_list_is_stopped_and_the_confirmation_that_it_gives_lets_it_through() {
    let api = Api::crud().await;
    let before = api.inputs("one.example.com", "namespaces").await;
    let body = json!({"namespaces": []});
    let stopped = api.call("PATCH", "/clusters/one", &[("x-change-reason", "it's over")], body.clone()).await;
    assert_eq!(stopped.problem(), (409, "confirm".to_owned()));
    let problem = stopped.json();
    assert_eq!(problem["removals"]["inputs"], 2);
    assert_eq!(
        problem["removals"]["first"][0],
        json!({"cluster": "one", "kind": "namespaces", "input": "team-a", "cause": "removed", "named": false})
    );
    assert_eq!(api.inputs("one.example.com", "namespaces").await, before, "nothing has happened");
    let digest = problem["confirm"].as_str().expect("a digest");
    assert_eq!(
        problem["curl"],
        format!(
            "curl -X PATCH 'http://fleet.example.com/clusters/one' -H \"Authorization: Bearer $CRUD_AUTH_TOKEN\" -H 'X-Confirm: {digest}' -H 'content-type: application/json' -H 'x-change-reason: it'\\''s over' --data-raw '{{\"namespaces\":[]}}'"
        )
    );
    // A confirmation of other removals confirms nothing.
    let other = "0".repeat(64);
    let wrong = api.call("PATCH", "/clusters/one", &[("x-confirm", &other)], body.clone()).await;
    assert_eq!(wrong.problem(), (409, "confirm".to_owned()));
    // An unrelated write does not spoil it.
    api.call("POST", "/namespaces", &[], json!({"id": "team-z"})).await.expect(201);
    api.call("PATCH", "/clusters/one", &[("x-confirm", digest)], body).await.expect(200);
    assert_eq!(api.inputs("one.example.com", "namespaces").await, json!([]));
    let revision = &api.get("/revisions?limit=1").await.json()[0];
    assert_eq!(
        revision["removals"],
        json!({"decommissions": 0, "each": 2, "ordinary": 0, "confirmed": true, "allowed": false})
    );
}

#[tokio::test]
async fn a_dry_run_tells_what_would_happen_and_does_nothing() {
    let api = Api::crud().await;
    let patch = json!({"oci_tag": "6.8.0"});
    let plan =
        api.call("PATCH", "/platform_components/podinfo?dry_run=true", &[], patch.clone()).await.expect(200);
    let digest = plan.json()["digest"].clone();
    assert_eq!(digest.as_str().map(str::len), Some(64));
    assert_eq!(
        plan.json(),
        json!({
            "revision": 1,
            "digest": digest,
            "changed": 1,
            "documents": [{
                "kind": "platform_components", "change": "changed", "count": 1, "ids": ["podinfo"],
                "fields": [{"pointer": "/oci_tag", "old": "6.7.0", "new": "6.8.0"}],
            }],
            "environments": [{"environment": "prod", "clusters": 1, "removals": 0}, {"environment": "dev", "clusters": 1, "removals": 0}],
            "effects": {
                "clusters": 2,
                "totals": {"platform_components": {"added": 0, "changed": 2, "removed": 0}},
                "changes": [{
                    "kind": "platform_components", "input": "podinfo", "change": "changed", "count": 2, "clusters": ["two", "one"],
                    "fields": [{"pointer": "/source/oci_tag", "old": "6.7.0", "new": "6.8.0"}],
                }],
            },
            "reached": 2,
            "removals": {"decommissions": 0, "inputs": 0, "clusters": 0, "decommissioned": [], "first": [], "groups": []},
            "confirm": null,
        })
    );
    assert_eq!(api.get("/revisions").await.json().as_array().map(Vec::len), Some(1));
    // One that the guard would stop is a plan too, and says what confirms it.
    let plan = api
        .call("PATCH", "/clusters/one?dry_run=true", &[], json!({"namespaces": []}))
        .await
        .expect(200)
        .json();
    assert_eq!(plan["removals"]["inputs"], 2);
    let digest = plan["confirm"].as_str().expect("a digest").to_owned();
    api.call("PATCH", "/clusters/one", &[("x-confirm", &digest)], json!({"namespaces": []}))
        .await
        .expect(200);
    // An invalid one is refused as the real one would be.
    let refused =
        api.call("PATCH", "/clusters/one?dry_run=true", &[], json!({"environment": "production"})).await;
    assert_eq!(refused.problem(), (422, "invalid".to_owned()));
    // A misspelt switch does not write.
    for query in ["dryrun=true", "dry_run=1", "dry_run=yes", "dry_run="] {
        let answer =
            api.call("PATCH", &format!("/platform_components/podinfo?{query}"), &[], patch.clone()).await;
        assert_eq!(answer.problem(), (400, "invalid".to_owned()), "{query}");
    }
    assert_eq!(api.get("/platform_components/podinfo").await.json()["oci_tag"], "6.7.0");
}

/// The list of single removals is cut; what a client shows of them must not be counted by it.
#[tokio::test]
async fn what_goes_from_many_clusters_is_told_once_and_counted_whole() {
    let ids: Vec<String> = (0..150).map(|n| format!("c{n:03}")).collect();
    let cluster = |id: &String| {
        let namespaces =
            if id.starts_with("c14") { json!([{"id": "a"}, {"id": "b"}]) } else { json!([{"id": "b"}]) };
        json!({"id": id, "cluster_name": id, "cluster_dns": format!("{id}.example.com"), "environment": "dev", "namespaces": namespaces})
    };
    let fleet = json!({
        "namespaces": [{"id": "a"}, {"id": "b"}],
        "clusters": ids.iter().map(cluster).collect::<Vec<_>>(),
    });
    let api = Api::with(server::config::Mode::Crud, &fleet).await;
    let empty = json!({"op": "patch", "kind": "clusters", "selector": "environment=dev", "patch_type": "merge", "body": {"namespaces": []}});
    let plan =
        api.call("POST", "/batch?dry_run=true", &[], json!({"operations": [empty]})).await.expect(200).json();
    let removals = &plan["removals"];
    assert_eq!((&removals["inputs"], &removals["clusters"]), (&json!(160), &json!(150)));
    assert_eq!(removals["first"].as_array().map(Vec::len), Some(100));
    assert_eq!(
        removals["groups"],
        json!([
            {"kind": "namespaces", "input": "b", "cause": "removed", "guard": "each", "count": 150, "clusters": ids},
            {"kind": "namespaces", "input": "a", "cause": "removed", "guard": "each", "count": 10, "clusters": ids[140..]},
        ])
    );
}

#[tokio::test]
async fn a_loop_of_deletions_is_stopped_after_its_hourly_number() {
    let clusters: Vec<_> = (0..12)
        .map(|n| json!({"id": format!("c{n}"), "cluster_name": "c", "cluster_dns": format!("c{n}.example.com"), "environment": "dev"}))
        .collect();
    let api = Api::with(server::config::Mode::Crud, &json!({"clusters": clusters})).await;
    let mut statuses = Vec::new();
    for n in 0..12 {
        statuses.push(api.call("DELETE", &format!("/clusters/c{n}"), &[], None).await.status.as_u16());
    }
    assert_eq!(statuses, [&[204; 10][..], &[409; 2]].concat());
}

/// Twelve clusters, with a namespace each.
async fn twelve() -> Api {
    let clusters: Vec<_> = (0..12)
        .map(|n| json!({"id": format!("c{n}"), "cluster_name": "c", "cluster_dns": format!("c{n}.example.com"), "environment": "dev", "namespaces": [{"id": "team"}]}))
        .collect();
    Api::with(server::config::Mode::Crud, &json!({"namespaces": [{"id": "team"}], "clusters": clusters}))
        .await
}

/// A loop that sends each deletion again with the digest of its own dry run, or of its own 409, took every cluster.
#[tokio::test]
async fn a_loop_that_confirms_itself_is_stopped_and_goes_on_by_an_allowance_only() {
    let api = twelve().await;
    let mut statuses = Vec::new();
    let mut last = json!(null);
    for n in 0..12 {
        let path = format!("/clusters/c{n}");
        let plan = api.call("DELETE", &format!("{path}?dry_run=true"), &[], None).await.expect(200).json();
        let confirm = plan["confirm"].as_str().map(ToOwned::to_owned);
        let headers: Vec<(&str, &str)> = confirm.iter().map(|digest| ("x-confirm", &**digest)).collect();
        let answer = api.call("DELETE", &path, &headers, None).await;
        statuses.push(answer.status.as_u16());
        if answer.status == 409 {
            last = answer.json();
        }
    }
    assert_eq!(statuses, [&[204; 10][..], &[409; 2]].concat());
    assert_eq!(last["type"], "urn:flux-resourceset:allowance");
    assert_eq!(last["allowance"], json!({"for": "file:admin", "deletions": 1, "removals": 0}));
    assert_eq!(
        (&last["confirm"], &last["curl"]),
        (&json!(null), &json!(null)),
        "there is nothing to confirm"
    );
    // By selector, with the digest of its own dry run: five confirmed changes, and not one more.
    let api = twelve().await;
    let mut confirmed = 0;
    for n in 0..12 {
        let batch =
            json!({"operations": [{"op": "delete", "kind": "clusters", "selector": format!("id=c{n}")}]});
        let plan = api.call("POST", "/batch?dry_run=true", &[], batch.clone()).await.expect(200).json();
        assert_eq!(plan["asks"], json!(["removals"]));
        let digest = plan["confirm"].as_str().expect("a digest");
        let answer = api.call("POST", "/batch", &[("x-confirm", digest)], batch).await;
        confirmed += usize::from(answer.status == 200);
        if n >= 5 {
            assert_eq!(answer.problem(), (409, "allowance".to_owned()));
            assert_eq!(plan["allowance"]["deletions"], 1, "the plan has said so");
        }
    }
    assert_eq!(confirmed, 5);
}

#[tokio::test]
async fn an_allowance_is_granted_with_a_reason_used_up_and_taken_back() {
    let api = twelve().await;
    for n in 0..10 {
        api.call("DELETE", &format!("/clusters/c{n}"), &[], None).await.expect(204);
    }
    let grant = json!({"for": "file:admin", "deletions": 1, "minutes": 30});
    let without_reason = api.call("POST", "/guard/allowances", &[], grant.clone()).await;
    assert_eq!(without_reason.problem(), (422, "invalid".to_owned()));
    assert_eq!(without_reason.json()["violations"][0]["pointer"], "/reason");
    for wrong in [json!({"for": "x", "minutes": 1, "days": 2}), json!({"for": "x"}), json!([])] {
        let answer = api.call("POST", "/guard/allowances", &[("x-change-reason", "why")], wrong).await;
        assert_eq!(answer.problem(), (400, "invalid".to_owned()));
    }
    let too_long = json!({"for": "x", "deletions": 1, "minutes": 241});
    let answer = api.call("POST", "/guard/allowances", &[("x-change-reason", "why")], too_long).await;
    assert_eq!(answer.problem(), (422, "invalid".to_owned()));
    let made =
        api.call("POST", "/guard/allowances", &[("x-change-reason", "the site closes")], grant.clone());
    let made = made.await.expect(201).json();
    assert_eq!(
        (&made["for"], &made["deletions"], &made["removals"], &made["by"], &made["reason"]),
        (&json!("file:admin"), &json!(1), &json!(0), &json!("file:admin"), &json!("the site closes"))
    );
    let guard = api.get("/guard").await.expect(200).json();
    assert_eq!(guard["spent"], json!({"deletions": 10, "removals": 0, "confirmations": 0}));
    assert_eq!(guard["allowances"], json!([made]));
    api.call("DELETE", "/clusters/c10", &[], None).await.expect(204);
    let revision = &api.get("/revisions?limit=1").await.json()[0];
    assert_eq!(revision["removals"]["allowed"], true);
    assert_eq!(api.get("/guard").await.json()["allowances"], json!([]), "it is used up");
    let stopped = api.call("DELETE", "/clusters/c11", &[], None).await;
    assert_eq!(stopped.problem(), (409, "allowance".to_owned()));
    let again =
        api.call("POST", "/guard/allowances", &[("x-change-reason", "again")], grant).await.expect(201);
    let path = format!("/guard/allowances/{}", again.json()["id"].as_str().expect("an id"));
    api.call("DELETE", &path, &[], None).await.expect(204);
    assert_eq!(api.call("DELETE", &path, &[], None).await.problem(), (404, "missing".to_owned()));
    let stopped = api.call("DELETE", "/clusters/c11", &[], None).await;
    assert_eq!(stopped.problem(), (409, "allowance".to_owned()));
}

#[tokio::test]
async fn what_a_program_worked_out_names_nothing() {
    let api = twelve().await;
    let delete = json!({"op": "delete", "kind": "clusters", "id": "c0"});
    let derived = json!({"derived": true, "operations": [delete]});
    let stopped = api.call("POST", "/batch", &[], derived).await;
    assert_eq!(stopped.problem(), (409, "confirm".to_owned()));
    assert_eq!(stopped.json()["detail"], "the decommission of `c0` was not asked for by name");
    let wrong = api.call("POST", "/batch", &[], json!({"derived": "yes", "operations": [delete]})).await;
    assert_eq!(wrong.problem(), (400, "invalid".to_owned()));
    api.call("POST", "/batch", &[], json!({"derived": false, "operations": [delete]})).await.expect(200);
}

#[tokio::test]
async fn a_protected_cluster_is_not_deleted() {
    let api = Api::crud().await;
    api.call("PATCH", "/clusters/two", &[], json!({"protected": true})).await.expect(200);
    let refused = api.call("DELETE", "/clusters/two", &[], None).await;
    assert_eq!(refused.problem(), (409, "in-use".to_owned()));
    assert_eq!(api.get("/clusters/two").await.status, 200);
}
