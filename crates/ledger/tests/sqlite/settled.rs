//! A reader and its writer, one coming or going while the other stays.

use std::time::{Duration, Instant};

use fleet::State;
use ledger::{Access, FeedError, Sqlite};

use crate::place::Place;
use ledger_conformance::fixture::{ALL, filled, grow};

#[test]
fn a_reader_starts_while_no_writer_runs() {
    let place = Place::new();
    let fleet = filled(&mut place.writer(), &["a"]);
    assert_eq!(place.reader().load(), Ok(fleet.state));
}

#[test]
fn a_reader_goes_on_while_writers_come_and_go() {
    let place = Place::new();
    let mut fleet = filled(&mut place.writer(), &["a"]);
    let reader = place.reader();
    let mut state = reader.load().expect("a fleet");
    for n in 0..5 {
        grow(&mut place.writer(), &mut fleet, &format!("n{n}"));
        for commit in reader.read(state.head(), ALL).expect("commits") {
            state = state.replay(&commit).expect("it follows");
        }
        assert_eq!(state, fleet.state);
    }
}

#[test]
fn a_reader_goes_on_after_a_checkpoint_has_moved_the_wal_into_the_file() {
    let place = Place::new();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &["a"]);
    let reader = place.reader();
    reader.load().expect("a fleet");
    for n in 0..5 {
        crate::place::checkpoint(&place.store());
        let before = fleet.state.head();
        assert_eq!(reader.read(before, ALL), Ok(vec![]));
        grow(&mut writer, &mut fleet, &format!("n{n}"));
        assert_eq!(reader.read(before, ALL).expect("commits").len(), 1);
    }
    assert_eq!(reader.load(), Ok(fleet.state));
}

#[test]
fn a_reader_creates_nothing_even_in_a_directory_that_is_not_there() {
    let place = Place::new();
    let missing = place.path("not/there.db");
    let reader = Sqlite::open(&missing, Access::Read).expect("it opens").follow;
    assert!(matches!(reader.load(), Err(FeedError::NotInitialised(_))));
    // It can be waited for.
    let began = Instant::now();
    reader.changed(Duration::from_millis(100));
    assert!(began.elapsed() >= Duration::from_millis(100), "nothing has changed");
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_waiting_reader_is_told_when_the_store_appears() {
    let place = Place::new();
    let reader = place.reader();
    assert!(matches!(reader.load(), Err(FeedError::NotInitialised(_))));
    let _writer = place.writer();
    let began = Instant::now();
    reader.changed(Duration::from_secs(20));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(reader.load(), Ok(State::empty()));
}

/// A copy of it alone would otherwise be taken for a new store, and be filled from a seed.
#[test]
fn the_database_alone_is_refused_and_is_whole_after_a_clean_stop() {
    let place = Place::new();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &["a"]);
    place.copy_file("store.db", "copy.db");
    let copy = place.path("copy.db");
    for access in [Access::Read, Access::Write] {
        let Err(FeedError::Behind(why)) = Sqlite::open(&copy, access).and_then(|store| store.follow.load())
        else {
            panic!("it was opened")
        };
        assert!(why.contains("holds revision 1") && why.contains("copy.db-mark is missing"), "{why}");
    }
    grow(&mut writer, &mut fleet, "b");
    drop(writer);
    assert_eq!(std::fs::metadata(place.path("store.db-wal")).expect("a file").len(), 0);
    place.copy_file("store.db", "later.db");
    let later = Sqlite::inspect(&place.path("later.db")).expect("it is whole");
    assert_eq!(later.position(), fleet.state.head());
}
