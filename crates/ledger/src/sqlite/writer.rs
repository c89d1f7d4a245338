//! The writing side of a handle: the one connection that appends, bound to the file that it opened. It never reopens and never creates:
//! a file that was replaced or removed under it ends its writing until the process is started again.

use std::path::{Path, PathBuf};

use fleet::{Commit, Position};
use rusqlite::Connection;
use tokio::sync::OwnedMutexGuard;

use super::connection::{self, Role};
use super::fault::{self, Fault};
use super::file::{self, Look};
use super::identity::{self, Pin};
use super::{append, create, migrations, snapshot};
use crate::chain;
use crate::error::{AppendError, FeedError};
use crate::feed::Budget;

pub(super) struct Writer {
    path: PathBuf,
    connection: Connection,
    opened: Look,
    pin: Pin,
    /// Why nothing may be written any more.
    fatal: Option<String>,
    /// About how many bytes went into the `-wal` since the last checkpoint.
    to_checkpoint: usize,
}

/// How many bytes may be in the `-wal` before they are brought into the file.
const CHECKPOINT: usize = 4 << 20;

/// About how many bytes a commit adds to the `-wal`: each of its changes touches a handful of pages.
fn weight(commit: &Commit) -> usize {
    2 * commit.body_bytes() + commit.changes.len() * 16 * 1024
}

impl Writer {
    /// Opens the store at a path; makes one if nothing is there.
    pub(super) fn open(path: &Path, pin: Pin) -> Result<Self, FeedError> {
        let mut opened = connection::open(path, Role::Write)?;
        if opened.is_none() {
            create::create(path)?;
            opened = connection::open(path, Role::Write)?;
        }
        let Some((mut connection, look)) = opened else {
            return Err(FeedError::Unreachable(format!(
                "{} was removed as soon as it was made",
                path.display()
            )));
        };
        let store = identity::read(&connection, Role::Write)?;
        migrations::run(&mut connection, None)?;
        pin.bind(store)?;
        Ok(Self { path: path.to_owned(), connection, opened: look, pin, fatal: None, to_checkpoint: 0 })
    }

    fn check(&mut self) -> Result<(), FeedError> {
        let path = self.path.display();
        let advice = "Nothing is written until the file is back";
        let Some(now) = file::look(&self.path)? else {
            return Err(FeedError::Unreachable(format!("the file {path} is gone. {advice}")));
        };
        if now.id != self.opened.id {
            return Err(FeedError::Unreachable(format!(
                "another file has taken the place of {path}. {advice}"
            )));
        }
        if now.length < self.opened.length {
            return Err(FeedError::Corrupt(format!("{path} was cut short. {advice}")));
        }
        self.opened = now;
        Ok(())
    }

    /// After one failed fsync there is no other.
    fn note(&mut self, error: AppendError) -> AppendError {
        if let AppendError::Fatal(why) = &error {
            self.fatal = Some(why.clone());
        }
        error
    }

    fn usable(&mut self) -> Result<(), AppendError> {
        match &self.fatal {
            Some(why) => Err(AppendError::Fatal(why.clone())),
            None => Ok(self.check()?),
        }
    }

    /// Looks up which store it is and where it ends; whether the group may follow.
    fn may_append(&self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        let store = identity::read(&self.connection, Role::Write).map_err(Fault::before_commit)?;
        self.pin.check(store)?;
        let head = snapshot::contains(&self.connection, at).map_err(Fault::before_commit)?;
        chain::is_head(at, head)?;
        Ok(chain::follows(at, group)?)
    }

    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        self.usable()?;
        if group.is_empty() {
            return Ok(());
        }
        self.may_append(at, group)?;
        for commit in group {
            append::write(&self.connection, commit).map_err(Fault::before_commit)?;
        }
        // The last moment at which one can still step back.
        self.check()?;
        self.connection.execute_batch("COMMIT").map_err(|error| fault::of_commit(&error))?;
        self.to_checkpoint += group.iter().map(weight).sum::<usize>();
        if at == Position::default() || self.to_checkpoint >= CHECKPOINT {
            self.checkpoint();
        }
        Ok(())
    }

    /// Brings what is committed from the `-wal` into the file itself. Somebody may copy or move the file alone: then it must not look
    /// like a store that has never held anything, which would be filled from a seed.
    ///
    /// SQLite's own checkpoints keep their errors to themselves. What is committed is safe in the `-wal`; but a disk that fails is
    /// written to no more.
    fn checkpoint(&mut self) {
        self.to_checkpoint = 0;
        let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = done
            && fault::ends_checkpoints(&error)
        {
            self.fatal = Some(format!("a checkpoint failed: {error}"));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.fatal.is_none() && self.check().is_ok() {
            self.checkpoint();
        }
    }
}

/// The writing connection inside a transaction: nobody else can write. Rolled back when dropped, wherever that happens.
pub(super) struct Locked(OwnedMutexGuard<Writer>);

impl Locked {
    /// Waits for the lock; blocks.
    pub(super) fn take(mut writer: OwnedMutexGuard<Writer>) -> Result<Self, AppendError> {
        writer.usable()?;
        let begun = writer.connection.execute_batch("BEGIN IMMEDIATE");
        begun.map_err(|error| writer.note(Fault::from(error).before_commit()))?;
        Ok(Self(writer))
    }

    pub(super) fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        let connection = &self.0.connection;
        self.0.pin.check(identity::read(connection, Role::Write)?)?;
        Ok(snapshot::read(connection, after, budget)?)
    }

    pub(super) fn append(mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        let outcome = self.0.append(at, group);
        outcome.map_err(|error| self.0.note(error))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if !self.0.connection.is_autocommit() {
            // If this fails, SQLite has rolled back by itself.
            let _ = self.0.connection.execute_batch("ROLLBACK");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Mutex;

    use super::*;

    #[test]
    fn after_a_failed_fsync_every_append_is_fatal() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = Writer::open(&directory.path().join("store.db"), Pin::default()).expect("a store");
        let fsync = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
        let fault = Fault::from(rusqlite::Error::SqliteFailure(fsync, None));
        let AppendError::Fatal(why) = writer.note(fault.before_commit()) else { panic!("it is fatal") };
        let writer = Arc::new(Mutex::new(writer));
        for _ in 0..2 {
            let taken = Locked::take(writer.clone().try_lock_owned().expect("nobody has it"));
            assert_eq!(taken.err(), Some(AppendError::Fatal(why.clone())));
        }
    }
}
