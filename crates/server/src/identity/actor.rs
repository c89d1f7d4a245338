//! Who is asking, as the audit log and `/whoami` spell it.

use std::fmt;
use std::sync::Arc;

/// An actor. How it authenticated is part of its name, so that nobody can pass for another by taking the same name elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actor {
    /// The name of a token in the configuration: `file:<name>`.
    File(Arc<str>),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "file:{name}"),
        }
    }
}
