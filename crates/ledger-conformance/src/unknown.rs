//! How an append whose outcome is unknown, as when a connection is lost during COMMIT, becomes known: by the commit's id.

use crate::Store;
use crate::fixture::{ALL, Writing, filled};

pub fn a_commit_that_was_appended_is_found_by_its_id(store: &Store) {
    let mut ledger = store.open();
    let mut fleet = filled(&mut ledger, &["a"]);
    let at = fleet.state.head();
    let group = vec![fleet.namespace("b"), fleet.namespace("c")];
    ledger.append(at, &group).expect("appended");
    for commit in &group {
        let found = store.open().find(commit.header.origin.commit);
        assert_eq!(found, Ok(Some(commit.header.at)));
    }
    assert_eq!(store.open().follow.read(group[1].header.at, ALL), Ok(vec![]));
}

pub fn a_commit_that_was_not_appended_is_not_found(store: &Store) {
    let mut fleet = filled(&mut store.open(), &["a"]);
    let commit = fleet.namespace("b");
    assert_eq!(store.open().find(commit.header.origin.commit), Ok(None));
}
