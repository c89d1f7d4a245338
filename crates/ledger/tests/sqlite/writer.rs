//! A writer whose file is replaced or removed: it writes no more, to no file, and makes none.

use ledger::{Access, AppendError, FeedError, Opened, Sqlite};

use crate::place::{Place, checkpoint};
use ledger_conformance::fixture::{Fleet, Writing, filled};

fn refusal(writer: &mut Opened, fleet: &Fleet) -> String {
    let at = fleet.state.head();
    let appended = writer.append(at, &[fleet.clone().namespace("late")]);
    let Err(AppendError::Refused(error)) = appended else { panic!("{appended:?}") };
    assert_eq!(writer.hold().err(), Some(error.clone()), "nor does it take the lock");
    match error {
        FeedError::Unreachable(why) | FeedError::Corrupt(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_writer_refuses_when_its_file_was_removed_and_makes_no_new_one() {
    let place = Place::new();
    let mut writer = place.writer();
    let fleet = filled(&mut writer, &["a"]);
    for name in place.files() {
        place.remove(&name);
    }
    let why = refusal(&mut writer, &fleet);
    assert!(why.contains("is gone. Nothing is written until the file is back"), "{why}");
    drop(writer);
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_writer_refuses_when_its_file_was_replaced_and_leaves_the_other_alone() {
    let place = Place::new();
    let mut writer = place.writer();
    let fleet = filled(&mut writer, &["a"]);
    place.copy("store.db", "copy.db");
    place.replace_with("copy.db");
    let before = std::fs::read(place.store()).expect("a file");
    let why = refusal(&mut writer, &fleet);
    assert!(why.contains("another file has taken the place of"), "{why}");
    drop(writer);
    assert_eq!(std::fs::read(place.store()).expect("a file"), before);
}

#[test]
fn a_writer_refuses_when_its_file_was_cut_short() {
    let place = Place::new();
    let mut writer = place.writer();
    let fleet = filled(&mut writer, &["a"]);
    checkpoint(&place.store());
    // The writer has seen the file at its full length.
    drop(writer.hold().expect("the lock"));
    place.truncate(4096);
    let why = refusal(&mut writer, &fleet);
    assert!(why.contains("was cut short"), "{why}");
}

#[test]
fn a_writer_goes_on_when_its_file_is_back() {
    let place = Place::new();
    let mut writer = place.writer();
    let mut fleet = filled(&mut writer, &["a"]);
    place.rename("store.db", "elsewhere.db");
    refusal(&mut writer, &fleet);
    place.rename("elsewhere.db", "store.db");
    ledger_conformance::fixture::grow(&mut writer, &mut fleet, "b");
}

#[test]
fn a_writer_that_waits_for_another_for_too_long_is_told_that_the_store_is_busy() {
    let place = Place::new();
    let (mut writer, mut other) = (place.writer(), place.writer());
    let fleet = filled(&mut writer, &["a"]);
    let held = other.hold().expect("the lock");
    let at = fleet.state.head();
    let appended = writer.append(at, &[fleet.clone().namespace("b")]);
    let busy = "it is busy: another process has been writing to it for seconds".to_owned();
    assert_eq!(appended, Err(AppendError::Refused(FeedError::Unreachable(busy))));
    drop(held);
    assert_eq!(writer.append(at, &[fleet.clone().namespace("b")]), Ok(()));
}

#[test]
fn a_writer_opens_what_is_there_and_goes_on() {
    let place = Place::new();
    let id = place.writer().store_id;
    let mut again = Sqlite::open(&place.store(), Access::Write).expect("it opens");
    assert_eq!(again.store_id, id);
    filled(&mut again, &["a"]);
}
