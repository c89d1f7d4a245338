//! Which file a path leads to. A store can be replaced, removed or cut short under a process that has it open, and SQLite would not
//! notice: it goes on with the file it opened.
//!
//! **Invariant:** nothing opens the database or its `-shm` but SQLite itself. POSIX drops all of a process's locks on a file when the process
//! closes *any* descriptor of it, so one innocent `File::open` would take the locks from under another connection.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::FeedError;

/// "flux", in the header of every store.
pub(super) const APPLICATION_ID: i32 = 0x666c_7578;

/// Readers write too (see `PERMISSIONS`), and may belong to another user: of the same group. SQLite gives the `-wal` and the `-shm`
/// the permissions of the database.
pub(super) const MODE: u32 = 0o660;

/// The path of a file beside another one, whose name ends with something more.
pub(super) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The directory that a file is in.
pub(super) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The identity of a file. It is not given to another one while somebody has the file open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileId {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// A look at what a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Look {
    pub(super) id: FileId,
    /// Stores never shrink: nothing vacuums them.
    pub(super) length: u64,
    /// When the main file was written to: by a checkpoint, or by somebody else.
    pub(super) modified: (i64, i64),
}

/// The path of the database itself. SQLite follows links and keeps the `-wal` beside the file that they lead to, so the head mark and
/// everything else that is watched must be there too.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, FeedError> {
    match std::fs::canonicalize(path) {
        Ok(resolved) => Ok(resolved),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unreachable(path, &error)),
        Err(_) if path.is_symlink() => Err(FeedError::Unreachable(format!(
            "{} is a link to a file that does not exist. Create that file's directory and use the path of the file itself",
            path.display()
        ))),
        // A store that is still to be made, perhaps in a directory that is.
        Err(_) => match (std::fs::canonicalize(directory(path)), path.file_name()) {
            (Ok(directory), Some(name)) => Ok(directory.join(name)),
            _ => Ok(path.to_owned()),
        },
    }
}

/// Looks; none if nothing is there.
pub(super) fn look(path: &Path) -> Result<Option<Look>, FeedError> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(Look {
            id: FileId { device: found.dev(), inode: found.ino() },
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unreachable(path, &error)),
    }
}

/// Refuses what is not one of our stores, without writing to it or beside it.
pub(super) fn must_be_ours(path: &Path, look: Look) -> Result<(), FeedError> {
    if look.length == 0 {
        return Err(refused(path, "is empty"));
    }
    match application_id(path) {
        Ok(APPLICATION_ID) => Ok(()),
        Ok(_) => Err(refused(path, "is an SQLite database, but not a store of this program")),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(refused(path, "is not an SQLite database"))
        }
        // A checkpoint may be half way through the file, or it may not be readable: the connection proper will tell.
        Err(_) => Ok(()),
    }
}

/// It was never written to, or it is somebody else's. An emptied file must not silently become a new fleet.
pub(super) fn refused(path: &Path, what: &str) -> FeedError {
    FeedError::NotAStore(format!(
        "{} {what}. Nothing was changed. To make a store here, move the file away first; if there was a store, restore it from \
         a backup",
        path.display()
    ))
}

/// `immutable`: SQLite takes no locks and makes no `-wal`, so even another program's database is left as it is.
fn application_id(path: &Path) -> rusqlite::Result<i32> {
    let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags)?;
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// What a process that reads says of a file that is not there any more.
pub(super) fn gone(path: impl std::fmt::Display) -> FeedError {
    FeedError::Unreachable(format!(
        "the file {path} is gone. Put it back, or restore the store from a backup"
    ))
}

pub(super) fn unreachable(path: &Path, error: &io::Error) -> FeedError {
    FeedError::Unreachable(format!("{}: {error}", path.display()))
}
