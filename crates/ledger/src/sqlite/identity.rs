//! Which store it is, and which formats of it this program understands. It must not know what else is in a store.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rusqlite::Connection;

use super::Access;
use super::fault::Fault;
use super::migrations::{FORMAT, OLDEST};
use crate::error::FeedError;

/// The identity of a store, drawn when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StoreId(u128);

/// The role of a store that the service writes to.
pub(super) const ORIGIN: &str = "origin";

/// All roles. A copy and a backup are written by other means than a writer's appends.
const ROLES: [&str; 3] = [ORIGIN, "copy", "backup"];

impl StoreId {
    /// Reads the 32 hexadecimal digits that `Display` wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        digits.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }

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
pub(super) fn read(connection: &Connection, access: Access) -> Result<StoreId, Fault> {
    let mut statement = connection.prepare_cached("SELECT id, format, min_reader FROM store")?;
    let (id, format, min_reader): (String, u32, u32) =
        statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if format < OLDEST {
        return Err(FeedError::Older { format, oldest: OLDEST }.into());
    }
    let needed = match access {
        Access::Read => min_reader,
        Access::Write => min_reader.max(format),
    };
    if needed > FORMAT {
        return Err(FeedError::Newer { format: needed, known: FORMAT }.into());
    }
    let found = role_of(connection)?;
    if access == Access::Write && found != ORIGIN {
        return Err(FeedError::NotOrigin(found).into());
    }
    StoreId::parse(&id).ok_or_else(|| Fault::corrupt("its id cannot be read"))
}

/// What the store is for: `origin`, `copy` or `backup`.
pub(super) fn role_of(connection: &Connection) -> Result<String, Fault> {
    let mut statement = connection.prepare_cached("SELECT role FROM store")?;
    let role: String = statement.query_row([], |row| row.get(0))?;
    if ROLES.contains(&&*role) { Ok(role) } else { Err(Fault::corrupt(format!("{role:?} is not a role"))) }
}
