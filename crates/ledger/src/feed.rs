//! The two traits: what follows a store, and what writes to it.

use async_trait::async_trait;
use fleet::{Canonical, Change, Commit, CommitId, Key, Position, Revision, State};

use crate::error::{AppendError, FeedError};
use crate::history::{Query, Record};

/// How much to read at once. At least one commit is read, however large it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The most commits.
    pub commits: usize,
    /// The most bytes of bodies.
    pub bytes: usize,
}

/// A store that can be followed. The first `load` decides which store it is: from then on any other is [`FeedError::OtherStore`].
#[async_trait]
pub trait Feed: Send + Sync {
    /// The fleet at the store's head: head and documents of one snapshot, and verified against the digest in the head's commit.
    async fn load(&self) -> Result<State, FeedError>;

    /// The commits after a position, oldest first. None means that the position is the head: this is how freshness is confirmed.
    /// The store's commit at that position must have that hash, or the store is not followed.
    async fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError>;

    /// Returns when there may be something new. A hint, never the data: it may return for nothing, and may miss something.
    async fn changed(&self);
}

/// A store that can be written to, and asked about its history.
#[async_trait]
pub trait Ledger: Feed {
    /// Appends commits that follow each other and the position, all or none, and returns when they are safe.
    async fn append(&self, at: Position, group: Vec<Commit>) -> Result<(), AppendError>;

    /// Takes the head's lock: nobody else appends until the result is used or dropped. For a process that has lost a race: it can
    /// read what it missed, decide again, and append without losing another.
    async fn hold(&self) -> Result<Box<dyn Held>, FeedError>;

    /// Where a commit is, if it is there: how an unknown outcome becomes known.
    async fn find(&self, commit: CommitId) -> Result<Option<Position>, FeedError>;

    /// Commits, newest first, without their bodies.
    async fn history(&self, query: Query) -> Result<Vec<Record>, FeedError>;

    /// What a commit changed, sorted by key: `limit` changes beginning with the one at index `from`.
    async fn changes(&self, revision: Revision, from: usize, limit: usize) -> Result<Vec<Change>, FeedError>;

    /// A document as it was after a revision; none if there was none.
    async fn document_at(&self, key: Key, at: Revision) -> Result<Option<Canonical>, FeedError>;
}

/// The head's lock. Dropped without an append, it lets go and nothing has happened.
#[async_trait]
pub trait Held: Send {
    /// As [`Feed::read`], while nobody can append.
    async fn read(&mut self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError>;

    /// As [`Ledger::append`]; lets go of the lock.
    async fn append(self: Box<Self>, at: Position, group: Vec<Commit>) -> Result<(), AppendError>;
}
