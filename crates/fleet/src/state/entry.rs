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
fn must_be(own: &str, key: &str) -> Result<(), Finding> {
    if own != key {
        return Err(Finding::new(Pointer::root(), "it is recorded under another id than it has"));
    }
    Ok(())
}

/// A document that is to be decoded: an object that a change has made, or the text that a store holds.
pub(crate) enum Source<'a> {
    Object(Map<String, Value>),
    Text(&'a str),
}

impl Source<'_> {
    fn into_object(self) -> Result<Map<String, Value>, Finding> {
        match self {
            Self::Object(map) => Ok(map),
            Self::Text(text) => serde_json::from_str(text).map_err(|error| not_json(&error)),
        }
    }
}

fn not_json(error: &serde_json::Error) -> Finding {
    Finding::new(Pointer::root(), error.to_string())
}

/// Decodes a document; what is kept of an earlier version of a cluster is not in the source.
pub(crate) fn decode_document(
    kinds: &Kinds,
    key: &DocumentKey,
    source: Source<'_>,
    kept: Option<&Kept>,
    names: &mut Interner<'_>,
) -> Result<Entry, Finding> {
    let unknown = || Finding::new(Pointer::root(), format!("there is no kind `{}`", key.kind));
    let kind = kinds.get(key.kind.as_str()).ok_or_else(unknown)?;
    match kind.shape() {
        Shape::Cluster => {
            let cluster = match source {
                Source::Object(map) => Cluster::read(Value::Object(map), kept, kinds, names)?,
                Source::Text(text) => {
                    let mut text = serde_json::Deserializer::from_str(text);
                    let cluster = Cluster::read(&mut text, kept, kinds, names)?;
                    text.end().map_err(|error| not_json(&error))?;
                    cluster
                }
            };
            must_be(cluster.id.as_str(), key.id.as_str())?;
            Ok(Entry::Cluster(Box::new(cluster)))
        }
        Shape::Component => {
            let component = Component::decode(source.into_object()?, names)?;
            must_be(component.id.as_str(), key.id.as_str())?;
            Ok(Entry::Component(Box::new(component)))
        }
        Shape::Definition => {
            let definition = Definition::decode(kind, source.into_object()?, names)?;
            must_be(definition.id.as_str(), key.id.as_str())?;
            Ok(Entry::Definition(kind.name().clone(), definition))
        }
    }
}

/// Decodes a decommission record.
pub(crate) fn decode_tombstone(dns: &Dns, source: Source<'_>) -> Result<Entry, Finding> {
    let tombstone = Tombstone::decode(source.into_object()?)?;
    must_be(tombstone.dns.as_str(), dns.as_str())?;
    Ok(Entry::Tombstone(tombstone))
}
