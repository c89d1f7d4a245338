//! What the writer does when the store is in trouble: nobody is told that something was written which was not, or the other way round.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use fleet::{Canonical, Change, Commit, CommitId, Key, Position, Revision, State};
use ledger::{AppendError, Budget, Feed, FeedError, Held, Ledger, Memory, Query, Record};
use serde_json::json;
use server::config::Mode;
use server::follower;

use crate::api::{Api, small_fleet};

/// What becomes of an append.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Trouble {
    /// It is refused.
    Refused,
    /// It happens, and nobody knows.
    HappensUnknown,
    /// It does not happen, and nobody knows.
    UnknownOnly,
    /// It happens, and the disk cannot be trusted any more.
    Fatal,
    /// A bug.
    Panics,
    /// Another process appends first.
    Overtaken,
}

/// A store that has troubles, one for each append, and then none.
struct Troubled {
    store: Memory,
    troubles: Mutex<VecDeque<Trouble>>,
    /// Whether it cannot be read.
    away: AtomicBool,
    /// How often a lost commit is not found before the store answers.
    deaf: Mutex<u32>,
}

impl Troubled {
    async fn overtake(&self) {
        let create = fleet::Operation::Create {
            kind: "namespaces".into(),
            body: json!({"id": "of-another-process"}),
            replace_decommissioned: false,
        };
        another_process(&self.store, create).await;
    }
}

/// What a process does that this one does not know of.
async fn another_process(store: &Memory, operation: fleet::Operation) {
    let state = store.load().await.expect("it loads");
    let request = server::writer::Request {
        operations: vec![operation],
        confirm: None,
        planned_on: None,
        actor: "another".into(),
        reason: None,
        request: "r".into(),
    };
    let applied = fleet::apply(&state, &fleet::Policy::default(), &request.transaction()).expect("applied");
    store.append(state.head(), applied.commit.into_iter().collect()).await.expect("appended");
}

#[async_trait]
impl Feed for Troubled {
    async fn load(&self) -> Result<State, FeedError> {
        self.store.load().await
    }

    async fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(FeedError::Unreachable("the file is gone".to_owned()));
        }
        self.store.read(after, budget).await
    }

    async fn changed(&self) {
        self.store.changed().await;
    }
}

#[async_trait]
impl Ledger for Troubled {
    async fn append(&self, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        let trouble = self.troubles.lock().expect("no panic").pop_front();
        let unknown = || {
            let last = group.last().expect("a commit").origin.commit;
            Err(AppendError::Unknown { last, why: "the connection was lost".to_owned() })
        };
        match trouble {
            None => self.store.append(at, group).await,
            Some(Trouble::Refused) => Err(FeedError::Unreachable("the disk is full".to_owned()).into()),
            Some(Trouble::HappensUnknown) => {
                self.store.append(at, group.clone()).await?;
                unknown()
            }
            Some(Trouble::UnknownOnly) => unknown(),
            Some(Trouble::Fatal) => {
                self.store.append(at, group).await?;
                Err(AppendError::Fatal("fsync failed".to_owned()))
            }
            Some(Trouble::Panics) => panic!("a bug in the store"),
            Some(Trouble::Overtaken) => {
                self.overtake().await;
                self.store.append(at, group).await
            }
        }
    }

    async fn hold(&self) -> Result<Box<dyn Held>, FeedError> {
        self.store.hold().await
    }

    async fn find(&self, commit: CommitId) -> Result<Option<Position>, FeedError> {
        {
            let mut deaf = self.deaf.lock().expect("no panic");
            if *deaf > 0 {
                *deaf -= 1;
                return Err(FeedError::Unreachable("still away".to_owned()));
            }
        }
        self.store.find(commit).await
    }

    async fn history(&self, query: Query) -> Result<Vec<Record>, FeedError> {
        self.store.history(query).await
    }

    async fn changes(&self, revision: Revision, from: usize, limit: usize) -> Result<Vec<Change>, FeedError> {
        self.store.changes(revision, from, limit).await
    }

    async fn document_at(&self, key: Key, at: Revision) -> Result<Option<Canonical>, FeedError> {
        self.store.document_at(key, at).await
    }
}

async fn api(troubles: &[Trouble]) -> Api {
    let store = Memory::new();
    let ledger = Troubled {
        store: store.clone(),
        troubles: Mutex::new(troubles.iter().copied().collect()),
        away: AtomicBool::new(false),
        deaf: Mutex::new(2),
    };
    Api::on_store(Mode::Crud, &small_fleet(), Arc::new(store), Arc::new(ledger)).await
}

async fn create(api: &Api, id: &str) -> (u16, String) {
    let answer = api.call("POST", "/namespaces", &[], json!({"id": id})).await;
    (answer.status.as_u16(), answer.text())
}

async fn exists(api: &Api, id: &str) -> bool {
    api.get(&format!("/namespaces/{id}")).await.status == 200
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_append_is_told_as_such_and_the_next_one_works() {
    let api = api(&[Trouble::Refused]).await;
    let (status, told) = create(&api, "a").await;
    assert!(status == 503 && told.contains("nothing has changed") && !told.contains("disk"), "{told}");
    assert!(!exists(&api, "a").await);
    assert_eq!(create(&api, "a").await.0, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_outcome_is_looked_up_until_it_is_known() {
    let api = api(&[Trouble::HappensUnknown, Trouble::UnknownOnly]).await;
    assert_eq!(create(&api, "happened").await.0, 201);
    assert!(exists(&api, "happened").await);
    let (status, told) = create(&api, "did-not").await;
    assert!(status == 503 && told.contains("nothing has changed"), "{told}");
    assert!(!exists(&api, "did-not").await);
    assert_eq!(create(&api, "did-not").await.0, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_cannot_be_trusted_ends_the_writer_and_polls_go_on() {
    for trouble in [Trouble::Fatal, Trouble::Panics] {
        let api = api(&[trouble]).await;
        let (status, told) = create(&api, "perhaps").await;
        assert!(status == 503 && told.contains("is not known"), "{trouble:?}: {told}");
        let (status, told) = create(&api, "later").await;
        assert!(status == 503 && told.contains("nothing has changed"), "{trouble:?}: {told}");
        // The thread says so when it has ended.
        for _ in 0..100 {
            if api.get("/ready").await.json()["writer"] == "failed" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let ready = api.get("/ready").await.expect(200);
        assert_eq!(ready.json()["writer"], "failed", "{trouble:?}");
        assert_eq!(api.inputs("one.example.com", "namespaces").await.as_array().map(Vec::len), Some(2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_loses_a_race_reads_what_was_missed_and_writes_then() {
    let api = api(&[Trouble::Overtaken, Trouble::Overtaken]).await;
    assert_eq!(create(&api, "mine").await.0, 201);
    assert!(exists(&api, "of-another-process").await && exists(&api, "mine").await);
    let (status, told) = create(&api, "of-another-process").await;
    assert_eq!(status, 409, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_writes_is_followed() {
    let api = api(&[]).await;
    let another =
        Api::on_store(Mode::ReadOnly, &json!({}), api.app.ledger.clone(), api.app.ledger.clone()).await;
    api.call("DELETE", "/clusters/one/namespaces/team-b", &[], None).await.expect(204);
    follower::catch_up(&*another.app.ledger, &another.app.replica).await.expect("it follows");
    assert_eq!(another.inputs("one.example.com", "namespaces").await.as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_held_against_the_head_of_the_store_and_not_of_this_process() {
    let store = Memory::new();
    let ledger = Arc::new(Troubled {
        store: store.clone(),
        troubles: Mutex::new([Trouble::Overtaken].into()),
        away: AtomicBool::new(false),
        deaf: Mutex::new(0),
    });
    let api = Api::on_store(Mode::Crud, &small_fleet(), Arc::new(store.clone()), ledger).await;
    let create = async |id: &str, plan: &str| {
        api.call("POST", "/namespaces", &[("x-plan-revision", plan)], json!({"id": id})).await
    };
    // Another process is faster: it was planned on revision 1, and that is over.
    let overtaken = create("mine", "1").await;
    assert_eq!(overtaken.problem(), (412, "stale".to_owned()));
    let told = "the fleet is at revision 2, and this was planned on revision 1; plan it again";
    assert_eq!(overtaken.json()["detail"], told);
    assert!(!exists(&api, "mine").await);

    // It was planned by a process that has seen more than this one.
    let spare =
        fleet::Operation::Delete { kind: "platform_components".into(), target: fleet::Target::one("unused") };
    another_process(&store, spare).await;
    assert_eq!(api.app.replica.known().expect("loaded").head().revision, Revision(2));
    assert_eq!(create("mine", "3").await.expect(201).header("x-revision"), "4");
}

/// It was acknowledged with 200, and lost: the process did not know that the document had changed under it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_seems_to_change_nothing_is_decided_on_the_stores_head() {
    let store = Memory::new();
    let api =
        Api::on_store(Mode::Crud, &small_fleet(), Arc::new(store.clone()), Arc::new(store.clone())).await;
    let tag = |tag: &str| fleet::Operation::Patch {
        kind: "platform_components".into(),
        target: fleet::Target::one("podinfo"),
        patch: fleet::Patch::Strategic(json!({"oci_tag": tag})),
    };
    another_process(&store, tag("7.0.0")).await;
    let answer =
        api.call("PATCH", "/platform_components/podinfo", &[], json!({"oci_tag": "6.7.0"})).await.expect(200);
    assert_eq!(answer.header("x-revision"), "3", "there was something to change");
    let stored = store.load().await.expect("it loads");
    assert_eq!(stored.component("podinfo").map(|stored| &*stored.doc.oci_tag), Some("6.7.0"));

    another_process(&store, tag("8.0.0")).await;
    let stale = [("if-match", "\"3\"")];
    let answer = api.call("PATCH", "/platform_components/podinfo", &stale, json!({"oci_tag": "6.7.0"})).await;
    assert_eq!(answer.problem(), (412, "stale".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_not_even_that_there_is_nothing_to_do_while_the_store_is_away() {
    let store = Memory::new();
    let ledger = Arc::new(Troubled {
        store: store.clone(),
        troubles: Mutex::default(),
        away: AtomicBool::new(false),
        deaf: Mutex::new(0),
    });
    let api = Api::on_store(Mode::Crud, &small_fleet(), Arc::new(store), ledger.clone()).await;
    ledger.away.store(true, Ordering::Relaxed);
    let nothing = api.call("PATCH", "/platform_components/podinfo", &[], json!({"oci_tag": "6.7.0"})).await;
    assert_eq!(nothing.problem(), (503, "unavailable".to_owned()));
    let forgotten = api.call("DELETE", "/decommissioned/none.example.com", &[], None).await;
    assert_eq!(forgotten.problem(), (503, "unavailable".to_owned()));
}
