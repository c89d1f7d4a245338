//! The three sides of a store, each a trait of its own, so that a caller can hold one without the others: what follows it, what appends
//! to it, what answers questions about its past. All of them block: call them on threads of their own.
//!
//! **Invariant:** only an [`Append`] changes a store. A process has at most one; it is neither `Clone` nor shareable.

use std::sync::Arc;
use std::time::Duration;

use fleet::{Commit, CommitId, Key, Position, Revision, State};

use crate::error::{AppendError, FeedError};
use crate::history::{Edit, Most, Paged, Query, Record, Version};

/// How much to read at once. At least one commit is read, however large it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// The most commits.
    pub commits: usize,
    /// The most bytes of bodies.
    pub bytes: usize,
}

/// A store, opened into its sides.
pub struct Opened {
    /// For the thread that follows the store.
    pub follow: Arc<dyn Follow>,
    /// For whoever answers questions about the past.
    pub history: Arc<dyn History>,
    /// For the writer; none if the store was opened for reading.
    pub append: Option<Box<dyn Append>>,
    /// Which store this is, for the log; none if it is not known yet, or has no identity beyond this process.
    pub store_id: Option<String>,
}

/// A store that can be followed. The first `load` decides which store it is: from then on any other is [`FeedError::OtherStore`].
pub trait Follow: Send + Sync {
    /// The fleet at the store's head: head and documents of one snapshot, and verified against the digest in the head's commit.
    fn load(&self) -> Result<State, FeedError>;

    /// The commits after a position, oldest first. None means that the position is the head: this is how freshness is confirmed.
    /// The store's commit at that position must have that hash, or the store is not followed.
    fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError>;

    /// Whether a position is the store's head. The store's commit at that position must have that hash, or it is an error.
    fn is_head(&self, at: Position) -> Result<bool, FeedError>;

    /// Blocks until there may be something new since the last `load`, `read` or `changed`, or until the time is over. A hint, never
    /// the data: it may return for nothing, and may miss something.
    fn changed(&self, at_most: Duration);
}

/// The side that writes. One thread owns it, and every append happens on that thread.
pub trait Append: Send {
    /// Appends commits that follow each other and the position, all or none, and returns when they are safe.
    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError>;

    /// Takes the head's lock: nobody else appends until the result is used or dropped. For a process that has lost a race: it can
    /// read what it missed, decide again, and append without losing another.
    fn hold(&mut self) -> Result<Box<dyn Held + '_>, FeedError>;

    /// Where a commit is, if it is there: how an unknown outcome becomes known.
    fn find(&mut self, commit: CommitId) -> Result<Option<Position>, FeedError>;
}

/// The head's lock. Dropped without an append, it lets go and nothing has happened.
pub trait Held {
    /// As [`Follow::read`], while nobody can append.
    fn read(&mut self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError>;

    /// As [`Append::append`]; lets go of the lock.
    fn append(self: Box<Self>, at: Position, group: &[Commit]) -> Result<(), AppendError>;
}

/// The past. A question that takes too long is given up, with an error.
pub trait History: Send + Sync {
    /// Commits, newest first, without their bodies.
    fn history(&self, query: &Query) -> Result<Vec<Record>, FeedError>;

    /// What a commit changed, with what each document was before, sorted by key, beginning with the one at index `from`.
    fn changes(&self, revision: Revision, from: usize, most: Most) -> Result<Vec<Edit>, FeedError>;

    /// What became of one document, newest first, of commits before a revision if one is given.
    fn versions(&self, key: &Key, before: Option<Revision>, most: Most) -> Result<Paged<Version>, FeedError>;
}
