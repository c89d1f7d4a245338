//! Following: the fleet at the head, and the commits after a position. Everything here runs inside a transaction that the caller
//! has opened, so that what is checked is what is read.

use fleet::{Change, Commit, GUARD_WINDOW, Hash, KINDS, Loader, Position, Revision, State, Tally, Timestamp};
use rusqlite::Connection;

use super::columns::{self, COMMIT, Line, number, size};
use super::fault::Fault;
use crate::chain;
use crate::feed::Budget;

/// The last commit's position.
pub(super) fn head(connection: &Connection) -> Result<Position, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT revision, hash FROM commits ORDER BY revision DESC LIMIT 1")?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(Position::default()) };
    Ok(Position { revision: columns::revision_at(row, 0)?, hash: columns::parsed(row, 1, Hash::parse)? })
}

/// Checks that a position is in this store's history; the head, if so.
pub(super) fn contains(connection: &Connection, ours: Position) -> Result<Position, Fault> {
    let head = head(connection)?;
    let mut statement = connection.prepare_cached("SELECT hash FROM commits WHERE revision = ?1")?;
    let mut rows = statement.query([number(ours.revision.0)])?;
    let found = rows.next()?.map(|row| columns::parsed(row, 0, Hash::parse)).transpose()?;
    chain::contains(ours, head, found)?;
    Ok(head)
}

/// The commits after a position.
pub(super) fn read(connection: &Connection, after: Position, budget: Budget) -> Result<Vec<Commit>, Fault> {
    contains(connection, after)?;
    let sql = format!("SELECT {COMMIT} FROM commits WHERE revision > ?1 ORDER BY revision LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([number(after.revision.0), size(budget.commits.max(1))])?;
    let mut commits: Vec<Commit> = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let line = columns::commit(row)?;
        let expected = commits.last().map_or(after.revision, |last| last.at.revision).next();
        if line.commit.at.revision != expected {
            return Err(Fault::corrupt(format!("there is no commit at revision {expected}")));
        }
        bytes += line.bytes;
        if !commits.is_empty() && bytes > budget.bytes {
            break;
        }
        commits.push(whole(connection, line)?);
    }
    Ok(commits)
}

/// A commit with its changes.
fn whole(connection: &Connection, line: Line) -> Result<Commit, Fault> {
    let mut commit = line.commit;
    commit.changes = changes(connection, commit.at.revision, 0, line.changes)?;
    Ok(commit)
}

/// A part of what a commit changed.
pub(super) fn changes(
    connection: &Connection,
    revision: Revision,
    from: usize,
    limit: usize,
) -> Result<Vec<Change>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, id, body, digest FROM changes WHERE revision = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows = statement.query([number(revision.0), size(from), size(limit)])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        changes.push(columns::change(row)?);
    }
    Ok(changes)
}

/// The fleet at the head, verified: the head's commit is what its hash says, and the documents are what that commit says.
pub(super) fn load(connection: &Connection) -> Result<State, Fault> {
    let mut loader = Loader::new(kinds(connection)?)?;
    let mut statement =
        connection.prepare(&format!("SELECT {DOCUMENT} FROM documents WHERE kind <> ?1 ORDER BY rowid"))?;
    let mut rows = statement.query([KINDS])?;
    while let Some(row) = rows.next()? {
        loader.push(columns::document(row)?)?;
    }
    let Some(head) = last(connection)? else {
        return if loader.digest() == State::empty().digest() {
            Ok(State::empty())
        } else {
            Err(Fault::corrupt("there are documents, but no commit"))
        };
    };
    chain::is_itself(&head)?;
    Ok(loader.finish(head.at, head.origin.time, head.state, recent(connection, head.origin.time)?)?)
}

const DOCUMENT: &str = "kind, id, body, revision, uid";

fn kinds(connection: &Connection) -> Result<Vec<fleet::Row>, Fault> {
    let mut statement = connection.prepare(&format!("SELECT {DOCUMENT} FROM documents WHERE kind = ?1"))?;
    let mut rows = statement.query([KINDS])?;
    let mut kinds = Vec::new();
    while let Some(row) = rows.next()? {
        kinds.push(columns::document(row)?);
    }
    Ok(kinds)
}

fn last(connection: &Connection) -> Result<Option<Commit>, Fault> {
    let sql = format!("SELECT {COMMIT} FROM commits ORDER BY revision DESC LIMIT 1");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let line = rows.next()?.map(columns::commit).transpose()?;
    line.map(|line| whole(connection, line)).transpose()
}

/// What the guard still counts.
fn recent(connection: &Connection, now: Timestamp) -> Result<Vec<(Timestamp, Tally)>, Fault> {
    let mut statement = connection.prepare(
        "SELECT time, decommissions, each, ordinary, confirmed FROM commits WHERE time > ?1 ORDER BY revision",
    )?;
    let mut rows = statement.query([now.0.saturating_sub(GUARD_WINDOW)])?;
    let mut recent = Vec::new();
    while let Some(row) = rows.next()? {
        recent.push((Timestamp(row.get(0)?), columns::tally(row, 1)?));
    }
    Ok(recent)
}
