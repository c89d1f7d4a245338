//! How one state becomes the next. Decides nothing: what it is given, it writes.

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Entry, Served, State};
use crate::commit::Header;
use crate::document::{Cluster, Stored};
use crate::guard::Spending;
use crate::hash::{Counted, Hash, Sum};
use crate::ids::{Id, KindName, PLATFORM_COMPONENTS, Revision, Uid};
use crate::key::{DocumentKey, Key};
use crate::kind::{Kind, Kinds, Shape};
use crate::shelf::Shelf;

/// What a commit makes of one key.
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) uid: Uid,
    pub(crate) after: Option<(Entry, Hash)>,
}

impl State {
    /// The state after a commit's steps; `apply` and `replay` both go through here. Decides nothing.
    pub(crate) fn advance(&self, revision: Revision, kinds: Option<Arc<Kinds>>, steps: Vec<Step>) -> Self {
        let mut next = self.clone();
        if let Some(kinds) = kinds {
            next = next.with_kinds(kinds);
        }
        // What goes, goes first: a DNS name can pass from a tombstone to a cluster, or the other way, in one commit.
        let (puts, removals): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| step.after.is_some());
        for Step { key, uid, after } in removals.into_iter().chain(puts) {
            match after {
                Some((entry, hash)) => next.put(key, entry, Counted { hash, uid, revision }),
                None => next.remove(&key),
            }
        }
        next
    }

    pub(crate) fn with_kinds(mut self, kinds: Arc<Kinds>) -> Self {
        self.kinds = kinds;
        self
    }

    pub(crate) fn at(mut self, head: &Header, spending: Spending) -> Self {
        (self.head, self.time, self.epoch, self.spending) = (head.at, head.origin.time, head.epoch, spending);
        self
    }

    /// Writes an entry over whatever is there.
    pub(crate) fn put(&mut self, key: Key, entry: Entry, counted: Counted) {
        if let Some(old) = self.counted(&key) {
            self.sum.remove(old);
        }
        self.sum.add(counted);
        if let Entry::Cluster(doc) = &entry {
            let before = self.clusters.get(&doc.id).cloned();
            self.count_uses(before.as_deref().map(|before| &before.doc), Some(doc));
        }
        self.place(key, entry, counted);
    }

    /// The same, of an entry that is counted already: in the digest, and in what clusters use.
    pub(crate) fn place(&mut self, key: Key, entry: Entry, counted: Counted) {
        match entry {
            Entry::Kind(kind) => {
                self.redefine(&kind);
                Arc::make_mut(&mut self.kind_entries).insert(kind.name().clone(), Stored::new(kind, counted));
            }
            Entry::Tombstone(doc) => {
                self.served.insert(Served::Decommissioned(Arc::new(Stored::new(doc, counted))));
            }
            Entry::Component(doc) => self.components.insert(Arc::new(Stored::new(*doc, counted))),
            Entry::Definition(kind, doc) => {
                let stored = Arc::new(Stored::new(doc, counted));
                match self.definitions.get_mut(&kind) {
                    Some(of_kind) => of_kind.insert(stored),
                    None => {
                        let mut of_kind = Shelf::default();
                        of_kind.insert(stored);
                        self.definitions.insert_mut(kind, of_kind);
                    }
                }
            }
            Entry::Cluster(doc) => {
                let stored = Arc::new(Stored::new(*doc, counted));
                self.served.insert(Served::Live(stored.clone()));
                self.clusters.insert_mut(stored.doc.id.clone(), stored);
            }
            Entry::System(entry) => {
                let Key::System(key) = key else { unreachable!("a system entry has the key of one") };
                self.system.insert_mut(key, Arc::new(Stored::new(entry, counted)));
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        let Some(counted) = self.counted(key) else { return };
        self.sum.remove(counted);
        match key {
            // Refused before it comes here.
            Key::Kind(_) => {}
            Key::Tombstone(dns) => {
                self.served.remove(dns.as_str());
            }
            Key::System(key) => {
                self.system.remove_mut(key);
            }
            Key::Document(DocumentKey { kind, id }) => match kind.shape() {
                Shape::Cluster => {
                    let Some(cluster) = self.clusters.get(id).cloned() else { return };
                    self.count_uses(Some(&cluster.doc), None);
                    self.clusters.remove_mut(id);
                    if matches!(self.served(cluster.doc.dns.as_str()), Some(Served::Live(live)) if live.doc.id == *id)
                    {
                        self.served.remove(cluster.doc.dns.as_str());
                    }
                }
                Shape::Component => self.components.remove(id.as_str()),
                Shape::Definition => {
                    if let Some(of_kind) = self.definitions.get_mut(kind) {
                        of_kind.remove(id.as_str());
                    }
                }
            },
        }
    }

    /// A changed kind changes the inputs of its definitions, though not the definitions.
    fn redefine(&mut self, kind: &Kind) {
        let Some(of_kind) = self.definitions.get(kind.name()) else { return };
        let mut redefined = Shelf::default();
        for stored in of_kind.values() {
            redefined.insert(Arc::new(Stored::new(stored.doc.under(kind), stored.counted())));
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
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(b), Some(a)) => b.cmp(a),
            };
            let (used, more) = match order {
                Ordering::Equal => {
                    b.next();
                    a.next();
                    continue;
                }
                Ordering::Less => (b.next(), false),
                Ordering::Greater => (a.next(), true),
            };
            let Some((kind, id)) = used else { return };
            let key = DocumentKey::new(kind, id);
            match (self.usage.get(&key).copied().unwrap_or(0), more) {
                (count, true) => self.usage.insert_mut(key, count + 1),
                (0 | 1, false) => {
                    self.usage.remove_mut(&key);
                }
                (count, false) => self.usage.insert_mut(key, count - 1),
            }
        }
    }
}

/// Everything a cluster refers to, sorted.
fn uses(cluster: Option<&Cluster>) -> Vec<(&str, &Id)> {
    let mut uses = Vec::with_capacity(64);
    if let Some(cluster) = cluster {
        each_use(cluster, |kind, id| uses.push((kind, id)));
    }
    uses.sort_unstable();
    uses
}

/// Everything a cluster refers to.
fn each_use<'a>(cluster: &'a Cluster, mut used: impl FnMut(&'a str, &'a Id)) {
    for (kind, references) in &cluster.references {
        for reference in references.iter() {
            used(kind.as_str(), &reference.id);
        }
    }
    for reference in cluster.components.iter() {
        used(PLATFORM_COMPONENTS, &reference.id);
        let own = reference.own_dependencies().unwrap_or_default();
        for id in own {
            used(PLATFORM_COMPONENTS, id);
        }
    }
}

/// What the clusters of a fleet use, counted before there is a state: in a table that is changed, not in one that is shared.
#[derive(Default)]
pub(crate) struct Uses(Vec<(KindName, FxHashMap<Id, u32>)>);

impl Uses {
    pub(crate) fn count(&mut self, cluster: &Cluster) {
        each_use(cluster, |kind, id| {
            let at = match self.0.iter().position(|(known, _)| known.as_str() == kind) {
                Some(at) => at,
                None => {
                    self.0.push((kind.into(), FxHashMap::default()));
                    self.0.len() - 1
                }
            };
            match self.0[at].1.get_mut(id) {
                Some(count) => *count += 1,
                None => {
                    self.0[at].1.insert(id.clone(), 1);
                }
            }
        });
    }
}

impl State {
    /// With what its clusters use, none of which was counted before.
    pub(crate) fn with_uses(mut self, uses: Uses) -> Self {
        for (kind, counts) in uses.0 {
            for (id, count) in counts {
                self.usage.insert_mut(DocumentKey::new(&kind, id), count);
            }
        }
        self
    }

    /// Counts entries that are placed one by one.
    pub(crate) fn count_all(&mut self, sum: &Sum) {
        self.sum.add_all(sum);
    }
}
