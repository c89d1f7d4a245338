//! A store in one SQLite file, for one process that writes and others on the same host that follow it.
//!
//! What it promises beyond the traits: a store appears whole or not at all; a file that is not a store is never written to; a reader
//! never creates anything; a file that is replaced, removed or cut short is noticed before it is believed; what was acknowledged
//! survives a power cut. It must not know any other backend.
//!
//! Permissions: every process, even one that only reads, must be able to read and write the file, its `-wal` and its `-shm`, and
//! should be able to create these two. A directory of mode 2770 with a group that all of them belong to is enough: the file is made
//! with mode 660, and SQLite makes the other two alike.

mod append;
mod columns;
mod connection;
mod create;
mod fault;
mod file;
mod history;
mod identity;
mod migrations;
mod reader;
mod snapshot;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fleet::{Canonical, Change, Commit, CommitId, Key, Position, Revision, State};
use rusqlite::Connection;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use self::fault::Fault;
use self::identity::Pin;
use self::reader::Reader;
use self::writer::{Locked, Writer};
use crate::error::{AppendError, FeedError};
use crate::feed::{Budget, Feed, Held, Ledger};
use crate::history::{Query, Record};

/// How often to look whether somebody else has committed.
const TICK: Duration = Duration::from_millis(25);

/// How long a question about the past may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a process wants of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// To write and to read. Opening makes the store if nothing is there, and brings an older one to the present format.
    Write,
    /// To read. Never creates or changes anything; a store that is not there yet is looked for at each call.
    Read,
}

/// A handle on a store in an SQLite file.
pub struct Sqlite {
    /// Follows. It has a connection of its own, so that a slow question about the past does not keep the head from being confirmed.
    follower: Arc<Mutex<Reader>>,
    /// Answers questions about the past.
    historian: Arc<Mutex<Reader>>,
    writer: Option<Arc<Mutex<Writer>>>,
    pin: Pin,
}

impl Sqlite {
    /// Opens the store at a path. Blocks.
    pub fn open(path: &Path, access: Access) -> Result<Self, FeedError> {
        let pin = Pin::default();
        let writer = match access {
            Access::Write => Some(Arc::new(Mutex::new(Writer::open(path, pin.clone())?))),
            Access::Read => None,
        };
        let reader = || Arc::new(Mutex::new(Reader::new(path.to_owned(), pin.clone())));
        Ok(Self { follower: reader(), historian: reader(), writer, pin })
    }

    /// Which store this is, for the log; none before it is known.
    pub fn store_id(&self) -> Option<String> {
        self.pin.store().map(|store| store.to_string())
    }

    async fn following<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Reader) -> Result<T, FeedError> + Send + 'static,
    ) -> Result<T, FeedError> {
        reading(self.follower.clone(), work).await
    }

    async fn asking<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, FeedError> {
        reading(self.historian.clone(), move |reader| reader.ask_within(PATIENCE, question)).await
    }

    async fn lock(&self) -> Result<Locked, AppendError> {
        let Some(writer) = &self.writer else {
            return Err(FeedError::Unreachable("it was opened for reading only".to_owned()).into());
        };
        let writer = writer.clone().lock_owned().await;
        spawn_blocking(move || Locked::take(writer)).await.unwrap_or_else(|_| Err(interrupted().into()))
    }
}

/// Runs something on a reading connection, off the async runtime.
async fn reading<T: Send + 'static>(
    reader: Arc<Mutex<Reader>>,
    work: impl FnOnce(&mut Reader) -> Result<T, FeedError> + Send + 'static,
) -> Result<T, FeedError> {
    let mut reader = reader.lock_owned().await;
    let done = spawn_blocking(move || work(&mut reader)).await;
    done.unwrap_or_else(|_| Err(interrupted()))
}

/// The process is shutting down, or there is a bug; either way there is no answer.
fn interrupted() -> FeedError {
    FeedError::Unreachable("the task ended early".to_owned())
}

#[async_trait]
impl Feed for Sqlite {
    async fn load(&self) -> Result<State, FeedError> {
        self.following(Reader::load).await
    }

    async fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        self.following(move |reader| reader.follow(|connection| snapshot::read(connection, after, budget)))
            .await
    }

    async fn changed(&self) {
        loop {
            // The tick comes first: whoever calls this in a loop is held up even if the store is broken.
            tokio::time::sleep(TICK).await;
            if self.following(|reader| Ok(reader.has_news())).await == Ok(true) {
                return;
            }
        }
    }
}

#[async_trait]
impl Ledger for Sqlite {
    async fn append(&self, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        let locked = self.lock().await?;
        append_locked(locked, at, group).await
    }

    async fn hold(&self) -> Result<Box<dyn Held>, FeedError> {
        match self.lock().await {
            Ok(locked) => Ok(Box::new(HeldSqlite(Some(locked)))),
            Err(AppendError::Refused(error)) => Err(error),
            Err(other) => Err(FeedError::Unreachable(other.to_string())),
        }
    }

    async fn find(&self, commit: CommitId) -> Result<Option<Position>, FeedError> {
        self.asking(move |connection| history::find(connection, commit)).await
    }

    async fn history(&self, query: Query) -> Result<Vec<Record>, FeedError> {
        self.asking(move |connection| history::history(connection, &query)).await
    }

    async fn changes(&self, revision: Revision, from: usize, limit: usize) -> Result<Vec<Change>, FeedError> {
        self.asking(move |connection| snapshot::changes(connection, revision, from, limit)).await
    }

    async fn document_at(&self, key: Key, at: Revision) -> Result<Option<Canonical>, FeedError> {
        self.asking(move |connection| history::document_at(connection, &key, at)).await
    }
}

async fn append_locked(locked: Locked, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
    let last = group.last().map(|commit| commit.origin.commit).unwrap_or_default();
    let done = spawn_blocking(move || locked.append(at, &group)).await;
    done.unwrap_or_else(|_| Err(AppendError::Unknown { last, why: interrupted().to_string() }))
}

/// The lock is there but while a read has it.
struct HeldSqlite(Option<Locked>);

#[async_trait]
impl Held for HeldSqlite {
    async fn read(&mut self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        let locked = self.0.take().ok_or_else(interrupted)?;
        let done = spawn_blocking(move || (locked.read(after, budget), locked)).await;
        let (commits, locked) = done.map_err(|_| interrupted())?;
        self.0 = Some(locked);
        commits
    }

    async fn append(mut self: Box<Self>, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        let locked = self.0.take().ok_or_else(|| AppendError::from(interrupted()))?;
        append_locked(locked, at, group).await
    }
}
