//! What an entry of the fleet is recorded under.
//!
//! A key is one of four things, and code that treats them differently matches on it: the compiler then names what was forgotten. As
//! two texts, a space and an id, it stands in stores and digests. Spaces that begin with `@` are the service's own; no kind can be
//! called so.

use std::fmt;

use crate::ids::{Dns, Id, KindName};
use crate::space::Space;

/// What one entry of the fleet is recorded under.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    /// A document of some kind.
    Document(DocumentKey),
    /// A kind itself.
    Kind(KindName),
    /// The record of a decommissioned cluster, by its DNS name.
    Tombstone(Dns),
    /// Something that the service keeps beside documents.
    System(SystemKey),
}

/// The key of a document.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DocumentKey {
    pub kind: KindName,
    pub id: Id,
}

/// The key of a system entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SystemKey {
    pub space: Space,
    pub id: Id,
}

impl DocumentKey {
    pub fn new(kind: impl Into<KindName>, id: impl Into<Id>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl Key {
    /// The space of kinds, as stores write it.
    pub const KINDS: &str = "@kinds";
    /// The space of decommission records, as stores write it.
    pub const DECOMMISSIONED: &str = "@decommissioned";

    /// The key of a document.
    pub fn document(kind: impl Into<KindName>, id: impl Into<Id>) -> Self {
        Self::Document(DocumentKey::new(kind, id))
    }

    /// The key of a kind.
    pub fn kind(name: &str) -> Self {
        Self::Kind(name.into())
    }

    /// The key of a decommission record.
    pub fn tombstone(dns: &str) -> Self {
        Self::Tombstone(dns.into())
    }

    /// The document that it is the key of, if it is one's.
    pub fn as_document(&self) -> Option<&DocumentKey> {
        match self {
            Self::Document(key) => Some(key),
            Self::Kind(_) | Self::Tombstone(_) | Self::System(_) => None,
        }
    }

    /// Whether people are shown what an entry says, and not only its key.
    pub fn shows_body(&self) -> bool {
        match self {
            Self::Document(_) | Self::Kind(_) | Self::Tombstone(_) => true,
            Self::System(key) => key.space.is_shown(),
        }
    }

    /// Reads what [`Key::space`] and [`Key::id`] wrote. Every pair of texts is a key: whether the space is understood is asked later.
    pub fn parse(space: &str, id: &str) -> Self {
        match space {
            Self::KINDS => Self::kind(id),
            Self::DECOMMISSIONED => Self::tombstone(id),
            _ => match Space::parse(space) {
                Some(space) => Self::System(SystemKey { space, id: id.into() }),
                None => Self::document(space, id),
            },
        }
    }

    /// The space, as stores and digests have it.
    pub fn space(&self) -> &str {
        match self {
            Self::Document(key) => key.kind.as_str(),
            Self::Kind(_) => Self::KINDS,
            Self::Tombstone(_) => Self::DECOMMISSIONED,
            Self::System(key) => key.space.as_str(),
        }
    }

    /// The id within the space.
    pub fn id(&self) -> &str {
        match self {
            Self::Document(key) => key.id.as_str(),
            Self::Kind(name) => name.as_str(),
            Self::Tombstone(dns) => dns.as_str(),
            Self::System(key) => key.id.as_str(),
        }
    }
}

impl From<DocumentKey> for Key {
    fn from(key: DocumentKey) -> Self {
        Self::Document(key)
    }
}

impl From<&DocumentKey> for Key {
    fn from(key: &DocumentKey) -> Self {
        Self::Document(key.clone())
    }
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(key) => key.fmt(f),
            Self::Kind(name) => write!(f, "kinds/{name}"),
            Self::Tombstone(dns) => write!(f, "decommissioned/{dns}"),
            Self::System(key) => write!(f, "{}/{}", key.space, key.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_from_its_two_texts() {
        let keys = [
            Key::document("clusters", "a"),
            Key::document("kinds", "a"),
            Key::kind("clusters"),
            Key::tombstone("a.example.com"),
            Key::parse("@seed", "a"),
            Key::parse("@future", "a"),
            Key::parse("@?future", "a"),
        ];
        for key in keys {
            assert_eq!(Key::parse(key.space(), key.id()), key);
        }
    }

    #[test]
    fn people_see_kinds_and_decommissioned_clusters_without_the_sign_of_a_space() {
        let shown = [Key::kind("clusters"), Key::tombstone("a.example.com"), Key::parse("@?future", "x")]
            .map(|key| key.to_string());
        assert_eq!(shown, ["kinds/clusters", "decommissioned/a.example.com", "@?future/x"]);
    }
}
