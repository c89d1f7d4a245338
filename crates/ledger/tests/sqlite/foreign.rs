//! Files that are not stores: refused, and left to the byte as they are. An emptied file must not become a new fleet.

use std::path::Path;

use ledger::{Access, FeedError, Sqlite};

use crate::place::Place;

fn refused(place: &Place, what: &str) {
    let before = (std::fs::read(place.store()).expect("a file"), place.files());
    let advice = "Nothing was changed. To make a store here, move the file away first; if there was a store, restore it from a \
                  backup";
    let expected = FeedError::NotAStore(format!("{} {what}. {advice}", place.store().display()));
    assert_eq!(Sqlite::open(&place.store(), Access::Write).err(), Some(expected.clone()));
    assert_eq!(place.reader().load(), Err(expected));
    assert_eq!((std::fs::read(place.store()).expect("a file"), place.files()), before);
}

#[test]
fn an_empty_file_is_refused() {
    let place = Place::new();
    std::fs::write(place.store(), "").expect("written");
    refused(&place, "is empty");
}

#[test]
fn a_file_of_text_is_refused() {
    for text in ["hello".to_owned(), "hello\n".repeat(10_000)] {
        let place = Place::new();
        std::fs::write(place.store(), text).expect("written");
        refused(&place, "is not an SQLite database");
    }
}

fn database(path: &Path, mode: &str) {
    let connection = rusqlite::Connection::open(path).expect("it opens");
    connection.pragma_update(None, "journal_mode", mode).expect("set");
    connection.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);").expect("filled");
}

#[test]
fn a_database_of_another_program_is_refused() {
    for mode in ["DELETE", "WAL"] {
        let place = Place::new();
        database(&place.store(), mode);
        refused(&place, "is an SQLite database, but not a store of this program");
    }
}

#[test]
fn a_path_with_characters_that_mean_something_in_an_address_is_just_a_path() {
    let place = Place::new();
    for name in ["a?mode=memory", "a#b", "a%41", "a b"] {
        let path = place.path(name);
        Sqlite::open(&path, Access::Write).expect("a store");
        assert!(path.exists());
        Sqlite::open(&path, Access::Write).expect("the same store");
        let theirs = place.path(&format!("theirs-{name}"));
        database(&theirs, "DELETE");
        assert!(matches!(Sqlite::open(&theirs, Access::Write).err(), Some(FeedError::NotAStore(_))));
    }
}
