//! How a connection to a store is opened and what is set on it. Every setting that safety rests on is here; nothing here knows what
//! the tables are.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::Access;
use super::fault::{Fault, PERMISSIONS};
use super::file::{self, FileId, Look, sibling};
use super::wal;
use crate::error::FeedError;

/// How often to look again whether somebody else is done writing.
const NAP: Duration = Duration::from_millis(1);

/// How many times to look: for about five seconds.
const NAPS: i32 = 5_000;

/// What a `-wal` shrinks to once it has been moved into the file: 64 MiB.
const WAL_LIMIT: i64 = 64 << 20;

/// A connection, and which files it has open.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) main: Look,
    /// None only of a database that somebody has taken out of WAL mode.
    pub(super) wal: Option<FileId>,
}

/// Opens the store at a path. Never creates one.
pub(super) fn open(path: &Path, access: Access) -> Result<Option<Opened>, Fault> {
    let wal = || Ok::<_, FeedError>(file::look(&sibling(path, "-wal"))?.map(|look| look.id));
    // Somebody may be replacing the files: what was looked at must be what was opened.
    for _ in 0..10 {
        let Some(before) = file::look(path)? else { return Ok(None) };
        file::must_be_ours(path, before)?;
        let wal_before = wal()?;
        wal::must_be_whole(path)?;
        let connection = connect(path, access)?;
        let (after, wal_after) = (file::look(path)?, wal()?);
        if after.is_some_and(|after| after.id == before.id)
            && (wal_before.is_none() || wal_before == wal_after)
        {
            return Ok(Some(Opened { connection, main: before, wal: wal_after }));
        }
    }
    Err(FeedError::Unreachable(format!("{} is being replaced all the time", path.display())).into())
}

fn connect(path: &Path, access: Access) -> Result<Connection, Fault> {
    // Readers too open for writing: a WAL database that its writer has closed cannot be opened otherwise by another user.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    if connection.is_readonly("main")? {
        // SQLite falls back to read-only without a word, and fails later in ways that are hard to read.
        return Err(FeedError::Unreachable(format!("{}: {PERMISSIONS}", path.display())).into());
    }
    if access == Access::Read {
        connection.pragma_update(None, "query_only", true)?;
    }
    // Before anything is written.
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != file::APPLICATION_ID {
        return Err(file::refused(path, "is an SQLite database, but not a store of this program").into());
    }
    if access == Access::Read {
        return Ok(connection);
    }
    // A power cut under `synchronous=NORMAL` loses commits that were acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Checkpoints are made, and their errors noticed, by whoever writes.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // The `-wal` is never deleted; after a large transaction it need not stay as large.
    connection.pragma_update(None, "journal_size_limit", WAL_LIMIT)?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(
            FeedError::Unreachable(format!("its journal mode is {mode} and cannot be made WAL")).into()
        );
    }
    Ok(connection)
}

/// What is set on every connection.
fn prepare(connection: &Connection) -> Result<(), Fault> {
    // A close neither checkpoints nor deletes the `-wal` and `-shm`: readers of another user could not make them again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // SQLite's own timeout sleeps up to 100 ms, which next to a busy writer means never to get a turn.
    connection.busy_handler(Some(|naps| nap(naps, NAPS)))?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // A file that is cut short would be a SIGBUS.
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

fn nap(naps: i32, most: i32) -> bool {
    std::thread::sleep(NAP);
    naps < most
}

/// For a process that is about to stop: waits half a second for others, and no longer.
pub(super) fn hurry(connection: &Connection) -> Result<(), Fault> {
    Ok(connection.busy_handler(Some(|naps| nap(naps, NAPS / 10)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Sqlite};

    fn setting<T: rusqlite::types::FromSql>(access: Access, name: &str) -> T {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.db");
        Sqlite::open(&path, Access::Write).expect("a store");
        let opened = open(&path, access).expect("it opens").expect("it is there");
        opened.connection.pragma_query_value(None, name, |row| row.get(0)).expect("a value")
    }

    #[test]
    fn a_writer_waits_for_the_disk_at_each_commit() {
        assert_eq!(setting::<String>(Access::Write, "journal_mode"), "wal");
        assert_eq!(setting::<i64>(Access::Write, "synchronous"), 2, "FULL");
    }

    #[test]
    fn a_reader_cannot_write_by_mistake() {
        assert_eq!(setting::<i64>(Access::Read, "query_only"), 1);
        assert_eq!(setting::<i64>(Access::Write, "query_only"), 0);
    }

    #[test]
    fn neither_trusts_functions_in_the_schema_nor_maps_the_file() {
        for access in [Access::Read, Access::Write] {
            assert_eq!(setting::<i64>(access, "trusted_schema"), 0);
            assert_eq!(setting::<i64>(access, "mmap_size"), 0);
        }
    }

    #[test]
    fn neither_ever_creates_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        for access in [Access::Read, Access::Write] {
            assert!(open(&directory.path().join("store.db"), access).expect("no error").is_none());
        }
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }
}
