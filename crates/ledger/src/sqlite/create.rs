//! Making a new store: whole, or not at all. It is made under another name and then linked to its own, so that nobody ever sees half
//! of it, and of two processes that start at once one makes it and the other uses it.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::fault::Fault;
use super::file::{APPLICATION_ID, unreachable};
use super::identity::StoreId;
use super::migrations;
use crate::error::FeedError;

/// Readers write too (see `PERMISSIONS`), and may belong to another user: of the same group. SQLite gives the `-wal` and the `-shm`
/// the permissions of the file itself.
const MODE: u32 = 0o660;

/// Makes a store at a path, unless there is something by then.
pub(super) fn create(path: &Path) -> Result<(), FeedError> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory).map_err(|error| unreachable(directory, &error))?;
    must_be_new(path)?;
    let draft = Draft::beside(path, StoreId::draw()?);
    fill(&draft).map_err(FeedError::from)?;
    publish(&draft, path, directory).map_err(|error| unreachable(path, &error))
}

/// A store never deletes its `-wal` and `-shm`. If they are there and the file is not, it was lost: a new one in its place would be
/// filled from a seed, or have the old `-wal` mixed into it.
fn must_be_new(path: &Path) -> Result<(), FeedError> {
    for suffix in ["-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // In this order: another process may be making the store just now, first the file, then these.
        if Path::new(&name).exists() && !path.exists() {
            return Err(FeedError::Corrupt(format!(
                "{} is gone, but its `{suffix}` is there: there was a store here. Bring the file back from a backup; if a new \
                 store is to be made here, remove what is left of the old one first",
                path.display()
            )));
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
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{id}.new"));
        Self { path: name.into(), id }
    }

    fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
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
