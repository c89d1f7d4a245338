//! A store in one SQLite file, for one process that writes and others on the same host that follow it.
//!
//! What it promises beyond the traits: a store appears whole or not at all; a file that is not a store is never written to; a reader
//! never creates a store; a file that is replaced, removed or cut short is noticed before it is believed; a store that has gone back
//! is refused; what was acknowledged survives a power cut. It must not know any other backend.
//!
//! Permissions: every process, even one that only reads, must be able to read and write the database, its `-wal` and its `-shm`, and
//! should be able to create these two; it must be able to read the `-mark`. A directory of mode 2770 with a group that all of them
//! belong to is enough: database and mark are made with mode 660, and SQLite makes the other two alike.

mod accept;
mod append;
mod behind;
mod columns;
mod connection;
mod create;
mod fault;
mod file;
mod history;
mod identity;
mod mark;
mod migrations;
mod reader;
mod rows;
mod snapshot;
mod wal;
mod watch;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleet::{Commit, Key, Position, Revision, State};
use rusqlite::Connection;

pub use self::accept::{Head, Inspection};
use self::fault::Fault;
use self::identity::Pin;
use self::reader::Reader;
use self::writer::Writer;
use crate::error::FeedError;
use crate::feed::{Append, Budget, Follow, History, Opened};
use crate::history::{Edit, Most, Paged, Query, Record, Version};

/// How often to look whether somebody else has committed.
const TICK: Duration = Duration::from_millis(25);

/// How long a question about the past may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a process wants of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// To write and to read. Opening makes the store if nothing is there, and brings an older one to the present format.
    Write,
    /// To read. Never creates or changes a store; one that is not there yet is looked for at each call.
    Read,
}

/// A store in an SQLite file.
pub enum Sqlite {}

impl Sqlite {
    /// Opens the store at a path.
    pub fn open(path: &Path, access: Access) -> Result<Opened, FeedError> {
        let path = &file::resolved(path)?;
        let pin = Pin::default();
        let append: Option<Box<dyn Append>> = match access {
            Access::Write => Some(Box::new(Writer::open(path, pin.clone())?)),
            Access::Read => None,
        };
        // Each has a connection of its own, so that a slow question about the past does not keep the head from being confirmed.
        let reader = || Mutex::new(Reader::new(path.to_owned(), pin.clone()));
        Ok(Opened {
            follow: Arc::new(Follower(reader())),
            history: Arc::new(Historian(reader())),
            append,
            store_id: pin.store().map(|store| store.to_string()),
        })
    }

    /// What a store holds and what its head mark says, for somebody who has to decide whether it is the one to go on with. Refused
    /// while any process has the store open.
    pub fn inspect(path: &Path) -> Result<Inspection, FeedError> {
        accept::accept(&file::resolved(path)?, None)
    }

    /// Makes a store that was refused the one to go on with: verifies what it holds at its head, and has its head mark say where it ends.
    /// What the `-wal` holds beyond that is dropped. Refused if the store does not end at the expected position, and while any process has it
    /// open.
    pub fn accept(path: &Path, expect: Position) -> Result<Inspection, FeedError> {
        accept::accept(&file::resolved(path)?, Some(expect))
    }
}

/// A panic leaves a reader whole: its transaction is rolled back, and what it knows is only ever a reason to look again.
fn locked(reader: &Mutex<Reader>) -> MutexGuard<'_, Reader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Follower(Mutex<Reader>);

impl Follow for Follower {
    fn load(&self) -> Result<State, FeedError> {
        locked(&self.0).load()
    }

    fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        locked(&self.0).follow(|connection| snapshot::read(connection, after, budget))
    }

    fn is_head(&self, at: Position) -> Result<bool, FeedError> {
        locked(&self.0).ask(|connection| Ok(snapshot::contains(connection, at)? == at))
    }

    fn changed(&self, at_most: Duration) {
        let end = Instant::now() + at_most;
        loop {
            // The tick comes first: whoever calls this in a loop is held up even if the store is broken.
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(TICK.min(left));
            if left.is_zero() || locked(&self.0).has_news() {
                return;
            }
        }
    }
}

struct Historian(Mutex<Reader>);

impl Historian {
    fn ask<T>(&self, question: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, FeedError> {
        locked(&self.0).ask_within(PATIENCE, question)
    }
}

impl History for Historian {
    fn history(&self, query: &Query) -> Result<Vec<Record>, FeedError> {
        self.ask(|connection| history::history(connection, query))
    }

    fn changes(&self, revision: Revision, from: usize, most: Most) -> Result<Vec<Edit>, FeedError> {
        self.ask(|connection| history::changes(connection, revision, from, most))
    }

    fn versions(&self, key: &Key, before: Option<Revision>, most: Most) -> Result<Paged<Version>, FeedError> {
        self.ask(|connection| history::versions(connection, key, before, most))
    }
}
