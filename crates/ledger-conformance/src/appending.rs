//! What an append promises: gapless, in order, all or nothing, and only after the very commit that its author had seen.

use fleet::{Position, Revision, State};
use ledger::{AppendError, FeedError, Opened};

use crate::Store;
use crate::fixture::{ALL, Fleet, Writing, filled, grow};

/// What is in the store is what the fleet is, and it ends there.
fn holds(ledger: &Opened, fleet: &Fleet) {
    assert_eq!(ledger.follow.load(), Ok(fleet.state.clone()));
    assert_eq!(ledger.follow.read(fleet.state.head(), ALL), Ok(vec![]));
}

pub fn revisions_are_gapless_and_in_the_order_of_the_appends(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a", "b", "c"]);
    let commits = ledger.follow.read(Position::default(), ALL).expect("commits");
    let revisions: Vec<u64> = commits.iter().map(|commit| commit.header.at.revision.0).collect();
    assert_eq!(revisions, [1, 2, 3, 4]);
    holds(&ledger, &fleet);
}

pub fn an_append_at_an_old_head_is_a_conflict_and_changes_nothing(store: &Store) {
    let (mut ours, mut theirs) = (store.open(), store.open());
    let mut fleet = filled(&mut ours, &["a"]);
    let (at, mut late) = (fleet.state.head(), fleet.clone());
    grow(&mut theirs, &mut fleet, "b");
    assert_eq!(ours.append(at, &[late.namespace("c")]), Err(AppendError::Conflict));
    holds(&ours, &fleet);
}

pub fn a_group_is_appended_as_a_whole(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = filled(&mut ledger, &["a"]);
    let at = fleet.state.head();
    let group = vec![fleet.namespace("b"), fleet.delete("a"), fleet.namespace("a"), fleet.label("b", "x")];
    assert_eq!(ledger.append(at, &group), Ok(()));
    assert_eq!(ledger.follow.read(at, ALL), Ok(group));
    holds(&ledger, &fleet);
}

pub fn a_group_of_nothing_asks_whether_the_position_is_the_head(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = filled(&mut ledger, &["a"]);
    let before = fleet.state.head();
    assert_eq!(ledger.append(before, &[]), Ok(()));
    grow(&mut ledger, &mut fleet, "b");
    assert_eq!(ledger.append(before, &[]), Err(AppendError::Conflict));
    holds(&ledger, &fleet);
}

pub fn a_group_with_a_broken_chain_leaves_nothing_behind(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a"]);
    let (at, mut next) = (fleet.state.head(), fleet.clone());
    let (first, _, third) = (next.namespace("b"), next.namespace("c"), next.namespace("d"));
    let refused = ledger.append(at, &[first, third]);
    let because = "the commit of revision 5 does not follow revision 3".to_owned();
    assert_eq!(refused, Err(FeedError::Corrupt(because).into()));
    holds(&ledger, &fleet);
}

pub fn a_group_with_a_commit_that_was_altered_leaves_nothing_behind(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a"]);
    let (at, mut next) = (fleet.state.head(), fleet.clone());
    let (first, mut second) = (next.namespace("b"), next.namespace("c"));
    second.header.origin.actor = "somebody else".into();
    let refused = ledger.append(at, &[first, second]);
    let because = "the commit of revision 4 has another hash than its contents".to_owned();
    assert_eq!(refused, Err(FeedError::Corrupt(because).into()));
    holds(&ledger, &fleet);
}

pub fn a_group_at_a_moved_head_leaves_nothing_behind(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = filled(&mut ledger, &["a"]);
    let (at, mut late) = (fleet.state.head(), fleet.clone());
    grow(&mut ledger, &mut fleet, "b");
    let group = vec![late.namespace("c"), late.namespace("d")];
    assert_eq!(ledger.append(at, &group), Err(AppendError::Conflict));
    holds(&ledger, &fleet);
}

pub fn an_append_to_another_history_is_forked(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a", "b"]);
    let mut other = Fleet::new();
    other.define_kinds();
    let at = other.state.head();
    let refused = ledger.append(at, &[other.namespace("c")]);
    assert_eq!(refused, Err(FeedError::Forked(Revision(1)).into()));
    holds(&ledger, &fleet);
}

pub fn an_append_beyond_the_end_is_regressed(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a"]);
    let mut ahead = fleet.clone();
    ahead.namespace("b");
    let at = ahead.state.head();
    let refused = ledger.append(at, &[ahead.namespace("c")]);
    let regressed = FeedError::Regressed { ours: Revision(3), theirs: Revision(2) };
    assert_eq!(refused, Err(regressed.into()));
    holds(&ledger, &fleet);
}

pub fn a_commit_id_is_taken_once(store: &Store) {
    let mut ledger = store.open();
    let fleet = filled(&mut ledger, &["a"]);
    let (at, mut next) = (fleet.state.head(), fleet.clone());
    let mut commit = next.namespace("b");
    commit.header.origin.commit =
        ledger.follow.read(State::empty().head(), ALL).expect("commits")[0].header.origin.commit;
    commit.header.at.hash = commit.header.expected_hash();
    let refused = ledger.append(at, &[commit]);
    assert!(matches!(refused, Err(AppendError::Refused(FeedError::Corrupt(_)))), "{refused:?}");
    holds(&ledger, &fleet);
}
