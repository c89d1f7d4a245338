//! The fleet as the operations of one transaction leave it, document by document. Each operation writes whole documents; what
//! is wrong with a document counts only if it is still wrong when all operations have run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::normalise::normalise;
use super::poison::find_poison;
use super::{MAX_CLUSTER, MAX_DOCUMENT, check};
use crate::canonical::{Canonical, MAX_DEPTH};
use crate::commit::Change;
use crate::document::{Cluster, Interner, Kept, Tombstone};
use crate::finding::Finding;
use crate::guard::Named;
use crate::ids::{CLUSTERS, CommitId, KINDS, Key, PATCHES, Revision};
use crate::kind::{Kind, Kinds, Shape};
use crate::pointer::Pointer;
use crate::rejection::{REPORTED, Reason, Rejection, Violations};
use crate::state::{Entry, Served, Stamp, State, Step, decode};
use crate::transaction::Operation;

pub(super) struct Draft<'a> {
    pub(super) before: &'a State,
    pub(super) kinds: Arc<Kinds>,
    pub(super) named: Named,
    pub(super) violations: Violations,
    pub(super) warnings: Warnings,
    names: Interner<'a>,
    slots: BTreeMap<Key, Slot>,
    kinds_changed: bool,
}

/// What the transaction makes of one document.
struct Slot {
    /// The last operation that wrote it.
    operation: usize,
    after: After,
    /// Whether a cluster may take the DNS name of a decommissioned one.
    replaces: bool,
}

impl Slot {
    /// An entry that nobody wrote as a document.
    fn made(operation: usize, entry: Entry) -> Self {
        let after = After::Read { body: entry.canonical(), entry, findings: Vec::new() };
        Self { operation, after, replaces: false }
    }

    fn gone(operation: usize) -> Self {
        Self { operation, after: After::Gone, replaces: false }
    }
}

enum After {
    Gone,
    /// It can be represented, though rules may be broken.
    Read {
        entry: Entry,
        body: Canonical,
        findings: Vec<(Reason, Finding)>,
    },
    /// It was not even looked at; only a whole new document can mend it.
    Unfit(Reason, Finding),
    /// It cannot even be represented.
    Unreadable {
        map: Map<String, Value>,
        findings: Vec<(Reason, Finding)>,
    },
}

/// What whoever asked should know: the first of it in words, the rest as a number.
#[derive(Default)]
pub(super) struct Warnings {
    first: Vec<String>,
    more: usize,
}

impl Warnings {
    pub(super) fn push(&mut self, warning: String) {
        if self.first.len() < REPORTED {
            self.first.push(warning);
        } else {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.first.push(format!("and {} more warnings like these", self.more));
        }
        self.first
    }
}

/// What a transaction comes to when every rule holds.
pub(super) struct Outcome {
    pub(super) next: State,
    pub(super) changes: Vec<Change>,
    pub(super) named: Named,
    pub(super) warnings: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Kinds are brought into force first, whatever the order of the operations.
    pub(super) fn new(before: &'a State, operations: &[Operation]) -> Self {
        let mut draft = Self {
            before,
            kinds: before.kinds().clone(),
            named: Named::default(),
            violations: Violations::default(),
            warnings: Warnings::default(),
            names: Interner::new(Some(before)),
            slots: BTreeMap::new(),
            kinds_changed: false,
        };
        let mut defined = Vec::new();
        for (n, operation) in operations.iter().enumerate() {
            if let Operation::Define(kind) = operation {
                defined.push((n, kind));
            }
        }
        if !defined.is_empty() {
            draft.define(&defined);
        }
        draft
    }

    fn define(&mut self, defined: &[(usize, &Arc<Kind>)]) {
        let mut all: Vec<Arc<Kind>> = self.kinds.iter().cloned().collect();
        for (n, kind) in defined {
            let key = Key::new(KINDS, kind.name().as_str());
            all.push(Arc::clone(kind));
            let mut found = Vec::new();
            find_poison(kind.file(), &mut found);
            self.violations.invalid(*n, &key, found);
            self.slots.insert(key, Slot::made(*n, Entry::Kind(Arc::clone(kind))));
        }
        let operation = defined[0].0;
        let bad = match Kinds::new(all) {
            Err(bad) => vec![bad],
            Ok(kinds) => {
                let collisions = kinds.collisions();
                self.kinds = Arc::new(kinds);
                self.kinds_changed = true;
                collisions
            }
        };
        for bad in bad {
            let key = Key::new(KINDS, &bad.kind);
            self.violations.invalid(operation, &key, [Finding::new(Pointer::root(), bad.to_string())]);
        }
    }

    /// Whether the transaction, so far, leaves a document under that key.
    pub(super) fn exists(&self, key: &Key) -> bool {
        match self.slots.get(key) {
            Some(slot) => !matches!(slot.after, After::Gone),
            None => self.before.document_revision(key).is_some(),
        }
    }

    /// What an operation needs of a cluster that touches only some of its reference arrays and patches: an object without the
    /// others, and the others as they are.
    pub(super) fn cluster(
        &self,
        key: &Key,
        touched: impl Fn(&str) -> bool,
        touched_patches: Option<BTreeSet<String>>,
    ) -> Option<(Map<String, Value>, Option<Kept>)> {
        let cluster = match self.slots.get(key).map(|slot| &slot.after) {
            None => self.before.cluster(key.id.as_str()).map(|stored| &stored.doc),
            Some(After::Read { entry: Entry::Cluster(cluster), findings, .. }) if findings.is_empty() => {
                Some(&**cluster)
            }
            Some(_) => None,
        };
        let Some(cluster) = cluster.filter(|_| self.kinds.clusters_decompose() && !self.kinds_changed) else {
            return self.document(key).map(|map| (map, None));
        };
        let separable = self.kinds.referable().map(|kind| kind.name().as_str()).chain([PATCHES]);
        let kept = separable.filter(|member| !touched(member)).map(Box::from).collect();
        let (map, kept) = cluster.take_apart(kept, touched_patches);
        Some((map, Some(kept)))
    }

    /// The document as the transaction, so far, leaves it.
    pub(super) fn document(&self, key: &Key) -> Option<Map<String, Value>> {
        match self.slots.get(key).map(|slot| &slot.after) {
            None => self.before.document(key.kind.as_str(), key.id.as_str()).map(|(map, _)| map),
            Some(After::Gone | After::Unfit(..)) => None,
            Some(After::Unreadable { map, .. }) => Some(map.clone()),
            Some(After::Read { entry, .. }) => entry.to_map(),
        }
    }

    /// The clusters that a test selects, as the transaction, so far, leaves them.
    pub(super) fn select(&self, selects: impl Fn(&Cluster) -> bool) -> Vec<Key> {
        let untouched = self.before.clusters().map(|stored| &stored.doc).filter(|cluster| selects(cluster));
        let key = |cluster: &Cluster| Key { kind: CLUSTERS.into(), id: cluster.id.clone() };
        let mut keys: Vec<Key> = untouched.map(key).filter(|key| !self.slots.contains_key(key)).collect();
        for slot in self.slots.values() {
            if let After::Read { entry: Entry::Cluster(cluster), .. } = &slot.after
                && selects(cluster)
            {
                keys.push(key(cluster));
            }
        }
        keys.sort();
        keys
    }

    /// Writes a document; what is kept of an earlier version of a cluster is not in the object.
    pub(super) fn write(
        &mut self,
        operation: usize,
        kind: &Kind,
        key: Key,
        mut map: Map<String, Value>,
        kept: Option<&Kept>,
    ) {
        let most = if kind.shape() == Shape::Cluster { MAX_CLUSTER } else { MAX_DOCUMENT };
        if let Some((reason, finding)) = unfit(&map, most) {
            // Nothing more is said of it: what can be said may grow with the square of what was sent.
            self.put_slot(operation, key, After::Unfit(reason, finding));
            return;
        }
        let mut found = Vec::new();
        normalise(kind, &self.kinds, &mut map, &mut found);
        let document = Value::Object(map);
        if let Some(schema) = self.kinds.schema_of(kind) {
            schema.check(&document, &mut found);
        }
        let Value::Object(map) = document else { unreachable!("it is an object") };
        find_poison(&map, &mut found);
        self.check_identity(kind, &key, &map, &mut found);
        let misnamed = found.iter().any(|finding| finding.pointer.as_str() == "/id");
        if let Some(more) = found.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
            found.truncate(MAX_FINDINGS);
            found.push(Finding::new(Pointer::root(), format!("and {more} more things like these")));
        }
        let mut findings: Vec<_> = found.into_iter().map(|finding| (Reason::Invalid, finding)).collect();
        let spare = match kept {
            _ if findings.is_empty() => Map::new(),
            Some(kept) => kept.join(&map),
            None => map.clone(),
        };
        let after = match decode(&self.kinds, &key, map, kept, &mut self.names) {
            Ok(entry) => {
                let body = entry.canonical();
                if body.as_str().len() > most {
                    let message =
                        format!("the document has {} bytes; {most} are the most", body.as_str().len());
                    findings.push((Reason::TooLarge, Finding::new(Pointer::root(), message)));
                }
                // A document without a proper name takes no part in the rules about others, which would repeat the name.
                if misnamed {
                    After::Unreadable { map: spare, findings }
                } else {
                    After::Read { entry, body, findings }
                }
            }
            Err(finding) => {
                if findings.is_empty() {
                    findings.push((Reason::Invalid, finding));
                }
                After::Unreadable { map: spare, findings }
            }
        };
        self.put_slot(operation, key, after);
    }

    fn put_slot(&mut self, operation: usize, key: Key, after: After) {
        let replaces = self.slots.get(&key).is_some_and(|slot| slot.replaces);
        self.slots.insert(key, Slot { operation, after, replaces });
    }

    /// What never changes in the life of a document, and what it may not be called.
    fn check_identity(&self, kind: &Kind, key: &Key, map: &Map<String, Value>, found: &mut Vec<Finding>) {
        let id = map.get("id").and_then(Value::as_str);
        if id.is_some_and(|id| id != key.id.as_str()) {
            let message =
                format!("`id` cannot be changed: it is `{}`; make the new one, then delete the old", key.id);
            found.push(Finding::new(Pointer::to("id"), message));
        }
        if let Some(problem) = id.and_then(|id| kind.reserves(id)) {
            found.push(Finding::new(Pointer::to("id"), problem));
        }
        if kind.shape() == Shape::Cluster
            && let Some(before) = self.before.cluster(key.id.as_str())
            && map.get("cluster_dns").is_some_and(|dns| *dns != before.doc.dns.as_str())
        {
            let dns = &before.doc.dns;
            let message = format!(
                "`cluster_dns` cannot be changed: it is `{dns}`; make the new cluster, then decommission the old"
            );
            found.push(Finding::new(Pointer::to("cluster_dns"), message));
        }
    }

    pub(super) fn may_replace_decommissioned(&mut self, key: &Key) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.replaces = true;
        }
    }

    pub(super) fn delete(&mut self, operation: usize, key: Key) {
        self.slots.insert(key, Slot::gone(operation));
    }

    /// Whether the transaction has already deleted what was there before it.
    pub(super) fn has_deleted(&self, key: &Key) -> bool {
        matches!(self.slots.get(key), Some(Slot { after: After::Gone, .. }))
            && self.before.cluster(key.id.as_str()).is_some()
    }

    /// Leaves a tombstone for each cluster that goes, and takes those away that a new cluster may replace.
    pub(super) fn bury_and_revive(&mut self) {
        let mut graves = Vec::new();
        let mut taken: BTreeMap<&str, &Key> = BTreeMap::new();
        for (key, slot) in self.slots.iter().filter(|(key, _)| key.kind.as_str() == CLUSTERS) {
            match &slot.after {
                After::Gone => {
                    if let Some(cluster) = self.before.cluster(key.id.as_str()) {
                        let Cluster { dns, id, .. } = &cluster.doc;
                        let tombstone = Tombstone { dns: dns.clone(), id: id.clone(), uid: cluster.uid };
                        graves.push((slot.operation, tombstone));
                    }
                }
                After::Read { entry: Entry::Cluster(cluster), .. } => {
                    if let Some(other) = taken.insert(cluster.dns.as_str(), key) {
                        self.violations.add(
                            slot.operation,
                            Some(key),
                            Reason::Exists,
                            dns_taken(cluster, other.id.as_str()),
                        );
                    }
                }
                _ => {}
            }
        }
        let mut buried: BTreeMap<Key, Slot> = BTreeMap::new();
        for (operation, tombstone) in graves {
            buried.insert(
                Tombstone::key(tombstone.dns.as_str()),
                Slot::made(operation, Entry::Tombstone(tombstone)),
            );
        }
        for (key, slot) in &self.slots {
            let After::Read { entry: Entry::Cluster(cluster), .. } = &slot.after else { continue };
            let dns = cluster.dns.as_str();
            if let Some(Served::Live(live)) = self.before.served(dns)
                && live.doc.id != cluster.id
                && !self.slots.contains_key(&Key { kind: CLUSTERS.into(), id: live.doc.id.clone() })
            {
                self.violations.add(
                    slot.operation,
                    Some(key),
                    Reason::Exists,
                    dns_taken(cluster, live.doc.id.as_str()),
                );
            }
            let grave = Tombstone::key(dns);
            let forgotten = matches!(self.slots.get(&grave), Some(Slot { after: After::Gone, .. }));
            let stands = self.before.tombstone(dns).is_some() && !forgotten;
            if !stands && !buried.contains_key(&grave) {
                continue;
            }
            if slot.replaces {
                buried.remove(&grave);
                if stands {
                    buried.insert(grave, Slot::gone(slot.operation));
                }
            } else {
                let message = format!(
                    "`{dns}` belongs to a decommissioned cluster, whose Flux is still to clean up; forget it, or set `replace_decommissioned` to take its place"
                );
                let finding = Finding::new(Pointer::to("cluster_dns"), message);
                self.violations.add(slot.operation, Some(key), Reason::Exists, finding);
            }
        }
        self.slots.extend(buried);
    }

    /// Checks the rules on what all operations have come to.
    pub(super) fn finish(mut self, revision: Revision, commit: CommitId) -> Result<Outcome, Rejection> {
        let mut changes = Vec::new();
        let mut steps = Vec::new();
        let mut touched = check::Touched::default();
        for (key, slot) in std::mem::take(&mut self.slots) {
            let operation = slot.operation;
            let (entry, body) = match slot.after {
                After::Gone => (None, None),
                After::Unfit(reason, finding) => {
                    self.report(operation, &key, vec![(reason, finding)]);
                    touched.unreadable.insert(key);
                    continue;
                }
                After::Unreadable { findings, .. } => {
                    self.report(operation, &key, findings);
                    touched.unreadable.insert(key);
                    continue;
                }
                After::Read { entry, body, findings } => {
                    self.report(operation, &key, findings);
                    (Some(entry), Some(body))
                }
            };
            let change = Change::new(key, body);
            if self.before.hash_of(change.key()).unwrap_or_default() == change.hash() {
                continue;
            }
            touched.keys.push((operation, change.key().clone()));
            steps.push(Step { key: change.key().clone(), after: entry.map(|entry| (entry, change.hash())) });
            changes.push(change);
        }
        let kinds = self.kinds_changed.then(|| self.kinds.clone());
        let next = self.before.advance(Stamp { revision, commit }, kinds, steps);
        check::rules(self.before, &next, &touched, &mut self.violations);
        if self.violations.is_empty() {
            Ok(Outcome { next, changes, named: self.named, warnings: self.warnings.finish() })
        } else {
            Err(Rejection::Refused(self.violations.finish()))
        }
    }

    fn report(&mut self, operation: usize, key: &Key, findings: Vec<(Reason, Finding)>) {
        for (reason, finding) in findings {
            self.violations.add(operation, Some(key), reason, finding);
        }
    }
}

/// How many things are told of one document.
const MAX_FINDINGS: usize = 100;
/// The longest name of a member.
const MAX_NAME: usize = 1024;

/// Why an object is not even looked at: too large by far, nested without end, or with members of endless names.
fn unfit(map: &Map<String, Value>, most: usize) -> Option<(Reason, Finding)> {
    let mut weight = 0;
    let problem = map.iter().find_map(|(name, member)| weigh_member(name, member, 1, &mut weight));
    if weight > most {
        let message = format!("the document has more than {weight} bytes; {most} are the most");
        return Some((Reason::TooLarge, Finding::new(Pointer::root(), message)));
    }
    problem.map(|problem| (Reason::Invalid, Finding::new(Pointer::root(), problem)))
}

/// Adds up text, which is less than what the document will be, and stops at what cannot be.
fn weigh(value: &Value, depth: usize, weight: &mut usize) -> Option<String> {
    if depth > MAX_DEPTH + 1 {
        return Some(format!("nested too deeply: {MAX_DEPTH} levels are the most"));
    }
    match value {
        Value::Object(map) => {
            map.iter().find_map(|(name, member)| weigh_member(name, member, depth + 1, weight))
        }
        Value::Array(items) => {
            *weight += items.len();
            items.iter().find_map(|item| weigh(item, depth + 1, weight))
        }
        Value::String(text) => {
            *weight += text.len();
            None
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn weigh_member(name: &str, member: &Value, depth: usize, weight: &mut usize) -> Option<String> {
    // Quotes and a colon.
    *weight += name.len() + 3;
    if name.len() > MAX_NAME {
        let start: String = name.chars().take(40).collect();
        return Some(format!("the name `{start}…` has {} bytes; {MAX_NAME} are the most", name.len()));
    }
    weigh(member, depth, weight)
}

fn dns_taken(cluster: &Cluster, by: &str) -> Finding {
    Finding::new(
        Pointer::to("cluster_dns"),
        format!("`{}` is already the DNS name of the cluster `{by}`", cluster.dns),
    )
}
