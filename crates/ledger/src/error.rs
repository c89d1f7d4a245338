//! What can go wrong with a store. Every one of these leaves the caller's state as it was: none can be mistaken for an empty fleet.

use fleet::{CommitId, Diverged, NeedsNewer, Position, Revision};

/// What to do about a store that was replaced under a running process.
const PUT_BACK: &str = "Put back the one that was read before; if this one is meant, restart the process";

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
    #[error("this is another store than the one that was read before. {PUT_BACK}")]
    OtherStore,
    /// Its history and ours have parted.
    #[error("the store has another commit at revision {0} than the one that was read before. {PUT_BACK}")]
    Forked(Revision),
    /// It ends before the commit that was read before.
    #[error("the store ends at revision {theirs}, but revision {ours} was read before. {PUT_BACK}")]
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
    /// A newer version of this program wrote something into it that has to be understood.
    #[error("{0}")]
    NeedsNewer(NeedsNewer),
    /// A version of this program made it whose format is no longer read.
    #[error(
        "the store has format {format}; this program reads formats from {oldest} on. Export the fleet with the build that made the \
         store (`frs export`), start this build with a new file, and `frs apply` the export. For `make run`: `make run-clean`"
    )]
    Older {
        /// The format of the store.
        format: u32,
        /// The oldest that this program reads.
        oldest: u32,
    },
    /// It is a copy or a backup, and was to be opened for writing.
    #[error(
        "the store is a {0}: only an origin is opened for writing. Open it read-only, or open the origin that it was made from"
    )]
    NotOrigin(String),
    /// It does not hold what was acknowledged last, or nothing says what that was.
    #[error("the store may have gone back: {0}")]
    Behind(String),
    /// It is not the store that an operator meant to accept.
    #[error("the store ends at {at}, not at {expect}; nothing was changed")]
    NotAsExpected {
        /// Where the store ends.
        at: Position,
        /// Where the operator said that it ends.
        expect: Position,
    },
    /// Its database is gone, and other files of it are not.
    #[error(
        "{file} is gone, but its `{beside}` is there: there was a store here. Restore the file from a backup; if a new store is to be \
         made here, remove what is left of the old one first"
    )]
    Lost { file: String, beside: &'static str },
    /// It is empty, or somebody else's.
    #[error("{0}")]
    NotAStore(String),
    /// What it holds is not what was written to it.
    #[error("the store is damaged: {0}. Restore it from a backup")]
    Corrupt(String),
}

impl FeedError {
    /// With the version that wrote what is not understood, which its commit says.
    pub(crate) fn written_by(self, version_at: impl FnOnce(Revision) -> Option<Box<str>>) -> Self {
        match self {
            Self::NeedsNewer(needs) => {
                let version = version_at(needs.revision);
                Self::NeedsNewer(NeedsNewer { version, ..needs })
            }
            other => other,
        }
    }
}

impl From<Diverged> for FeedError {
    fn from(diverged: Diverged) -> Self {
        match diverged {
            Diverged::Newer(needs) => Self::NeedsNewer(needs),
            diverged => Self::Corrupt(diverged.to_string()),
        }
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
    /// They may have been appended, or not: look for the last one by its id. For backends over a network; SQLite never gives it.
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
