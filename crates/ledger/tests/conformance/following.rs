//! What a follower is promised: the whole fleet in one snapshot, then every commit, and never another history.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fleet::{Operation, Position, Revision, State};
use ledger::{Budget, FeedError};
use serde_json::json;

use crate::Store;
use crate::fixture::{ALL, Fleet, create, delete, filled, grow, label_namespace, patch};

pub(crate) async fn a_new_store_is_an_empty_fleet(store: Store) {
    let ledger = store.handle();
    assert_eq!(ledger.load().await, Ok(State::empty()));
    assert_eq!(ledger.read(Position::default(), ALL).await, Ok(vec![]));
}

pub(crate) async fn a_read_at_the_head_gives_nothing_and_so_confirms_it(store: Store) {
    let ledger = store.handle();
    let mut fleet = filled(&*ledger, &["a"]).await;
    assert_eq!(ledger.read(fleet.state.head(), ALL).await, Ok(vec![]));
    let before = fleet.state.head();
    grow(&*ledger, &mut fleet, "b").await;
    let commits = ledger.read(before, ALL).await.expect("commits");
    assert_eq!(commits.iter().map(|commit| commit.at).collect::<Vec<_>>(), [fleet.state.head()]);
}

pub(crate) async fn a_read_gives_the_commits_to_the_letter(store: Store) {
    let ledger = store.handle();
    let mut fleet = Fleet::new();
    fleet.actor = "a \"quoted\" actor; DROP TABLE commits --".into();
    let annotate =
        patch("namespaces", "a", json!({"annotations": {"example.com/note": "\u{2603} \"quoted\"\n"}}));
    let commits =
        vec![fleet.define_kinds(), fleet.namespace("a"), fleet.commit(vec![annotate]), fleet.delete("a")];
    ledger.append(Position::default(), commits.clone()).await.expect("appended");
    assert_eq!(ledger.read(Position::default(), ALL).await, Ok(commits));
}

pub(crate) async fn a_read_of_another_history_is_forked(store: Store) {
    let ledger = store.handle();
    filled(&*ledger, &["a", "b"]).await;
    let mut other = Fleet::new();
    other.define_kinds();
    assert_eq!(ledger.read(other.state.head(), ALL).await, Err(FeedError::Forked(Revision(1))));
    let no_beginning = Position { revision: Revision(0), hash: other.state.head().hash };
    assert_eq!(ledger.read(no_beginning, ALL).await, Err(FeedError::Forked(Revision(0))));
}

pub(crate) async fn a_read_beyond_the_end_is_regressed(store: Store) {
    let ledger = store.handle();
    let mut ahead = filled(&*ledger, &["a"]).await;
    ahead.namespace("b");
    let regressed = FeedError::Regressed { ours: Revision(3), theirs: Revision(2) };
    assert_eq!(ledger.read(ahead.state.head(), ALL).await, Err(regressed));
    let far = Position { revision: Revision(u64::MAX), ..ahead.state.head() };
    let regressed = FeedError::Regressed { ours: Revision(u64::MAX), theirs: Revision(2) };
    assert_eq!(ledger.read(far, ALL).await, Err(regressed));
}

pub(crate) async fn a_budget_is_kept_but_one_commit_is_always_read(store: Store) {
    let ledger = store.handle();
    let fleet = filled(&*ledger, &["a", "b", "c"]).await;
    let kinds = ledger.read(Position::default(), Budget { commits: 1, bytes: 0 }).await.expect("commits");
    assert_eq!(kinds.len(), 1);
    let read = async |commits, bytes| {
        let commits = ledger.read(kinds[0].at, Budget { commits, bytes }).await.expect("commits");
        commits.iter().map(|commit| commit.at.revision.0).collect::<Vec<_>>()
    };
    let body = r#"{"id":"a"}"#.len();
    assert_eq!(read(0, 0).await, [2]);
    assert_eq!(read(2, usize::MAX).await, [2, 3]);
    assert_eq!(read(usize::MAX, 2 * body - 1).await, [2]);
    assert_eq!(read(usize::MAX, 2 * body).await, [2, 3]);
    assert_eq!(read(usize::MAX, usize::MAX).await, [2, 3, 4]);
    assert_eq!(fleet.state.head().revision, Revision(4));
}

pub(crate) async fn a_waiting_follower_is_told_of_an_append(store: Store) {
    let (writer, follower) = (store.handle(), store.handle());
    let mut fleet = filled(&*writer, &["a"]).await;
    for id in ["b", "c", "d"] {
        let before = follower.load().await.expect("a fleet").head();
        let waiting = tokio::spawn({
            let follower = follower.clone();
            async move {
                while follower.read(before, ALL).await.expect("commits").is_empty() {
                    follower.changed().await;
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(60)).await;
        grow(&*writer, &mut fleet, id).await;
        tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("in time").expect("no panic");
    }
}

pub(crate) async fn a_load_during_appends_is_always_one_snapshot(store: Store) {
    let (writer, reader) = (store.handle(), store.handle());
    let mut fleet = filled(&*writer, &["a"]).await;
    // Whoever writes goes on until somebody else has loaded some times in between.
    let loads = Arc::new(AtomicUsize::new(0));
    let writing = tokio::spawn({
        let loads = loads.clone();
        async move {
            let mut n = 0;
            while n < 60 || loads.load(Ordering::SeqCst) < 5 {
                let at = fleet.state.head();
                let group = vec![fleet.label("a", &format!("{n}")), fleet.namespace(&format!("n{n}"))];
                writer.append(at, group).await.expect("appended");
                n += 1;
            }
            fleet
        }
    });
    let mut last = Revision(0);
    while !writing.is_finished() {
        // A mixture of two moments would be `Corrupt`: the digest does not fit.
        let state = reader.load().await.expect("a verified fleet");
        assert!(state.head().revision >= last);
        last = state.head().revision;
        loads.fetch_add(1, Ordering::SeqCst);
    }
    let fleet = writing.await.expect("no panic");
    assert_eq!(reader.load().await, Ok(fleet.state));
}

/// A number that looks random and is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn something(dice: &mut Dice) -> Operation {
    let namespace = format!("n{}", dice.below(4));
    let (cluster, component) = (format!("c{}", dice.below(3)), format!("p{}", dice.below(2)));
    let dns = format!("{cluster}.k8s.example.com");
    match dice.below(9) {
        0 | 1 => create("namespaces", json!({"id": namespace})),
        2 => label_namespace(&namespace, &format!("l{}", dice.below(1_000))),
        3 => delete("namespaces", &namespace),
        4 => create(
            "platform_components",
            json!({"id": component, "component_path": "x", "oci_url": "https://charts.example.com", "oci_tag": "1.0.0"}),
        ),
        5 => patch("platform_components", &component, json!({"oci_tag": format!("1.0.{}", dice.below(100))})),
        6 => create(
            "clusters",
            json!({"id": cluster, "cluster_name": cluster, "cluster_dns": dns, "environment": "dev",
                   "platform_components": [{"id": component}], "namespaces": [{"id": namespace}]}),
        ),
        7 => patch("clusters", &cluster, json!({"platform_components": [], "namespaces": []})),
        _ => delete("clusters", &cluster),
    }
}

pub(crate) async fn a_load_is_what_a_replay_from_the_start_comes_to(store: Store) {
    let ledger = store.handle();
    let mut fleet = filled(&*ledger, &[]).await;
    let mut dice = Dice(1);
    for round in 0..12 {
        let at = fleet.state.head();
        // Some rounds are hours apart, so that the guard's memory of removals matters and fades.
        fleet.now += i64::try_from(dice.below(3)).expect("small") * 1_200_000;
        let group: Vec<_> = (0..10).filter_map(|_| fleet.attempt(vec![something(&mut dice)])).collect();
        ledger.append(at, group).await.expect("appended");

        let loaded = store.handle().load().await.expect("a fleet");
        assert_eq!(loaded, fleet.state, "after round {round}");
        let mut replayed = State::empty();
        for commit in ledger.read(Position::default(), ALL).await.expect("commits") {
            replayed = replayed.replay(&commit).expect("it follows");
        }
        assert_eq!(replayed, loaded, "after round {round}");
        assert_eq!(replayed.digest(), loaded.digest());
    }
    assert!(fleet.state.head().revision > Revision(30), "{:?}: the dice did nothing", fleet.state);
}
