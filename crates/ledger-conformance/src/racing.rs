//! Several writers: each append is decided on what it follows, and no writer waits for ever.

use fleet::{Position, Revision};
use ledger::{AppendError, Opened};

use crate::Store;
use crate::fixture::{ALL, Fleet, Writing, filled, grow};

pub fn a_lock_that_is_let_go_leaves_nothing_behind(store: &Store) {
    let (mut ours, mut theirs) = (store.open(), store.open());
    let mut fleet = filled(&mut ours, &["a"]);
    let mut held = ours.hold().expect("the lock");
    assert_eq!(held.read(fleet.state.head(), ALL), Ok(vec![]));
    drop(held);
    grow(&mut theirs, &mut fleet, "b");
    grow(&mut ours, &mut fleet, "c");
    assert_eq!(theirs.follow.load(), Ok(fleet.state));
}

pub fn who_holds_the_head_reads_what_was_missed_and_appends(store: &Store) {
    let (mut ours, mut theirs) = (store.open(), store.open());
    let mut fleet = filled(&mut ours, &["a"]);
    let before = fleet.state.clone();
    grow(&mut theirs, &mut fleet, "b");

    let mut held = ours.hold().expect("the lock");
    let missed = held.read(before.head(), ALL).expect("commits");
    let mut caught_up = Fleet::at(before.replay(&missed[0]).expect("it follows"));
    // Others go on reading meanwhile.
    assert_eq!(theirs.follow.load(), Ok(fleet.state));
    let at = caught_up.state.head();
    let commit = caught_up.namespace("c");
    assert_eq!(held.append(at, &[commit]), Ok(()));
    assert_eq!(theirs.follow.load(), Ok(caught_up.state));
}

/// Appends namespaces of its own; after a lost race, with the head's lock.
fn writer(mut ledger: Opened, name: &str, appends: usize) -> usize {
    let mut state = ledger.follow.load().expect("a fleet");
    let mut conflicts = 0;
    for n in 0..appends {
        let id = format!("{name}{n}");
        let mut fleet = Fleet::at(state.clone());
        let commit = fleet.namespace(&id);
        match ledger.append(state.head(), &[commit]) {
            Ok(()) => state = fleet.state,
            Err(AppendError::Conflict) => {
                conflicts += 1;
                let mut held = ledger.hold().expect("the lock");
                for missed in held.read(state.head(), ALL).expect("commits") {
                    state = state.replay(&missed).expect("it follows");
                }
                let mut fleet = Fleet::at(state.clone());
                let commit = fleet.namespace(&id);
                held.append(state.head(), &[commit]).expect("who holds the head loses no race");
                state = fleet.state;
            }
            Err(other) => panic!("{other}"),
        }
    }
    conflicts
}

pub fn two_writers_neither_starve_nor_lose_anything(store: &Store) {
    filled(&mut store.open(), &[]);
    let (one, two) = (store.open(), store.open());
    let one = std::thread::spawn(move || writer(one, "one-", 40));
    let two = std::thread::spawn(move || writer(two, "two-", 40));
    let conflicts = one.join().expect("no panic") + two.join().expect("no panic");
    let ledger = store.open();
    let state = ledger.follow.load().expect("a fleet");
    assert_eq!(state.head().revision, Revision(81));
    for name in ["one", "two"] {
        assert!((0..40).all(|n| state.definition("namespaces", &format!("{name}-{n}")).is_some()));
    }
    assert_eq!(ledger.follow.read(Position::default(), ALL).expect("commits").len(), 81);
    println!("{conflicts} conflicts");
}
