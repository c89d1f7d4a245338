//! Which store it is, and which formats of it this program understands. It must not know what else is in a store.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rusqlite::Connection;

use super::connection::Role;
use super::fault::Fault;
use super::migrations::FORMAT;
use crate::error::FeedError;

/// The identity of a store, drawn when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StoreId(u128);

impl StoreId {
    pub(super) fn draw() -> Result<Self, FeedError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| FeedError::Unreachable(format!("no random numbers: {error}")))?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The store that a handle is bound to: the first that it loaded or opened for writing.
#[derive(Clone, Default)]
pub(super) struct Pin(Arc<OnceLock<StoreId>>);

impl Pin {
    pub(super) fn store(&self) -> Option<StoreId> {
        self.0.get().copied()
    }

    /// Whether a store is the one; any is while none is known.
    pub(super) fn check(&self, found: StoreId) -> Result<(), FeedError> {
        match self.store() {
            Some(store) if store != found => Err(FeedError::OtherStore),
            _ => Ok(()),
        }
    }

    /// From now on it is this one.
    pub(super) fn bind(&self, found: StoreId) -> Result<(), FeedError> {
        self.0.get_or_init(|| found);
        self.check(found)
    }
}

/// Reads which store it is. Part of every transaction: the answer must belong to what is read next.
pub(super) fn read(connection: &Connection, role: Role) -> Result<StoreId, Fault> {
    let mut statement = connection.prepare_cached("SELECT id, format, min_reader FROM store")?;
    let (id, format, min_reader): (String, u32, u32) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let needed = match role {
        Role::Read => min_reader,
        Role::Write => min_reader.max(format),
    };
    if needed > FORMAT {
        return Err(FeedError::Newer { format: needed, known: FORMAT }.into());
    }
    let id = u128::from_str_radix(&id, 16).map_err(|_| Fault::corrupt("its id cannot be read"))?;
    Ok(StoreId(id))
}
