//! The seed file.

use ledger::{Feed, Ledger, Memory};
use serde_json::json;
use server::config::Mode;
use server::start;

use crate::api::{Api, config};

#[tokio::test]
async fn all_mistakes_of_a_seed_file_are_told_together_and_nothing_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seed.json");
    let bad = json!({
        "namespace": [],
        "namespaces": [{"id": "team-a"}, {"id": "Team B"}],
        "clusters": [{"_id": "one", "cluster_name": "one", "cluster_dns": "one.example.com", "environment": "production",
                      "namespaces": [{"id": "team-a"}]}],
    });
    std::fs::write(&file, bad.to_string()).expect("written");
    let ledger = Memory::new();
    let error = start::prepare(&ledger, &config(Mode::Crud, &file)).await.expect_err("it is bad").to_string();
    for told in ["`namespace` is no kind", "namespaces[1]", "clusters[0] (one) /environment"] {
        assert!(error.contains(told), "`{told}` is not in: {error}");
    }
    assert_eq!(ledger.load().await.expect("a store").head().revision.0, 0);

    std::fs::write(&file, "{\"clusters\": [").expect("written");
    let error = start::prepare(&ledger, &config(Mode::Crud, &file)).await.expect_err("it is bad").to_string();
    assert!(error.contains("it is not JSON: EOF"), "{error}");
    let error = start::prepare(&ledger, &config(Mode::Crud, &folder.path().join("none")))
        .await
        .expect_err("it is bad");
    assert!(error.to_string().contains("it cannot be read"), "{error}");
}

#[tokio::test]
async fn a_store_that_has_held_something_ignores_the_seed_even_a_missing_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seed.json");
    std::fs::write(&file, json!({"namespaces": [{"id": "team-a"}]}).to_string()).expect("written");
    let ledger = Memory::new();
    let first = start::prepare(&ledger, &config(Mode::Crud, &file)).await.expect("a good seed");
    std::fs::remove_file(&file).expect("removed");
    let second = start::prepare(&ledger, &config(Mode::Crud, &file)).await.expect("it is not read");
    assert_eq!((first.head(), first.digest()), (second.head(), second.digest()));
    assert_eq!(ledger.history(ledger::Query::newest(10)).await.expect("history").len(), 1);
}

#[tokio::test]
async fn the_demo_fleet_is_a_good_seed() {
    let seed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/seed.json"))
        .expect("it is there");
    let api = Api::with(Mode::Crud, &serde_json::from_str(&seed).expect("JSON")).await;
    let clusters = api.get("/clusters").await.expect(200).json();
    let clusters = clusters.as_array().expect("a list");
    assert!(clusters.len() >= 6);
    for environment in ["dev", "qa", "uat", "prod"] {
        assert!(clusters.iter().any(|cluster| cluster["environment"] == environment), "{environment}");
    }
    let demo = api.get("/clusters/demo-cluster-01").await.expect(200).json();
    assert_eq!(
        (&demo["cluster_dns"], &demo["environment"]),
        (&json!("demo-cluster-01.k8s.example.com"), &json!("dev"))
    );
    let components = api.get("/platform_components").await.expect(200).json();
    let components = components.as_array().expect("a list");
    let overrides = |member: &str| {
        let references =
            clusters.iter().filter_map(|cluster| cluster["platform_components"].as_array()).flatten();
        references.filter(|reference| reference.get(member).is_some()).count()
    };
    assert!(overrides("oci_tag") >= 2, "a canary and a hotfix");
    assert!(components.iter().any(|component| component["cluster_env_enabled"] == true), "overlays");
    for delivery in ["helm", "kustomize"] {
        let found = api.get(&format!("/platform_components?delivery={delivery}")).await.expect(200).json();
        assert_ne!(found, json!([]), "{delivery}");
    }
    assert!(components.iter().any(|component| component["depends_on"].is_array()), "dependencies");
    for component in ["cert-manager", "traefik", "podinfo"] {
        api.get(&format!("/platform_components/{component}")).await.expect(200);
    }
}
