//! Questions about the past. Values go to SQLite as parameters only; what is put together as text are our own conditions.

use fleet::{CommitId, Hash, Header, Key, Position, Revision};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use super::columns::{self, CHANGE, COMMIT, number, size};
use super::fault::Fault;
use crate::chain;
use crate::history::{Edit, Most, Paged, Query, Record, Version};

/// Commits, newest first.
pub(super) fn history(connection: &Connection, query: &Query) -> Result<Vec<Record>, Fault> {
    let (conditions, mut values) = conditions(query);
    values.push(size(query.limit).into());
    let sql = format!(
        "SELECT {COMMIT} FROM commits WHERE {conditions} ORDER BY revision DESC LIMIT ?{}",
        values.len()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let header = proven(row)?;
        let keys = keys(connection, header.at.revision)?;
        records.push(Record { header, keys });
    }
    Ok(records)
}

/// A header that is what its hash says.
fn proven(row: &Row<'_>) -> Result<Header, Fault> {
    let header = columns::header(row)?.header;
    chain::header_is_itself(&header)?;
    Ok(header)
}

/// What must hold of a commit, and the values that this speaks of, in order.
fn conditions(query: &Query) -> (String, Vec<Value>) {
    let mut conditions = vec!["TRUE".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    let mut must = |condition: &str, value: Value| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("?{}", values.len())));
    };
    let Query { before, revision, actor, space, id, since, until, limit: _ } = query;
    if let Some(before) = before {
        must("revision < ?", number(before.0).into());
    }
    if let Some(revision) = revision {
        must("revision = ?", number(revision.0).into());
    }
    if let Some(actor) = actor {
        must("actor = ?", actor.clone().into());
    }
    if let Some(since) = since {
        must("time >= ?", since.0.into());
    }
    if let Some(until) = until {
        must("time < ?", until.0.into());
    }
    match (space, id) {
        (None, None) => {}
        // Of a whole kind there are many changes and a page is soon full: commits are looked through from the newest.
        (Some(space), None) => must(
            "EXISTS (SELECT 1 FROM changes WHERE changes.revision = commits.revision AND space = ?)",
            space.clone().into(),
        ),
        (None, Some(id)) => {
            must("revision IN (SELECT revision FROM changes WHERE id = ?)", id.clone().into());
        }
        // One entry: both at once, or a commit that changed another of the space and another of the id would be told.
        (Some(space), Some(id)) => {
            values.push(space.clone().into());
            values.push(id.clone().into());
            let (space, id) = (values.len() - 1, values.len());
            conditions.push(format!(
                "revision IN (SELECT revision FROM changes WHERE space = ?{space} AND id = ?{id})"
            ));
        }
    }
    (conditions.join(" AND "), values)
}

fn keys(connection: &Connection, revision: Revision) -> Result<Vec<Key>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT space, id FROM changes WHERE revision = ?1 ORDER BY seq LIMIT ?2")?;
    let mut rows = statement.query([number(revision.0), size(Record::KEYS)])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        keys.push(columns::key(row, 0)?);
    }
    Ok(keys)
}

/// Where a commit is.
pub(super) fn find(connection: &Connection, commit: CommitId) -> Result<Option<Position>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT revision, hash FROM commits WHERE commit_id = ?1")?;
    let mut rows = statement.query([commit.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let revision = columns::revision_at(row, 0)?;
    Ok(Some(Position { revision, hash: columns::parsed(row, 1, Hash::parse)? }))
}

/// A part of what a commit changed, each with what the last commit before it made of the same document.
pub(super) fn changes(
    connection: &Connection,
    revision: Revision,
    from: usize,
    most: Most,
) -> Result<Vec<Edit>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT now.space, now.id, now.uid, now.body, now.digest, past.space, past.id, past.uid, past.body, past.digest \
         FROM changes AS now LEFT JOIN changes AS past ON past.id = now.id AND past.space = now.space \
         AND past.revision = (SELECT max(revision) FROM changes WHERE id = now.id AND space = now.space \
         AND revision < now.revision) \
         WHERE now.revision = ?1 AND now.seq >= ?2 ORDER BY now.seq LIMIT ?3",
    )?;
    let mut rows = statement.query([number(revision.0), size(from), size(most.items)])?;
    let mut edits = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let width = columns::width(CHANGE);
        let past: Option<Box<str>> = row.get(width)?;
        let past = past.map(|_| columns::change(row, width)).transpose()?;
        let before = past.and_then(|past| past.after().cloned());
        let edit = Edit { before, change: columns::change(row, 0)? };
        bytes += edit.bytes();
        edits.push(edit);
        if bytes > most.bytes {
            return Ok(edits);
        }
    }
    let all: Option<u32> = connection
        .prepare_cached("SELECT changes FROM commits WHERE revision = ?1")?
        .query_row([number(revision.0)], |row| row.get(0))
        .optional()?;
    if all.is_some_and(|all| edits.len() < most.items.min((all as usize).saturating_sub(from))) {
        return Err(Fault::corrupt(format!("some of the changes of revision {revision} are missing")));
    }
    Ok(edits)
}

/// What became of one document, newest first. What it was before a commit is what the commit before that made of it, so one row more
/// is read than is told.
pub(super) fn versions(
    connection: &Connection,
    key: &Key,
    before: Option<Revision>,
    most: Most,
) -> Result<Paged<Version>, Fault> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COMMIT}, {CHANGE} FROM changes JOIN commits USING (revision) \
         WHERE id = ?1 AND space = ?2 AND revision < ?3 ORDER BY revision DESC LIMIT ?4"
    ))?;
    let until = number(before.map_or(u64::MAX, |before| before.0));
    let mut rows = statement.query((key.id(), key.space(), until, size(most.items.saturating_add(1))))?;
    let mut versions: Vec<Version> = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let after = columns::change(row, columns::width(COMMIT))?.after().cloned();
        if let Some(later) = versions.last_mut() {
            later.before.clone_from(&after);
            bytes += later.bytes();
        }
        if versions.len() == most.items || bytes > most.bytes {
            return Ok(Paged { items: versions, more: true });
        }
        versions.push(Version { header: proven(row)?, before: None, after });
    }
    Ok(Paged { items: versions, more: false })
}
