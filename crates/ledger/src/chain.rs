//! What makes a list of commits a chain: the rules that every backend checks in the same words before it believes a position or takes
//! a commit. It knows no store: backends look things up and ask here what that means.

use fleet::{Commit, Hash, Header, Position};

use crate::error::{AppendError, FeedError};

/// Whether a store can be one that `ours` was read from. `found` is the hash of its commit at that revision.
pub(crate) fn contains(ours: Position, head: Position, found: Option<Hash>) -> Result<(), FeedError> {
    if head.revision < ours.revision {
        return Err(FeedError::Regressed { ours: ours.revision, theirs: head.revision });
    }
    let found = if ours.revision == Position::default().revision { Some(Hash::default()) } else { found };
    match found {
        Some(hash) if hash == ours.hash => Ok(()),
        Some(_) => Err(FeedError::Forked(ours.revision)),
        None => Err(FeedError::Corrupt(format!("there is no commit at revision {}", ours.revision))),
    }
}

/// Whether commits may be appended at a position to a store that contains it.
pub(crate) fn is_head(at: Position, head: Position) -> Result<(), AppendError> {
    if at == head { Ok(()) } else { Err(AppendError::Conflict) }
}

/// Whether commits follow a position and each other, and are what their hashes say. Nothing makes a group of which this does not hold;
/// if something did, it must not become history.
pub(crate) fn follows(at: Position, group: &[Commit]) -> Result<(), FeedError> {
    let mut last = at;
    for commit in group {
        let header = &commit.header;
        let here = header.at.revision;
        if header.previous != last.hash || here != last.revision.next() {
            return Err(FeedError::Corrupt(format!(
                "the commit of revision {here} does not follow revision {}",
                last.revision
            )));
        }
        is_itself(commit)?;
        last = header.at;
    }
    Ok(())
}

/// Whether a commit is what its hash says.
pub(crate) fn is_itself(commit: &Commit) -> Result<(), FeedError> {
    proven(commit.is_proven(), commit.header.at)
}

/// The same for a header, which proves itself without its changes.
pub(crate) fn header_is_itself(header: &Header) -> Result<(), FeedError> {
    proven(header.is_proven(), header.at)
}

fn proven(is_proven: bool, at: Position) -> Result<(), FeedError> {
    if is_proven {
        return Ok(());
    }
    let revision = at.revision;
    Err(FeedError::Corrupt(format!("the commit of revision {revision} has another hash than its contents")))
}
