//! What a follower is promised: the whole fleet in one snapshot, then every commit, and never another history.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fleet::{Operation, Position, Revision, State};
use ledger::{Budget, FeedError};
use serde_json::json;

use crate::Store;
use crate::fixture::{ALL, Fleet, Writing, create, delete, filled, forged, grow, label_namespace, patch};

pub fn a_new_store_is_an_empty_fleet(store: &Store) {
    let ledger = store.open();
    assert_eq!(ledger.follow.load(), Ok(State::empty()));
    assert_eq!(ledger.follow.read(Position::default(), ALL), Ok(vec![]));
}

pub fn a_read_at_the_head_gives_nothing_and_so_confirms_it(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = filled(&mut ledger, &["a"]);
    assert_eq!(ledger.follow.read(fleet.state.head(), ALL), Ok(vec![]));
    assert_eq!(ledger.follow.is_head(fleet.state.head()), Ok(true));
    let before = fleet.state.head();
    grow(&mut ledger, &mut fleet, "b");
    let commits = ledger.follow.read(before, ALL).expect("commits");
    assert_eq!(commits.iter().map(|commit| commit.header.at).collect::<Vec<_>>(), [fleet.state.head()]);
    assert_eq!(ledger.follow.is_head(before), Ok(false));
    assert_eq!(ledger.follow.is_head(fleet.state.head()), Ok(true));
}

pub fn a_read_gives_the_commits_to_the_letter(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = Fleet::new();
    fleet.actor = "a \"quoted\" actor; DROP TABLE commits --".into();
    let annotate =
        patch("namespaces", "a", json!({"annotations": {"example.com/note": "\u{2603} \"quoted\"\n"}}));
    let commits =
        vec![fleet.define_kinds(), fleet.namespace("a"), fleet.commit(vec![annotate]), fleet.delete("a")];
    ledger.append(Position::default(), &commits).expect("appended");
    assert_eq!(ledger.follow.read(Position::default(), ALL), Ok(commits));
}

pub fn a_read_of_another_history_is_forked(store: &Store) {
    let mut ledger = store.open();
    filled(&mut ledger, &["a", "b"]);
    let mut other = Fleet::new();
    other.define_kinds();
    assert_eq!(ledger.follow.read(other.state.head(), ALL), Err(FeedError::Forked(Revision(1))));
    assert_eq!(ledger.follow.is_head(other.state.head()), Err(FeedError::Forked(Revision(1))));
    let no_beginning = Position { revision: Revision(0), hash: other.state.head().hash };
    assert_eq!(ledger.follow.read(no_beginning, ALL), Err(FeedError::Forked(Revision(0))));
}

pub fn a_read_beyond_the_end_is_regressed(store: &Store) {
    let mut ledger = store.open();
    let mut ahead = filled(&mut ledger, &["a"]);
    ahead.namespace("b");
    let regressed = FeedError::Regressed { ours: Revision(3), theirs: Revision(2) };
    assert_eq!(ledger.follow.read(ahead.state.head(), ALL), Err(regressed));
    let far = Position { revision: Revision(u64::MAX), ..ahead.state.head() };
    let regressed = FeedError::Regressed { ours: Revision(u64::MAX), theirs: Revision(2) };
    assert_eq!(ledger.follow.read(far, ALL), Err(regressed));
}

pub fn a_budget_is_kept_but_one_commit_is_always_read(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a", "b", "c"]);
    let kinds = ledger.follow.read(Position::default(), Budget { commits: 1, bytes: 0 }).expect("commits");
    assert_eq!(kinds.len(), 1);
    let read = |commits, bytes| {
        let commits = ledger.follow.read(kinds[0].header.at, Budget { commits, bytes }).expect("commits");
        commits.iter().map(|commit| commit.header.at.revision.0).collect::<Vec<_>>()
    };
    let body = r#"{"id":"a"}"#.len();
    assert_eq!(read(0, 0), [2]);
    assert_eq!(read(2, usize::MAX), [2, 3]);
    assert_eq!(read(usize::MAX, 2 * body - 1), [2]);
    assert_eq!(read(usize::MAX, 2 * body), [2, 3]);
    assert_eq!(read(usize::MAX, usize::MAX), [2, 3, 4]);
    assert_eq!(fleet.state.head().revision, Revision(4));
}

pub fn a_waiting_follower_is_told_of_an_append(store: &Store) {
    let (mut writer, follower) = (store.open(), store.open().follow);
    let mut fleet = filled(&mut writer, &["a"]);
    for id in ["b", "c", "d"] {
        let before = follower.load().expect("a fleet").head();
        let waiting = std::thread::spawn({
            let follower = follower.clone();
            move || {
                let began = Instant::now();
                while follower.read(before, ALL).expect("commits").is_empty() {
                    follower.changed(LONG);
                }
                began.elapsed()
            }
        });
        std::thread::sleep(Duration::from_millis(60));
        grow(&mut writer, &mut fleet, id);
        assert!(waiting.join().expect("no panic") < LONG / 2, "it was told, and did not wait to the end");
    }
    // What was appended since the last look is not waited for.
    grow(&mut writer, &mut fleet, "e");
    let began = Instant::now();
    follower.changed(LONG);
    assert!(began.elapsed() < LONG / 2);
}

const LONG: Duration = Duration::from_secs(20);

pub fn a_follower_that_waits_for_nothing_goes_on_when_its_time_is_over(store: &Store) {
    let (mut writer, follower) = (store.open(), store.open().follow);
    let fleet = filled(&mut writer, &["a"]);
    assert_eq!(follower.load(), Ok(fleet.state));
    // One for nothing is allowed.
    follower.changed(Duration::from_millis(100));
    for millis in [0, 1, 120] {
        let (began, at_most) = (Instant::now(), Duration::from_millis(millis));
        follower.changed(at_most);
        assert!(began.elapsed() >= at_most, "nothing has changed: {:?} of {at_most:?}", began.elapsed());
        assert!(began.elapsed() < at_most + LONG / 4);
    }
}

pub fn a_load_during_appends_is_always_one_snapshot(store: &Store) {
    let (mut writer, reader) = (store.open(), store.open().follow);
    let mut fleet = filled(&mut writer, &["a"]);
    // Whoever writes goes on until somebody else has loaded some times in between.
    let loads = Arc::new(AtomicUsize::new(0));
    let writing = std::thread::spawn({
        let loads = loads.clone();
        move || {
            let mut n = 0;
            while n < 60 || loads.load(Ordering::SeqCst) < 5 {
                let at = fleet.state.head();
                let group = [fleet.label("a", &format!("{n}")), fleet.namespace(&format!("n{n}"))];
                writer.append(at, &group).expect("appended");
                n += 1;
            }
            fleet
        }
    });
    let mut last = Revision(0);
    while !writing.is_finished() {
        // A mixture of two moments would be `Corrupt`: the digest does not fit.
        let state = reader.load().expect("a verified fleet");
        assert!(state.head().revision >= last);
        last = state.head().revision;
        loads.fetch_add(1, Ordering::SeqCst);
    }
    let fleet = writing.join().expect("no panic");
    assert_eq!(reader.load(), Ok(fleet.state));
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

pub fn a_load_is_what_a_replay_from_the_start_comes_to(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = filled(&mut ledger, &[]);
    let mut dice = Dice(1);
    for round in 0..12 {
        let at = fleet.state.head();
        // Some rounds are hours apart, so that the guard's memory of removals matters and fades.
        fleet.now += i64::try_from(dice.below(3)).expect("small") * 1_200_000;
        let group: Vec<_> = (0..10).filter_map(|_| fleet.attempt(vec![something(&mut dice)])).collect();
        ledger.append(at, &group).expect("appended");

        let loaded = store.open().follow.load().expect("a fleet");
        assert_eq!(loaded, fleet.state, "after round {round}");
        let mut replayed = State::empty();
        for commit in ledger.follow.read(Position::default(), ALL).expect("commits") {
            replayed = replayed.replay(&commit).expect("it follows");
        }
        assert_eq!(replayed, loaded, "after round {round}");
        assert_eq!(replayed.digest(), loaded.digest());
    }
    assert!(fleet.state.head().revision > Revision(30), "{:?}: the dice did nothing", fleet.state);
}

pub fn entries_of_a_later_version_that_may_be_ignored_are_kept(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = filled(&mut ledger, &["a"]);
    let commits = ledger.follow.read(Position::default(), ALL).expect("commits");
    let commit = forged(&commits, &[("@?future", "[1]"), ("@?other", "{}")]);
    ledger.append(fleet.state.head(), std::slice::from_ref(&commit)).expect("appended");
    fleet.state = fleet.state.replay(&commit).expect("it is followed");
    assert_eq!(store.open().follow.load(), Ok(fleet.state.clone()));
    grow(&mut ledger, &mut fleet, "b");
    assert_eq!(store.open().follow.load(), Ok(fleet.state));
}

pub fn an_entry_of_a_later_version_that_must_be_understood_is_not_loaded(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a"]);
    let commits = ledger.follow.read(Position::default(), ALL).expect("commits");
    let commit = forged(&commits, &[("@future", "{}")]);
    ledger.append(fleet.state.head(), std::slice::from_ref(&commit)).expect("appended");
    // A follower reads it, and cannot replay it; whoever starts cannot load it.
    assert_eq!(ledger.follow.read(fleet.state.head(), ALL), Ok(vec![commit.clone()]));
    let Err(FeedError::NeedsNewer(needs)) = store.open().follow.load() else { panic!("it was loaded") };
    assert_eq!((needs.key.space(), needs.revision), ("@future", Revision(3)));
    assert_eq!(needs.version.as_deref(), Some("9.9.9"), "{needs}");
}
