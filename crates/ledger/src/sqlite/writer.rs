//! The side that writes: the one connection that appends, bound to the files that it opened. It never reopens and never creates: a file
//! that was replaced or removed under it ends its writing until the file is back, or the process is started again.

use std::path::{Path, PathBuf};

use fleet::{Commit, CommitId, Position};
use rusqlite::Connection;

use super::connection;
use super::fault::{self, Fault};
use super::identity::{self, Pin, StoreId};
use super::mark::{Bound, Mark};
use super::watch::Watch;
use super::{Access, append, behind, create, history, migrations, snapshot};
use crate::chain;
use crate::error::{AppendError, FeedError};
use crate::feed::{Append, Budget, Held};

pub(super) struct Writer {
    path: PathBuf,
    connection: Connection,
    watch: Watch,
    pin: Pin,
    store: StoreId,
    /// Why nothing may be written any more.
    fatal: Option<String>,
    /// About how many bytes went into the `-wal` since the last checkpoint.
    to_checkpoint: usize,
}

/// How many bytes may be in the `-wal` before they are brought into the database.
const CHECKPOINT: usize = 4 << 20;

/// About how many bytes a commit adds to the `-wal`: each of its changes touches a handful of pages.
fn weight(commit: &Commit) -> usize {
    2 * commit.body_bytes() + commit.changes.len() * 16 * 1024
}

impl Writer {
    /// Opens the store at a path; makes one if nothing is there.
    pub(super) fn open(path: &Path, pin: Pin) -> Result<Self, FeedError> {
        let mut opened = connection::open(path, Access::Write)?;
        if opened.is_none() {
            create::create(path)?;
            opened = connection::open(path, Access::Write)?;
        }
        let Some(mut opened) = opened else {
            return Err(FeedError::Unreachable(format!(
                "{} was removed as soon as it was made",
                path.display()
            )));
        };
        let store = identity::read(&opened.connection, Access::Write)?;
        let (mark, head) = settle(&mut opened.connection, path, store)?;
        migrations::run(&mut opened.connection, None)?;
        pin.bind(store)?;
        let connection::Opened { connection, main, wal } = opened;
        let watch = Watch::new(path, &connection, main, wal, mark)?;
        // Whoever appended last may have been killed before the mark was written.
        watch.acknowledge(Bound { store, at: head })?;
        Ok(Self { path: path.to_owned(), connection, watch, pin, store, fatal: None, to_checkpoint: 0 })
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
            None => Ok(self.watch.check().and_then(|()| self.watch.check_wal(&self.connection))?),
        }
    }

    /// Takes the lock that every writer needs; waits for it.
    fn lock(&mut self) -> Result<Locked<'_>, AppendError> {
        self.usable()?;
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE");
        begun.map_err(|error| self.note(Fault::from(error).before_commit()))?;
        Ok(Locked(self))
    }

    /// Whether this is still the store that was opened, and holds what was acknowledged. Within a transaction that holds the lock, or
    /// with a mark that was read before the transaction began.
    fn must_be_ours(&self, acknowledged: Bound) -> Result<(), Fault> {
        let store = identity::read(&self.connection, Access::Write)?;
        self.pin.check(store)?;
        behind::must_reach(&self.connection, &self.path, store, Some(acknowledged))
    }

    /// Reads in a snapshot of the store, if it is still the one that was opened, and holds what was acknowledged.
    fn look<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, FeedError> {
        let acknowledged = self.watch.acknowledged()?;
        self.connection.execute_batch("BEGIN").map_err(Fault::from)?;
        let answer = self.must_be_ours(acknowledged).and_then(|()| question(&self.connection));
        self.roll_back();
        Ok(answer?)
    }

    /// Looks up which store it is and where it ends; whether the group may follow.
    fn may_append(&self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        self.must_be_ours(self.watch.acknowledged()?).map_err(Fault::before_commit)?;
        let head = snapshot::contains(&self.connection, at).map_err(Fault::before_commit)?;
        chain::is_head(at, head)?;
        Ok(chain::follows(at, group)?)
    }

    /// Within a transaction that holds the lock.
    fn append_locked(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        self.may_append(at, group)?;
        let Some(last) = group.last() else { return Ok(()) };
        for commit in group {
            append::write(&self.connection, commit).map_err(Fault::before_commit)?;
        }
        // The last moment at which one can still step back.
        self.watch.check()?;
        self.connection.execute_batch("COMMIT").map_err(|error| fault::of_commit(&error))?;
        // From here on the commits are there: if that cannot be noted, or they went into a file that is gone, nothing more is written.
        let noted = self.watch.acknowledge(Bound { store: self.store, at: last.header.at });
        noted.and_then(|()| self.watch.check()).map_err(|error| AppendError::Fatal(error.to_string()))?;
        self.to_checkpoint += group.iter().map(weight).sum::<usize>();
        if at == Position::default() || self.to_checkpoint >= CHECKPOINT {
            self.checkpoint("PASSIVE");
        }
        Ok(())
    }

    /// Brings what is committed from the `-wal` into the database. Somebody may copy or move the database alone: then it must not
    /// look like a store that has never held anything, which would be filled from a seed.
    ///
    /// SQLite's own checkpoints keep their errors to themselves. What is committed is safe in the `-wal`; but a disk that fails is
    /// written to no more.
    fn checkpoint(&mut self, mode: &str) {
        self.to_checkpoint = 0;
        let done = self.connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
        match done {
            Err(error) if fault::ends_checkpoints(&error) => {
                self.fatal = Some(format!("a checkpoint failed: {error}"));
            }
            _ => {
                if let Err(error) = self.watch.sync_mark() {
                    self.fatal = Some(format!("the head mark cannot be synced: {error}"));
                }
            }
        }
    }
}

/// Looks whether the store holds what its mark says, and where it ends. A store that is new has no mark: its writer makes one, before
/// the first append.
fn settle(connection: &mut Connection, path: &Path, store: StoreId) -> Result<(Mark, Position), FeedError> {
    let mut last = None;
    // Another writer may be making the mark just now, and be appending.
    for _ in 0..3 {
        let mark = Mark::open(path, Access::Write)?;
        let bound = mark.as_ref().map(Mark::read).transpose()?;
        let transaction = connection.transaction().map_err(Fault::from)?;
        let reached = behind::must_reach(&transaction, path, store, bound);
        let head = reached.and_then(|()| snapshot::head(&transaction)).map_err(FeedError::from);
        match (mark, head) {
            (Some(mark), head) => return Ok((mark, head?)),
            (None, Ok(new)) => Mark::create(path, Bound { store, at: new })?,
            (None, Err(error)) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        FeedError::Unreachable("its head mark was removed as soon as it was made".to_owned())
    }))
}

impl Append for Writer {
    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        let outcome = self.lock().and_then(|locked| locked.0.append_locked(at, group));
        outcome.map_err(|error| self.note(error))
    }

    fn hold(&mut self) -> Result<Box<dyn Held + '_>, FeedError> {
        match self.lock() {
            Ok(locked) => Ok(Box::new(locked)),
            Err(AppendError::Refused(error)) => Err(error),
            Err(other) => Err(FeedError::Unreachable(other.to_string())),
        }
    }

    fn find(&mut self, commit: CommitId) -> Result<Option<Position>, FeedError> {
        self.watch.check()?;
        self.look(|connection| history::find(connection, commit))
    }
}

impl Writer {
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // If this fails, SQLite has rolled back by itself.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

impl Drop for Writer {
    /// A clean stop leaves an empty `-wal`, so that the database alone is whole. If readers are in the way, the `-wal` stays as it is. It
    /// stays, too, if the store seems to lack what was acknowledged: a spoilt `-shm` hides commits that are still whole in the `-wal`.
    fn drop(&mut self) {
        let is_sound = self.fatal.is_none()
            && self.watch.check().is_ok()
            && connection::hurry(&self.connection).is_ok()
            && self.look(|_| Ok(())).is_ok();
        if is_sound {
            self.checkpoint("TRUNCATE");
        }
    }
}

/// The writing connection inside a transaction: nobody else can write. Rolled back when dropped, wherever that happens.
struct Locked<'a>(&'a mut Writer);

impl Held for Locked<'_> {
    fn read(&mut self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        self.0.must_be_ours(self.0.watch.acknowledged()?)?;
        Ok(snapshot::read(&self.0.connection, after, budget)?)
    }

    fn append(self: Box<Self>, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        let outcome = self.0.watch.check().map_err(AppendError::from);
        let outcome = outcome.and_then(|()| self.0.append_locked(at, group));
        outcome.map_err(|error| self.0.note(error))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.roll_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_fsync_every_append_is_fatal() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = Writer::open(&directory.path().join("store.db"), Pin::default()).expect("a store");
        let fsync = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
        let fault = Fault::from(rusqlite::Error::SqliteFailure(fsync, None));
        let AppendError::Fatal(why) = writer.note(fault.before_commit()) else { panic!("it is fatal") };
        for _ in 0..2 {
            assert_eq!(writer.append(Position::default(), &[]), Err(AppendError::Fatal(why.clone())));
        }
    }
}
