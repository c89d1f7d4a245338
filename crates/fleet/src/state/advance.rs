//! How one state becomes the next. Decides nothing: what it is given, it writes.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Entry, Served, State};
use crate::document::{Cluster, Stored};
use crate::guard::Spending;
use crate::hash::{Hash, Position};
use crate::ids::{
    CLUSTERS, CommitId, DECOMMISSIONED, Id, KINDS, Key, KindName, PLATFORM_COMPONENTS, Revision, Timestamp,
    Uid,
};
use crate::kind::{Kind, Kinds};
use crate::shelf::Shelf;

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

impl State {
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
            // Refused before it comes here.
            KINDS => {}
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
