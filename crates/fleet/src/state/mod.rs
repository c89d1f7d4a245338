//! The whole fleet at one position of the ledger, as an immutable value. The state after a write shares almost everything
//! with the one before.

mod advance;
mod entry;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use rpds::{HashTrieMap, HashTrieMapSync, RedBlackTreeMapSync};
use rustc_hash::FxBuildHasher;
use serde_json::{Map, Value};

use crate::canonical::Canonical;
use crate::commit::Epoch;
use crate::document::{Cluster, Component, Definition, Stored, Tombstone};
use crate::guard::{Spending, Spent};
use crate::hash::{Counted, Hash, Position, StateDigest, Sum};
use crate::ids::{Dns, Id, KindName, Revision, Timestamp, Uid};
use crate::key::{DocumentKey, Key, SystemKey};
use crate::kind::{Kind, Kinds, Shape};
use crate::shelf::{Named, Shelf};
use crate::space::SystemEntry;

pub(crate) use advance::{Step, Uses};
pub(crate) use entry::{Entry, Source, decode_document, decode_tombstone};

type Table<K, V> = HashTrieMapSync<K, V, FxBuildHasher>;
type Catalog<T> = Shelf<Arc<Stored<T>>>;

/// How many shards the table of DNS names has: a change of one cluster copies one of them, and there may be a hundred thousand names.
const SHARDS: usize = 256;

/// What is known of a DNS name. The only source of an empty answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Served {
    /// A cluster of the fleet.
    Live(Arc<Stored<Cluster>>),
    /// A cluster that was, whose Flux is to clean up.
    Decommissioned(Arc<Stored<Tombstone>>),
}

impl Served {
    fn dns(&self) -> &Dns {
        match self {
            Self::Live(cluster) => &cluster.doc.dns,
            Self::Decommissioned(tombstone) => &tombstone.doc.dns,
        }
    }
}

impl Named for Served {
    fn name(&self) -> &str {
        self.dns().as_str()
    }

    fn hash_code(&self) -> u64 {
        self.dns().hash_code()
    }
}

/// The fleet at one position of the ledger.
#[derive(Clone, PartialEq)]
pub struct State {
    head: Position,
    time: Timestamp,
    epoch: Epoch,
    sum: Sum,
    kinds: Arc<Kinds>,
    kind_entries: Arc<BTreeMap<KindName, Stored<Arc<Kind>>>>,
    components: Catalog<Component>,
    definitions: Table<KindName, Catalog<Definition>>,
    clusters: RedBlackTreeMapSync<Id, Arc<Stored<Cluster>>>,
    served: Shelf<Served, SHARDS>,
    /// How often each document is referred to. Counts, not lists: who refers is scanned for when it is asked.
    usage: Table<DocumentKey, u32>,
    system: Table<SystemKey, Arc<Stored<SystemEntry>>>,
    spending: Spending,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "State(revision {}, {} clusters, {})",
            self.head.revision,
            self.clusters.size(),
            self.digest()
        )
    }
}

impl Default for State {
    fn default() -> Self {
        Self::empty()
    }
}

fn table<K: Eq + std::hash::Hash, V>() -> Table<K, V> {
    HashTrieMap::new_with_hasher_and_ptr_kind(FxBuildHasher)
}

impl State {
    /// The state of a store that holds nothing: it knows no cluster and no kind.
    pub fn empty() -> Self {
        Self {
            head: Position::default(),
            time: Timestamp::default(),
            epoch: Epoch::default(),
            sum: Sum::default(),
            kinds: Arc::new(Kinds::none()),
            kind_entries: Arc::default(),
            components: Shelf::default(),
            definitions: table(),
            clusters: RedBlackTreeMapSync::new_sync(),
            served: Shelf::default(),
            usage: table(),
            system: table(),
            spending: Spending::default(),
        }
    }

    /// Where in the ledger this is.
    pub fn head(&self) -> Position {
        self.head
    }

    /// The time of the last commit.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The time of a commit that is made now: never before that of the last one.
    pub fn time_of_commit(&self, now: Timestamp) -> Timestamp {
        now.max(self.time)
    }

    /// How often another history was declared to be the right one.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// A system entry. What it says, the file of its space reads.
    pub(crate) fn system(&self, key: &SystemKey) -> Option<&SystemEntry> {
        self.system.get(key).map(|stored| &stored.doc)
    }

    /// All system entries, in no particular order.
    pub(crate) fn system_entries(&self) -> impl Iterator<Item = (&SystemKey, &SystemEntry)> {
        self.system.iter().map(|(key, stored)| (key, &stored.doc))
    }

    /// The digest of everything in it.
    pub fn digest(&self) -> StateDigest {
        self.sum.digest()
    }

    /// The kinds in force.
    pub fn kinds(&self) -> &Arc<Kinds> {
        &self.kinds
    }

    pub(crate) fn spending(&self) -> &Spending {
        &self.spending
    }

    /// What is used up of the guard's budgets in the hour before a moment.
    pub fn spent(&self, now: Timestamp) -> Spent {
        self.spending.within_the_hour_before(now)
    }

    /// What is known of a DNS name.
    pub fn served(&self, dns: &str) -> Option<&Served> {
        self.served.find(dns)
    }

    /// A live cluster by its id.
    pub fn cluster(&self, id: &str) -> Option<&Arc<Stored<Cluster>>> {
        self.clusters.get(id)
    }

    /// All live clusters, sorted by id.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<Stored<Cluster>>> {
        self.clusters.values()
    }

    /// How many live clusters there are.
    pub fn cluster_count(&self) -> usize {
        self.clusters.size()
    }

    /// The live clusters whose id comes after this one, sorted by id.
    pub(crate) fn clusters_after(&self, id: Option<&str>) -> impl Iterator<Item = &Arc<Stored<Cluster>>> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.clusters.range::<str, _>((from, Bound::Unbounded)).map(|(_, stored)| stored)
    }

    /// A component of the catalog.
    pub fn component(&self, id: &str) -> Option<&Arc<Stored<Component>>> {
        self.components.find(id)
    }

    /// The catalog, in no particular order.
    pub fn components(&self) -> impl Iterator<Item = &Arc<Stored<Component>>> {
        self.components.values()
    }

    /// The catalog as a table.
    pub(crate) fn catalog(&self) -> &Catalog<Component> {
        &self.components
    }

    /// The documents of a kind without special rules, as a table.
    pub(crate) fn definitions(&self, kind: &str) -> Option<&Catalog<Definition>> {
        self.definitions.get(kind)
    }

    /// A document of a kind without special rules.
    pub fn definition(&self, kind: &str, id: &str) -> Option<&Arc<Stored<Definition>>> {
        self.definitions.get(kind)?.find(id)
    }

    /// The decommission records, sorted by DNS name.
    pub fn tombstones(&self) -> Vec<&Arc<Stored<Tombstone>>> {
        let mut tombstones: Vec<_> = self
            .served
            .values()
            .filter_map(|served| match served {
                Served::Decommissioned(tombstone) => Some(tombstone),
                Served::Live(_) => None,
            })
            .collect();
        tombstones.sort_by(|a, b| a.doc.dns.cmp(&b.doc.dns));
        tombstones
    }

    /// The decommission record of a DNS name.
    pub fn tombstone(&self, dns: &str) -> Option<&Arc<Stored<Tombstone>>> {
        match self.served.find(dns) {
            Some(Served::Decommissioned(tombstone)) => Some(tombstone),
            _ => None,
        }
    }

    /// How many references there are to a document, dependencies that clusters set themselves included.
    pub fn usage(&self, key: &DocumentKey) -> usize {
        self.usage.get(key).map_or(0, |count| *count as usize)
    }

    /// The clusters that refer to a document, sorted by id. Scans the fleet.
    pub fn users<'a>(&'a self, kind: &'a str, id: &'a str) -> impl Iterator<Item = &'a Arc<Stored<Cluster>>> {
        self.clusters().filter(move |cluster| cluster.doc.refers_to(kind, id))
    }

    /// The canonical text of a document, with its revision.
    pub fn body(&self, kind: &str, id: &str) -> Option<(Canonical, Revision)> {
        match self.kinds.get(kind)?.shape() {
            Shape::Cluster => self.cluster(id).map(|stored| (stored.doc.canonical(), stored.revision)),
            Shape::Component => self.component(id).map(|stored| (stored.doc.canonical(), stored.revision)),
            Shape::Definition => {
                self.definition(kind, id).map(|stored| (stored.doc.canonical(), stored.revision))
            }
        }
    }

    /// The canonical text of an entry of whatever sort.
    pub(crate) fn canonical_of(&self, key: &Key) -> Option<Canonical> {
        match key {
            Key::Document(key) => self.body(key.kind.as_str(), key.id.as_str()).map(|(body, _)| body),
            Key::Kind(name) => self.kind_entries.get(name).map(|stored| stored.doc.canonical()),
            Key::Tombstone(dns) => self.tombstone(dns.as_str()).map(|stored| stored.doc.canonical()),
            Key::System(key) => self.system.get(key).map(|stored| stored.doc.canonical()),
        }
    }

    /// The document of a key as an object, with its revision.
    pub fn document(&self, kind: &str, id: &str) -> Option<(Map<String, Value>, Revision)> {
        self.body(kind, id).map(|(body, revision)| (body.to_map(), revision))
    }

    /// The ids of all documents of a kind, sorted.
    pub fn ids(&self, kind: &str) -> Vec<&Id> {
        let mut ids: Vec<&Id> = match self.kinds.get(kind).map(|kind| kind.shape()) {
            None => Vec::new(),
            Some(Shape::Cluster) => return self.clusters.keys().collect(),
            Some(Shape::Component) => self.components.values().map(|stored| &stored.doc.id).collect(),
            Some(Shape::Definition) => self
                .definitions
                .get(kind)
                .into_iter()
                .flat_map(Catalog::values)
                .map(|stored| &stored.doc.id)
                .collect(),
        };
        ids.sort_unstable();
        ids
    }

    pub(crate) fn revision_of_kind(&self, kind: &KindName) -> Revision {
        self.kind_entries.get(kind).map_or(Revision::default(), |entry| entry.revision)
    }

    /// The `Id` that the catalog holds for a text, to share its allocation.
    pub(crate) fn id_of(&self, kind: &str, text: &str) -> Option<&Id> {
        match Shape::of(kind) {
            Shape::Component => self.components.find(text).map(|stored| &stored.doc.id),
            Shape::Cluster | Shape::Definition => self.definition(kind, text).map(|stored| &stored.doc.id),
        }
    }

    /// The revision of an entry.
    pub fn revision_of(&self, key: &Key) -> Option<Revision> {
        self.counted(key).map(|counted| counted.revision)
    }

    /// The hash of an entry as it is; the same for two that say the same, whatever their revisions.
    pub fn hash_of(&self, key: &Key) -> Option<Hash> {
        self.counted(key).map(|counted| counted.hash)
    }

    /// The identity of this life of an entry.
    pub fn uid_of(&self, key: &Key) -> Option<Uid> {
        self.counted(key).map(|counted| counted.uid)
    }

    fn counted(&self, key: &Key) -> Option<Counted> {
        match key {
            Key::Kind(name) => self.kind_entries.get(name).map(Stored::counted),
            Key::Tombstone(dns) => self.tombstone(dns.as_str()).map(|stored| stored.counted()),
            Key::System(key) => self.system.get(key).map(|stored| stored.counted()),
            Key::Document(DocumentKey { kind, id }) => match kind.shape() {
                Shape::Cluster => self.clusters.get(id).map(|stored| stored.counted()),
                Shape::Component => self.components.get(id).map(|stored| stored.counted()),
                Shape::Definition => self.definitions.get(kind)?.get(id).map(|stored| stored.counted()),
            },
        }
    }
}
