//! The small words of the domain: names, revisions, times. They carry meaning, not rules: whether a name is acceptable is
//! for `apply` to say, so that a name which yesterday's rules accepted can still be replayed today.

use std::borrow::Borrow;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use crate::hash;
use crate::key::Key;

/// A text that many documents share, with its hash: a poll looks up every name of a cluster in the catalog.
#[derive(PartialEq, Eq)]
struct Text {
    hash: u64,
    text: Box<str>,
}

/// The hash that tables of names go by.
pub(crate) fn hash_of(text: &str) -> u64 {
    FxBuildHasher.hash_one(text)
}

/// How a name is held.
trait Shared {
    fn of(text: &str) -> Self;
    fn text(&self) -> &str;
    fn ptr_eq(&self, other: &Self) -> bool;
}

impl Shared for Arc<Text> {
    fn of(text: &str) -> Self {
        Self::new(Text { hash: hash_of(text), text: text.into() })
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl Shared for Arc<str> {
    fn of(text: &str) -> Self {
        text.into()
    }

    fn text(&self) -> &str {
        self
    }

    fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident($held:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Eq)]
        pub struct $name($held);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                self.0.text()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Shared::of(text))
            }
        }

        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        // Names are shared between documents, so the same name is mostly the same allocation.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                Shared::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
            }
        }

        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
                self.as_str().hash(hasher);
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                if Shared::ptr_eq(&self.0, &other.0) {
                    std::cmp::Ordering::Equal
                } else {
                    self.as_str().cmp(other.as_str())
                }
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
    };
}

name! {
    /// The id of a document within its kind. Cheap to clone; equal ids usually share one allocation.
    Id(Arc<Text>)
}
name! {
    /// The name of a kind, spelt with underscores: `platform_components`.
    KindName(Arc<Text>)
}
name! {
    /// The DNS name under which a cluster phones home. Every cluster has its own, so it is one hop from the cluster to its text.
    Dns(Arc<str>)
}

impl Id {
    /// Its hash, which was worked out when it was made.
    pub(crate) fn hash_code(&self) -> u64 {
        self.0.hash
    }
}

impl Dns {
    pub(crate) fn hash_code(&self) -> u64 {
        hash_of(&self.0)
    }
}

/// The kind that holds the clusters.
pub const CLUSTERS: &str = "clusters";
/// The kind that holds the component catalog.
pub const PLATFORM_COMPONENTS: &str = "platform_components";
/// The kind whose removal takes along whatever runs in it.
pub(crate) const NAMESPACES: &str = "namespaces";
/// The member of a cluster's document that holds its patches.
pub(crate) const PATCHES: &str = "patches";
/// The number of a commit: 1 for the first, gapless. 0 is the empty store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since 1970 in UTC. The core never asks for the time: it is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

/// The identity of a commit, made by whoever sends the transaction, so that an append whose outcome is unknown can be
/// looked up again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CommitId(pub u128);

impl CommitId {
    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        parse_128_bits(text).map(Self)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The identity of one life of a document. A cluster made again under the same id has another one, so credentials of the
/// old do not read the new.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// Derived, not drawn: every process that follows the ledger comes to the same uid.
    pub fn derive(commit: CommitId, key: &Key) -> Self {
        let hash =
            hash::tagged("uid", &[&commit.0.to_be_bytes(), key.space().as_bytes(), key.id().as_bytes()]);
        let mut first = [0; 16];
        first.copy_from_slice(&hash.0[..16]);
        Self(u128::from_be_bytes(first))
    }

    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        parse_128_bits(text).map(Self)
    }
}

fn parse_128_bits(text: &str) -> Option<u128> {
    let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
