//! Several writers: each append is decided on what it follows, and no writer waits for ever.

use std::sync::Arc;

use fleet::{Position, Revision};
use ledger::{AppendError, Ledger};

use crate::Store;
use crate::fixture::{ALL, Fleet, filled, grow};

pub(crate) async fn a_lock_that_is_let_go_leaves_nothing_behind(store: Store) {
    let (ours, theirs) = (store.handle(), store.handle());
    let mut fleet = filled(&*ours, &["a"]).await;
    let mut held = ours.hold().await.expect("the lock");
    assert_eq!(held.read(fleet.state.head(), ALL).await, Ok(vec![]));
    drop(held);
    grow(&*theirs, &mut fleet, "b").await;
    grow(&*ours, &mut fleet, "c").await;
    assert_eq!(theirs.load().await, Ok(fleet.state));
}

pub(crate) async fn who_holds_the_head_reads_what_was_missed_and_appends(store: Store) {
    let (ours, theirs) = (store.handle(), store.handle());
    let mut fleet = filled(&*ours, &["a"]).await;
    let before = fleet.state.clone();
    grow(&*theirs, &mut fleet, "b").await;

    let mut held = ours.hold().await.expect("the lock");
    let missed = held.read(before.head(), ALL).await.expect("commits");
    let mut caught_up = Fleet::at(before.replay(&missed[0]).expect("it follows"));
    // Others go on reading meanwhile.
    assert_eq!(theirs.load().await, Ok(fleet.state));
    let at = caught_up.state.head();
    let commit = caught_up.namespace("c");
    assert_eq!(held.append(at, vec![commit]).await, Ok(()));
    assert_eq!(theirs.load().await, Ok(caught_up.state));
}

/// Appends namespaces of its own; after a lost race, with the head's lock.
async fn writer(ledger: Arc<dyn Ledger>, name: &str, appends: usize) -> usize {
    let mut state = ledger.load().await.expect("a fleet");
    let mut conflicts = 0;
    for n in 0..appends {
        let id = format!("{name}{n}");
        let mut fleet = Fleet::at(state.clone());
        let commit = fleet.namespace(&id);
        match ledger.append(state.head(), vec![commit]).await {
            Ok(()) => state = fleet.state,
            Err(AppendError::Conflict) => {
                conflicts += 1;
                let mut held = ledger.hold().await.expect("the lock");
                for missed in held.read(state.head(), ALL).await.expect("commits") {
                    state = state.replay(&missed).expect("it follows");
                }
                let mut fleet = Fleet::at(state.clone());
                let commit = fleet.namespace(&id);
                held.append(state.head(), vec![commit]).await.expect("who holds the head loses no race");
                state = fleet.state;
            }
            Err(other) => panic!("{other}"),
        }
    }
    conflicts
}

pub(crate) async fn two_writers_neither_starve_nor_lose_anything(store: Store) {
    filled(&*store.handle(), &[]).await;
    let one = tokio::spawn(writer(store.handle(), "one-", 40));
    let two = tokio::spawn(writer(store.handle(), "two-", 40));
    let conflicts = one.await.expect("no panic") + two.await.expect("no panic");
    let ledger = store.handle();
    let state = ledger.load().await.expect("a fleet");
    assert_eq!(state.head().revision, Revision(81));
    for name in ["one", "two"] {
        assert!((0..40).all(|n| state.definition("namespaces", &format!("{name}-{n}")).is_some()));
    }
    assert_eq!(ledger.read(Position::default(), ALL).await.expect("commits").len(), 81);
    println!("{conflicts} conflicts");
}
