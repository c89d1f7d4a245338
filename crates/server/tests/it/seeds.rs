//! The seed file.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleet::MAX_CHANGES;
use ledger::{Budget, FeedError, Follow, Memory, Query};
use ledger_conformance::fixture::ALL;
use serde_json::{Value, json};
use server::config::Mode;
use server::replica::{NotServing, Replica};
use server::start::NotStarted;

use crate::api::{Api, prepare, prepare_opened};

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
    let store = Memory::new();
    let told = async |file| prepare(&store, Some(file)).await.expect_err("it is bad").to_string();
    let error = told(file.clone()).await;
    for told in ["`namespace` is no kind", "namespaces[1]", "clusters[0] (one) /environment"] {
        assert!(error.contains(told), "`{told}` is not in: {error}");
    }
    assert_eq!(store.open().follow.load().expect("a store").head().revision.0, 0);

    std::fs::write(&file, "{\"clusters\": [").expect("written");
    let error = told(file).await;
    assert!(error.contains("it is not JSON: EOF"), "{error}");
    let error = told(folder.path().join("none")).await;
    assert!(error.contains("it cannot be read"), "{error}");
}

#[tokio::test]
async fn a_store_that_has_held_something_ignores_the_seed_even_a_missing_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seed.json");
    std::fs::write(&file, json!({"namespaces": [{"id": "team-a"}]}).to_string()).expect("written");
    let store = Memory::new();
    prepare(&store, Some(file.clone())).await.expect("a good seed");
    let first = store.open().follow.load();
    std::fs::remove_file(&file).expect("removed");
    prepare(&store, Some(file)).await.expect("it is not read");
    assert_eq!(store.open().follow.load(), first);
    assert_eq!(store.open().history.history(&Query::newest(10)).expect("history").len(), 1);
}

/// A seed that is more than one transaction may change.
fn large() -> Value {
    let cluster = |n: usize| {
        json!({"id": format!("c{n}"), "cluster_name": "c", "cluster_dns": format!("c{n}.example.com"), "environment": "dev",
               "namespaces": [{"id": "team-a"}]})
    };
    json!({"clusters": (0..MAX_CHANGES + 100).map(cluster).collect::<Vec<_>>(), "namespaces": [{"id": "team-a"}]})
}

#[tokio::test]
async fn a_large_seed_is_loaded_in_parts_and_nothing_is_answered_before_the_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seed.json");
    std::fs::write(&file, large().to_string()).expect("written");
    let store = Memory::new();
    prepare(&store, Some(file.clone())).await.expect("a good seed");
    let opened = store.open();
    let state = opened.follow.load().expect("a fleet");
    assert_eq!((state.head().revision.0, state.cluster_count()), (2, MAX_CHANGES + 100));
    assert_eq!(state.seeding(), None);

    // As a process sees it that follows in between, and as it is when that was interrupted.
    let all = ledger::Budget { commits: 9, bytes: usize::MAX };
    let commits = opened.follow.read(fleet::Position::default(), all).expect("commits");
    let half = fleet::State::empty().replay(&commits[0]).expect("it follows");
    assert!(half.cluster_count() > 9_000 && half.seeding().is_some());
    let replica = Replica::new(None);
    replica.turn().begin(half).expect("it knows nothing");
    replica.confirm(1);
    assert_eq!(replica.serving().err(), Some(NotServing::Seeding));

    let interrupted = Memory::new();
    let mut append = interrupted.open().append.expect("for writing");
    append.append(fleet::Position::default(), &commits[..1]).expect("appended");
    assert!(matches!(prepare(&interrupted, None).await, Err(NotStarted::Interrupted)));
    let other = folder.path().join("other.json");
    std::fs::write(&other, "{}").expect("written");
    assert!(matches!(prepare(&interrupted, Some(other)).await, Err(NotStarted::Interrupted)));
    prepare(&interrupted, Some(file)).await.expect("it goes on");
    let state = interrupted.open().follow.load().expect("a fleet");
    assert_eq!((state.head().revision.0, state.cluster_count()), (2, MAX_CHANGES + 100));
    assert_eq!(state.seeding(), None);
}

/// A store that another process fills right after this one has looked at it.
struct FilledMeanwhile {
    follow: Arc<dyn Follow>,
    store: Memory,
    by_another: Mutex<Vec<fleet::Commit>>,
}

impl Follow for FilledMeanwhile {
    fn load(&self) -> Result<fleet::State, FeedError> {
        let loaded = self.follow.load();
        let commits = std::mem::take(&mut *self.by_another.lock().expect("not poisoned"));
        let mut append = self.store.open().append.expect("for writing");
        append.append(fleet::Position::default(), &commits).expect("appended");
        loaded
    }

    fn read(&self, after: fleet::Position, budget: Budget) -> Result<Vec<fleet::Commit>, FeedError> {
        self.follow.read(after, budget)
    }

    fn is_head(&self, at: fleet::Position) -> Result<bool, FeedError> {
        self.follow.is_head(at)
    }

    fn changed(&self, at_most: Duration) {
        self.follow.changed(at_most);
    }
}

/// The second of two processes that started at once loaded its own seed on top of the first one's fleet, which was being served.
#[tokio::test]
async fn a_store_that_another_process_has_filled_in_the_meantime_is_not_filled_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let seed = |name: &str, seed: &Value| {
        let file = folder.path().join(name);
        std::fs::write(&file, seed.to_string()).expect("written");
        file
    };
    let theirs = Memory::new();
    prepare(&theirs, Some(seed("theirs", &json!({"namespaces": [{"id": "theirs"}]})))).await.expect("filled");
    let commits = theirs.open().follow.read(fleet::Position::default(), ALL).expect("commits");
    for ours in [large(), json!({"namespaces": [{"id": "ours"}]}), json!({"namespaces": [{"id": "theirs"}]})]
    {
        let store = Memory::new();
        let mut opened = store.open();
        let by_another = Mutex::new(commits.clone());
        opened.follow = Arc::new(FilledMeanwhile { follow: opened.follow, store: store.clone(), by_another });
        prepare_opened(opened, Some(seed("ours", &ours))).await.expect("there is nothing to fill");
        let state = store.open().follow.load().expect("a fleet");
        assert_eq!((state.head().revision.0, state.ids("namespaces").len()), (1, 1));
        assert_eq!(state.seeding(), None);
    }
}

#[tokio::test]
async fn a_seed_is_split_by_its_bytes_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seed.json");
    let namespace = |n: usize| json!({"id": format!("n{n}"), "annotations": {"text": "x".repeat(60_000)}});
    let seed = json!({"namespaces": (0..600).map(namespace).collect::<Vec<_>>()});
    assert!(seed.to_string().len() > fleet::MAX_CHANGED_BYTES, "it does not fit into one transaction");
    std::fs::write(&file, seed.to_string()).expect("written");
    let store = Memory::new();
    prepare(&store, Some(file)).await.expect("a good seed");
    let state = store.open().follow.load().expect("a fleet");
    assert_eq!((state.head().revision.0, state.ids("namespaces").len(), state.seeding()), (3, 600, None));
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
