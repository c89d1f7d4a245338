//! A file that is replaced, removed or cut short under a reader. It is told, and never given something else than what it followed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::Revision;
use ledger::{Access, FeedError, Follow, Sqlite};

use crate::place::{Place, checkpoint};
use ledger_conformance::fixture::{ALL, Fleet, filled, grow};

/// A store, a reader that has loaded it, and the fleet in it.
fn followed() -> (Place, Arc<dyn Follow>, Fleet) {
    let place = Place::new();
    let fleet = filled(&mut place.writer(), &["a", "b"]);
    let reader = place.reader();
    assert_eq!(reader.load(), Ok(fleet.state.clone()));
    (place, reader, fleet)
}

fn other(place: &Place) -> Fleet {
    filled(&mut Sqlite::open(&place.path("other.db"), Access::Write).expect("it opens"), &["x", "y", "z"])
}

#[test]
fn another_store_is_not_followed_and_the_first_one_is_again_when_it_is_back() {
    let (place, reader, fleet) = followed();
    other(&place);
    place.copy("store.db", "kept.db");
    place.replace_with("other.db");
    assert_eq!(reader.read(fleet.state.head(), ALL), Err(FeedError::OtherStore));
    place.replace_with("kept.db");
    assert_eq!(reader.read(fleet.state.head(), ALL), Ok(vec![]));
}

#[test]
fn another_store_beside_the_wal_of_the_first_is_never_believed() {
    // Whether the pages that the old `-wal` holds make the mixture look like either store depends on what is in it.
    for checkpointed in [false, true] {
        let (place, reader, mut fleet) = followed();
        other(&place);
        checkpoint(&place.path("other.db"));
        if checkpointed {
            checkpoint(&place.store());
            grow(&mut place.writer(), &mut fleet, "c");
            reader.load().expect("a fleet");
        }
        place.rename("other.db", "store.db");
        for _ in 0..3 {
            match reader.read(fleet.state.head(), ALL) {
                Ok(commits) => assert_eq!(commits, []),
                Err(FeedError::OtherStore | FeedError::Corrupt(_) | FeedError::Unreachable(_)) => {}
                Err(error) => panic!("{error}"),
            }
            if let Ok(state) = reader.load() {
                assert_eq!(state, fleet.state);
            }
        }
    }
}

#[test]
fn an_older_copy_is_not_followed() {
    let (place, reader, mut fleet) = followed();
    place.copy("store.db", "older.db");
    grow(&mut place.writer(), &mut fleet, "c");
    assert_eq!(reader.load(), Ok(fleet.state.clone()));
    place.replace_with("older.db");
    let refused = reader.read(fleet.state.head(), ALL);
    assert!(matches!(refused, Err(FeedError::Behind(_))), "{refused:?}");
    // Even with its own mark: this process knows better.
    place.rename("older.db-mark", "store.db-mark");
    let regressed = FeedError::Regressed { ours: Revision(4), theirs: Revision(3) };
    assert_eq!(reader.read(fleet.state.head(), ALL), Err(regressed));
}

#[test]
fn an_older_copy_that_went_another_way_is_not_followed() {
    let (place, reader, mut fleet) = followed();
    place.copy("store.db", "older.db");
    let mut fork = fleet.clone();
    grow(&mut place.writer(), &mut fleet, "c");
    assert_eq!(reader.load(), Ok(fleet.state.clone()));
    let mut writer = Sqlite::open(&place.path("older.db"), Access::Write).expect("it opens");
    grow(&mut writer, &mut fork, "d");
    grow(&mut writer, &mut fork, "e");
    drop(writer);
    place.rename("older.db-mark", "store.db-mark");
    place.replace_with("older.db");
    assert_eq!(reader.read(fleet.state.head(), ALL), Err(FeedError::Forked(Revision(4))));
}

/// It stayed unreachable for ever: the connection that was opened in between held on to the other store's `-wal`.
#[test]
fn a_store_that_is_moved_back_file_by_file_is_followed_again() {
    let (place, reader, mut fleet) = followed();
    place.copy("store.db", "older.db");
    grow(&mut place.writer(), &mut fleet, "c");
    assert_eq!(reader.load(), Ok(fleet.state.clone()));
    for part in ["store.db", "store.db-wal", "store.db-shm"] {
        place.rename(part, &format!("{part}.away"));
    }
    place.replace_with("older.db");
    assert!(reader.read(fleet.state.head(), ALL).is_err());
    for part in ["store.db", "store.db-wal", "store.db-shm"] {
        place.rename(&format!("{part}.away"), part);
        // Of a mixture of the two it may say this or that, but it brings nothing of the other.
        let read = reader.read(fleet.state.head(), ALL);
        assert!(read.is_err() || read == Ok(vec![]), "{part}: {read:?}");
    }
    assert_eq!(reader.read(fleet.state.head(), ALL), Ok(vec![]));
    assert_eq!(reader.load(), Ok(fleet.state));
}

#[test]
fn an_identical_copy_is_followed() {
    let (place, reader, mut fleet) = followed();
    let before = fleet.state.head();
    place.copy("store.db", "copy.db");
    place.replace_with("copy.db");
    assert_eq!(reader.read(before, ALL), Ok(vec![]));
    grow(&mut place.writer(), &mut fleet, "c");
    assert_eq!(reader.read(before, ALL).expect("commits").len(), 1);
    assert_eq!(reader.load(), Ok(fleet.state));
}

#[test]
fn a_copy_that_was_tampered_with_is_not_believed_even_if_its_history_is_right() {
    let (place, reader, fleet) = followed();
    place.copy("store.db", "copy.db");
    let connection = rusqlite::Connection::open(place.path("copy.db")).expect("it opens");
    connection.execute("DELETE FROM entries WHERE id = 'a'", []).expect("deleted");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("done");
    place.rename("copy.db", "store.db");
    place.rename("copy.db-wal", "store.db-wal");
    for _ in 0..2 {
        let told = reader.read(fleet.state.head(), ALL);
        assert!(matches!(told, Err(FeedError::Corrupt(_))), "{told:?}");
    }
}

#[test]
fn another_store_that_was_copied_over_the_file_is_not_followed_though_the_file_is_the_same() {
    let (place, reader, fleet) = followed();
    other(&place);
    checkpoint(&place.path("other.db"));
    checkpoint(&place.store());
    assert_eq!(reader.read(fleet.state.head(), ALL), Ok(vec![]));
    // So that it is not given away by its length.
    assert!(std::fs::metadata(place.path("other.db")).expect("a file").len() >= place.length());
    place.copy_file("other.db", "store.db");
    assert_eq!(reader.read(fleet.state.head(), ALL), Err(FeedError::OtherStore));
}

#[test]
fn a_waiting_reader_is_told_of_a_replaced_file() {
    let (place, reader, fleet) = followed();
    reader.read(fleet.state.head(), ALL).expect("commits");
    // One for nothing is allowed; then it waits.
    reader.changed(Duration::from_millis(100));
    other(&place);
    place.replace_with("other.db");
    let began = Instant::now();
    reader.changed(Duration::from_secs(20));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_removed_file_is_unreachable_and_is_followed_when_it_is_back() {
    let (place, reader, fleet) = followed();
    place.rename("store.db", "elsewhere.db");
    let gone = FeedError::Unreachable(format!(
        "the file {} is gone. Put it back, or restore the store from a backup",
        place.store().display()
    ));
    assert_eq!(reader.read(fleet.state.head(), ALL), Err(gone.clone()));
    assert_eq!(reader.load(), Err(gone));
    assert!(!place.store().exists(), "a reader creates nothing");
    place.rename("elsewhere.db", "store.db");
    assert_eq!(reader.read(fleet.state.head(), ALL), Ok(vec![]));
    assert_eq!(reader.load(), Ok(fleet.state));
}

#[test]
fn a_file_that_was_cut_short_is_damaged_whatever_of_it_could_still_be_read() {
    for part in [0, 1, 2] {
        let (place, reader, fleet) = followed();
        checkpoint(&place.store());
        assert_eq!(reader.read(fleet.state.head(), ALL), Ok(vec![]));
        let was = place.length();
        let is = was * part / 3 / 4096 * 4096;
        place.truncate(is);
        let short = format!("{} was cut short from {was} to {is} bytes", place.store().display());
        for _ in 0..2 {
            assert_eq!(reader.read(fleet.state.head(), ALL), Err(FeedError::Corrupt(short.clone())));
        }
        // Grown again, with nothing in it.
        place.truncate(was);
        let told = reader.read(fleet.state.head(), ALL);
        assert!(matches!(told, Err(FeedError::Corrupt(_) | FeedError::NotAStore(_))), "{told:?}");
        let told = place.reader().load();
        assert!(matches!(told, Err(FeedError::Corrupt(_) | FeedError::NotAStore(_))), "{told:?}");
    }
}
