//! What can go wrong with a store. Every one of these leaves the caller's state as it was: none can be mistaken for an empty fleet.

use fleet::{CommitId, Diverged, Revision};

/// Why a store could not be read, or is not to be followed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FeedError {
    /// It does not answer. It may later.
    #[error("the store cannot be reached: {0}")]
    Unreachable(String),
    /// There is no store yet. A process that writes makes one.
    #[error("there is no store yet: {0}")]
    NotInitialised(String),
    /// It is not the store that was read before.
    #[error("this is another store than the one that was read before")]
    OtherStore,
    /// Its history and ours have parted.
    #[error("the store has another commit at revision {0} than the one that was read before")]
    Forked(Revision),
    /// It ends before the commit that was read before.
    #[error("the store ends at revision {theirs}, but revision {ours} was read before")]
    Regressed {
        /// The revision that was read before.
        ours: Revision,
        /// The store's last revision.
        theirs: Revision,
    },
    /// A newer version of this program made it.
    #[error("the store has format {format}; this program reads formats up to {known}: use a newer version")]
    Newer {
        /// What one must be able to read.
        format: u32,
        /// What this program reads.
        known: u32,
    },
    /// What it holds is not what was written to it.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
}

impl From<Diverged> for FeedError {
    fn from(diverged: Diverged) -> Self {
        Self::Corrupt(diverged.to_string())
    }
}

/// Why commits were not appended, or are not known to be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AppendError {
    /// Somebody else appended first. Nothing was appended.
    #[error("another process has appended in the meantime")]
    Conflict,
    /// Nothing was appended.
    #[error(transparent)]
    Refused(#[from] FeedError),
    /// They may have been appended, or not: look for the last one by its id.
    #[error("whether the commits were appended is not known: {why}")]
    Unknown {
        /// The last commit of the group.
        last: CommitId,
        /// What happened.
        why: String,
    },
    /// The store could not promise that what it holds is on disk. They may have been appended; nothing may be appended any more.
    #[error("the store can no longer be trusted to keep what is written: {0}")]
    Fatal(String),
}
