//! A reader and its writer, one coming or going while the other stays.

use fleet::State;
use ledger::{Access, Feed, FeedError, Sqlite};

use crate::fixture::{ALL, filled, grow, run};
use crate::place::Place;

#[test]
fn a_reader_starts_while_no_writer_runs() {
    run(async {
        let place = Place::new();
        let fleet = filled(&place.writer(), &["a"]).await;
        assert_eq!(place.reader().load().await, Ok(fleet.state));
    });
}

#[test]
fn a_reader_goes_on_while_writers_come_and_go() {
    run(async {
        let place = Place::new();
        let mut fleet = filled(&place.writer(), &["a"]).await;
        let reader = place.reader();
        let mut state = reader.load().await.expect("a fleet");
        for n in 0..5 {
            grow(&place.writer(), &mut fleet, &format!("n{n}")).await;
            for commit in reader.read(state.head(), ALL).await.expect("commits") {
                state = state.replay(&commit).expect("it follows");
            }
            assert_eq!(state, fleet.state);
        }
    });
}

#[test]
fn a_reader_goes_on_after_a_checkpoint_has_moved_the_wal_into_the_file() {
    run(async {
        let place = Place::new();
        let writer = place.writer();
        let mut fleet = filled(&writer, &["a"]).await;
        let reader = place.reader();
        reader.load().await.expect("a fleet");
        for n in 0..5 {
            crate::place::checkpoint(&place.store());
            let before = fleet.state.head();
            assert_eq!(reader.read(before, ALL).await, Ok(vec![]));
            grow(&writer, &mut fleet, &format!("n{n}")).await;
            assert_eq!(reader.read(before, ALL).await.expect("commits").len(), 1);
        }
        assert_eq!(reader.load().await, Ok(fleet.state));
    });
}

#[test]
fn a_reader_creates_nothing_even_in_a_directory_that_is_not_there() {
    run(async {
        let place = Place::new();
        let missing = place.path("not/there.db");
        let reader = ledger::Sqlite::open(&missing, ledger::Access::Read).expect("a handle");
        assert!(matches!(reader.load().await, Err(FeedError::NotInitialised(_))));
        // It can be waited for.
        let soon = tokio::time::timeout(std::time::Duration::from_millis(100), reader.changed()).await;
        assert!(soon.is_err(), "nothing has changed");
        assert_eq!(place.files(), [""; 0]);
    });
}

#[test]
fn a_waiting_reader_is_told_when_the_store_appears() {
    run(async {
        let place = Place::new();
        let reader = place.reader();
        assert!(matches!(reader.load().await, Err(FeedError::NotInitialised(_))));
        let _writer = place.writer();
        tokio::time::timeout(std::time::Duration::from_secs(5), reader.changed()).await.expect("in time");
        assert_eq!(reader.load().await, Ok(State::empty()));
    });
}

/// A copy of it alone would otherwise be taken for a new store, and be filled from a seed.
#[test]
fn the_file_without_its_wal_is_no_new_store_and_is_whole_after_a_clean_stop() {
    run(async {
        let place = Place::new();
        let writer = place.writer();
        let mut fleet = filled(&writer, &["a"]).await;
        place.copy_file("store.db", "copy.db");
        let copy = Sqlite::open(&place.path("copy.db"), Access::Read).expect("a store");
        assert_eq!(
            copy.load().await.expect("it loads").head().revision.0,
            1,
            "at least the first commit is in it"
        );

        grow(&writer, &mut fleet, "b").await;
        drop(writer);
        place.copy_file("store.db", "later.db");
        let later = Sqlite::open(&place.path("later.db"), Access::Read).expect("a store");
        assert_eq!(later.load().await.expect("it loads").head(), fleet.state.head());
    });
}
