//! The reading side of a handle: one connection, and the suspicion that the file under it may no longer be what it was.
//!
//! A replaced file is opened and then verified as a whole before anything in it is believed: the `-wal` beside it may belong to the
//! file before, and SQLite would mix the two. Every transaction compares the store with its head mark. It never creates a file, and
//! must not know how anything is written.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use fleet::State;
use rusqlite::Connection;

use super::connection;
use super::fault::Fault;
use super::file::{self, FileId, Look, sibling};
use super::identity::{self, Pin, StoreId};
use super::mark::{Bound, Mark};
use super::{Access, behind, create, snapshot};
use crate::error::FeedError;

/// How many instructions SQLite runs before it asks whether to go on: a fraction of a millisecond.
const STEPS: i32 = 10_000;

pub(super) struct Reader {
    path: PathBuf,
    pin: Pin,
    open: Option<Connection>,
    /// The `-wal` that it has open.
    wal: Option<FileId>,
    mark: Option<Mark>,
    /// What is open, or was; its length is the greatest that was seen.
    last: Option<Look>,
    /// Whether the file must be verified as a whole before it is believed.
    suspect: bool,
    /// What was there when somebody last read or asked whether something has changed.
    seen: Seen,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    file: Option<FileId>,
    /// SQLite's `data_version`: changes when another connection has committed.
    version: Option<i64>,
}

impl Reader {
    pub(super) fn new(path: PathBuf, pin: Pin) -> Self {
        Self {
            path,
            pin,
            open: None,
            wal: None,
            mark: None,
            last: None,
            suspect: false,
            seen: Seen::default(),
        }
    }

    /// The fleet at the head. Binds the handle to this store.
    pub(super) fn load(&mut self) -> Result<State, FeedError> {
        self.seen = self.sight();
        let (store, state) = self.transaction(snapshot::load)?;
        self.pin.bind(store)?;
        Ok(state)
    }

    /// Asks in one transaction, after a look at what is there.
    pub(super) fn ask<T>(
        &mut self,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, FeedError> {
        self.transaction(question).map(|(_, answer)| answer)
    }

    /// The same, given up after some time.
    pub(super) fn ask_within<T>(
        &mut self,
        patience: Duration,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, FeedError> {
        let end = Instant::now() + patience;
        self.ask(|connection| {
            connection.progress_handler(STEPS, Some(move || Instant::now() > end))?;
            let answer = question(connection);
            connection.progress_handler(0, None::<fn() -> bool>)?;
            answer
        })
    }

    /// The same for one that follows: what is committed from now on is new.
    pub(super) fn follow<T>(
        &mut self,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, FeedError> {
        self.seen = self.sight();
        self.ask(question)
    }

    /// Whether there is something that was not seen.
    pub(super) fn has_news(&mut self) -> bool {
        let now = self.sight();
        now != std::mem::replace(&mut self.seen, now)
    }

    fn sight(&mut self) -> Seen {
        let file = file::look(&self.path).ok().flatten().map(|look| look.id);
        let same = self.last.is_some_and(|last| Some(last.id) == file);
        let version = self.open.as_ref().filter(|_| same).and_then(|connection| {
            connection.pragma_query_value(None, "data_version", |row| row.get(0)).ok()
        });
        Seen { file, version }
    }

    fn transaction<T>(
        &mut self,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<(StoreId, T), FeedError> {
        self.look()?;
        let mut connection = match self.open.take() {
            Some(connection) => connection,
            None => self.reopen()?,
        };
        let answer = self.ask_all(&mut connection, question);
        // A connection that had trouble is not kept: the next attempt begins afresh, with nothing in its cache, and with the `-wal`
        // that is there by then. While files are moved back one by one, it may have opened one that belongs to another store.
        if answer.is_ok() {
            self.open = Some(connection);
        }
        Ok(answer?)
    }

    fn ask_all<T>(
        &mut self,
        connection: &mut Connection,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<(StoreId, T), Fault> {
        if self.suspect {
            self.within(connection, snapshot::load)?;
            self.suspect = false;
        }
        self.within(connection, question)
    }

    /// One snapshot: which store it is, and the answer. Nothing is left open behind it, which would keep the WAL from being reset.
    fn within<T>(
        &mut self,
        connection: &mut Connection,
        question: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<(StoreId, T), Fault> {
        let mut attempts = 0;
        loop {
            // Before the snapshot: what is acknowledged in between is no reason to refuse.
            let bound = self.bound()?;
            let transaction = connection.transaction()?;
            let store = identity::read(&transaction, Access::Read)?;
            self.pin.check(store)?;
            attempts += 1;
            match behind::must_reach(&transaction, &self.path, store, bound) {
                // A writer may have made the mark, and appended, since we looked for it.
                Err(_) if bound.is_none() && attempts < 3 => {}
                Err(fault) => return Err(fault),
                Ok(()) => return Ok((store, question(&transaction)?)),
            }
        }
    }

    /// What the mark says now; none if there is no mark.
    fn bound(&mut self) -> Result<Option<Bound>, FeedError> {
        if let Some(mark) = &self.mark
            && !mark.is_in_place()?
        {
            self.mark = None;
        }
        if self.mark.is_none() {
            self.mark = Mark::open(&self.path, Access::Read)?;
        }
        self.mark.as_ref().map(Mark::read).transpose()
    }

    /// Compares what the path leads to with what is open.
    fn look(&mut self) -> Result<(), FeedError> {
        let Some(last) = self.last else { return Ok(()) };
        let now = file::look(&self.path)?.ok_or_else(|| self.missing())?;
        if now.id != last.id {
            self.open = None;
            self.wal = None;
            self.last = None;
            self.suspect = true;
        } else if now.length < last.length {
            self.open = None;
            self.suspect = true;
            let (path, was, is) = (self.path.display(), last.length, now.length);
            return Err(FeedError::Corrupt(format!("{path} was cut short from {was} to {is} bytes")));
        } else if self.wal.is_some() && self.wal_now()? != self.wal {
            // What it reads from the `-wal` that it has open, nobody else sees. If the `-wal` is gone, nothing is believed until there
            // is one again: SQLite would make an empty one.
            self.open = None;
            self.suspect = true;
            if self.wal_now()?.is_none() {
                let wal = sibling(&self.path, "-wal");
                return Err(file::gone(wal.display()));
            }
        } else {
            if let Some(open) = self.open.as_ref().filter(|_| now.modified != last.modified) {
                // A checkpoint, or somebody has copied another file over it: believe the file, not what is remembered of it.
                open.release_memory().map_err(|error| FeedError::from(Fault::from(error)))?;
            }
            self.last = Some(now);
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<Connection, FeedError> {
        let opened = connection::open(&self.path, Access::Read)?;
        let opened = opened.ok_or_else(|| self.missing())?;
        self.last = Some(opened.main);
        self.wal = opened.wal;
        Ok(opened.connection)
    }

    fn wal_now(&self) -> Result<Option<FileId>, FeedError> {
        Ok(file::look(&sibling(&self.path, "-wal"))?.map(|look| look.id))
    }

    fn missing(&self) -> FeedError {
        let path = self.path.display();
        if self.pin.store().is_some() {
            return file::gone(path);
        }
        let none_yet = || FeedError::NotInitialised(format!("there is no file {path}"));
        create::must_be_new(&self.path).err().unwrap_or_else(none_yet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Sqlite};

    #[test]
    fn a_question_without_end_is_given_up_and_the_next_one_is_answered() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.db");
        let _store = Sqlite::open(&path, Access::Write).expect("a store");
        let mut reader = Reader::new(path, Pin::default());
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let count = |sql: &'static str| {
            move |connection: &Connection| Ok(connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
        };
        let given_up = reader.ask_within(Duration::from_millis(50), count(endless));
        assert_eq!(given_up, Err(FeedError::Unreachable("the query timed out".to_owned())));
        let answer = reader.ask_within(Duration::from_secs(5), count("SELECT count(*) FROM commits"));
        assert_eq!(answer, Ok(0));
    }
}
