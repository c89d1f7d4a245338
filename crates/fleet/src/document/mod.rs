//! Documents as compact values. A document is decoded from its canonical object and encoded back into the same object,
//! whatever fields it has: what the core does not read is kept as text. Decoding asks only what it needs to represent the
//! document; whether the document is acceptable today is for `apply` to say.

mod cluster;
mod component;
mod definition;
mod encode;
mod fields;
mod interner;
mod kept;
mod patches;
mod read;
mod tombstone;

use serde_json::{Map, Value};

pub(crate) use cluster::is_production;
pub use cluster::{Cluster, ComponentOverrides, Labels, Reference, References};
pub use component::{Component, Delivery};
pub use definition::Definition;
pub(crate) use fields::Field;
pub use fields::Fields;
pub(crate) use interner::Interner;
pub(crate) use kept::Kept;
pub(crate) use patches::{ComponentPatches, Hashes};
pub use tombstone::Tombstone;

use crate::finding::Finding;
use crate::hash::{Counted, Hash};
use crate::ids::{Revision, Uid};
use crate::pointer::Pointer;

/// A document and what the ledger says of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Stored<T> {
    /// The document.
    pub doc: T,
    /// The revision that last changed it.
    pub revision: Revision,
    /// The identity of this life of it.
    pub uid: Uid,
    pub(crate) hash: Hash,
}

impl<T> Stored<T> {
    pub(crate) fn new(doc: T, counted: Counted) -> Self {
        let Counted { hash, uid, revision } = counted;
        Self { doc, revision, uid, hash }
    }

    pub(crate) fn counted(&self) -> Counted {
        Counted { hash: self.hash, uid: self.uid, revision: self.revision }
    }
}

/// Takes one field out of an object, in the type that the core needs.
fn take<T>(
    map: &mut Map<String, Value>,
    name: &str,
    wanted: &str,
    read: impl FnOnce(Value) -> Option<T>,
) -> Result<Option<T>, Finding> {
    match map.remove(name) {
        None => Ok(None),
        Some(value) => match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(Finding::new(Pointer::to(name), format!("must be {wanted}"))),
        },
    }
}

fn take_text(map: &mut Map<String, Value>, name: &str) -> Result<Option<Box<str>>, Finding> {
    take(map, name, "a string", |value| match value {
        Value::String(text) => Some(text.into_boxed_str()),
        _ => None,
    })
}

fn require_text(map: &mut Map<String, Value>, name: &str) -> Result<Box<str>, Finding> {
    take_text(map, name)?.ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Finding {
    Finding::new(Pointer::to(name), format!("`{name}` is required and missing"))
}

fn take_flag(map: &mut Map<String, Value>, name: &str) -> Result<Option<bool>, Finding> {
    take(map, name, "true or false", |value| value.as_bool())
}
