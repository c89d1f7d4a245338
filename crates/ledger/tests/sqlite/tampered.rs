//! A store that is missing, of another format or role, another one, or edited behind the back of the service.

use std::path::Path;

use fleet::{Position, State};
use ledger::{Access, AppendError, FeedError, Opened, Query, Sqlite};

use ledger_conformance::fixture::{ALL, Writing, filled};

use crate::place::Place;

fn open(path: &Path, access: Access) -> Opened {
    Sqlite::open(path, access).expect("it opens")
}

/// Does what the store's owner would not do.
fn tamper(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).expect("it opens");
    assert_eq!(connection.execute(sql, []).expect("it runs"), 1, "{sql}");
}

#[test]
fn a_store_that_is_not_there_yet_is_not_initialised_until_a_writer_makes_it() {
    let place = Place::new();
    let reader = open(&place.path("store.db"), Access::Read);
    for _ in 0..2 {
        let missing = format!("there is no file {}", place.path("store.db").display());
        assert_eq!(reader.follow.load(), Err(FeedError::NotInitialised(missing.clone())));
        assert_eq!(reader.follow.read(Position::default(), ALL), Err(FeedError::NotInitialised(missing)));
    }
    assert_eq!(
        std::fs::read_dir(place.directory()).expect("a directory").count(),
        0,
        "a reader creates nothing"
    );
    let writer = open(&place.path("store.db"), Access::Write);
    assert_eq!(reader.follow.load(), Ok(State::empty()));
    assert!(writer.store_id.is_some());
}

#[test]
fn a_reader_cannot_append() {
    let place = Place::new();
    filled(&mut open(&place.path("store.db"), Access::Write), &["a"]);
    assert!(open(&place.path("store.db"), Access::Read).append.is_none());
}

#[test]
fn a_store_that_needs_a_newer_reader_is_newer_for_everybody() {
    let place = Place::new();
    filled(&mut open(&place.path("store.db"), Access::Write), &["a"]);
    let reader = open(&place.path("store.db"), Access::Read);
    reader.follow.load().expect("a fleet");
    tamper(&place.path("store.db"), "UPDATE store SET format = 9, min_reader = 7");
    assert_eq!(reader.follow.load(), Err(FeedError::Newer { format: 7, known: 3 }));
    let writer = Sqlite::open(&place.path("store.db"), Access::Write);
    assert_eq!(writer.err(), Some(FeedError::Newer { format: 9, known: 3 }));
}

#[test]
fn a_store_of_a_newer_format_that_we_can_read_is_newer_for_writers_only() {
    let place = Place::new();
    let path = place.path("store.db");
    let mut writer = open(&path, Access::Write);
    let mut fleet = filled(&mut writer, &["a"]);
    tamper(&path, "UPDATE store SET format = 4");
    assert_eq!(open(&path, Access::Read).follow.load(), Ok(fleet.state.clone()));
    let newer = FeedError::Newer { format: 4, known: 3 };
    let at = fleet.state.head();
    let refused = writer.append(at, &[fleet.namespace("b")]);
    assert_eq!(refused, Err(AppendError::Refused(newer.clone())), "even one that runs already");
    assert_eq!(Sqlite::open(&path, Access::Write).err(), Some(newer));
}

#[test]
fn another_store_in_the_same_place_is_not_followed() {
    let place = Place::new();
    let (path, other) = (place.path("store.db"), place.path("other.db"));
    let fleet = filled(&mut open(&path, Access::Write), &["a"]);
    filled(&mut open(&other, Access::Write), &["b", "c"]);
    let reader = open(&path, Access::Read);
    assert_eq!(reader.follow.load(), Ok(fleet.state.clone()));
    for suffix in ["", "-wal", "-shm"] {
        std::fs::rename(place.path(&format!("other.db{suffix}")), place.path(&format!("store.db{suffix}")))
            .expect("renamed");
    }
    for _ in 0..3 {
        assert_eq!(reader.follow.read(fleet.state.head(), ALL), Err(FeedError::OtherStore));
        assert_eq!(reader.follow.load(), Err(FeedError::OtherStore));
    }
}

#[test]
fn a_store_of_format_2_is_read_as_it_is_and_brought_up_by_a_writer() {
    let place = Place::new();
    let path = place.path("store.db");
    let fleet = filled(&mut open(&path, Access::Write), &["a"]);
    tamper(&path, "UPDATE store SET format = 2, min_reader = 2");
    rusqlite::Connection::open(&path).expect("it opens").pragma_update(None, "user_version", 2).expect("set");
    assert_eq!(open(&path, Access::Read).follow.load(), Ok(fleet.state.clone()));
    let writer = open(&path, Access::Write);
    assert_eq!(writer.follow.load(), Ok(fleet.state.clone()));
    let connection = rusqlite::Connection::open(&path).expect("it opens");
    let formats = "SELECT format, min_reader FROM store";
    let formats: (u32, u32) =
        connection.query_row(formats, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("a row");
    assert_eq!(formats, (3, 3));
}

#[test]
fn a_store_of_format_1_is_refused_with_the_way_to_move_on() {
    let place = Place::new();
    let path = place.store();
    filled(&mut open(&path, Access::Write), &["a"]);
    // As a build of that format left it: no role, no mark.
    let format_1 = "UPDATE store SET format = 1, min_reader = 1; ALTER TABLE store DROP COLUMN role; PRAGMA user_version = 1;";
    rusqlite::Connection::open(&path).expect("it opens").execute_batch(format_1).expect("it runs");
    place.remove("store.db-mark");
    let older = FeedError::Older { format: 1, oldest: 2 };
    assert_eq!(open(&path, Access::Read).follow.load(), Err(older.clone()));
    assert_eq!(Sqlite::open(&path, Access::Write).err(), Some(older.clone()));
    let said = older.to_string();
    for word in ["format 1", "`frs export`", "new file", "`frs apply`", "`make run-clean`"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn only_an_origin_is_opened_for_writing() {
    for role in ["copy", "backup"] {
        let place = Place::new();
        let path = place.store();
        let mut writer = open(&path, Access::Write);
        let mut fleet = filled(&mut writer, &["a"]);
        tamper(&path, &format!("UPDATE store SET role = '{role}'"));
        let not_origin = FeedError::NotOrigin(role.to_owned());
        assert!(
            not_origin.to_string().contains(&format!("the store is a {role}: only an origin")),
            "{not_origin}"
        );
        let (before, at) = (fleet.state.clone(), fleet.state.head());
        let refused = writer.append(at, &[fleet.namespace("b")]);
        assert_eq!(refused, Err(AppendError::Refused(not_origin.clone())), "even one that runs already");
        drop(writer);
        assert_eq!(Sqlite::open(&path, Access::Write).err(), Some(not_origin));
        assert_eq!(open(&path, Access::Read).follow.load(), Ok(before), "it is read");
    }
}

/// What a load says of a store in which one thing was changed behind its back.
fn after(sql: &str) -> String {
    let place = Place::new();
    let path = place.path("store.db");
    let reader = open(&path, Access::Read);
    let fleet = filled(&mut open(&path, Access::Write), &["a", "b"]);
    assert_eq!(reader.follow.load(), Ok(fleet.state));
    tamper(&path, sql);
    let told = [reader.follow.load(), open(&path, Access::Read).follow.load()];
    assert_eq!(told[0], told[1], "a running reader and a new one agree");
    match told[0].clone().expect_err("it is noticed") {
        FeedError::Corrupt(why) | FeedError::Behind(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn an_edited_deleted_or_added_document_is_noticed() {
    let digest = "the state after the commit has another digest than the commit says";
    assert_eq!(after(r#"UPDATE entries SET body = '{"id":"a","labels":{}}' WHERE id = 'a'"#), digest);
    assert_eq!(after("DELETE FROM entries WHERE id = 'a'"), digest);
    assert_eq!(
        after("UPDATE entries SET id = 'x' WHERE id = 'a'"),
        "`namespaces/x` cannot be read: it is recorded under another id than it has"
    );
    assert_eq!(
        after(
            r#"INSERT INTO entries VALUES ('namespaces', 'x', '{"id":"x"}', 1, '00000000000000000000000000000000')"#
        ),
        digest
    );
    assert_eq!(after("UPDATE entries SET revision = 1 WHERE id = 'a'"), digest);
    assert_eq!(after("UPDATE entries SET uid = '00000000000000000000000000000000' WHERE id = 'a'"), digest);
}

#[test]
fn an_edited_head_commit_is_noticed() {
    let hash = "the commit of revision 3 has another hash than its contents";
    assert_eq!(after("UPDATE commits SET actor = 'x' WHERE revision = 3"), hash);
    assert_eq!(after("UPDATE commits SET time = time + 1 WHERE revision = 3"), hash);
    assert_eq!(after("UPDATE commits SET ordinary = 1 WHERE revision = 3"), hash);
    assert_eq!(after("UPDATE commits SET version = '' WHERE revision = 3"), hash);
    assert_eq!(after("UPDATE commits SET epoch = 1 WHERE revision = 3"), hash);
    assert_eq!(after("UPDATE commits SET changes = 2 WHERE revision = 3"), hash);
}

/// The guard's hourly budget was given back by an edited count, and the audit log showed an edited actor beside the old hash.
#[test]
fn an_edited_older_commit_is_noticed_by_the_guard_and_by_the_audit_log() {
    let hash = "the commit of revision 2 has another hash than its contents";
    assert_eq!(after("UPDATE commits SET ordinary = 0, each = 7 WHERE revision = 2"), hash);
    assert_eq!(
        after("UPDATE commits SET time = 1 WHERE revision = 2"),
        hash,
        "one that seems too old to count"
    );
    let missing = "the commit of revision 2 is missing, or is not the one that the next commit follows";
    assert_eq!(after("DELETE FROM commits WHERE revision = 2"), missing);
    let place = Place::new();
    let path = place.path("store.db");
    let mut writer = open(&path, Access::Write);
    filled(&mut writer, &["a", "b"]);
    tamper(&path, "UPDATE commits SET actor = 'mallory' WHERE revision = 2");
    let corrupt = FeedError::Corrupt(hash.to_owned());
    assert_eq!(writer.history.history(&Query::newest(9)), Err(corrupt.clone()));
    assert_eq!(
        writer.history.versions(&fleet::Key::document("namespaces", "a"), None, ledger::Most::items(9)),
        Err(corrupt)
    );
}

/// A start reads the header of the head only; whoever reads the changes notices what was done to them.
#[test]
fn edited_or_deleted_changes_are_noticed_by_who_reads_them() {
    let read = |sql: &str| {
        let place = Place::new();
        let path = place.path("store.db");
        let mut writer = open(&path, Access::Write);
        filled(&mut writer, &["a", "b"]);
        tamper(&path, sql);
        let commits = writer.follow.read(Position::default(), ALL)?;
        Ok::<_, FeedError>(commits.iter().map(fleet::Commit::is_proven).collect::<Vec<_>>())
    };
    assert_eq!(read("DELETE FROM changes WHERE revision = 3"), Ok(vec![true, true, false]));
    assert_eq!(
        read("UPDATE changes SET uid = '00000000000000000000000000000000' WHERE revision = 3"),
        Ok(vec![true, true, false])
    );
    let place = Place::new();
    let mut writer = open(&place.path("store.db"), Access::Write);
    filled(&mut writer, &["a", "b"]);
    tamper(&place.path("store.db"), "DELETE FROM changes WHERE revision = 3");
    let missing = "some of the changes of revision 3 are missing";
    assert_eq!(
        writer.history.changes(fleet::Revision(3), 0, ledger::Most::items(9)),
        Err(FeedError::Corrupt(missing.to_owned()))
    );
    let change = "a change of `namespaces/b` has another digest than its body";
    assert_eq!(
        read(r#"UPDATE changes SET body = '{"id":"x"}' WHERE revision = 3"#),
        Err(FeedError::Corrupt(change.to_owned()))
    );
}

#[test]
fn a_head_commit_that_was_cut_off_is_noticed_by_the_head_mark() {
    let why = after("DELETE FROM commits WHERE revision = 3");
    assert!(why.contains("holds revision 2") && why.contains("says that revision 3"), "{why}");
}

#[test]
fn a_gap_in_the_middle_is_noticed_by_who_reads_over_it() {
    let place = Place::new();
    let path = place.path("store.db");
    let mut writer = open(&path, Access::Write);
    filled(&mut writer, &["a", "b"]);
    tamper(&path, "DELETE FROM commits WHERE revision = 2");
    let gap = FeedError::Corrupt("there is no commit at revision 2".to_owned());
    assert_eq!(writer.follow.read(Position::default(), ALL), Err(gap));
}

#[test]
fn a_table_that_is_gone_is_damage_and_not_an_empty_history() {
    let place = Place::new();
    let path = place.path("store.db");
    let mut writer = open(&path, Access::Write);
    filled(&mut writer, &["a"]);
    rusqlite::Connection::open(&path).expect("it opens").execute("DROP TABLE commits", []).expect("dropped");
    assert!(matches!(writer.follow.load(), Err(FeedError::Corrupt(_))));
    assert!(matches!(writer.history.history(&Query::newest(9)), Err(FeedError::Corrupt(_))));
}
