//! The tables, version by version. Only a process that writes migrates; within a major version migrations add and never take away, so
//! that readers of the version before go on reading (`min_reader`).

use rusqlite::{Connection, TransactionBehavior};

use super::fault::Fault;
use super::identity::{ORIGIN, StoreId};
use crate::error::FeedError;

/// In order; the first makes a store of format [`OLDEST`].
const MIGRATIONS: &[&str] = &[include_str!("migrations/0002.sql"), include_str!("migrations/0003.sql")];

/// The oldest format that this program reads. Format 1 had no role and no head mark, and was never released.
pub(super) const OLDEST: u32 = 2;

/// The format that this program writes, and the newest that it reads.
#[allow(clippy::cast_possible_truncation)] // There are not that many.
pub(super) const FORMAT: u32 = OLDEST - 1 + MIGRATIONS.len() as u32;

/// The oldest format whose readers understand what this program writes.
const MIN_READER: u32 = 3;

/// Brings a store to our format; `new` is the id of one that is being made.
pub(super) fn run(connection: &mut Connection, new: Option<StoreId>) -> Result<(), Fault> {
    if format(connection)? == FORMAT {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Again, now that nobody else can be doing the same.
    let from = format(&transaction)?;
    if from > FORMAT {
        return Err(FeedError::Newer { format: from, known: FORMAT }.into());
    }
    if from == 0 && new.is_none() {
        return Err(Fault::corrupt("it has no format: it was not made by this program"));
    }
    if from != 0 && from < OLDEST {
        return Err(FeedError::Older { format: from, oldest: OLDEST }.into());
    }
    for sql in MIGRATIONS.iter().skip((from + 1).saturating_sub(OLDEST) as usize) {
        transaction.execute_batch(sql)?;
    }
    if let Some(id) = new {
        transaction.execute(
            "INSERT INTO store (only, id, format, min_reader, role) VALUES (1, ?1, ?2, ?3, ?4)",
            (id.to_string(), FORMAT, MIN_READER, ORIGIN),
        )?;
    }
    transaction.execute("UPDATE store SET format = ?1, min_reader = ?2", (FORMAT, MIN_READER))?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    Ok(transaction.commit()?)
}

fn format(connection: &Connection) -> Result<u32, Fault> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}
