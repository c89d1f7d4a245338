//! How the words of the domain are written in columns, and read back. It knows rows, not questions.

use fleet::{
    Canonical, Change, ChangesDigest, CommitId, Epoch, Hash, Header, Idempotency, Key, Origin, Passed,
    Position, Revision, StateDigest, Tally, Timestamp, Uid,
};
use rusqlite::Row;

use super::fault::Fault;

/// The columns that [`header`] reads, in its order.
pub(super) const COMMIT: &str = "revision, hash, previous, state, commit_id, time, actor, reason, request, version, \
     idempotency_key, idempotency_request, epoch, decommissions, each, ordinary, confirmed, changes, changes_hash, bytes";

/// A row of `commits`.
pub(super) struct Line {
    pub(super) header: Header,
    /// How large the bodies of its changes are together.
    pub(super) bytes: usize,
}

pub(super) fn header(row: &Row<'_>) -> Result<Line, Fault> {
    let key: Option<Box<str>> = row.get(10)?;
    let idempotency = match key {
        None => None,
        Some(key) => Some(Idempotency { key, request: parsed(row, 11, Hash::parse)? }),
    };
    let origin = Origin {
        commit: parsed(row, 4, CommitId::parse)?,
        time: Timestamp(row.get(5)?),
        actor: row.get(6)?,
        reason: row.get(7)?,
        request: row.get(8)?,
        version: row.get(9)?,
        idempotency,
    };
    let header = Header {
        at: Position { revision: revision_at(row, 0)?, hash: parsed(row, 1, Hash::parse)? },
        previous: parsed(row, 2, Hash::parse)?,
        epoch: Epoch(revision_at(row, 12)?.0),
        state: parsed(row, 3, StateDigest::parse)?,
        origin,
        removals: tally(row, 13)?,
        changes: ChangesDigest { count: row.get(17)?, hash: parsed(row, 18, Hash::parse)? },
    };
    Ok(Line { header, bytes: count(row, 19)? })
}

/// On what grounds the guard let a commit pass.
fn passed(row: &Row<'_>, at: usize) -> Result<Passed, Fault> {
    let number: u8 = row.get(at)?;
    Passed::parse(number)
        .ok_or_else(|| Fault::corrupt(format!("{number} is not how a commit passes the guard")))
}

/// Four columns from an index on.
pub(super) fn tally(row: &Row<'_>, from: usize) -> Result<Tally, Fault> {
    Ok(Tally {
        decommissions: row.get(from)?,
        each: row.get(from + 1)?,
        ordinary: row.get(from + 2)?,
        passed: passed(row, from + 3)?,
    })
}

/// The columns that [`change`] reads, in its order.
pub(super) const CHANGE: &str = "space, id, uid, body, digest";

/// A row of `changes`, its columns from an index on. What was written hashes to what was written beside it.
pub(super) fn change(row: &Row<'_>, from: usize) -> Result<Change, Fault> {
    let key = key(row, from)?;
    let uid = parsed(row, from + 2, Uid::parse)?;
    let body: Option<Box<str>> = row.get(from + 3)?;
    let digest = parsed(row, from + 4, Hash::parse)?;
    let change = Change::new(key, uid, body.map(Canonical::stored));
    if change.hash() != digest {
        return Err(Fault::corrupt(format!(
            "a change of `{}` has another digest than its body",
            change.key()
        )));
    }
    Ok(change)
}

/// The columns that [`entry`] reads, in its order.
pub(super) const ENTRY: &str = "space, id, body, revision, uid";

/// A row of `entries`.
pub(super) fn entry(row: &Row<'_>) -> Result<fleet::Row, Fault> {
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
    Ok(Key::parse(text(row, from)?, text(row, from + 1)?))
}

/// How many columns a list of them has.
pub(super) fn width(columns: &str) -> usize {
    columns.split(',').count()
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
