//! Questions about the past. Values go to SQLite as parameters only; what is put together as text are our own conditions.

use fleet::{Canonical, CommitId, Hash, Key, Position, Revision};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::columns::{self, COMMIT, number, size};
use super::fault::Fault;
use crate::history::{Query, Record};

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
        let line = columns::commit(row)?;
        let keys = keys(connection, line.commit.at.revision)?;
        records.push(Record {
            at: line.commit.at,
            origin: line.commit.origin,
            removals: line.commit.removals,
            changes: line.changes,
            keys,
        });
    }
    Ok(records)
}

/// What must hold of a commit, and the values that this speaks of, in order.
fn conditions(query: &Query) -> (String, Vec<Value>) {
    let mut conditions = vec!["TRUE".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    let mut must = |condition: &str, value: Value| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("?{}", values.len())));
    };
    let Query { before, revision, actor, kind, id, since, until, limit: _ } = query;
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
    match (kind, id) {
        (None, None) => {}
        // Of a whole kind there are many changes and a page is soon full: commits are looked through from the newest.
        (Some(kind), None) => must(
            "EXISTS (SELECT 1 FROM changes WHERE changes.revision = commits.revision AND kind = ?)",
            kind.as_str().to_owned().into(),
        ),
        (None, Some(id)) => {
            must("revision IN (SELECT revision FROM changes WHERE id = ?)", id.as_str().to_owned().into());
        }
        // One document: both at once, or a commit that changed another of the kind and another of the id would be told.
        (Some(kind), Some(id)) => {
            values.push(kind.as_str().to_owned().into());
            values.push(id.as_str().to_owned().into());
            let (kind, id) = (values.len() - 1, values.len());
            conditions.push(format!(
                "revision IN (SELECT revision FROM changes WHERE kind = ?{kind} AND id = ?{id})"
            ));
        }
    }
    (conditions.join(" AND "), values)
}

fn keys(connection: &Connection, revision: Revision) -> Result<Vec<Key>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT kind, id FROM changes WHERE revision = ?1 ORDER BY seq LIMIT ?2")?;
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

/// A document as it was after a revision: what the last commit until then made of it.
pub(super) fn document_at(
    connection: &Connection,
    key: &Key,
    at: Revision,
) -> Result<Option<Canonical>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, id, body, digest FROM changes WHERE id = ?1 AND kind = ?2 AND revision <= ?3 \
         ORDER BY revision DESC LIMIT 1",
    )?;
    let mut rows = statement.query((key.id.as_str(), key.kind.as_str(), number(at.0)))?;
    let change = rows.next()?.map(columns::change).transpose()?;
    Ok(change.and_then(|change| change.after().cloned()))
}
