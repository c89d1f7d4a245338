//! The catalog of one kind as a persistent table, made for the read path: a poll looks up every input it sends.
//!
//! The table is cut into shards behind shared pointers. A look-up is one hash and two hops, against five or six in a hash trie;
//! a write copies one shard, and many writes to one version of the table copy each shard at most once.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::document::{Component, Definition, Stored};
use crate::ids::{self, Id};

const SHARDS: usize = 64;

/// A document that is found by its id.
pub(crate) trait Named {
    fn id(&self) -> &Id;
}

impl Named for Component {
    fn id(&self) -> &Id {
        &self.id
    }
}

impl Named for Definition {
    fn id(&self) -> &Id {
        &self.id
    }
}

type Shard<T> = HashTable<Arc<Stored<T>>>;

pub(crate) struct Shelf<T> {
    shards: Arc<[Arc<Shard<T>>; SHARDS]>,
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        Self { shards: self.shards.clone() }
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        let empty = Arc::new(HashTable::new());
        Self { shards: Arc::new(std::array::from_fn(|_| empty.clone())) }
    }
}

/// Bits that neither choose a bucket in a shard nor its tag.
fn shard(hash: u64) -> usize {
    (hash >> 32) as usize % SHARDS
}

impl<T: Named> Shelf<T> {
    /// The document of an id that a cluster holds: mostly the very allocation that the shelf holds, so no text is compared.
    pub(crate) fn get(&self, id: &Id) -> Option<&Arc<Stored<T>>> {
        let hash = id.hash_code();
        self.shards[shard(hash)].find(hash, |stored| stored.doc.id() == id)
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Arc<Stored<T>>> {
        let hash = ids::hash_of(id);
        self.shards[shard(hash)].find(hash, |stored| stored.doc.id().as_str() == id)
    }

    pub(crate) fn insert(&mut self, stored: Arc<Stored<T>>) {
        let hash = stored.doc.id().hash_code();
        let table = self.shard_mut(hash);
        match table.find_mut(hash, |other| other.doc.id() == stored.doc.id()) {
            Some(place) => *place = stored,
            None => {
                table.insert_unique(hash, stored, |other| other.doc.id().hash_code());
            }
        }
    }

    pub(crate) fn remove(&mut self, id: &str) {
        let hash = ids::hash_of(id);
        if let Ok(entry) = self.shard_mut(hash).find_entry(hash, |stored| stored.doc.id().as_str() == id) {
            entry.remove();
        }
    }

    fn shard_mut(&mut self, hash: u64) -> &mut Shard<T> {
        Arc::make_mut(&mut Arc::make_mut(&mut self.shards)[shard(hash)])
    }

    /// All documents, in no particular order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Stored<T>>> {
        self.shards.iter().flat_map(|shard| shard.iter())
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }
}

impl<T: Named + PartialEq> PartialEq for Shelf<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.values().all(|stored| other.get(stored.doc.id()) == Some(stored))
    }
}
