//! Making a new store: whole, or not at all. It is made under another name and then linked to its own, so that nobody ever sees half
//! of it, and of two processes that start at once one makes it and the other uses it.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::fault::Fault;
use super::file::{self, APPLICATION_ID, MODE, sibling, unreachable};
use super::identity::StoreId;
use super::migrations;
use crate::error::FeedError;

/// Makes a store at a path, unless there is something by then.
pub(super) fn create(path: &Path) -> Result<(), FeedError> {
    let directory = file::directory(path);
    fs::create_dir_all(directory).map_err(|error| unreachable(directory, &error))?;
    must_be_new(path)?;
    let draft = Draft::beside(path, StoreId::draw()?);
    fill(&draft).map_err(FeedError::from)?;
    publish(&draft, path, directory).map_err(|error| unreachable(path, &error))
}

/// A store never deletes its `-mark`, `-wal` and `-shm`. If one of them is there and the database is not, it was lost: a new one in
/// its place would be filled from a seed, or have the old `-wal` mixed into it.
pub(super) fn must_be_new(path: &Path) -> Result<(), FeedError> {
    for suffix in ["-mark", "-wal", "-shm"] {
        // In this order: another process may be making the store just now, first the database, then these.
        if sibling(path, suffix).exists() && !path.exists() {
            return Err(FeedError::Lost { file: path.display().to_string(), beside: suffix });
        }
    }
    Ok(())
}

/// A store under its temporary name, which goes whatever happens.
struct Draft {
    path: PathBuf,
    id: StoreId,
}

impl Draft {
    fn beside(path: &Path, id: StoreId) -> Self {
        Self { path: sibling(path, &format!(".{id}.new")), id }
    }

    fn sibling(&self, suffix: &str) -> PathBuf {
        sibling(&self.path, suffix)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            // Nothing to be done about it, and nothing that does harm.
            let _ = fs::remove_file(self.sibling(suffix));
        }
    }
}

fn fill(draft: &Draft) -> Result<(), Fault> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&draft.path, flags)?;
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    migrations::run(&mut connection, Some(draft.id))?;
    // Now, while nobody else knows it: changing the mode of a database in use fails.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.close().map_err(|(_, error)| Fault::from(error))
}

fn publish(draft: &Draft, path: &Path, directory: &Path) -> io::Result<()> {
    if draft.sibling("-wal").exists() {
        return Err(io::Error::other("the new store was not closed cleanly"));
    }
    fs::set_permissions(&draft.path, Permissions::from_mode(MODE))?;
    File::open(&draft.path)?.sync_all()?;
    match fs::hard_link(&draft.path, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::remove_file(&draft.path)?;
    File::open(directory)?.sync_all()
}
