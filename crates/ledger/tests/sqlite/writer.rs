//! A writer whose file is replaced or removed: it writes no more, to no file, and makes none.

use ledger::{Access, AppendError, FeedError, Ledger, Sqlite};

use crate::fixture::{Fleet, filled, run};
use crate::place::{Place, checkpoint};

async fn refusal(writer: &Sqlite, fleet: &Fleet) -> String {
    let at = fleet.state.head();
    let appended = writer.append(at, vec![fleet.clone().namespace("late")]).await;
    let Err(AppendError::Refused(error)) = appended else { panic!("{appended:?}") };
    assert_eq!(writer.hold().await.err(), Some(error.clone()), "nor does it take the lock");
    match error {
        FeedError::Unreachable(why) | FeedError::Corrupt(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_writer_refuses_when_its_file_was_removed_and_makes_no_new_one() {
    run(async {
        let place = Place::new();
        let writer = place.writer();
        let fleet = filled(&writer, &["a"]).await;
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            place.remove(name);
        }
        let why = refusal(&writer, &fleet).await;
        assert!(why.contains("is gone. Nothing is written until the file is back"), "{why}");
        drop(writer);
        assert_eq!(place.files(), [""; 0]);
    });
}

#[test]
fn a_writer_refuses_when_its_file_was_replaced_and_leaves_the_other_alone() {
    run(async {
        let place = Place::new();
        let writer = place.writer();
        let fleet = filled(&writer, &["a"]).await;
        place.copy("store.db", "copy.db");
        place.replace_with("copy.db");
        let before = std::fs::read(place.store()).expect("a file");
        let why = refusal(&writer, &fleet).await;
        assert!(why.contains("another file has taken the place of"), "{why}");
        drop(writer);
        assert_eq!(std::fs::read(place.store()).expect("a file"), before);
    });
}

#[test]
fn a_writer_refuses_when_its_file_was_cut_short() {
    run(async {
        let place = Place::new();
        let writer = place.writer();
        let fleet = filled(&writer, &["a"]).await;
        checkpoint(&place.store());
        // The writer has seen the file at its full length.
        drop(writer.hold().await.expect("the lock"));
        place.truncate(4096);
        let why = refusal(&writer, &fleet).await;
        assert!(why.contains("was cut short"), "{why}");
    });
}

#[test]
fn a_writer_goes_on_when_its_file_is_back() {
    run(async {
        let place = Place::new();
        let writer = place.writer();
        let mut fleet = filled(&writer, &["a"]).await;
        place.rename("store.db", "elsewhere.db");
        refusal(&writer, &fleet).await;
        place.rename("elsewhere.db", "store.db");
        crate::fixture::grow(&writer, &mut fleet, "b").await;
    });
}

#[test]
fn a_writer_that_waits_for_another_for_too_long_is_told_that_the_store_is_busy() {
    run(async {
        let place = Place::new();
        let (writer, other) = (place.writer(), place.writer());
        let fleet = filled(&writer, &["a"]).await;
        let held = other.hold().await.expect("the lock");
        let at = fleet.state.head();
        let appended = writer.append(at, vec![fleet.clone().namespace("b")]).await;
        let busy = "it is busy: another process has been writing to it for seconds".to_owned();
        assert_eq!(appended, Err(AppendError::Refused(FeedError::Unreachable(busy))));
        drop(held);
        assert_eq!(writer.append(at, vec![fleet.clone().namespace("b")]).await, Ok(()));
    });
}

#[test]
fn a_writer_opens_what_is_there_and_goes_on() {
    run(async {
        let place = Place::new();
        let id = place.writer().store_id();
        let again = Sqlite::open(&place.store(), Access::Write).expect("it opens");
        assert_eq!(again.store_id(), id);
        filled(&again, &["a"]).await;
    });
}
