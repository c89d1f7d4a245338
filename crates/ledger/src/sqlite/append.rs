//! Writing commits into an open transaction. It decides nothing: whether they may be written was asked before.

use fleet::{Change, Commit, Header, Idempotency, Row};
use rusqlite::{Connection, params};

use super::columns::{number, size};
use super::fault::Fault;

/// Writes a commit: itself, its changes, and what they make of the entries at the head.
pub(super) fn write(connection: &Connection, commit: &Commit) -> Result<(), Fault> {
    write_header(connection, &commit.header, commit.body_bytes())?;
    for (seq, change) in commit.changes.iter().enumerate() {
        write_change(connection, &commit.header, seq, change)?;
        write_entry(connection, &commit.header, change)?;
    }
    Ok(())
}

fn write_header(connection: &Connection, header: &Header, bytes: usize) -> Result<(), Fault> {
    let Header { at, previous, epoch, state, origin, removals, changes } = header;
    let (key, request) = match &origin.idempotency {
        None => (None, None),
        Some(Idempotency { key, request }) => (Some(key), Some(request.to_string())),
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO commits (revision, hash, previous, state, commit_id, time, actor, reason, request, version, \
         idempotency_key, idempotency_request, epoch, decommissions, each, ordinary, confirmed, changes, changes_hash, bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    )?;
    statement.execute(params![
        number(at.revision.0),
        at.hash.to_string(),
        previous.to_string(),
        state.to_string(),
        origin.commit.to_string(),
        origin.time.0,
        origin.actor,
        origin.reason,
        origin.request,
        origin.version,
        key,
        request,
        number(epoch.0),
        removals.decommissions,
        removals.each,
        removals.ordinary,
        removals.passed.number(),
        changes.count,
        changes.hash.to_string(),
        size(bytes),
    ])?;
    Ok(())
}

fn write_change(connection: &Connection, header: &Header, seq: usize, change: &Change) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO changes (revision, seq, space, id, uid, body, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    statement.execute((
        number(header.at.revision.0),
        size(seq),
        change.key().space(),
        change.key().id(),
        change.uid().to_string(),
        change.after().map(fleet::Canonical::as_str),
        change.hash().to_string(),
    ))?;
    Ok(())
}

fn write_entry(connection: &Connection, header: &Header, change: &Change) -> Result<(), Fault> {
    let Some(row) = Row::after(header, change) else {
        let mut statement = connection.prepare_cached("DELETE FROM entries WHERE space = ?1 AND id = ?2")?;
        let deleted = statement.execute((change.key().space(), change.key().id()))?;
        if deleted != 1 {
            return Err(Fault::corrupt(format!("`{}` is to be deleted and is not there", change.key())));
        }
        return Ok(());
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO entries (space, id, body, revision, uid) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (space, id) DO UPDATE SET body = excluded.body, revision = excluded.revision, uid = excluded.uid",
    )?;
    statement.execute((
        row.key.space(),
        row.key.id(),
        row.body.as_str(),
        number(row.revision.0),
        row.uid.to_string(),
    ))?;
    Ok(())
}
