//! Whether a store holds what its head mark says was acknowledged. Asked in every transaction, of readers and writers: a store may go
//! back under a running process too. It compares positions and must not know how a mark is stored.

use std::path::Path;

use fleet::Position;
use rusqlite::Connection;

use super::fault::Fault;
use super::file::sibling;
use super::identity::StoreId;
use super::mark::{Bound, advice};
use super::snapshot;
use crate::error::FeedError;

/// Refuses a store that is behind its mark, and one that holds commits and has no mark. The mark must have been read before the
/// transaction began, or while nobody could commit.
pub(super) fn must_reach(
    connection: &Connection,
    database: &Path,
    store: StoreId,
    bound: Option<Bound>,
) -> Result<(), Fault> {
    let Some(bound) = bound else {
        let head = snapshot::head(connection)?;
        return if head == Position::default() { Ok(()) } else { Err(no_mark(database, head).into()) };
    };
    if bound.store != store {
        return Err(other_store(database, store, bound.store).into());
    }
    match snapshot::contains(connection, bound.at) {
        Ok(_) => Ok(()),
        Err(Fault::Store(_)) => Err(went_back(database, snapshot::head(connection)?, bound.at).into()),
        Err(fault) => Err(fault),
    }
}

fn no_mark(database: &Path, head: Position) -> FeedError {
    FeedError::Behind(format!(
        "{} holds {}, but its head mark {} is missing, so nothing tells whether that is every acknowledged commit. {}",
        database.display(),
        said(head),
        sibling(database, "-mark").display(),
        advice(Some(head)),
    ))
}

fn other_store(database: &Path, found: StoreId, marked: StoreId) -> FeedError {
    FeedError::Behind(format!(
        "{} is store {found}, but its head mark {} is of store {marked}. {}",
        database.display(),
        sibling(database, "-mark").display(),
        advice(None),
    ))
}

fn went_back(database: &Path, head: Position, marked: Position) -> FeedError {
    FeedError::Behind(format!(
        "{} holds {}, but its head mark {} says that {} was acknowledged. {}",
        database.display(),
        said(head),
        sibling(database, "-mark").display(),
        said(marked),
        advice(Some(head)),
    ))
}

fn said(at: Position) -> String {
    if at == Position::default() {
        "no commits".to_owned()
    } else {
        format!("revision {} ({})", at.revision, at.hash)
    }
}
