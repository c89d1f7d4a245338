//! What an append promises: gapless, in order, all or nothing, and only after the very commit that its author had seen.

use fleet::{Position, Revision, State};
use ledger::{AppendError, FeedError, Ledger};

use crate::Store;
use crate::fixture::{ALL, Fleet, filled, grow};

/// What is in the store is what the fleet is, and it ends there.
async fn holds(ledger: &dyn Ledger, fleet: &Fleet) {
    assert_eq!(ledger.load().await, Ok(fleet.state.clone()));
    assert_eq!(ledger.read(fleet.state.head(), ALL).await, Ok(vec![]));
}

pub(crate) async fn revisions_are_gapless_and_in_the_order_of_the_appends(store: Store) {
    let ledger = store.handle();
    let fleet = filled(&*ledger, &["a", "b", "c"]).await;
    let commits = ledger.read(Position::default(), ALL).await.expect("commits");
    let revisions: Vec<u64> = commits.iter().map(|commit| commit.at.revision.0).collect();
    assert_eq!(revisions, [1, 2, 3, 4]);
    holds(&*ledger, &fleet).await;
}

pub(crate) async fn an_append_at_an_old_head_is_a_conflict_and_changes_nothing(store: Store) {
    let (ours, theirs) = (store.handle(), store.handle());
    let mut fleet = filled(&*ours, &["a"]).await;
    let (at, mut late) = (fleet.state.head(), fleet.clone());
    grow(&*theirs, &mut fleet, "b").await;
    assert_eq!(ours.append(at, vec![late.namespace("c")]).await, Err(AppendError::Conflict));
    holds(&*ours, &fleet).await;
}

pub(crate) async fn a_group_is_appended_as_a_whole(store: Store) {
    let ledger = store.handle();
    let mut fleet = filled(&*ledger, &["a"]).await;
    let at = fleet.state.head();
    let group = vec![fleet.namespace("b"), fleet.delete("a"), fleet.namespace("a"), fleet.label("b", "x")];
    assert_eq!(ledger.append(at, group.clone()).await, Ok(()));
    assert_eq!(ledger.read(at, ALL).await, Ok(group));
    holds(&*ledger, &fleet).await;
}

pub(crate) async fn a_group_with_a_broken_chain_leaves_nothing_behind(store: Store) {
    let ledger = store.handle();
    let fleet = filled(&*ledger, &["a"]).await;
    let (at, mut next) = (fleet.state.head(), fleet.clone());
    let (first, _, third) = (next.namespace("b"), next.namespace("c"), next.namespace("d"));
    let refused = ledger.append(at, vec![first, third]).await;
    let because = "the commit of revision 5 does not follow revision 3".to_owned();
    assert_eq!(refused, Err(FeedError::Corrupt(because).into()));
    holds(&*ledger, &fleet).await;
}

pub(crate) async fn a_group_with_a_commit_that_was_altered_leaves_nothing_behind(store: Store) {
    let ledger = store.handle();
    let fleet = filled(&*ledger, &["a"]).await;
    let (at, mut next) = (fleet.state.head(), fleet.clone());
    let (first, mut second) = (next.namespace("b"), next.namespace("c"));
    second.origin.actor = "somebody else".into();
    let refused = ledger.append(at, vec![first, second]).await;
    let because = "the commit of revision 4 has another hash than its contents".to_owned();
    assert_eq!(refused, Err(FeedError::Corrupt(because).into()));
    holds(&*ledger, &fleet).await;
}

pub(crate) async fn a_group_at_a_moved_head_leaves_nothing_behind(store: Store) {
    let ledger = store.handle();
    let mut fleet = filled(&*ledger, &["a"]).await;
    let (at, mut late) = (fleet.state.head(), fleet.clone());
    grow(&*ledger, &mut fleet, "b").await;
    let group = vec![late.namespace("c"), late.namespace("d")];
    assert_eq!(ledger.append(at, group).await, Err(AppendError::Conflict));
    holds(&*ledger, &fleet).await;
}

pub(crate) async fn an_append_to_another_history_is_forked(store: Store) {
    let ledger = store.handle();
    let fleet = filled(&*ledger, &["a", "b"]).await;
    let mut other = Fleet::new();
    other.define_kinds();
    let at = other.state.head();
    let refused = ledger.append(at, vec![other.namespace("c")]).await;
    assert_eq!(refused, Err(FeedError::Forked(Revision(1)).into()));
    holds(&*ledger, &fleet).await;
}

pub(crate) async fn an_append_beyond_the_end_is_regressed(store: Store) {
    let ledger = store.handle();
    let fleet = filled(&*ledger, &["a"]).await;
    let mut ahead = fleet.clone();
    ahead.namespace("b");
    let at = ahead.state.head();
    let refused = ledger.append(at, vec![ahead.namespace("c")]).await;
    let regressed = FeedError::Regressed { ours: Revision(3), theirs: Revision(2) };
    assert_eq!(refused, Err(regressed.into()));
    holds(&*ledger, &fleet).await;
}

pub(crate) async fn a_commit_id_is_taken_once(store: Store) {
    let ledger = store.handle();
    let fleet = filled(&*ledger, &["a"]).await;
    let (at, mut next) = (fleet.state.head(), fleet.clone());
    let mut commit = next.namespace("b");
    commit.origin.commit = ledger.read(State::empty().head(), ALL).await.expect("commits")[0].origin.commit;
    commit.at.hash = commit.expected_hash();
    let refused = ledger.append(at, vec![commit]).await;
    assert!(matches!(refused, Err(AppendError::Refused(FeedError::Corrupt(_)))), "{refused:?}");
    holds(&*ledger, &fleet).await;
}
