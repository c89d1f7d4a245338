//! A fleet that makes real commits: what tests of the ledger append. Each test says what its fleet does; this only spares the words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use fleet::{
    Canonical, Change, ChangesDigest, Commit, CommitId, Hash, Header, Key, Kind, Loader, Operation, Origin,
    Patch, Policy, Position, Rejection, Row, State, Target, Timestamp, Transaction, Uid,
};
use ledger::{Append, AppendError, Budget, FeedError, Held, Opened};
use serde_json::{Value, json};

/// More than any test holds.
pub const ALL: Budget = Budget { commits: usize::MAX, bytes: usize::MAX };

/// A fleet at some position, with a clock that goes on by a second with each commit.
#[derive(Clone)]
pub struct Fleet {
    pub state: State,
    pub now: i64,
    pub actor: String,
}

/// Unique among all processes of a test.
pub fn commit_id() -> CommitId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    CommitId(u128::from(std::process::id()) << 64 | u128::from(next))
}

impl Fleet {
    /// A fleet that goes on from a state.
    pub fn at(state: State) -> Self {
        let now = state.time().0.max(1_800_000_000_000);
        Self { state, now, actor: "tester".to_owned() }
    }

    /// A fleet without kinds.
    #[allow(clippy::new_without_default)] // Nothing asks for one.
    pub fn new() -> Self {
        Self::at(State::empty())
    }

    /// Does something that is accepted, confirmed if that is asked for. None if it is rejected or changes nothing.
    pub fn attempt(&mut self, operations: Vec<Operation>) -> Option<Commit> {
        self.now += 1_000;
        let origin = Origin {
            commit: commit_id(),
            time: Timestamp(self.now),
            actor: self.actor.as_str().into(),
            reason: (self.now % 2_000 == 0).then(|| "because".into()),
            request: Some("r-1".into()),
            version: "0.0.0".into(),
            idempotency: None,
        };
        let mut transaction = Transaction { operations, derived: false, confirm: None, origin };
        let mut applied = fleet::apply(&self.state, &Policy::default(), &transaction);
        if let Err(Rejection::Confirm(confirmation)) = applied {
            transaction.confirm = Some(confirmation.digest);
            applied = fleet::apply(&self.state, &Policy::default(), &transaction);
        }
        let applied = applied.ok()?;
        self.state = applied.next;
        applied.commit
    }

    #[track_caller]
    pub fn commit(&mut self, operations: Vec<Operation>) -> Commit {
        self.attempt(operations).expect("the transaction is accepted and changes something")
    }

    /// Brings the shipped kinds into force.
    pub fn define_kinds(&mut self) -> Commit {
        self.commit(Kind::shipped().into_iter().map(|kind| Operation::Define(Arc::new(kind))).collect())
    }

    /// Makes a namespace.
    pub fn namespace(&mut self, id: &str) -> Commit {
        self.commit(vec![create("namespaces", json!({"id": id}))])
    }

    /// Gives a namespace a label.
    pub fn label(&mut self, id: &str, label: &str) -> Commit {
        self.commit(vec![label_namespace(id, label)])
    }

    /// Deletes a namespace.
    pub fn delete(&mut self, id: &str) -> Commit {
        self.commit(vec![delete("namespaces", id)])
    }
}

/// A commit of new entries that this version would not make. `before` are all commits until then.
pub fn forged(before: &[Commit], entries: &[(&str, &str)]) -> Commit {
    let last = &before.last().expect("a commit").header;
    let changes: Vec<Change> = entries
        .iter()
        .map(|(space, body)| Change::new(Key::parse(space, "x"), Uid(1), Some(Canonical::stored(*body))))
        .collect();
    let mut header = Header {
        at: Position { revision: last.at.revision.next(), hash: Hash::default() },
        previous: last.at.hash,
        origin: Origin { commit: commit_id(), version: "9.9.9".into(), ..last.origin.clone() },
        changes: ChangesDigest::of(&changes),
        ..last.clone()
    };
    let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
    let all = before.iter().flat_map(|commit| commit.changes.iter().map(|change| (&commit.header, change)));
    for (header, change) in all.chain(changes.iter().map(|change| (&header, change))) {
        match Row::after(header, change) {
            Some(row) => rows.insert(change.key().clone(), row),
            None => rows.remove(change.key()),
        };
    }
    let (kinds, others): (Vec<Row>, Vec<Row>) =
        rows.into_values().partition(|row| matches!(row.key, Key::Kind(_)));
    let mut loader = Loader::new(kinds).expect("kinds");
    // What is not understood has no digest here; nobody gets as far as that.
    if loader.push(others).is_ok() {
        header.state = loader.digest();
    }
    header.at.hash = header.expected_hash();
    Commit { header, changes }
}

pub fn create(kind: &str, body: Value) -> Operation {
    Operation::Create { kind: kind.into(), body, replace_decommissioned: true }
}

pub fn delete(kind: &str, id: &str) -> Operation {
    Operation::Delete { kind: kind.into(), target: Target::one(id) }
}

pub fn label_namespace(id: &str, label: &str) -> Operation {
    let body = json!({"id": id, "labels": {"label": label}});
    Operation::Put { kind: "namespaces".into(), id: id.into(), body, expect: None }
}

pub fn patch(kind: &str, id: &str, merge: Value) -> Operation {
    Operation::Patch { kind: kind.into(), target: Target::one(id), patch: Patch::Merge(merge) }
}

/// The writing side of a store that was opened for writing.
pub trait Writing {
    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError>;
    fn hold(&mut self) -> Result<Box<dyn Held + '_>, FeedError>;
    fn find(&mut self, commit: CommitId) -> Result<Option<Position>, FeedError>;
}

impl Writing for Opened {
    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        writing(self).append(at, group)
    }

    fn hold(&mut self) -> Result<Box<dyn Held + '_>, FeedError> {
        writing(self).hold()
    }

    fn find(&mut self, commit: CommitId) -> Result<Option<Position>, FeedError> {
        writing(self).find(commit)
    }
}

fn writing(opened: &mut Opened) -> &mut dyn Append {
    &mut **opened.append.as_mut().expect("it is opened for writing")
}

/// Appends what a fleet does: the kinds, then a namespace for each name.
pub fn filled(ledger: &mut Opened, namespaces: &[&str]) -> Fleet {
    let mut fleet = Fleet::new();
    let kinds = fleet.define_kinds();
    ledger.append(State::empty().head(), &[kinds]).expect("appended");
    for id in namespaces {
        grow(ledger, &mut fleet, id);
    }
    fleet
}

/// Appends one more namespace.
pub fn grow(ledger: &mut Opened, fleet: &mut Fleet, id: &str) {
    let at = fleet.state.head();
    let commit = fleet.namespace(id);
    ledger.append(at, &[commit]).expect("appended");
}

/// Runs a story; one that hangs fails.
pub fn in_time(story: impl FnOnce() + Send + 'static) {
    let (ended, end) = std::sync::mpsc::channel();
    let telling = std::thread::spawn(move || {
        story();
        // Nobody listens any more if it was too late.
        let _ = ended.send(());
    });
    let told = end.recv_timeout(Duration::from_mins(2));
    assert_ne!(told, Err(RecvTimeoutError::Timeout), "the story ends in time");
    if let Err(panicked) = telling.join() {
        std::panic::resume_unwind(panicked);
    }
}
