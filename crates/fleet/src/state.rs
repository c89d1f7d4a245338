//! The whole fleet at one position of the ledger, as an immutable value. The state after a write shares almost everything
//! with the one before.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use rpds::{HashTrieMap, HashTrieMapSync, RedBlackTreeMapSync};
use rustc_hash::FxBuildHasher;
use serde_json::{Map, Value};

use crate::canonical::Canonical;
use crate::document::{Cluster, Component, Definition, Interner, Kept, Stored, Tombstone};
use crate::guard::Spending;
use crate::hash::{Hash, Position, StateDigest, Sum};
use crate::ids::{
    CLUSTERS, CommitId, DECOMMISSIONED, Dns, Id, KINDS, Key, KindName, PLATFORM_COMPONENTS, Revision,
    Timestamp, Uid,
};
use crate::kind::{Kind, Kinds, Shape};
use crate::shelf::Shelf;

type Table<K, V> = HashTrieMapSync<K, V, FxBuildHasher>;

/// What is known of a DNS name. The only source of an empty answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Served {
    /// A cluster of the fleet.
    Live(Arc<Stored<Cluster>>),
    /// A cluster that was, whose Flux is to clean up.
    Decommissioned(Arc<Stored<Tombstone>>),
}

/// The fleet at one position of the ledger.
#[derive(Clone, PartialEq)]
pub struct State {
    head: Position,
    time: Timestamp,
    sum: Sum,
    kinds: Arc<Kinds>,
    kind_entries: Arc<BTreeMap<KindName, Stored<Arc<Kind>>>>,
    components: Shelf<Component>,
    definitions: Table<KindName, Shelf<Definition>>,
    clusters: RedBlackTreeMapSync<Id, Arc<Stored<Cluster>>>,
    served: Table<Dns, Served>,
    /// How often each document is referred to. Counts, not lists: who refers is scanned for when it is asked.
    usage: Table<Key, u32>,
    spending: Spending,
}

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
            Self::Component(component) => Canonical::of(&component.to_map()),
            Self::Definition(definition) => Canonical::of(&definition.to_map()),
            Self::Cluster(cluster) => cluster.canonical(),
        }
    }

    /// The document as an object, if it is one that operations can change.
    pub(crate) fn to_map(&self) -> Option<Map<String, Value>> {
        match self {
            Self::Kind(_) | Self::Tombstone(_) => None,
            Self::Component(component) => Some(component.to_map()),
            Self::Definition(definition) => Some(definition.to_map()),
            Self::Cluster(cluster) => Some(cluster.to_map()),
        }
    }
}

/// What a commit makes of one key.
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) after: Option<(Entry, Hash)>,
}

/// The stamp of a commit on the entries that it writes.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) revision: Revision,
    pub(crate) commit: CommitId,
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
            sum: Sum::default(),
            kinds: Arc::new(Kinds::none()),
            kind_entries: Arc::default(),
            components: Shelf::default(),
            definitions: table(),
            clusters: RedBlackTreeMapSync::new_sync(),
            served: table(),
            usage: table(),
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

    /// What is known of a DNS name.
    pub fn served(&self, dns: &str) -> Option<&Served> {
        self.served.get(dns)
    }

    /// A live cluster by its id.
    pub fn cluster(&self, id: &str) -> Option<&Arc<Stored<Cluster>>> {
        self.clusters.get(id)
    }

    /// All live clusters, sorted by id.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<Stored<Cluster>>> {
        self.clusters.values()
    }

    /// The live clusters whose ids come after the given one, sorted by id.
    pub fn clusters_after(&self, id: &str) -> impl Iterator<Item = &Arc<Stored<Cluster>>> {
        self.clusters.range((Bound::Excluded(Id::from(id)), Bound::Unbounded)).map(|(_, cluster)| cluster)
    }

    /// How many live clusters there are.
    pub fn cluster_count(&self) -> usize {
        self.clusters.size()
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
    pub(crate) fn catalog(&self) -> &Shelf<Component> {
        &self.components
    }

    /// The documents of a kind without special rules, as a table.
    pub(crate) fn definitions(&self, kind: &str) -> Option<&Shelf<Definition>> {
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
        match self.served.get(dns) {
            Some(Served::Decommissioned(tombstone)) => Some(tombstone),
            _ => None,
        }
    }

    /// How many references there are to a document, dependencies that clusters set themselves included.
    pub fn usage(&self, key: &Key) -> usize {
        self.usage.get(key).map_or(0, |count| *count as usize)
    }

    /// The clusters that refer to a document, sorted by id. Scans the fleet.
    pub fn users<'a>(&'a self, kind: &'a str, id: &'a str) -> impl Iterator<Item = &'a Arc<Stored<Cluster>>> {
        self.clusters().filter(move |cluster| cluster.doc.refers_to(kind, id))
    }

    /// The document of a key as an object, with its revision.
    pub fn document(&self, kind: &str, id: &str) -> Option<(Map<String, Value>, Revision)> {
        match self.kinds.get(kind)?.shape() {
            Shape::Cluster => self.cluster(id).map(|stored| (stored.doc.to_map(), stored.revision)),
            Shape::Component => self.component(id).map(|stored| (stored.doc.to_map(), stored.revision)),
            Shape::Definition => {
                self.definition(kind, id).map(|stored| (stored.doc.to_map(), stored.revision))
            }
        }
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
                .flat_map(Shelf::values)
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
        match kind {
            PLATFORM_COMPONENTS => self.components.find(text).map(|stored| &stored.doc.id),
            _ => self.definition(kind, text).map(|stored| &stored.doc.id),
        }
    }

    /// The state after a commit's steps; `apply` and `replay` both go through here. Decides nothing.
    pub(crate) fn advance(&self, stamp: Stamp, kinds: Option<Arc<Kinds>>, steps: Vec<Step>) -> Self {
        let mut next = self.clone();
        if let Some(kinds) = kinds {
            next = next.with_kinds(kinds);
        }
        // What goes, goes first: a DNS name can pass from a tombstone to a cluster, or the other way, in one commit.
        let (puts, removals): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| step.after.is_some());
        for Step { key, after } in removals.into_iter().chain(puts) {
            next.step(stamp, key, after);
        }
        next
    }

    pub(crate) fn with_kinds(mut self, kinds: Arc<Kinds>) -> Self {
        self.kinds = kinds;
        self
    }

    pub(crate) fn at(mut self, head: Position, time: Timestamp, spending: Spending) -> Self {
        (self.head, self.time, self.spending) = (head, time, spending);
        self
    }

    fn step(&mut self, stamp: Stamp, key: Key, after: Option<(Entry, Hash)>) {
        match after {
            Some((entry, hash)) => {
                let uid = self.uid_of(&key).unwrap_or_else(|| Uid::derive(stamp.commit, &key));
                self.put(key, entry, stamp.revision, uid, hash);
            }
            None => self.remove(&key),
        }
    }

    /// Writes an entry over whatever is there.
    pub(crate) fn put(&mut self, key: Key, entry: Entry, revision: Revision, uid: Uid, hash: Hash) {
        if let Some(old) = self.hash_of(&key) {
            self.sum.remove(old);
        }
        self.sum.add(hash);
        match entry {
            Entry::Kind(kind) => {
                self.redefine(&kind);
                Arc::make_mut(&mut self.kind_entries)
                    .insert(kind.name().clone(), Stored { doc: kind, revision, uid, hash });
            }
            Entry::Tombstone(doc) => {
                let dns = doc.dns.clone();
                self.served
                    .insert_mut(dns, Served::Decommissioned(Arc::new(Stored { doc, revision, uid, hash })));
            }
            Entry::Component(doc) => {
                self.components.insert(Arc::new(Stored { doc: *doc, revision, uid, hash }));
            }
            Entry::Definition(doc) => {
                let stored = Arc::new(Stored { doc, revision, uid, hash });
                match self.definitions.get_mut(&key.kind) {
                    Some(of_kind) => of_kind.insert(stored),
                    None => {
                        let mut of_kind = Shelf::default();
                        of_kind.insert(stored);
                        self.definitions.insert_mut(key.kind, of_kind);
                    }
                }
            }
            Entry::Cluster(doc) => {
                let stored = Arc::new(Stored { doc: *doc, revision, uid, hash });
                let before = self.clusters.get(&stored.doc.id).cloned();
                self.count_uses(before.as_deref().map(|before| &before.doc), Some(&stored.doc));
                self.served.insert_mut(stored.doc.dns.clone(), Served::Live(stored.clone()));
                self.clusters.insert_mut(stored.doc.id.clone(), stored);
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        let Some(hash) = self.hash_of(key) else { return };
        self.sum.remove(hash);
        match key.kind.as_str() {
            KINDS => {
                Arc::make_mut(&mut self.kind_entries).remove(key.id.as_str());
            }
            DECOMMISSIONED => {
                self.served.remove_mut(key.id.as_str());
            }
            CLUSTERS => {
                let Some(cluster) = self.clusters.get(&key.id).cloned() else { return };
                self.count_uses(Some(&cluster.doc), None);
                self.clusters.remove_mut(&key.id);
                if matches!(self.served(cluster.doc.dns.as_str()), Some(Served::Live(live)) if live.doc.id == key.id)
                {
                    self.served.remove_mut(&cluster.doc.dns);
                }
            }
            PLATFORM_COMPONENTS => {
                self.components.remove(key.id.as_str());
            }
            kind => {
                if let Some(of_kind) = self.definitions.get_mut(kind) {
                    of_kind.remove(key.id.as_str());
                }
            }
        }
    }

    /// A changed kind changes the inputs of its definitions, though not the definitions.
    fn redefine(&mut self, kind: &Kind) {
        let Some(of_kind) = self.definitions.get(kind.name()) else { return };
        let mut redefined = Shelf::default();
        for stored in of_kind.values() {
            let (revision, uid, hash) = (stored.revision, stored.uid, stored.hash);
            redefined.insert(Arc::new(Stored { doc: stored.doc.under(kind), revision, uid, hash }));
        }
        self.definitions.insert_mut(kind.name().clone(), redefined);
    }

    fn count_uses(&mut self, before: Option<&Cluster>, after: Option<&Cluster>) {
        if let (Some(before), Some(after)) = (before, after)
            && before.refers_alike(after)
        {
            return;
        }
        let (before, after) = (uses(before), uses(after));
        let (mut b, mut a) = (before.into_iter().peekable(), after.into_iter().peekable());
        loop {
            let order = match (b.peek(), a.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(b), Some(a)) => b.cmp(a),
            };
            let (used, more) = match order {
                std::cmp::Ordering::Equal => {
                    b.next();
                    a.next();
                    continue;
                }
                std::cmp::Ordering::Less => (b.next(), false),
                std::cmp::Ordering::Greater => (a.next(), true),
            };
            let Some((kind, id)) = used else { return };
            let key = Key { kind: KindName::from(kind), id: id.clone() };
            match (self.usage.get(&key).copied().unwrap_or(0), more) {
                (count, true) => self.usage.insert_mut(key, count + 1),
                (0 | 1, false) => {
                    self.usage.remove_mut(&key);
                }
                (count, false) => self.usage.insert_mut(key, count - 1),
            }
        }
    }

    /// The revision of a document, of whatever kind.
    pub fn document_revision(&self, key: &Key) -> Option<Revision> {
        self.identity_of(key).map(|(revision, _, _)| revision)
    }

    pub(crate) fn hash_of(&self, key: &Key) -> Option<Hash> {
        self.identity_of(key).map(|(_, _, hash)| hash)
    }

    fn uid_of(&self, key: &Key) -> Option<Uid> {
        self.identity_of(key).map(|(_, uid, _)| uid)
    }

    fn identity_of(&self, key: &Key) -> Option<(Revision, Uid, Hash)> {
        fn identity<T>(stored: &Stored<T>) -> (Revision, Uid, Hash) {
            (stored.revision, stored.uid, stored.hash)
        }
        match key.kind.as_str() {
            KINDS => self.kind_entries.get(key.id.as_str()).map(identity),
            DECOMMISSIONED => self.tombstone(key.id.as_str()).map(|stored| identity(stored)),
            CLUSTERS => self.clusters.get(&key.id).map(|stored| identity(stored)),
            PLATFORM_COMPONENTS => self.components.get(&key.id).map(|stored| identity(stored)),
            kind => self.definition(kind, key.id.as_str()).map(|stored| identity(stored)),
        }
    }
}

/// Everything a cluster refers to, sorted.
fn uses(cluster: Option<&Cluster>) -> Vec<(&str, &Id)> {
    let Some(cluster) = cluster else { return Vec::new() };
    let mut uses = Vec::with_capacity(64);
    for (kind, references) in &cluster.references {
        uses.extend(references.iter().map(|reference| (kind.as_str(), &reference.id)));
    }
    for reference in cluster.components.iter() {
        uses.push((PLATFORM_COMPONENTS, &reference.id));
        uses.extend(
            reference.own_dependencies().unwrap_or_default().iter().map(|id| (PLATFORM_COMPONENTS, id)),
        );
    }
    uses.sort_unstable();
    uses
}

/// Decodes the object of an entry; what is kept of an earlier version of a cluster is not in the object.
pub(crate) fn decode(
    kinds: &Kinds,
    key: &Key,
    map: Map<String, Value>,
    kept: Option<&Kept>,
    names: &mut Interner<'_>,
) -> Result<Entry, crate::rejection::Finding> {
    match key.kind.as_str() {
        DECOMMISSIONED => Tombstone::decode(map).map(Entry::Tombstone),
        name => {
            let unknown = || {
                crate::rejection::Finding::new(
                    crate::pointer::Pointer::root(),
                    format!("there is no kind `{name}`"),
                )
            };
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
