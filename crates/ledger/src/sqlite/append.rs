//! Writing commits into an open transaction. It decides nothing: whether they may be written was asked before.

use fleet::{Change, Commit, Row};
use rusqlite::Connection;

use super::columns::{number, size};
use super::fault::Fault;

/// Writes a commit: itself, its changes, and what they make of the documents at the head.
pub(super) fn write(connection: &Connection, commit: &Commit) -> Result<(), Fault> {
    write_commit(connection, commit)?;
    for (seq, change) in commit.changes.iter().enumerate() {
        write_change(connection, commit, seq, change)?;
        write_document(connection, commit, change)?;
    }
    Ok(())
}

fn write_commit(connection: &Connection, commit: &Commit) -> Result<(), Fault> {
    let Commit { at, previous, state, origin, removals, changes } = commit;
    let mut statement = connection.prepare_cached(
        "INSERT INTO commits (revision, hash, previous, state, commit_id, time, actor, reason, request, \
         decommissions, each, ordinary, confirmed, changes, bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    statement.execute((
        number(at.revision.0),
        at.hash.to_string(),
        previous.to_string(),
        state.to_string(),
        origin.commit.to_string(),
        origin.time.0,
        &origin.actor,
        &origin.reason,
        &origin.request,
        removals.decommissions,
        removals.each,
        removals.ordinary,
        removals.confirmed,
        size(changes.len()),
        size(commit.body_bytes()),
    ))?;
    Ok(())
}

fn write_change(connection: &Connection, commit: &Commit, seq: usize, change: &Change) -> Result<(), Fault> {
    let key = change.key();
    let mut statement = connection.prepare_cached(
        "INSERT INTO changes (revision, seq, kind, id, body, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    statement.execute((
        number(commit.at.revision.0),
        size(seq),
        key.kind.as_str(),
        key.id.as_str(),
        change.after().map(fleet::Canonical::as_str),
        change.hash().to_string(),
    ))?;
    Ok(())
}

fn write_document(connection: &Connection, commit: &Commit, change: &Change) -> Result<(), Fault> {
    // As a new entry. If it is not new, the statement leaves the uid as it was, which is what `Row::after` says.
    let Some(row) = Row::after(None, commit, change) else {
        let mut statement = connection.prepare_cached("DELETE FROM documents WHERE kind = ?1 AND id = ?2")?;
        let deleted = statement.execute((change.key().kind.as_str(), change.key().id.as_str()))?;
        if deleted != 1 {
            return Err(Fault::corrupt(format!("`{}` is to be deleted and is not there", change.key())));
        }
        return Ok(());
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO documents (kind, id, body, revision, uid) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, revision = excluded.revision",
    )?;
    statement.execute((
        row.key.kind.as_str(),
        row.key.id.as_str(),
        row.body.as_str(),
        number(row.revision.0),
        row.uid.to_string(),
    ))?;
    Ok(())
}
