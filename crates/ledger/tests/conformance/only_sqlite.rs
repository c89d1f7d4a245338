//! Stories that need a file to spoil. A store in memory is always there, always of this program's format and out of anybody's reach,
//! so they are told of SQLite only.

use std::path::{Path, PathBuf};

use fleet::{Position, State};
use ledger::{Access, AppendError, Feed, FeedError, Ledger, Query, Sqlite};
use tempfile::TempDir;

use crate::fixture::{ALL, filled, run};
use crate::open;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Does what the store's owner would not do.
fn tamper(path: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(path).expect("it opens");
    assert_eq!(connection.execute(sql, []).expect("it runs"), 1, "{sql}");
}

#[test]
fn a_store_that_is_not_there_yet_is_not_initialised_until_a_writer_makes_it() {
    run(async {
        let place = Place::new();
        let reader = open(&place.path("store.db"), Access::Read);
        for _ in 0..2 {
            let missing = format!("there is no file {}", place.path("store.db").display());
            assert_eq!(reader.load().await, Err(FeedError::NotInitialised(missing.clone())));
            assert_eq!(reader.read(Position::default(), ALL).await, Err(FeedError::NotInitialised(missing)));
        }
        assert_eq!(
            std::fs::read_dir(place.0.path()).expect("a directory").count(),
            0,
            "a reader creates nothing"
        );
        let writer = open(&place.path("store.db"), Access::Write);
        assert_eq!(reader.load().await, Ok(State::empty()));
        assert_eq!(reader.store_id(), writer.store_id());
        assert!(reader.store_id().is_some());
    });
}

#[test]
fn a_reader_cannot_append() {
    run(async {
        let place = Place::new();
        let mut fleet = filled(&open(&place.path("store.db"), Access::Write), &["a"]).await;
        let reader = open(&place.path("store.db"), Access::Read);
        let at = fleet.state.head();
        let refused = reader.append(at, vec![fleet.namespace("b")]).await;
        let because = FeedError::Unreachable("it was opened for reading only".to_owned());
        assert_eq!(refused, Err(AppendError::Refused(because)));
    });
}

#[test]
fn a_store_that_needs_a_newer_reader_is_newer_for_everybody() {
    run(async {
        let place = Place::new();
        filled(&open(&place.path("store.db"), Access::Write), &["a"]).await;
        let reader = open(&place.path("store.db"), Access::Read);
        reader.load().await.expect("a fleet");
        tamper(&place.path("store.db"), "UPDATE store SET format = 9, min_reader = 7");
        assert_eq!(reader.load().await, Err(FeedError::Newer { format: 7, known: 1 }));
        let writer = Sqlite::open(&place.path("store.db"), Access::Write);
        assert_eq!(writer.err(), Some(FeedError::Newer { format: 9, known: 1 }));
    });
}

#[test]
fn a_store_of_a_newer_format_that_we_can_read_is_newer_for_writers_only() {
    run(async {
        let place = Place::new();
        let path = place.path("store.db");
        let writer = open(&path, Access::Write);
        let mut fleet = filled(&writer, &["a"]).await;
        tamper(&path, "UPDATE store SET format = 2");
        assert_eq!(open(&path, Access::Read).load().await, Ok(fleet.state.clone()));
        let newer = FeedError::Newer { format: 2, known: 1 };
        let at = fleet.state.head();
        let refused = writer.append(at, vec![fleet.namespace("b")]).await;
        assert_eq!(refused, Err(AppendError::Refused(newer.clone())), "even one that runs already");
        assert_eq!(Sqlite::open(&path, Access::Write).err(), Some(newer));
    });
}

#[test]
fn another_store_in_the_same_place_is_not_followed() {
    run(async {
        let place = Place::new();
        let (path, other) = (place.path("store.db"), place.path("other.db"));
        let fleet = filled(&open(&path, Access::Write), &["a"]).await;
        filled(&open(&other, Access::Write), &["b", "c"]).await;
        let reader = open(&path, Access::Read);
        assert_eq!(reader.load().await, Ok(fleet.state.clone()));
        for suffix in ["", "-wal", "-shm"] {
            std::fs::rename(
                place.path(&format!("other.db{suffix}")),
                place.path(&format!("store.db{suffix}")),
            )
            .expect("renamed");
        }
        for _ in 0..3 {
            assert_eq!(reader.read(fleet.state.head(), ALL).await, Err(FeedError::OtherStore));
            assert_eq!(reader.load().await, Err(FeedError::OtherStore));
        }
    });
}

/// What a load says of a store in which one thing was changed behind its back.
fn after(sql: &'static str) -> String {
    let (send, receive) = std::sync::mpsc::channel();
    run(async move {
        let place = Place::new();
        let path = place.path("store.db");
        let reader = open(&path, Access::Read);
        let fleet = filled(&open(&path, Access::Write), &["a", "b"]).await;
        assert_eq!(reader.load().await, Ok(fleet.state));
        tamper(&path, sql);
        let told = [reader.load().await, open(&path, Access::Read).load().await];
        assert_eq!(told[0], told[1], "a running reader and a new one agree");
        send.send(told[0].clone().expect_err("it is noticed")).expect("sent");
    });
    match receive.recv().expect("an answer") {
        FeedError::Corrupt(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn an_edited_deleted_or_added_document_is_noticed() {
    let digest = "the state after the commit has another digest than the commit says";
    assert_eq!(after(r#"UPDATE documents SET body = '{"id":"a","labels":{}}' WHERE id = 'a'"#), digest);
    assert_eq!(after("DELETE FROM documents WHERE id = 'a'"), digest);
    assert_eq!(
        after("UPDATE documents SET id = 'x' WHERE id = 'a'"),
        "`namespaces/x` cannot be read: it is recorded under another id than it has"
    );
    assert_eq!(
        after(
            r#"INSERT INTO documents VALUES ('namespaces', 'x', '{"id":"x"}', 1, '00000000000000000000000000000000')"#
        ),
        digest
    );
}

#[test]
fn an_edited_head_commit_is_noticed() {
    let hash = "the commit of revision 3 has another hash than its contents";
    assert_eq!(after("UPDATE commits SET actor = 'x' WHERE revision = 3"), hash);
    assert_eq!(after("UPDATE commits SET time = time + 1 WHERE revision = 3"), hash);
    assert_eq!(after("UPDATE commits SET ordinary = 1 WHERE revision = 3"), hash);
    assert_eq!(after("DELETE FROM changes WHERE revision = 3"), hash);
    let change = "a change of `namespaces/b` has another digest than its body";
    assert_eq!(after(r#"UPDATE changes SET body = '{"id":"x"}' WHERE revision = 3"#), change);
}

#[test]
fn a_head_commit_that_was_cut_off_is_noticed_by_the_documents_it_made() {
    let digest = "the state after the commit has another digest than the commit says";
    assert_eq!(after("DELETE FROM commits WHERE revision = 3"), digest);
}

#[test]
fn a_gap_in_the_middle_is_noticed_by_who_reads_over_it() {
    run(async {
        let place = Place::new();
        let path = place.path("store.db");
        let writer = open(&path, Access::Write);
        filled(&writer, &["a", "b"]).await;
        tamper(&path, "DELETE FROM commits WHERE revision = 2");
        let gap = FeedError::Corrupt("there is no commit at revision 2".to_owned());
        assert_eq!(writer.read(Position::default(), ALL).await, Err(gap));
    });
}

#[test]
fn a_table_that_is_gone_is_damage_and_not_an_empty_history() {
    run(async {
        let place = Place::new();
        let path = place.path("store.db");
        let writer = open(&path, Access::Write);
        filled(&writer, &["a"]).await;
        rusqlite::Connection::open(&path)
            .expect("it opens")
            .execute("DROP TABLE commits", [])
            .expect("dropped");
        assert!(matches!(writer.load().await, Err(FeedError::Corrupt(_))));
        assert!(matches!(writer.history(Query::newest(9)).await, Err(FeedError::Corrupt(_))));
    });
}
