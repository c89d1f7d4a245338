//! Making a store: whole or not at all, and once.

use std::os::unix::fs::PermissionsExt;

use ledger::{Access, FeedError, Sqlite};

use crate::place::Place;
use crate::process::{Other, Task};

#[test]
fn a_new_store_comes_with_its_directory_and_leaves_nothing_else_behind() {
    let place = Place::new();
    let path = place.path("a/b/store.db");
    let store = Sqlite::open(&path, Access::Write).expect("a store");
    assert_eq!(store.store_id.as_ref().expect("an id").len(), 32);
    let mut names: Vec<_> = std::fs::read_dir(place.path("a/b"))
        .expect("made")
        .map(|entry| entry.expect("one").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["store.db", "store.db-mark", "store.db-shm", "store.db-wal"]);
}

#[test]
fn all_its_files_can_be_shared_with_a_group_and_nobody_else() {
    let place = Place::new();
    let _writer = place.writer();
    for name in place.files() {
        let mode = std::fs::metadata(place.path(&name)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o660, "{name}");
    }
}

#[test]
fn processes_that_start_at_once_make_one_store() {
    for _ in 0..3 {
        let place = Place::new();
        let all: Vec<Other> = (0..6).map(|_| Other::start(Task::Open, &place.store())).collect();
        let ids: Vec<String> = all.iter().map(Other::says).collect();
        assert!(ids[0].starts_with("Ok("), "{ids:?}");
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(place.files(), ["store.db", "store.db-mark", "store.db-shm", "store.db-wal"]);
    }
}

#[test]
fn a_place_where_nothing_can_be_made_is_unreachable() {
    let place = Place::new();
    std::fs::write(place.path("file"), "x").expect("written");
    let opened = Sqlite::open(&place.path("file/store.db"), Access::Write);
    assert!(matches!(opened.err(), Some(FeedError::Unreachable(_))));
}

/// It became a new store, and was filled from the seed: clusters would have lost what was assigned since.
#[test]
fn a_store_whose_file_was_lost_is_not_made_anew_beside_what_is_left_of_it() {
    let (mark, shm, wal) = ("store.db-mark", "store.db-shm", "store.db-wal");
    for also in [&[][..], &[mark], &[shm], &[wal], &[mark, shm], &[mark, wal], &[shm, wal]] {
        let place = Place::new();
        drop(place.writer());
        place.remove("store.db");
        for name in also {
            place.remove(name);
        }
        let left = place.files();
        let Err(lost @ FeedError::Lost { .. }) = Sqlite::open(&place.store(), Access::Write) else {
            panic!("it was made beside what is left without {also:?}")
        };
        let why = lost.to_string();
        assert!(why.contains("there was a store here. Restore the file from a backup"), "{why}");
        assert_eq!(place.files(), left);
    }
}
