//! What SQLite's errors mean. The one place that knows its error codes; it must not know what was being done beyond "reading",
//! "writing" and "committing".

use fleet::Diverged;
use rusqlite::{Error, ErrorCode, ffi};

use crate::error::{AppendError, FeedError};

/// What went wrong, before it is known whether that hurts a reader or a writer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The store says no.
    Store(FeedError),
    /// SQLite says no.
    Sql(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<FeedError> for Fault {
    fn from(error: FeedError) -> Self {
        Self::Store(error)
    }
}

impl From<Diverged> for Fault {
    fn from(diverged: Diverged) -> Self {
        Self::Store(diverged.into())
    }
}

impl From<Fault> for FeedError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Store(error) => error,
            Fault::Sql(error) => meaning(&error),
        }
    }
}

impl Fault {
    /// Something that is not what we wrote.
    pub(super) fn corrupt(what: impl Into<String>) -> Self {
        Self::Store(FeedError::Corrupt(what.into()))
    }

    /// Before COMMIT: whatever it was, the transaction is rolled back.
    pub(super) fn before_commit(self) -> AppendError {
        match self {
            Self::Sql(error) if is_fsync(&error) => AppendError::Fatal(error.to_string()),
            fault => AppendError::Refused(fault.into()),
        }
    }
}

/// An error of COMMIT itself. SQLite rolls back when the disk is full or somebody is in the way. After anything else the commit may
/// stand in the `-wal` and come to light when that is next read from its beginning, though nobody sees it until then: it can be
/// neither confirmed nor denied, and nothing may be written on top of it.
pub(super) fn of_commit(error: &Error) -> AppendError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            AppendError::Refused(meaning(error))
        }
        _ => AppendError::Fatal(error.to_string()),
    }
}

/// Whether an error of a checkpoint means that the disk cannot be trusted any more. Busy readers and a full disk pass.
pub(super) fn ends_checkpoints(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}

/// After a failed fsync the kernel may have dropped the pages and a second one may succeed: nothing can be promised any more.
fn is_fsync(error: &Error) -> bool {
    matches!(error.sqlite_extended_error_code(), Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

fn meaning(error: &Error) -> FeedError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FeedError::Unreachable(
            "it is busy: another process has been writing to it for seconds".to_owned(),
        ),
        Some(ErrorCode::OperationInterrupted) => FeedError::Unreachable("the query timed out".to_owned()),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            FeedError::Unreachable(format!("{error}; {PERMISSIONS}"))
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => FeedError::Corrupt(error.to_string()),
        // `Unknown` is SQLITE_ERROR: our statements do not fit the tables. Constraints: what is there contradicts what is written.
        // No code: not from SQLite but from reading its answer: a column of another type, a row that is missing.
        None | Some(ErrorCode::Unknown | ErrorCode::ConstraintViolation) => {
            FeedError::Corrupt(error.to_string())
        }
        Some(ErrorCode::SystemIoFailure) => FeedError::Unreachable(format!(
            "{error}: the disk fails, or a file of the store was replaced. If this does not pass, restore the store from a backup"
        )),
        Some(_) => FeedError::Unreachable(error.to_string()),
    }
}

/// What a process needs, even one that only reads: SQLite's readers take part in locking.
pub(super) const PERMISSIONS: &str = "a process, even one that only reads, must be allowed to read and write the file, \
     its `-wal` and its `-shm`, to create these two in their directory, and to read the `-mark`; one that writes must be \
     allowed to write the `-mark` too";

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn a_failed_fsync_is_fatal_whenever_it_happens() {
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC] {
            assert!(matches!(of_commit(&failure(code)), AppendError::Fatal(_)));
            assert!(matches!(Fault::from(failure(code)).before_commit(), AppendError::Fatal(_)));
        }
    }

    #[test]
    fn a_full_disk_or_a_busy_store_at_commit_is_a_refusal() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY] {
            let refused = of_commit(&failure(code));
            assert!(matches!(refused, AppendError::Refused(FeedError::Unreachable(_))), "{refused:?}");
        }
    }

    /// Seen: no space for the `-shm`. The commit was refused, was not to be found, and was there after the next start.
    #[test]
    fn any_other_error_of_commit_is_fatal_for_what_it_left_behind_may_come_to_light() {
        let codes =
            [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE, ffi::SQLITE_NOMEM, ffi::SQLITE_CORRUPT];
        for code in codes {
            let fatal = of_commit(&failure(code));
            assert!(matches!(fatal, AppendError::Fatal(_)), "{fatal:?}");
        }
    }

    #[test]
    fn an_error_before_commit_is_a_refusal() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_IOERR_WRITE] {
            let refused = Fault::from(failure(code)).before_commit();
            assert!(matches!(refused, AppendError::Refused(FeedError::Unreachable(_))), "{refused:?}");
        }
    }
}
