//! One suite for every backend: a story is told once and run on each. A backend that is added here runs all of them.
//!
//! Stories that need a file to spoil (a store that is missing, of a newer format, another one, or tampered with) make no sense in
//! memory: they are in `only_sqlite`.

mod appending;
mod following;
mod history;
mod only_sqlite;
mod racing;
mod unknown;

#[path = "../fixture/mod.rs"]
mod fixture;

use std::path::Path;
use std::sync::Arc;

use ledger::{Access, Ledger, Memory, Sqlite};

/// A store of some backend. Each call gives another handle on it, as another process would have.
pub(crate) struct Store(Box<dyn Fn() -> Arc<dyn Ledger> + Send + Sync>);

impl Store {
    pub(crate) fn handle(&self) -> Arc<dyn Ledger> {
        (self.0)()
    }

    fn memory() -> Self {
        let memory = Memory::new();
        Self(Box::new(move || Arc::new(memory.clone())))
    }

    fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self(Box::new(move || Arc::new(open(&directory.path().join("store.db"), Access::Write))))
    }
}

pub(crate) fn open(path: &Path, access: Access) -> Sqlite {
    Sqlite::open(path, access).expect("it opens")
}

/// The stories, and a test of each on each backend.
macro_rules! stories {
    ($($module:ident::$story:ident,)*) => {
        stories!(@on memory, $($module::$story,)*);
        stories!(@on sqlite, $($module::$story,)*);
    };
    (@on $backend:ident, $($module:ident::$story:ident,)*) => {
        mod $backend {
            use std::io::Write;

            use crate::{Store, fixture, appending};

            $(#[test]
            fn $story() {
                fixture::run(crate::$module::$story(Store::$backend()));
            })*

            /// CI looks for this line: a backend that was left out by mistake would otherwise look like one that passed.
            #[test]
            fn the_suite_says_that_it_ran_on_this_backend() {
                let stories = [$(stringify!($story)),*];
                fixture::run(appending::revisions_are_gapless_and_in_the_order_of_the_appends(Store::$backend()));
                let line = format!("conformance ran on: {} ({} stories)\n", stringify!($backend), stories.len());
                // Not `println`, which the test runner keeps to itself.
                std::io::stdout().write_all(line.as_bytes()).expect("standard output");
            }
        }
    };
}

stories! {
    appending::revisions_are_gapless_and_in_the_order_of_the_appends,
    appending::an_append_at_an_old_head_is_a_conflict_and_changes_nothing,
    appending::a_group_is_appended_as_a_whole,
    appending::a_group_with_a_broken_chain_leaves_nothing_behind,
    appending::a_group_with_a_commit_that_was_altered_leaves_nothing_behind,
    appending::a_group_at_a_moved_head_leaves_nothing_behind,
    appending::an_append_to_another_history_is_forked,
    appending::an_append_beyond_the_end_is_regressed,
    appending::a_commit_id_is_taken_once,
    unknown::an_unknown_outcome_is_found_to_have_happened,
    unknown::an_unknown_outcome_is_found_not_to_have_happened,
    following::a_new_store_is_an_empty_fleet,
    following::a_read_at_the_head_gives_nothing_and_so_confirms_it,
    following::a_read_gives_the_commits_to_the_letter,
    following::a_read_of_another_history_is_forked,
    following::a_read_beyond_the_end_is_regressed,
    following::a_budget_is_kept_but_one_commit_is_always_read,
    following::a_waiting_follower_is_told_of_an_append,
    following::a_load_during_appends_is_always_one_snapshot,
    following::a_load_is_what_a_replay_from_the_start_comes_to,
    history::commits_are_told_newest_first_without_bodies,
    history::a_page_goes_on_before_the_last_one,
    history::commits_are_found_by_document_kind_and_id,
    history::commits_are_found_by_actor,
    history::commits_are_found_by_time,
    history::filters_hold_together,
    history::a_record_names_no_more_than_its_first_keys,
    history::a_document_is_told_as_it_was_at_each_revision,
    history::changes_come_in_pages,
    racing::a_lock_that_is_let_go_leaves_nothing_behind,
    racing::who_holds_the_head_reads_what_was_missed_and_appends,
    racing::two_writers_neither_starve_nor_lose_anything,
}
