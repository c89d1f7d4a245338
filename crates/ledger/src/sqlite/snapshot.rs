//! Following: the fleet at the head, and the commits after a position. Everything here runs inside a transaction that the caller
//! has opened, so that what is checked is what is read.

use fleet::{
    Change, Commit, GUARD_WINDOW, Hash, Header, Key, Loader, Position, Revision, State, Tally, Timestamp,
};
use rusqlite::{Connection, params_from_iter};

use super::columns::{self, CHANGE, COMMIT, ENTRY, Line, number, size};
use super::fault::Fault;
use super::rows;
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
        let line = columns::header(row)?;
        let expected = commits.last().map_or(after.revision, |last| last.header.at.revision).next();
        if line.header.at.revision != expected {
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
    let header = line.header;
    let changes = changes(connection, header.at.revision, header.changes.count as usize)?;
    Ok(Commit { header, changes })
}

/// What a commit changed.
fn changes(connection: &Connection, revision: Revision, limit: usize) -> Result<Vec<Change>, Fault> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT {CHANGE} FROM changes WHERE revision = ?1 ORDER BY seq LIMIT ?2"))?;
    let mut rows = statement.query([number(revision.0), size(limit)])?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        changes.push(columns::change(row, 0)?);
    }
    Ok(changes)
}

/// The fleet at the head, verified: the head's header is what its hash says, and the entries are what that header says.
pub(super) fn load(connection: &Connection) -> Result<State, Fault> {
    load_entries(connection).map_err(|fault| match fault {
        Fault::Store(error) => {
            let version_at = |revision| Some(header_at(connection, revision).ok()??.origin.version);
            error.written_by(version_at).into()
        }
        fault @ Fault::Sql(_) => fault,
    })
}

fn load_entries(connection: &Connection) -> Result<State, Fault> {
    let mut loader = Loader::new(entries(connection, "space = ?1", &[Key::KINDS])?)?;
    loader.push(entries(connection, "space NOT IN (?1, ?2)", &[Key::KINDS, Loader::LAST])?)?;
    // In the order of the file: an index would lead back and forth in it.
    let sql = format!("SELECT {ENTRY} FROM entries NOT INDEXED WHERE space = ?1 ORDER BY rowid");
    let mut statement = connection.prepare(&sql)?;
    let mut fetched = statement.query([Loader::LAST])?;
    rows::read(&mut loader, || fetched.next()?.map(columns::entry).transpose())?;
    let Some(head) = last(connection)? else {
        return if loader.digest() == State::empty().digest() {
            Ok(State::empty())
        } else {
            Err(Fault::corrupt("there are entries, but no commit"))
        };
    };
    chain::header_is_itself(&head)?;
    Ok(loader.finish(&head, recent(connection, &head)?)?)
}

fn entries(connection: &Connection, which: &str, spaces: &[&str]) -> Result<Vec<fleet::Row>, Fault> {
    let mut statement = connection.prepare(&format!("SELECT {ENTRY} FROM entries WHERE {which}"))?;
    let mut rows = statement.query(params_from_iter(spaces))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(columns::entry(row)?);
    }
    Ok(entries)
}

/// The header of the last commit.
pub(super) fn last(connection: &Connection) -> Result<Option<Header>, Fault> {
    let sql = format!("SELECT {COMMIT} FROM commits ORDER BY revision DESC LIMIT 1");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    Ok(rows.next()?.map(columns::header).transpose()?.map(|line| line.header))
}

fn header_at(connection: &Connection, revision: Revision) -> Result<Option<Header>, Fault> {
    let mut statement = connection.prepare(&format!("SELECT {COMMIT} FROM commits WHERE revision = ?1"))?;
    let mut rows = statement.query([number(revision.0)])?;
    Ok(rows.next()?.map(columns::header).transpose()?.map(|line| line.header))
}

/// What the guard still counts, oldest first. It walks back from the head, and each commit proves the one before it: a query by time
/// would pass over a commit that somebody has removed or given another time, and its budget would be free again.
fn recent(connection: &Connection, head: &Header) -> Result<Vec<(Timestamp, Tally)>, Fault> {
    let since = head.origin.time.0.saturating_sub(GUARD_WINDOW);
    let sql = format!("SELECT {COMMIT} FROM commits WHERE revision <= ?1 ORDER BY revision DESC");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([number(head.at.revision.0)])?;
    let mut recent = Vec::new();
    let mut expected = head.at;
    while expected != Position::default() {
        let header = rows.next()?.map(columns::header).transpose()?.map(|line| line.header);
        let Some(header) = header.filter(|header| header.at == expected) else {
            let revision = expected.revision;
            return Err(Fault::corrupt(format!(
                "the commit of revision {revision} is missing, or is not the one that the next commit follows"
            )));
        };
        chain::header_is_itself(&header)?;
        // Times never run backwards.
        if header.origin.time.0 <= since {
            break;
        }
        recent.push((header.origin.time, header.removals));
        expected = Position { revision: Revision(expected.revision.0 - 1), hash: header.previous };
    }
    recent.reverse();
    Ok(recent)
}
