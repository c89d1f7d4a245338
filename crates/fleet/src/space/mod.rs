//! Spaces of system entries: what the service keeps in the ledger beside documents, kinds and decommission records.
//!
//! Each space that this version knows is a variant of [`Space`] and a file here with its type, how it is read and written. What an
//! older version makes of a space that it does not know is in the name: `@?name` may be ignored, `@name` must be understood.

mod allowances;
mod seed;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use allowances::{Allowance, Grant};
pub use seed::Seeding;

use crate::canonical::Canonical;
use crate::finding::Finding;

/// A space of system entries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// A seed that is being loaded.
    Seed,
    /// What somebody may remove beyond the guard's budgets.
    Allowances,
    /// A space of a later version.
    Unknown(UnknownSpace),
}

/// The name of a space that this version does not know.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnknownSpace(Arc<str>);

impl Space {
    /// Reads the name of a space; none if it is not the name of one.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            seed::SPACE => Some(Self::Seed),
            allowances::SPACE => Some(Self::Allowances),
            _ => name.starts_with('@').then(|| Self::Unknown(UnknownSpace(name.into()))),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Seed => seed::SPACE,
            Self::Allowances => allowances::SPACE,
            Self::Unknown(space) => &space.0,
        }
    }

    /// Whether the audit log shows the bodies of its entries, and not only their keys.
    pub(crate) fn is_shown(&self) -> bool {
        match self {
            Self::Seed | Self::Allowances => true,
            Self::Unknown(_) => false,
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A system entry.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum SystemEntry {
    Seed(Seeding),
    Allowance(Allowance),
    /// Of a space that may be ignored: kept and passed on as it is.
    Opaque(Canonical),
}

/// Why a system entry cannot be read.
pub(crate) enum Unreadable {
    /// Its space must be understood, and is not.
    UnknownSpace,
    Malformed(Finding),
}

impl SystemEntry {
    pub(crate) fn decode(space: &Space, body: &Canonical) -> Result<Self, Unreadable> {
        match space {
            Space::Seed => Seeding::decode(object(body)?).map(Self::Seed).map_err(Unreadable::Malformed),
            Space::Allowances => {
                Allowance::decode(object(body)?).map(Self::Allowance).map_err(Unreadable::Malformed)
            }
            Space::Unknown(UnknownSpace(name)) if name.starts_with("@?") => Ok(Self::Opaque(body.clone())),
            Space::Unknown(_) => Err(Unreadable::UnknownSpace),
        }
    }

    pub(crate) fn canonical(&self) -> Canonical {
        match self {
            Self::Seed(seeding) => seeding.canonical(),
            Self::Allowance(allowance) => allowance.canonical(),
            Self::Opaque(body) => body.clone(),
        }
    }
}

fn object(body: &Canonical) -> Result<Map<String, Value>, Unreadable> {
    let read = serde_json::from_str(body.as_str());
    read.map_err(|error| {
        Unreadable::Malformed(Finding::new(crate::pointer::Pointer::root(), error.to_string()))
    })
}
