//! A persistent table of what has a name, made for the read path: a poll looks up its cluster, and every input that it sends.
//!
//! The table is cut into shards behind shared pointers. A look-up is one hash and two hops, against five or six in a hash trie;
//! a write copies one shard, and many writes to one version of the table copy each shard at most once.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::document::{Component, Definition, Stored};
use crate::ids::{self, Id};

/// How many shards a catalog has.
const SHARDS: usize = 64;

/// What is found by its name.
pub(crate) trait Named: Clone {
    fn name(&self) -> &str;
    /// The hash of its name.
    fn hash_code(&self) -> u64;
}

/// A document of the catalog.
pub(crate) trait Identified {
    fn id(&self) -> &Id;
}

impl Identified for Component {
    fn id(&self) -> &Id {
        &self.id
    }
}

impl Identified for Definition {
    fn id(&self) -> &Id {
        &self.id
    }
}

impl<T: Identified> Named for Arc<Stored<T>> {
    fn name(&self) -> &str {
        self.doc.id().as_str()
    }

    fn hash_code(&self) -> u64 {
        self.doc.id().hash_code()
    }
}

type Shard<V> = HashTable<V>;

pub(crate) struct Shelf<V, const N: usize = SHARDS> {
    shards: Arc<[Arc<Shard<V>>; N]>,
}

impl<V, const N: usize> Clone for Shelf<V, N> {
    fn clone(&self) -> Self {
        Self { shards: self.shards.clone() }
    }
}

impl<V, const N: usize> Default for Shelf<V, N> {
    fn default() -> Self {
        let empty = Arc::new(HashTable::new());
        Self { shards: Arc::new(std::array::from_fn(|_| empty.clone())) }
    }
}

/// Bits that neither choose a bucket in a shard nor its tag.
fn shard<const N: usize>(hash: u64) -> usize {
    (hash >> 32) as usize % N
}

impl<V: Named, const N: usize> Shelf<V, N> {
    pub(crate) fn find(&self, name: &str) -> Option<&V> {
        let hash = ids::hash_of(name);
        self.shards[shard::<N>(hash)].find(hash, |value| value.name() == name)
    }

    pub(crate) fn insert(&mut self, value: V) {
        let hash = value.hash_code();
        let table = self.shard_mut(hash);
        match table.find_mut(hash, |other| other.name() == value.name()) {
            Some(place) => *place = value,
            None => {
                table.insert_unique(hash, value, Named::hash_code);
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let hash = ids::hash_of(name);
        if let Ok(entry) = self.shard_mut(hash).find_entry(hash, |value| value.name() == name) {
            entry.remove();
        }
    }

    fn shard_mut(&mut self, hash: u64) -> &mut Shard<V> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[shard::<N>(hash)])
    }

    /// All of it, in no particular order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }
}

impl<T: Identified, const N: usize> Shelf<Arc<Stored<T>>, N> {
    /// The document of an id that a cluster holds: mostly the very allocation that the shelf holds, so no text is compared.
    pub(crate) fn get(&self, id: &Id) -> Option<&Arc<Stored<T>>> {
        let hash = id.hash_code();
        self.shards[shard::<N>(hash)].find(hash, |stored| stored.doc.id() == id)
    }
}

impl<V: Named + PartialEq, const N: usize> PartialEq for Shelf<V, N> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.values().all(|value| other.find(value.name()) == Some(value))
    }
}
