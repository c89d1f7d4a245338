//! How the words of the domain are written in columns, and read back. It knows rows, not questions.

use fleet::{
    Canonical, Change, Commit, CommitId, Hash, Key, Origin, Position, Revision, StateDigest, Tally,
    Timestamp, Uid,
};
use rusqlite::Row;

use super::fault::Fault;

/// The columns that [`commit`] reads, in its order.
pub(super) const COMMIT: &str = "revision, hash, previous, state, commit_id, time, actor, reason, request, \
     decommissions, each, ordinary, confirmed, changes, bytes";

/// A row of `commits`.
pub(super) struct Line {
    /// The commit, without its changes.
    pub(super) commit: Commit,
    /// How many changes it has.
    pub(super) changes: usize,
    /// How large their bodies are together.
    pub(super) bytes: usize,
}

pub(super) fn commit(row: &Row<'_>) -> Result<Line, Fault> {
    let at = Position { revision: revision_at(row, 0)?, hash: parsed(row, 1, Hash::parse)? };
    let origin = Origin {
        commit: parsed(row, 4, CommitId::parse)?,
        time: Timestamp(row.get(5)?),
        actor: row.get(6)?,
        reason: row.get(7)?,
        request: row.get(8)?,
    };
    Ok(Line {
        commit: Commit {
            at,
            previous: parsed(row, 2, Hash::parse)?,
            state: parsed(row, 3, StateDigest::parse)?,
            origin,
            removals: tally(row, 9)?,
            changes: Vec::new(),
        },
        changes: count(row, 13)?,
        bytes: count(row, 14)?,
    })
}

/// Four columns from an index on.
pub(super) fn tally(row: &Row<'_>, from: usize) -> Result<Tally, Fault> {
    Ok(Tally {
        decommissions: row.get(from)?,
        each: row.get(from + 1)?,
        ordinary: row.get(from + 2)?,
        confirmed: row.get(from + 3)?,
    })
}

/// `kind, id, body, digest`. What was written hashes to what was written beside it.
pub(super) fn change(row: &Row<'_>) -> Result<Change, Fault> {
    let key = key(row, 0)?;
    let body: Option<Box<str>> = row.get(2)?;
    let digest = parsed(row, 3, Hash::parse)?;
    let change = Change::new(key, body.map(Canonical::stored));
    if change.hash() != digest {
        return Err(Fault::corrupt(format!(
            "a change of `{}` has another digest than its body",
            change.key()
        )));
    }
    Ok(change)
}

/// `kind, id, body, revision, uid`.
pub(super) fn document(row: &Row<'_>) -> Result<fleet::Row, Fault> {
    let body: Box<str> = row.get(2)?;
    Ok(fleet::Row {
        key: key(row, 0)?,
        body: Canonical::stored(body),
        revision: revision_at(row, 3)?,
        uid: parsed(row, 4, Uid::parse)?,
    })
}

/// Two columns from an index on.
pub(super) fn key(row: &Row<'_>, from: usize) -> Result<Key, Fault> {
    Ok(Key::new(text(row, from)?, text(row, from + 1)?))
}

pub(super) fn revision_at(row: &Row<'_>, index: usize) -> Result<Revision, Fault> {
    let number: i64 = row.get(index)?;
    u64::try_from(number).map(Revision).map_err(|_| Fault::corrupt(format!("{number} is not a revision")))
}

/// As SQLite writes it. A revision beyond its numbers is beyond every commit, and so is the largest of them.
pub(super) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The same for what is counted.
pub(super) fn size(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn count(row: &Row<'_>, index: usize) -> Result<usize, Fault> {
    let number: i64 = row.get(index)?;
    usize::try_from(number).map_err(|_| Fault::corrupt(format!("{number} is not a count")))
}

pub(super) fn parsed<T>(row: &Row<'_>, index: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T, Fault> {
    let text = text(row, index)?;
    parse(text).ok_or_else(|| Fault::corrupt(format!("{text:?} is not a hash or an id")))
}

fn text<'a>(row: &'a Row<'_>, index: usize) -> Result<&'a str, Fault> {
    Ok(row.get_ref(index)?.as_str().map_err(rusqlite::Error::from)?)
}
