//! What an operator does about a store that is refused: look what it holds, and say that it is meant. The only way by which a head mark
//! ever goes back. It works on a store that nobody else has open, and makes sure of that twice: by the lock on the mark, and, since
//! the mark may be missing, by SQLite's own exclusive lock on the database.

use std::path::Path;

use fleet::{Position, Timestamp};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::fault::Fault;
use super::mark::{self, Bound, Mark};
use super::{Access, behind, create, file, identity, snapshot, wal};
use crate::error::FeedError;

/// What a store holds, verified, and what its head mark says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inspection {
    /// The store's id.
    pub store: String,
    /// What the store is for: `origin`, `copy` or `backup`.
    pub role: String,
    /// The last commit; none if the store has none.
    pub head: Option<Head>,
    /// The last commit that was acknowledged, as the mark says; or why the mark says nothing about this store.
    pub mark: Result<Position, String>,
    /// Whether the store is refused because of that.
    pub is_behind: bool,
    /// What is wrong with the `-wal`: commits in it that cannot be read any more.
    pub wal_problem: Option<String>,
}

/// The last commit of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Where the store ends.
    pub at: Position,
    /// When the commit was made.
    pub time: Timestamp,
    /// By whom.
    pub actor: String,
}

impl Inspection {
    /// Where the store ends.
    pub fn position(&self) -> Position {
        self.head.as_ref().map(|head| head.at).unwrap_or_default()
    }
}

/// Inspects the store at a path; if it ends where it is expected to, the mark says so from then on.
pub(super) fn accept(path: &Path, expect: Option<Position>) -> Result<Inspection, FeedError> {
    let Some(look) = file::look(path)? else {
        create::must_be_new(path)?;
        return Err(FeedError::NotInitialised(format!("there is no file {}", path.display())));
    };
    file::must_be_ours(path, look)?;
    let mark = Mark::lock(path)?;
    let wal_problem = wal::damage(path)?;
    let connection = connect(path).map_err(|fault| refusal(path, fault))?;
    let store = identity::read(&connection, Access::Read)?;
    let role = identity::role_of(&connection)?;
    snapshot::load(&connection)?;
    let head = snapshot::last(&connection)?.map(|header| Head {
        at: header.at,
        time: header.origin.time,
        actor: header.origin.actor.into(),
    });
    let looked = mark.as_ref().map(Mark::look).transpose()?;
    let said = match looked {
        None => Err("there is none".to_owned()),
        Some(Err(unusable)) => Err(format!("it {unusable}")),
        Some(Ok(bound)) if bound.store != store => Err(format!("it is of store {}", bound.store)),
        Some(Ok(bound)) => Ok(bound.at),
    };
    let is_behind = match looked.transpose() {
        Err(_) => true,
        Ok(bound) => match behind::must_reach(&connection, path, store, bound) {
            Ok(()) => false,
            Err(Fault::Store(_)) => true,
            Err(fault) => return Err(fault.into()),
        },
    };
    let found = Inspection { store: store.to_string(), role, head, mark: said, is_behind, wal_problem };
    let Some(expect) = expect else { return Ok(found) };
    let at = found.position();
    if at != expect {
        return Err(FeedError::NotAsExpected { at, expect });
    }
    connection.execute_batch("COMMIT").map_err(Fault::from)?;
    // What the `-wal` holds beyond the head would be refused again, or, worse, be read again one day.
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(|error| refusal(path, error.into()))?;
    if busy != 0 {
        return Err(mark::in_use(path));
    }
    let bound = Bound { store, at };
    match mark {
        Some(mark) => mark.rewrite(bound)?,
        None => Mark::create(path, bound)?,
    }
    Ok(found)
}

/// A connection with an exclusive lock, within a transaction. The `-shm` is not used: what counts is what the `-wal` itself says.
fn connect(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Before anything is read, or the `-shm` would be used.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.busy_handler(None)?;
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    Ok(connection)
}

fn refusal(path: &Path, fault: Fault) -> FeedError {
    match fault {
        Fault::Sql(error)
            if matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ) =>
        {
            mark::in_use(path)
        }
        fault => fault.into(),
    }
}
