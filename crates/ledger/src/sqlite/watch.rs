//! The files that a writer relies on: the database, its `-wal` and its mark. Each must still be the one that was opened, and be as long
//! as it was: SQLite goes on with files that were removed or replaced, and what it writes into them is lost.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::fault::Fault;
use super::file::{self, FileId, Look, sibling, unreachable};
use super::mark::{Bound, Mark};
use super::wal;
use crate::error::FeedError;

pub(super) struct Watch {
    database: PathBuf,
    main: Look,
    wal_path: PathBuf,
    wal: File,
    wal_id: FileId,
    mark: Mark,
    page: u64,
}

/// A writer never opens another file in place of the one it had.
const ADVICE: &str = "Nothing is written until the file is back, or, if it cannot be brought back, until this process is restarted";

impl Watch {
    /// Begins to watch what a connection has opened.
    pub(super) fn new(
        database: &Path,
        connection: &Connection,
        main: Look,
        wal: Option<FileId>,
        mark: Mark,
    ) -> Result<Self, FeedError> {
        let wal_path = sibling(database, "-wal");
        let file = File::open(&wal_path).map_err(|error| unreachable(&wal_path, &error))?;
        let found = file.metadata().map_err(|error| unreachable(&wal_path, &error))?;
        let wal_id = FileId { device: found.dev(), inode: found.ino() };
        if wal != Some(wal_id) {
            return Err(replaced(&wal_path));
        }
        let page: u32 =
            connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(Fault::from)?;
        Ok(Self { database: database.to_owned(), main, wal_path, wal: file, wal_id, mark, page: page.into() })
    }

    /// Whether all files are still there, and are the same.
    pub(super) fn check(&mut self) -> Result<(), FeedError> {
        let main = in_place(&self.database, self.main.id)?;
        if main.length < self.main.length {
            return Err(cut_short(&self.database, self.main.length, main.length));
        }
        self.main = main;
        in_place(&self.wal_path, self.wal_id)?;
        if !self.mark.is_in_place()? {
            return Err(match file::look(self.mark.path())? {
                None => gone(self.mark.path()),
                Some(_) => replaced(self.mark.path()),
            });
        }
        Ok(())
    }

    /// Whether the `-wal` is as long as SQLite believes. Not within a transaction.
    pub(super) fn check_wal(&self, connection: &Connection) -> Result<(), FeedError> {
        let (mut must, mut is) = (0, 0);
        // Another process may just be emptying it: then SQLite knows that the next time.
        for _ in 0..3 {
            let statement = connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)");
            let frames =
                statement.and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(1)));
            let frames = frames.map_err(Fault::from)?;
            must = wal::length(u64::try_from(frames).unwrap_or(0), self.page);
            is = in_place(&self.wal_path, self.wal_id)?.length;
            if is >= must {
                return Ok(());
            }
        }
        Err(cut_short(&self.wal_path, must, is))
    }

    /// What was acknowledged last.
    pub(super) fn acknowledged(&self) -> Result<Bound, FeedError> {
        self.mark.read()
    }

    /// Notes what is acknowledged next.
    pub(super) fn acknowledge(&self, bound: Bound) -> Result<(), FeedError> {
        self.mark.raise(bound, Some(&self.wal))
    }

    pub(super) fn sync_mark(&self) -> std::io::Result<()> {
        self.mark.sync()
    }
}

fn in_place(path: &Path, id: FileId) -> Result<Look, FeedError> {
    match file::look(path)? {
        Some(look) if look.id == id => Ok(look),
        Some(_) => Err(replaced(path)),
        None => Err(gone(path)),
    }
}

fn gone(path: &Path) -> FeedError {
    FeedError::Unreachable(format!("the file {} is gone. {ADVICE}", path.display()))
}

fn replaced(path: &Path) -> FeedError {
    FeedError::Unreachable(format!("another file has taken the place of {}. {ADVICE}", path.display()))
}

fn cut_short(path: &Path, was: u64, is: u64) -> FeedError {
    FeedError::Corrupt(format!("{} was cut short from {was} to {is} bytes", path.display()))
}
