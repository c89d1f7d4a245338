//! A file that is replaced, removed or cut short under a reader. It is told, and never given something else than what it followed.

use fleet::Revision;
use ledger::{Access, Feed, FeedError, Sqlite};

use crate::fixture::{ALL, Fleet, filled, grow, run};
use crate::place::{Place, checkpoint};

/// A store, a reader that has loaded it, and the fleet in it.
async fn followed() -> (Place, Sqlite, Fleet) {
    let place = Place::new();
    let fleet = filled(&place.writer(), &["a", "b"]).await;
    let reader = place.reader();
    assert_eq!(reader.load().await, Ok(fleet.state.clone()));
    (place, reader, fleet)
}

async fn other(place: &Place) -> Fleet {
    filled(&Sqlite::open(&place.path("other.db"), Access::Write).expect("it opens"), &["x", "y", "z"]).await
}

#[test]
fn another_store_is_not_followed_and_the_first_one_is_again_when_it_is_back() {
    run(async {
        let (place, reader, fleet) = followed().await;
        other(&place).await;
        place.copy("store.db", "kept.db");
        place.replace_with("other.db");
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Err(FeedError::OtherStore));
        place.replace_with("kept.db");
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Ok(vec![]));
    });
}

#[test]
fn another_store_beside_the_wal_of_the_first_is_never_believed() {
    run(async {
        // Whether the pages that the old `-wal` holds make the mixture look like either store depends on what is in it.
        for checkpointed in [false, true] {
            let (place, reader, mut fleet) = followed().await;
            other(&place).await;
            checkpoint(&place.path("other.db"));
            if checkpointed {
                checkpoint(&place.store());
                grow(&place.writer(), &mut fleet, "c").await;
                reader.load().await.expect("a fleet");
            }
            place.rename("other.db", "store.db");
            for _ in 0..3 {
                match reader.read(fleet.state.head(), ALL).await {
                    Ok(commits) => assert_eq!(commits, []),
                    Err(FeedError::OtherStore | FeedError::Corrupt(_) | FeedError::Unreachable(_)) => {}
                    Err(error) => panic!("{error}"),
                }
                if let Ok(state) = reader.load().await {
                    assert_eq!(state, fleet.state);
                }
            }
        }
    });
}

#[test]
fn an_older_copy_is_not_followed() {
    run(async {
        let (place, reader, mut fleet) = followed().await;
        place.copy("store.db", "older.db");
        grow(&place.writer(), &mut fleet, "c").await;
        assert_eq!(reader.load().await, Ok(fleet.state.clone()));
        place.replace_with("older.db");
        let regressed = FeedError::Regressed { ours: Revision(4), theirs: Revision(3) };
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Err(regressed));
    });
}

#[test]
fn an_older_copy_that_went_another_way_is_not_followed() {
    run(async {
        let (place, reader, mut fleet) = followed().await;
        place.copy("store.db", "older.db");
        let mut fork = fleet.clone();
        grow(&place.writer(), &mut fleet, "c").await;
        assert_eq!(reader.load().await, Ok(fleet.state.clone()));
        place.replace_with("older.db");
        let writer = place.writer();
        grow(&writer, &mut fork, "d").await;
        grow(&writer, &mut fork, "e").await;
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Err(FeedError::Forked(Revision(4))));
    });
}

/// It stayed unreachable for ever: the connection that was opened in between held on to the other store's `-wal`.
#[test]
fn a_store_that_is_moved_back_file_by_file_is_followed_again() {
    run(async {
        let (place, reader, mut fleet) = followed().await;
        place.copy("store.db", "older.db");
        grow(&place.writer(), &mut fleet, "c").await;
        assert_eq!(reader.load().await, Ok(fleet.state.clone()));
        for part in ["store.db", "store.db-wal", "store.db-shm"] {
            place.rename(part, &format!("{part}.away"));
        }
        place.replace_with("older.db");
        assert!(reader.read(fleet.state.head(), ALL).await.is_err());
        for part in ["store.db", "store.db-wal", "store.db-shm"] {
            place.rename(&format!("{part}.away"), part);
            // Of a mixture of the two it may say this or that, but it brings nothing of the other.
            let read = reader.read(fleet.state.head(), ALL).await;
            assert!(read.is_err() || read == Ok(vec![]), "{part}: {read:?}");
        }
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Ok(vec![]));
        assert_eq!(reader.load().await, Ok(fleet.state));
    });
}

#[test]
fn an_identical_copy_is_followed() {
    run(async {
        let (place, reader, mut fleet) = followed().await;
        let before = fleet.state.head();
        place.copy("store.db", "copy.db");
        place.replace_with("copy.db");
        assert_eq!(reader.read(before, ALL).await, Ok(vec![]));
        grow(&place.writer(), &mut fleet, "c").await;
        assert_eq!(reader.read(before, ALL).await.expect("commits").len(), 1);
        assert_eq!(reader.load().await, Ok(fleet.state));
    });
}

#[test]
fn a_copy_that_was_tampered_with_is_not_believed_even_if_its_history_is_right() {
    run(async {
        let (place, reader, fleet) = followed().await;
        place.copy("store.db", "copy.db");
        let connection = rusqlite::Connection::open(place.path("copy.db")).expect("it opens");
        connection.execute("DELETE FROM documents WHERE id = 'a'", []).expect("deleted");
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("done");
        place.rename("copy.db", "store.db");
        place.rename("copy.db-wal", "store.db-wal");
        for _ in 0..2 {
            let told = reader.read(fleet.state.head(), ALL).await;
            assert!(matches!(told, Err(FeedError::Corrupt(_))), "{told:?}");
        }
    });
}

#[test]
fn another_store_that_was_copied_over_the_file_is_not_followed_though_the_file_is_the_same() {
    run(async {
        let (place, reader, fleet) = followed().await;
        other(&place).await;
        checkpoint(&place.path("other.db"));
        checkpoint(&place.store());
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Ok(vec![]));
        // So that it is not given away by its length.
        assert!(std::fs::metadata(place.path("other.db")).expect("a file").len() >= place.length());
        place.copy_file("other.db", "store.db");
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Err(FeedError::OtherStore));
    });
}

#[test]
fn a_waiting_reader_is_told_of_a_replaced_file() {
    run(async {
        let (place, reader, fleet) = followed().await;
        reader.read(fleet.state.head(), ALL).await.expect("commits");
        // One for nothing is allowed; then it waits.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(100), reader.changed()).await;
        other(&place).await;
        place.replace_with("other.db");
        tokio::time::timeout(std::time::Duration::from_secs(5), reader.changed()).await.expect("in time");
    });
}

#[test]
fn a_removed_file_is_unreachable_and_is_followed_when_it_is_back() {
    run(async {
        let (place, reader, fleet) = followed().await;
        place.rename("store.db", "elsewhere.db");
        let gone = FeedError::Unreachable(format!("the file {} is gone", place.store().display()));
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Err(gone.clone()));
        assert_eq!(reader.load().await, Err(gone));
        assert!(!place.store().exists(), "a reader creates nothing");
        place.rename("elsewhere.db", "store.db");
        assert_eq!(reader.read(fleet.state.head(), ALL).await, Ok(vec![]));
        assert_eq!(reader.load().await, Ok(fleet.state));
    });
}

#[test]
fn a_file_that_was_cut_short_is_damaged_whatever_of_it_could_still_be_read() {
    run(async {
        for part in [0, 1, 2] {
            let (place, reader, fleet) = followed().await;
            checkpoint(&place.store());
            assert_eq!(reader.read(fleet.state.head(), ALL).await, Ok(vec![]));
            let was = place.length();
            let is = was * part / 3 / 4096 * 4096;
            place.truncate(is);
            let short = format!("{} was cut short from {was} to {is} bytes", place.store().display());
            for _ in 0..2 {
                assert_eq!(
                    reader.read(fleet.state.head(), ALL).await,
                    Err(FeedError::Corrupt(short.clone()))
                );
            }
            // Grown again, with nothing in it.
            place.truncate(was);
            let told = reader.read(fleet.state.head(), ALL).await;
            assert!(matches!(told, Err(FeedError::Corrupt(_))), "{told:?}");
            let told = place.reader().load().await;
            assert!(matches!(told, Err(FeedError::Corrupt(_))), "{told:?}");
        }
    });
}
