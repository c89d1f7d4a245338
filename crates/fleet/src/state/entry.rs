//! What a state holds under a key, in the form that the core works with.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::canonical::Canonical;
use crate::document::{Cluster, Component, Definition, Interner, Kept, Tombstone};
use crate::finding::Finding;
use crate::ids::{Dns, KindName};
use crate::key::DocumentKey;
use crate::kind::{Kind, Kinds, Shape};
use crate::pointer::Pointer;
use crate::space::SystemEntry;

/// An entry in the form that its key gives it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Entry {
    Kind(Arc<Kind>),
    Tombstone(Tombstone),
    Component(Box<Component>),
    Definition(KindName, Definition),
    Cluster(Box<Cluster>),
    System(SystemEntry),
}

impl Entry {
    pub(crate) fn canonical(&self) -> Canonical {
        match self {
            Self::Kind(kind) => kind.canonical(),
            Self::Tombstone(tombstone) => tombstone.canonical(),
            Self::Component(component) => component.canonical(),
            Self::Definition(_, definition) => definition.canonical(),
            Self::Cluster(cluster) => cluster.canonical(),
            Self::System(entry) => entry.canonical(),
        }
    }
}

/// Tables are keyed by what a document says of itself, digests by the key: they must not differ.
fn must_be(own: Option<&Value>, key: &str) -> Result<(), Finding> {
    if own.is_some_and(|own| *own != key) {
        return Err(Finding::new(Pointer::root(), "it is recorded under another id than it has"));
    }
    Ok(())
}

/// Decodes the object of a document; what is kept of an earlier version of a cluster is not in the object.
pub(crate) fn decode_document(
    kinds: &Kinds,
    key: &DocumentKey,
    map: Map<String, Value>,
    kept: Option<&Kept>,
    names: &mut Interner<'_>,
) -> Result<Entry, Finding> {
    must_be(map.get("id"), key.id.as_str())?;
    let unknown = || Finding::new(Pointer::root(), format!("there is no kind `{}`", key.kind));
    let kind = kinds.get(key.kind.as_str()).ok_or_else(unknown)?;
    match kind.shape() {
        Shape::Cluster => {
            Cluster::decode(map, kept, kinds, names).map(|cluster| Entry::Cluster(Box::new(cluster)))
        }
        Shape::Component => {
            Component::decode(map, names).map(|component| Entry::Component(Box::new(component)))
        }
        Shape::Definition => {
            let definition = Definition::decode(kind, map, names)?;
            Ok(Entry::Definition(kind.name().clone(), definition))
        }
    }
}

/// Decodes the object of a decommission record.
pub(crate) fn decode_tombstone(dns: &Dns, map: Map<String, Value>) -> Result<Entry, Finding> {
    must_be(map.get("dns"), dns.as_str())?;
    Tombstone::decode(map).map(Entry::Tombstone)
}
