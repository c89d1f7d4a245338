//! One suite for every backend of the ledger: a story is told once and run on each. A crate with a backend calls [`conformance!`] in
//! its tests and runs all of them. The stories know the traits of `ledger` and nothing of any backend.
//!
//! Only tests know this crate.

#![allow(clippy::missing_panics_doc)] // They are tests.

pub mod appending;
pub mod fixture;
pub mod following;
pub mod history;
pub mod racing;
pub mod unknown;

use ledger::Opened;

/// A store of some backend. Each call gives other sides of it, as another process would have.
pub struct Store(Box<dyn Fn() -> Opened + Send + Sync>);

impl Store {
    /// `open` opens the same store each time, for writing.
    pub fn new(open: impl Fn() -> Opened + Send + Sync + 'static) -> Self {
        Self(Box::new(open))
    }

    pub fn open(&self) -> Opened {
        (self.0)()
    }
}

/// A module of tests called like a backend: each story, on a store that the function makes.
#[macro_export]
macro_rules! conformance {
    ($backend:ident, $store:path) => {
        $crate::stories! { $backend, $store,
            appending::revisions_are_gapless_and_in_the_order_of_the_appends,
            appending::an_append_at_an_old_head_is_a_conflict_and_changes_nothing,
            appending::a_group_is_appended_as_a_whole,
            appending::a_group_of_nothing_asks_whether_the_position_is_the_head,
            appending::a_group_with_a_broken_chain_leaves_nothing_behind,
            appending::a_group_with_a_commit_that_was_altered_leaves_nothing_behind,
            appending::a_group_at_a_moved_head_leaves_nothing_behind,
            appending::an_append_to_another_history_is_forked,
            appending::an_append_beyond_the_end_is_regressed,
            appending::a_commit_id_is_taken_once,
            unknown::a_commit_that_was_appended_is_found_by_its_id,
            unknown::a_commit_that_was_not_appended_is_not_found,
            following::a_new_store_is_an_empty_fleet,
            following::a_read_at_the_head_gives_nothing_and_so_confirms_it,
            following::a_read_gives_the_commits_to_the_letter,
            following::a_read_of_another_history_is_forked,
            following::a_read_beyond_the_end_is_regressed,
            following::a_budget_is_kept_but_one_commit_is_always_read,
            following::a_waiting_follower_is_told_of_an_append,
            following::a_follower_that_waits_for_nothing_goes_on_when_its_time_is_over,
            following::a_load_during_appends_is_always_one_snapshot,
            following::a_load_is_what_a_replay_from_the_start_comes_to,
            following::entries_of_a_later_version_that_may_be_ignored_are_kept,
            following::an_entry_of_a_later_version_that_must_be_understood_is_not_loaded,
            history::commits_are_told_newest_first_without_bodies,
            history::a_page_goes_on_before_the_last_one,
            history::commits_are_found_by_document_kind_and_id,
            history::commits_are_found_by_actor,
            history::commits_are_found_by_time,
            history::filters_hold_together,
            history::a_record_names_no_more_than_its_first_keys,
            history::changes_come_in_pages_with_what_was_before,
            history::versions_of_a_document_come_newest_first_with_before_and_after,
            history::versions_come_in_pages,
            history::pages_of_large_bodies_are_shorter_and_have_at_least_one_item,
            racing::a_lock_that_is_let_go_leaves_nothing_behind,
            racing::who_holds_the_head_reads_what_was_missed_and_appends,
            racing::two_writers_neither_starve_nor_lose_anything,
        }
    };
}

/// What [`conformance!`] comes to.
#[doc(hidden)]
#[macro_export]
macro_rules! stories {
    ($backend:ident, $store:path, $($module:ident::$story:ident,)*) => {
        mod $backend {
            $(#[test]
            fn $story() {
                $crate::fixture::in_time(|| $crate::$module::$story(&$store()));
            })*

            /// CI looks for this line: a backend that was left out by mistake would otherwise look like one that passed.
            #[test]
            fn the_suite_says_that_it_ran_on_this_backend() {
                let stories = [$(stringify!($story)),*];
                $crate::appending::revisions_are_gapless_and_in_the_order_of_the_appends(&$store());
                $crate::report(stringify!($backend), stories.len());
            }
        }
    };
}

/// Not `println`, which the test runner keeps to itself.
#[doc(hidden)]
pub fn report(backend: &str, stories: usize) {
    let line = format!("conformance ran on: {backend} ({stories} stories)\n");
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("standard output");
}

#[cfg(test)]
mod tests {
    /// A story that is not in the list runs on no backend.
    #[test]
    fn every_story_is_in_the_list() {
        let list = include_str!("lib.rs");
        let files = [
            ("appending", include_str!("appending.rs")),
            ("following", include_str!("following.rs")),
            ("history", include_str!("history.rs")),
            ("racing", include_str!("racing.rs")),
            ("unknown", include_str!("unknown.rs")),
        ];
        let mut stories = 0;
        for (module, source) in files {
            let told =
                source.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split_once("(store: &Store)"));
            for (story, _) in told {
                assert!(list.contains(&format!("{module}::{story},")), "{module}::{story}");
                stories += 1;
            }
        }
        assert!(stories > 30, "{stories}");
    }
}
