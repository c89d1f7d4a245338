//! The fleet as the operations of one transaction leave it, document by document. Each operation writes whole documents; what
//! is wrong with a document counts only if it is still wrong when all operations have run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::normalise::normalise;
use super::poison::find_poison;
use super::size::{TOO_MANY_IN_CATALOG, fit, how_to_split, too_much};
use super::tombstones::{self, ClusterAfter};
use super::{Lacking, MAX_CHANGES, MAX_CLUSTER, MAX_DOCUMENT, check};
use crate::canonical::Canonical;
use crate::commit::{Change, Origin};
use crate::document::{Cluster, Interner, Kept};
use crate::finding::Finding;
use crate::guard::Named;
use crate::ids::{CLUSTERS, CommitId, Dns, KindName, PATCHES, Revision, Uid};
use crate::key::{DocumentKey, Key, SystemKey};
use crate::kind::{Kind, Kinds, Shape};
use crate::pointer::Pointer;
use crate::rejection::{Reason, Rejection, Violations};
use crate::sample::Sample;
use crate::space::SystemEntry;
use crate::state::{Entry, Source, State, Step, decode_document};
use crate::transaction::Operation;
use crate::work::Work;

pub(super) struct Draft<'a> {
    pub(super) before: &'a State,
    /// Who asks, when and why; the time is the commit's.
    pub(super) origin: &'a Origin,
    pub(super) kinds: Arc<Kinds>,
    pub(super) named: Named,
    pub(super) violations: Violations,
    pub(super) lacking: Vec<Lacking>,
    pub(super) warnings: Sample<String>,
    pub(super) work: Work,
    names: Interner<'a>,
    documents: BTreeMap<DocumentKey, Slot>,
    /// The kinds that are brought into force or changed, and the operation that does it.
    defined: BTreeMap<KindName, (usize, Arc<Kind>)>,
    /// The decommission records that are forgotten.
    forgotten: BTreeMap<Dns, usize>,
    /// The system entries that are written or taken away.
    system: BTreeMap<SystemKey, (usize, Option<SystemEntry>)>,
}

/// What the transaction makes of one document.
struct Slot {
    /// The last operation that wrote it.
    operation: usize,
    after: After,
    /// Whether a cluster may take the DNS name of a decommissioned one.
    replaces: bool,
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

/// What a transaction comes to when every rule holds.
pub(super) struct Outcome {
    pub(super) next: State,
    pub(super) changes: Vec<Change>,
    pub(super) named: Named,
    pub(super) lacking: Vec<Lacking>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Kinds are brought into force first, whatever the order of the operations.
    pub(super) fn new(before: &'a State, operations: &[Operation], origin: &'a Origin) -> Self {
        let mut draft = Self {
            before,
            origin,
            kinds: before.kinds().clone(),
            named: Named::default(),
            violations: Violations::default(),
            lacking: Vec::new(),
            warnings: Sample::default(),
            work: Work::default(),
            names: Interner::new(Some(before)),
            documents: BTreeMap::new(),
            defined: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            system: BTreeMap::new(),
        };
        for (n, operation) in operations.iter().enumerate() {
            if let Operation::Define(kind) = operation {
                draft.defined.insert(kind.name().clone(), (n, kind.clone()));
            }
        }
        draft.define();
        draft
    }

    fn define(&mut self) {
        let Some(first) = self.defined.values().map(|(n, _)| *n).min() else { return };
        for (name, (n, kind)) in &self.defined {
            let mut found = Vec::new();
            find_poison(kind.file(), &mut found);
            self.violations.invalid(*n, Key::Kind(name.clone()), found);
        }
        let defined = self.defined.values().map(|(_, kind)| kind.clone());
        let bad = match Kinds::new(self.kinds.iter().cloned().chain(defined)) {
            Err(bad) => vec![bad],
            Ok(kinds) => {
                let collisions = kinds.collisions();
                self.kinds = Arc::new(kinds);
                collisions
            }
        };
        for bad in bad {
            let finding = Finding::new(Pointer::root(), bad.to_string());
            self.violations.invalid(first, Key::kind(&bad.kind), [finding]);
        }
    }

    /// Whether the transaction, so far, leaves a document under that key.
    pub(super) fn exists(&self, key: &DocumentKey) -> bool {
        match self.documents.get(key) {
            Some(slot) => !matches!(slot.after, After::Gone),
            None => self.before.revision_of(&key.into()).is_some(),
        }
    }

    /// What an operation needs of a cluster that touches only some of its reference arrays and patches: an object without the
    /// others, and the others as they are.
    pub(super) fn cluster(
        &mut self,
        key: &DocumentKey,
        touched: impl Fn(&str) -> bool,
        touched_patches: Option<BTreeSet<String>>,
    ) -> Option<(Map<String, Value>, Option<Kept>)> {
        let cluster = match self.documents.get(key).map(|slot| &slot.after) {
            None => self.before.cluster(key.id.as_str()).map(|stored| &stored.doc),
            Some(After::Read { entry: Entry::Cluster(cluster), findings, .. }) if findings.is_empty() => {
                Some(&**cluster)
            }
            Some(_) => None,
        };
        let whole_is_judged = !self.kinds.clusters_decompose() || !self.defined.is_empty();
        let Some(cluster) = cluster.filter(|_| !whole_is_judged) else {
            return self.document(key).map(|map| (map, None));
        };
        let separable = self.kinds.referable().map(|kind| kind.name().as_str()).chain([PATCHES]);
        let kept = separable.filter(|member| !touched(member)).map(Box::from).collect();
        let (text, kept) = cluster.take_apart(kept, touched_patches);
        self.work.open(text.as_str().len());
        Some((text.to_map(), Some(kept)))
    }

    /// The document as the transaction, so far, leaves it.
    pub(super) fn document(&mut self, key: &DocumentKey) -> Option<Map<String, Value>> {
        let body = match self.documents.get(key).map(|slot| &slot.after) {
            None => &self.before.body(key.kind.as_str(), key.id.as_str())?.0,
            Some(After::Gone | After::Unfit(..)) => return None,
            // It was charged for when it was written.
            Some(After::Unreadable { map, .. }) => return Some(map.clone()),
            Some(After::Read { body, .. }) => body,
        };
        self.work.open(body.as_str().len());
        Some(body.to_map())
    }

    /// The clusters that a test selects, as the transaction, so far, leaves them.
    pub(super) fn select(
        &mut self,
        comparisons: usize,
        mut selects: impl FnMut(&Cluster) -> bool,
    ) -> Vec<DocumentKey> {
        self.work.walk(self.before.cluster_count() + self.documents.len(), comparisons);
        let clusters = KindName::from(CLUSTERS);
        let key = |cluster: &Cluster| DocumentKey { kind: clusters.clone(), id: cluster.id.clone() };
        // Each cluster is looked at once, as the transaction has it.
        let is_touched =
            |cluster: &Cluster| !self.documents.is_empty() && self.documents.contains_key(&key(cluster));
        let untouched =
            self.before.clusters().map(|stored| &stored.doc).filter(|cluster| !is_touched(cluster));
        let mut keys: Vec<DocumentKey> = untouched.filter(|cluster| selects(cluster)).map(key).collect();
        for slot in self.documents.values() {
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
        key: DocumentKey,
        mut map: Map<String, Value>,
        kept: Option<&Kept>,
    ) {
        let most = if kind.shape() == Shape::Cluster { MAX_CLUSTER } else { MAX_DOCUMENT };
        match fit(&map, most) {
            Ok(bytes) => self.work.write(bytes),
            Err((reason, finding)) => {
                // Nothing more is said of it: what can be said may grow with the square of what was sent.
                self.work.open(most);
                self.put_slot(operation, key, After::Unfit(reason, finding));
                return;
            }
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
        let after = match decode_document(&self.kinds, &key, Source::Object(map), kept, &mut self.names) {
            Ok(entry) => {
                let body = entry.canonical();
                self.work.encode(body.as_str().len());
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

    fn put_slot(&mut self, operation: usize, key: DocumentKey, after: After) {
        let replaces = self.documents.get(&key).is_some_and(|slot| slot.replaces);
        self.documents.insert(key, Slot { operation, after, replaces });
    }

    /// What never changes in the life of a document, and what it may not be called.
    fn check_identity(
        &self,
        kind: &Kind,
        key: &DocumentKey,
        map: &Map<String, Value>,
        found: &mut Vec<Finding>,
    ) {
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

    pub(super) fn may_replace_decommissioned(&mut self, key: &DocumentKey) {
        if let Some(slot) = self.documents.get_mut(key) {
            slot.replaces = true;
        }
    }

    pub(super) fn delete(&mut self, operation: usize, key: DocumentKey) {
        self.documents.insert(key, Slot { operation, after: After::Gone, replaces: false });
    }

    /// Takes the record of a decommissioned cluster away.
    pub(super) fn forget(&mut self, operation: usize, dns: Dns) {
        self.forgotten.insert(dns, operation);
    }

    /// Writes a system entry, or takes it away.
    pub(super) fn write_system(&mut self, operation: usize, (key, entry): (SystemKey, Option<SystemEntry>)) {
        self.system.insert(key, (operation, entry));
    }

    /// Whether the transaction has already deleted what was there before it.
    pub(super) fn has_deleted(&self, key: &DocumentKey) -> bool {
        matches!(self.documents.get(key), Some(Slot { after: After::Gone, .. }))
            && self.before.cluster(key.id.as_str()).is_some()
    }

    /// The clusters that the transaction writes or decommissions.
    fn clusters(&self) -> Vec<ClusterAfter<'_>> {
        let mut clusters = Vec::new();
        for (DocumentKey { kind, id }, slot) in &self.documents {
            let operation = slot.operation;
            match &slot.after {
                After::Read { entry: Entry::Cluster(cluster), .. } => {
                    clusters.push(ClusterAfter::Written { operation, cluster, replaces: slot.replaces });
                }
                After::Gone if kind.shape() == Shape::Cluster => {
                    let gone = self.before.cluster(id.as_str());
                    clusters.extend(gone.map(|gone| ClusterAfter::Gone { operation, gone }));
                }
                _ => {}
            }
        }
        clusters
    }

    /// Checks the rules on what all operations have come to.
    pub(super) fn finish(mut self, revision: Revision) -> Result<Outcome, Rejection> {
        let tombstones::Outcome { records, conflicts } =
            tombstones::tombstones(self.before, &self.clusters(), &self.forgotten);
        for (operation, id, finding) in conflicts {
            let key = Key::document(CLUSTERS, id);
            self.violations.add(operation, Some(key), Reason::Exists, finding);
        }
        let mut made = Made {
            before: self.before,
            commit: self.origin.commit,
            touched: check::Touched::default(),
            changes: Vec::new(),
            steps: Vec::new(),
        };
        for (key, slot) in std::mem::take(&mut self.documents) {
            let operation = slot.operation;
            match slot.after {
                After::Gone => made.remove(operation, key.into()),
                After::Unfit(reason, finding) => {
                    self.report(operation, &key, vec![(reason, finding)]);
                    made.touched.unreadable.insert(key);
                }
                After::Unreadable { findings, .. } => {
                    self.report(operation, &key, findings);
                    made.touched.unreadable.insert(key);
                }
                After::Read { entry, body, findings } => {
                    self.report(operation, &key, findings);
                    made.put(operation, key.into(), entry, body);
                }
            }
        }
        for (name, (operation, kind)) in &self.defined {
            made.put(*operation, Key::Kind(name.clone()), Entry::Kind(kind.clone()), kind.canonical());
        }
        for (dns, (operation, record)) in records {
            match record {
                None => made.remove(operation, Key::Tombstone(dns)),
                Some(record) => {
                    let body = record.canonical();
                    made.put(operation, Key::Tombstone(dns), Entry::Tombstone(record), body);
                }
            }
        }
        for (key, (operation, entry)) in std::mem::take(&mut self.system) {
            match entry {
                None => made.remove(operation, Key::System(key)),
                Some(entry) => {
                    let body = entry.canonical();
                    made.put(operation, Key::System(key), Entry::System(entry), body);
                }
            }
        }
        let Made { touched, changes, steps, .. } = made;
        if let Some(message) = too_much(&changes) {
            self.violations.add(0, None, Reason::TooLarge, Finding::new(Pointer::root(), message));
            return Err(Rejection::Refused(self.violations.finish()));
        }
        let kinds = (!self.defined.is_empty()).then(|| self.kinds.clone());
        let next = self.before.advance(revision, kinds, steps);
        check::rules(self.before, &next, &touched, &mut self.violations, &mut self.work);
        if self.work.is_too_much() {
            return Err(given_up(0, TOO_MANY_IN_CATALOG.to_owned()));
        }
        if self.violations.is_empty() {
            let more = self.warnings.more();
            let mut warnings = self.warnings.first;
            if more > 0 {
                warnings.push(format!("and {more} more warnings like these"));
            }
            Ok(Outcome { next, changes, named: self.named, lacking: self.lacking, warnings })
        } else {
            Err(Rejection::Refused(self.violations.finish()))
        }
    }

    /// Stops after an operation with which the transaction becomes more than one may be, of so many.
    pub(super) fn within_bounds(&self, operation: usize, of: usize) -> Result<(), Rejection> {
        let documents = self.documents.len();
        if documents > MAX_CHANGES {
            let message = format!(
                "this writes more than {MAX_CHANGES} documents, which are the most at once: {}",
                how_to_split(operation, of)
            );
            return Err(given_up(operation, message));
        }
        if self.work.is_too_much() {
            let message =
                format!("this is too much work for one transaction: {}", how_to_split(operation, of));
            return Err(given_up(operation, message));
        }
        Ok(())
    }

    fn report(&mut self, operation: usize, key: &DocumentKey, findings: Vec<(Reason, Finding)>) {
        for (reason, finding) in findings {
            self.violations.add(operation, Some(key.into()), reason, finding);
        }
    }
}

/// Refused as too large. What else is wrong with it is not known: not all of it was looked at.
fn given_up(operation: usize, message: String) -> Rejection {
    let mut violations = Violations::default();
    violations.add(operation, None, Reason::TooLarge, Finding::new(Pointer::root(), message));
    Rejection::Refused(violations.finish())
}

/// The entries that are different after a transaction.
struct Made<'a> {
    before: &'a State,
    commit: CommitId,
    touched: check::Touched,
    changes: Vec<Change>,
    steps: Vec<Step>,
}

impl Made<'_> {
    fn remove(&mut self, operation: usize, key: Key) {
        // What was both made and deleted by the transaction was never there.
        if let Some(uid) = self.before.uid_of(&key) {
            self.add(operation, Change::new(key, uid, None), None);
        }
    }

    fn put(&mut self, operation: usize, key: Key, entry: Entry, body: Canonical) {
        let uid = self.before.uid_of(&key).unwrap_or_else(|| Uid::derive(self.commit, &key));
        let change = Change::new(key, uid, Some(body));
        if self.before.hash_of(change.key()) != Some(change.hash()) {
            self.add(operation, change, Some(entry));
        }
    }

    fn add(&mut self, operation: usize, change: Change, entry: Option<Entry>) {
        let key = change.key().clone();
        self.touched.keys.push((operation, key.clone()));
        self.steps.push(Step { key, uid: change.uid(), after: entry.map(|entry| (entry, change.hash())) });
        self.changes.push(change);
    }
}

/// What a commit does that writes one more system entry, or takes it away.
pub(super) fn system_change(
    before: &State,
    commit: CommitId,
    key: SystemKey,
    entry: Option<SystemEntry>,
) -> (Change, Step) {
    let key = Key::System(key);
    let uid = before.uid_of(&key).unwrap_or_else(|| Uid::derive(commit, &key));
    let change = Change::new(key.clone(), uid, entry.as_ref().map(SystemEntry::canonical));
    let after = entry.map(|entry| (Entry::System(entry), change.hash()));
    (change, Step { key, uid, after })
}

/// How many things are told of one document.
const MAX_FINDINGS: usize = 100;
