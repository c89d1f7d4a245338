//! What the writer does when the store is in trouble: nobody is told that something was written which was not, or the other way round.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleet::{Commit, CommitId, Position, Revision, State};
use ledger::{Append, AppendError, Budget, FeedError, Follow, Held, Memory, Opened};
use serde_json::json;
use server::config::Mode;
use server::follower;
use server::replica::Replica;

use crate::api::{Api, fill, small_fleet};

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
    troubles: VecDeque<Trouble>,
    /// How often a lost commit is not found before the store answers.
    deaf: u32,
    /// Whether it cannot be read.
    away: Arc<AtomicBool>,
}

impl Troubled {
    fn of(store: &Memory, troubles: &[Trouble]) -> Self {
        let troubles = troubles.iter().copied().collect();
        Self { store: store.clone(), troubles, deaf: 2, away: Arc::default() }
    }

    /// Its sides: what follows it may be away, what appends has troubles.
    fn open(self) -> Opened {
        let Opened { follow, history, append, store_id } = self.store.open();
        let follow = Arc::new(Away { follow, away: self.away.clone() });
        let append = Box::new(Appender { troubled: self, append: append.expect("for writing") });
        Opened { follow, history, append: Some(append), store_id }
    }
}

/// What a process does that this one does not know of.
fn another_process(store: &Memory, operation: fleet::Operation) {
    let Opened { follow, append, .. } = store.open();
    let state = follow.load().expect("it loads");
    let request = server::writer::Request {
        derived: false,
        operations: vec![operation],
        confirm: None,
        planned_on: None,
        actor: "another".into(),
        reason: None,
        request: None,
    };
    let applied = fleet::apply(&state, &fleet::Policy::default(), &request.transaction()).expect("applied");
    let commits: Vec<Commit> = applied.commit.into_iter().collect();
    append.expect("for writing").append(state.head(), &commits).expect("appended");
}

struct Away {
    follow: Arc<dyn Follow>,
    away: Arc<AtomicBool>,
}

impl Follow for Away {
    fn load(&self) -> Result<State, FeedError> {
        self.follow.load()
    }

    fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(FeedError::Unreachable("the file is gone".to_owned()));
        }
        self.follow.read(after, budget)
    }

    fn is_head(&self, at: Position) -> Result<bool, FeedError> {
        Ok(self.read(at, Budget { commits: 1, bytes: 0 })?.is_empty())
    }

    fn changed(&self, at_most: Duration) {
        self.follow.changed(at_most);
    }
}

struct Appender {
    troubled: Troubled,
    append: Box<dyn Append>,
}

impl Append for Appender {
    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        let unknown = || {
            let last = group.last().expect("a commit").header.origin.commit;
            Err(AppendError::Unknown { last, why: "the connection was lost".to_owned() })
        };
        match self.troubled.troubles.pop_front() {
            None => self.append.append(at, group),
            Some(Trouble::Refused) => Err(FeedError::Unreachable("the disk is full".to_owned()).into()),
            Some(Trouble::HappensUnknown) => {
                self.append.append(at, group)?;
                unknown()
            }
            Some(Trouble::UnknownOnly) => unknown(),
            Some(Trouble::Fatal) => {
                self.append.append(at, group)?;
                Err(AppendError::Fatal("fsync failed".to_owned()))
            }
            Some(Trouble::Panics) => panic!("a bug in the store"),
            Some(Trouble::Overtaken) => {
                let create = fleet::Operation::Create {
                    kind: "namespaces".into(),
                    body: json!({"id": "of-another-process"}),
                    replace_decommissioned: false,
                };
                another_process(&self.troubled.store, create);
                self.append.append(at, group)
            }
        }
    }

    fn hold(&mut self) -> Result<Box<dyn Held + '_>, FeedError> {
        self.append.hold()
    }

    fn find(&mut self, commit: CommitId) -> Result<Option<Position>, FeedError> {
        if self.troubled.deaf > 0 {
            self.troubled.deaf -= 1;
            return Err(FeedError::Unreachable("still away".to_owned()));
        }
        self.append.find(commit)
    }
}

async fn filled() -> Memory {
    let store = Memory::new();
    fill(&store, &small_fleet()).await;
    store
}

async fn api(troubles: &[Trouble]) -> Api {
    Api::on_store(Mode::Crud, Troubled::of(&filled().await, troubles).open())
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
    let store = filled().await;
    let api = Api::on_store(Mode::Crud, store.open());
    let another = Api::on_store(Mode::ReadOnly, store.open());
    api.call("DELETE", "/clusters/one/namespaces/team-b", &[], None).await.expect(204);
    follower::catch_up(&*store.open().follow, &another.app.replica).expect("it follows");
    assert_eq!(another.inputs("one.example.com", "namespaces").await.as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_held_against_the_head_of_the_store_and_not_of_this_process() {
    let store = filled().await;
    let api = Api::on_store(Mode::Crud, Troubled::of(&store, &[Trouble::Overtaken]).open());
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
    another_process(&store, spare);
    assert_eq!(api.app.replica.known().expect("loaded").head().revision, Revision(2));
    assert_eq!(create("mine", "3").await.expect(201).header("x-revision"), "4");
}

/// It was acknowledged with 200, and lost: the process did not know that the document had changed under it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_seems_to_change_nothing_is_decided_on_the_stores_head() {
    let store = filled().await;
    let api = Api::on_store(Mode::Crud, store.open());
    let tag = |tag: &str| fleet::Operation::Patch {
        kind: "platform_components".into(),
        target: fleet::Target::one("podinfo"),
        patch: fleet::Patch::Strategic(json!({"oci_tag": tag})),
    };
    another_process(&store, tag("7.0.0"));
    let answer =
        api.call("PATCH", "/platform_components/podinfo", &[], json!({"oci_tag": "6.7.0"})).await.expect(200);
    assert_eq!(answer.header("x-revision"), "3", "there was something to change");
    let stored = store.open().follow.load().expect("it loads");
    assert_eq!(stored.component("podinfo").map(|stored| &*stored.doc.oci_tag), Some("6.7.0"));

    another_process(&store, tag("8.0.0"));
    let stale = [("if-match", "\"3\"")];
    let answer = api.call("PATCH", "/platform_components/podinfo", &stale, json!({"oci_tag": "6.7.0"})).await;
    assert_eq!(answer.problem(), (412, "stale".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_acknowledged_not_even_that_there_is_nothing_to_do_while_the_store_is_away() {
    let troubled = Troubled::of(&filled().await, &[]);
    let away = troubled.away.clone();
    let api = Api::on_store(Mode::Crud, troubled.open());
    away.store(true, Ordering::Relaxed);
    let nothing = api.call("PATCH", "/platform_components/podinfo", &[], json!({"oci_tag": "6.7.0"})).await;
    assert_eq!(nothing.problem(), (503, "unavailable".to_owned()));
    let forgotten = api.call("DELETE", "/decommissioned/none.example.com", &[], None).await;
    assert_eq!(forgotten.problem(), (503, "unavailable".to_owned()));
}

/// One bad commit and a snapshot replaced history: whatever a load gave was published if its revision was higher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_does_not_replay_ends_following_and_no_snapshot_takes_its_place() {
    let store = filled().await;
    let api = Api::on_store(Mode::ReadOnly, store.open());
    let before = api.get("/api/v2/flux/clusters/one.example.com/namespaces").await.expect(200).bytes;
    // A commit that leads elsewhere than it says, and a good one after it, which a load would show.
    let Opened { follow, append, .. } = store.open();
    let (state, mut append) = (follow.load().expect("a fleet"), append.expect("for writing"));
    let request = |id: &str| server::writer::Request {
        derived: false,
        operations: vec![fleet::Operation::RemoveReference {
            clusters: fleet::Target::one("one"),
            kind: "namespaces".into(),
            id: id.into(),
        }],
        confirm: None,
        planned_on: None,
        actor: "another".into(),
        reason: None,
        request: None,
    };
    let policy = fleet::Policy { removals_per_hour: 9, ..fleet::Policy::default() };
    let applied = fleet::apply(&state, &policy, &request("team-b").transaction()).expect("accepted");
    let mut bad = applied.commit.expect("a commit");
    bad.header.state = state.digest();
    bad.header.at.hash = bad.header.expected_hash();
    let assign = server::writer::Request {
        derived: false,
        operations: vec![fleet::Operation::Create {
            kind: "namespaces".into(),
            body: json!({"id": "later"}),
            replace_decommissioned: false,
        }],
        ..request("")
    };
    let applied = fleet::apply(&applied.next, &policy, &assign.transaction()).expect("accepted");
    let mut good = applied.commit.expect("a commit");
    good.header.previous = bad.header.at.hash;
    good.header.at.hash = good.header.expected_hash();
    append.append(state.head(), &[bad, good]).expect("appended");
    let loaded = store.open().follow.load().expect("a snapshot of it can be loaded");
    assert_eq!(
        (loaded.head().revision, loaded.cluster("one").map(|one| one.doc.references_to("namespaces").len())),
        (Revision(3), Some(1))
    );

    let stop = tokio_util::sync::CancellationToken::new();
    let (replica, follow, end) = (api.app.replica.clone(), store.open().follow, stop.clone());
    let following = std::thread::spawn(move || follower::follow(&*follow, &replica, &end));
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while api.app.replica.trouble().is_none() && std::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let trouble = api.app.replica.trouble().expect("it is noticed");
    assert!(trouble.starts_with("revision 2 cannot be followed: the state after the commit"), "{trouble}");
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(api.app.replica.known().expect("known").head(), state.head());
    assert_eq!(api.get("/api/v2/flux/clusters/one.example.com/namespaces").await.expect(200).bytes, before);
    stop.cancel();
    following.join().expect("it ends");
}

/// A commit of a later version, with an entry of a space that this one does not know, appended to a store.
fn append_future(store: &Memory, space: &str) {
    let Opened { follow, append, .. } = store.open();
    let commits =
        follow.read(Position::default(), Budget { commits: 9, bytes: usize::MAX }).expect("commits");
    let at = commits.last().expect("a commit").header.at;
    let future = ledger_conformance::fixture::forged(&commits, &[(space, "{}")]);
    append.expect("for writing").append(at, &[future]).expect("appended");
}

const NEEDS: &str = "revision 2 has an entry `@future` that this version does not understand; it was written by version 9.9.9: run that version or a later one";

/// A thread that follows a store until it is dropped.
struct Following(tokio_util::sync::CancellationToken, Option<std::thread::JoinHandle<()>>);

impl Following {
    fn start(follow: Arc<dyn Follow>, replica: Arc<Replica>) -> Self {
        let stop = tokio_util::sync::CancellationToken::new();
        let end = stop.clone();
        Self(stop, Some(std::thread::spawn(move || follower::follow(&*follow, &replica, &end))))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.cancel();
        self.1.take().map(std::thread::JoinHandle::join);
    }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(std::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A later version wrote something that has to be understood: this one does not go beyond it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_of_a_later_version_is_not_followed_and_nothing_is_written_on_top_of_it() {
    let store = filled().await;
    let running = Api::on_store(Mode::Crud, store.open());
    append_future(&store, "@future");
    let follow = store.open().follow;
    let problem = follower::catch_up(&*follow, &running.app.replica).expect_err("it is not followed");
    assert_eq!(problem.to_string(), format!("revision 2 cannot be followed: {NEEDS}"));
    assert_eq!(running.inputs("one.example.com", "namespaces").await.as_array().map(Vec::len), Some(2));
    assert_eq!(create(&running, "more").await.0, 503, "nothing is written on top of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_process_that_meets_an_entry_of_a_later_version_answers_the_same_and_then_503() {
    const POLL: &str = "/api/v2/flux/clusters/one.example.com/namespaces";
    let store = filled().await;
    let replica = Arc::new(Replica::new(Some(Duration::from_secs(1))));
    let running = Api::on(Mode::ReadOnly, store.open(), replica.clone());
    let _following = Following::start(store.open().follow, replica);
    until("it is loaded", async || running.get(POLL).await.status == 200).await;
    let before = running.get(POLL).await.expect(200).bytes;
    append_future(&store, "@future");
    until("polls turn 503", async || {
        let answer = running.get(POLL).await;
        assert!(answer.status == 503 || answer.bytes == before, "{answer:?}");
        answer.status == 503
    })
    .await;
    let ready = running.get("/ready").await.expect(503).json();
    assert_eq!((&ready["needs"], &ready["status"]), (&json!(NEEDS), &json!("not ready")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_starts_on_a_store_of_a_later_version_says_what_it_needs() {
    let store = filled().await;
    append_future(&store, "@future");
    let replica = Arc::new(Replica::new(None));
    let starting = Api::on(Mode::ReadOnly, store.open(), replica.clone());
    let _following = Following::start(store.open().follow, replica);
    until("it is noticed", async || starting.app.replica.needs().is_some()).await;
    let ready = starting.get("/ready").await.expect(503).json();
    assert_eq!((&ready["needs"], &ready["status"]), (&json!(NEEDS), &json!("not ready")));
    starting.get("/api/v2/flux/clusters/one.example.com/namespaces").await.expect(503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_of_a_later_version_that_may_be_ignored_changes_no_byte_of_any_poll() {
    async fn polls(api: &Api) -> Vec<(String, Vec<u8>)> {
        let mut answers = Vec::new();
        for cluster in ["one", "two"] {
            for kind in ["platform-components", "namespaces", "rolebindings"] {
                let path = format!("/api/v2/flux/clusters/{cluster}.example.com/{kind}");
                let answer = api.get(&path).await.expect(200);
                answers.push((answer.header("etag").to_owned(), answer.bytes.clone()));
            }
        }
        answers
    }
    let store = filled().await;
    let running = Api::on_store(Mode::Crud, store.open());
    let before = polls(&running).await;
    append_future(&store, "@?future");
    follower::catch_up(&*store.open().follow, &running.app.replica).expect("it is followed");
    assert_eq!(running.app.replica.known().expect("known").head().revision, Revision(2));
    assert_eq!(polls(&running).await, before);
    let started = Api::on_store(Mode::ReadOnly, store.open());
    assert_eq!(polls(&started).await, before);
    started.get("/ready").await.expect(200);
    assert_eq!(create(&running, "more").await.0, 201, "and it is written on top of it");
}

/// Counts the commits that are read.
struct Counting(Arc<dyn Follow>, Arc<std::sync::atomic::AtomicUsize>);

impl Follow for Counting {
    fn load(&self) -> Result<State, FeedError> {
        self.0.load()
    }

    fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        let commits = self.0.read(after, budget)?;
        self.1.fetch_add(commits.len(), Ordering::Relaxed);
        Ok(commits)
    }

    fn is_head(&self, at: Position) -> Result<bool, FeedError> {
        self.0.is_head(at)
    }

    fn changed(&self, at_most: Duration) {
        self.0.changed(at_most);
    }
}

/// The follower replayed what its own process had written: half of the CPU time of a large batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_does_not_read_its_own_commits_back() {
    let store = filled().await;
    let api = Api::on_store(Mode::Crud, store.open());
    let read = Arc::default();
    let follow = Arc::new(Counting(store.open().follow, Arc::clone(&read)));
    let _following = Following::start(follow, api.app.replica.clone());
    for n in 0..20 {
        assert_eq!(create(&api, &format!("own-{n}")).await.0, 201);
    }
    let body = json!({"id": "of-another-process"});
    let create = fleet::Operation::Create { kind: "namespaces".into(), body, replace_decommissioned: false };
    another_process(&store, create);
    until("the other's is followed", async || {
        api.app.replica.known().is_some_and(|known| known.head().revision == Revision(22))
    })
    .await;
    assert_eq!(read.load(Ordering::Relaxed), 1, "only what another process wrote is read");
}

/// A clock that was once ahead is never forgiven: commits keep its time. It was not told anywhere.
#[tokio::test]
async fn a_commit_of_the_future_is_told_by_ready() {
    let store = Memory::new();
    fill(&store, &small_fleet()).await;
    let api = Api::on_store(Mode::Crud, store.open());
    assert!(api.get("/ready").await.expect(200).json().get("clock_behind_seconds").is_none());
    let state = api.app.replica.known().expect("known");
    let operation = fleet::Operation::Create {
        kind: "namespaces".into(),
        body: json!({"id": "later"}),
        replace_decommissioned: false,
    };
    let origin = fleet::Origin {
        commit: fleet::CommitId(77),
        time: fleet::Timestamp(state.time().0 + 36_000_000),
        actor: "a clock that is ahead".into(),
        ..fleet::Origin::default()
    };
    let transaction =
        fleet::Transaction { operations: vec![operation], derived: false, confirm: None, origin };
    let applied = fleet::apply(&state, &fleet::Policy::default(), &transaction).expect("accepted");
    let mut append = store.open().append.expect("for writing");
    append.append(state.head(), &[applied.commit.expect("a commit")]).expect("appended");
    let later = Api::on_store(Mode::Crud, store.open());
    let behind = later.get("/ready").await.expect(200).json()["clock_behind_seconds"].as_u64();
    assert!(behind.is_some_and(|seconds| (35_000..=36_000).contains(&seconds)), "{behind:?}");
}
