//! What a state holds under a key, whatever its kind.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::canonical::Canonical;
use crate::document::{Cluster, Component, Definition, Interner, Kept, Tombstone};
use crate::finding::Finding;
use crate::ids::{DECOMMISSIONED, Key};
use crate::kind::{Kind, Kinds, Shape};
use crate::pointer::Pointer;

/// A document in the form that its kind gives it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Entry {
    Kind(Arc<Kind>),
    Tombstone(Tombstone),
    Component(Box<Component>),
    Definition(Definition),
    Cluster(Box<Cluster>),
}

impl Entry {
    pub(crate) fn canonical(&self) -> Canonical {
        match self {
            Self::Kind(kind) => kind.canonical(),
            Self::Tombstone(tombstone) => tombstone.canonical(),
            Self::Component(component) => component.canonical(),
            Self::Definition(definition) => definition.canonical(),
            Self::Cluster(cluster) => cluster.canonical(),
        }
    }

    /// The document as an object, if it is one that operations can change.
    pub(crate) fn to_map(&self) -> Option<Map<String, Value>> {
        match self {
            Self::Kind(_) | Self::Tombstone(_) => None,
            Self::Component(_) | Self::Definition(_) | Self::Cluster(_) => Some(self.canonical().to_map()),
        }
    }
}

/// Decodes the object of an entry; what is kept of an earlier version of a cluster is not in the object.
pub(crate) fn decode(
    kinds: &Kinds,
    key: &Key,
    map: Map<String, Value>,
    kept: Option<&Kept>,
    names: &mut Interner<'_>,
) -> Result<Entry, Finding> {
    // Tables are keyed by what a document says of itself, digests by the key: they must not differ.
    let own = map.get(if key.kind.as_str() == DECOMMISSIONED { "dns" } else { "id" });
    if own.is_some_and(|own| *own != key.id.as_str()) {
        return Err(Finding::new(Pointer::root(), "it is recorded under another id than it has"));
    }
    match key.kind.as_str() {
        DECOMMISSIONED => Tombstone::decode(map).map(Entry::Tombstone),
        name => {
            let unknown = || Finding::new(Pointer::root(), format!("there is no kind `{name}`"));
            let kind = kinds.get(name).ok_or_else(unknown)?;
            match kind.shape() {
                Shape::Cluster => {
                    Cluster::decode(map, kept, kinds, names).map(|cluster| Entry::Cluster(Box::new(cluster)))
                }
                Shape::Component => {
                    Component::decode(map, names).map(|component| Entry::Component(Box::new(component)))
                }
                Shape::Definition => Definition::decode(kind, map, names).map(Entry::Definition),
            }
        }
    }
}
