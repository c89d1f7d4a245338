//! A store that is gone with its process: for tests, for trying things out, and as the plainest statement of what a ledger does. It
//! keeps every promise of the traits but durability, and must not know how any other backend keeps them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use fleet::{
    Canonical, Change, Commit, CommitId, GUARD_WINDOW, KINDS, Key, Loader, Position, Revision, Row, State,
    Timestamp,
};
use tokio::sync::{Notify, OwnedMutexGuard};

use crate::chain;
use crate::error::{AppendError, FeedError};
use crate::feed::{Budget, Feed, Held, Ledger};
use crate::history::{Query, Record};

/// A store in memory. Clones are handles on the same store.
#[derive(Clone, Default)]
pub struct Memory {
    store: Arc<Mutex<Store>>,
    /// Who has it may append. Apart from the store's own lock, so that reads go on while somebody holds the head.
    head: Arc<tokio::sync::Mutex<()>>,
    appended: Arc<Notify>,
}

#[derive(Default)]
struct Store {
    commits: Vec<Commit>,
    documents: BTreeMap<Key, Row>,
    revisions: HashMap<CommitId, Revision>,
}

impl Memory {
    /// A store that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is in it is whole even if somebody panicked: an append checks everything before it changes anything.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_held(&self, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        self.store().append(at, group)?;
        self.appended.notify_waiters();
        Ok(())
    }
}

impl Store {
    fn head(&self) -> Position {
        self.commits.last().map(|commit| commit.at).unwrap_or_default()
    }

    /// The commit of a revision.
    fn commit(&self, revision: Revision) -> Option<&Commit> {
        let index = usize::try_from(revision.0.checked_sub(1)?).ok()?;
        self.commits.get(index)
    }

    fn contains(&self, position: Position) -> Result<(), FeedError> {
        chain::contains(position, self.head(), self.commit(position.revision).map(|commit| commit.at.hash))
    }

    fn load(&self) -> Result<State, FeedError> {
        let Some(head) = self.commits.last() else { return Ok(State::empty()) };
        chain::is_itself(head)?;
        let rows = || self.documents.values().cloned();
        let mut loader = Loader::new(rows().filter(|row| row.key.kind.as_str() == KINDS))?;
        rows().try_for_each(|row| loader.push(row))?;
        let Timestamp(now) = head.origin.time;
        let recent =
            self.commits.iter().filter(|commit| commit.origin.time.0 > now.saturating_sub(GUARD_WINDOW));
        let recent = recent.map(|commit| (commit.origin.time, commit.removals));
        Ok(loader.finish(head.at, head.origin.time, head.state, recent)?)
    }

    fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        self.contains(after)?;
        let mut commits: Vec<Commit> = Vec::new();
        let (mut next, mut bytes) = (after.revision.next(), 0);
        while let Some(commit) = self.commit(next) {
            bytes += commit.body_bytes();
            if !commits.is_empty() && (commits.len() >= budget.commits || bytes > budget.bytes) {
                break;
            }
            commits.push(commit.clone());
            next = next.next();
        }
        Ok(commits)
    }

    fn append(&mut self, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        self.contains(at)?;
        chain::is_head(at, self.head())?;
        chain::follows(at, &group)?;
        let mut ids = HashSet::new();
        for id in group.iter().map(|commit| commit.origin.commit) {
            if self.revisions.contains_key(&id) || !ids.insert(id) {
                let twice = format!("there is a commit {id} already");
                return Err(FeedError::Corrupt(twice).into());
            }
        }
        for commit in group {
            for change in &commit.changes {
                match Row::after(self.documents.get(change.key()), &commit, change) {
                    Some(row) => self.documents.insert(change.key().clone(), row),
                    None => self.documents.remove(change.key()),
                };
            }
            self.revisions.insert(commit.origin.commit, commit.at.revision);
            self.commits.push(commit);
        }
        Ok(())
    }

    fn history(&self, query: &Query) -> Vec<Record> {
        self.commits.iter().rev().filter(|commit| told(query, commit)).take(query.limit).map(record).collect()
    }

    fn document_at(&self, key: &Key, at: Revision) -> Option<Canonical> {
        let until = usize::try_from(at.0).unwrap_or(usize::MAX).min(self.commits.len());
        let changes = self.commits[..until].iter().rev().flat_map(|commit| &commit.changes);
        changes.into_iter().find(|change| change.key() == key)?.after().cloned()
    }
}

/// Whether a query asks for a commit.
fn told(query: &Query, commit: &Commit) -> bool {
    let Query { before, revision, actor, kind, id, since, until, limit: _ } = query;
    let about = |change: &Change| {
        kind.as_ref().is_none_or(|kind| change.key().kind == *kind)
            && id.as_ref().is_none_or(|id| change.key().id == *id)
    };
    before.is_none_or(|before| commit.at.revision < before)
        && revision.is_none_or(|revision| commit.at.revision == revision)
        && actor.as_ref().is_none_or(|actor| *commit.origin.actor == **actor)
        && since.is_none_or(|since| commit.origin.time >= since)
        && until.is_none_or(|until| commit.origin.time < until)
        && (kind.is_none() && id.is_none() || commit.changes.iter().any(about))
}

fn record(commit: &Commit) -> Record {
    Record {
        at: commit.at,
        origin: commit.origin.clone(),
        removals: commit.removals,
        changes: commit.changes.len(),
        keys: commit.changes.iter().take(Record::KEYS).map(|change| change.key().clone()).collect(),
    }
}

#[async_trait]
impl Feed for Memory {
    async fn load(&self) -> Result<State, FeedError> {
        self.store().load()
    }

    async fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        self.store().read(after, budget)
    }

    async fn changed(&self) {
        self.appended.notified().await;
    }
}

#[async_trait]
impl Ledger for Memory {
    async fn append(&self, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        let _head = self.head.lock().await;
        self.append_held(at, group)
    }

    async fn hold(&self) -> Result<Box<dyn Held>, FeedError> {
        let head = self.head.clone().lock_owned().await;
        Ok(Box::new(HeldMemory { memory: self.clone(), _head: head }))
    }

    async fn find(&self, commit: CommitId) -> Result<Option<Position>, FeedError> {
        let store = self.store();
        Ok(store.revisions.get(&commit).and_then(|revision| store.commit(*revision)).map(|commit| commit.at))
    }

    async fn history(&self, query: Query) -> Result<Vec<Record>, FeedError> {
        Ok(self.store().history(&query))
    }

    async fn changes(&self, revision: Revision, from: usize, limit: usize) -> Result<Vec<Change>, FeedError> {
        let store = self.store();
        let changes = store.commit(revision).map(|commit| commit.changes.iter());
        Ok(changes.into_iter().flatten().skip(from).take(limit).cloned().collect())
    }

    async fn document_at(&self, key: Key, at: Revision) -> Result<Option<Canonical>, FeedError> {
        Ok(self.store().document_at(&key, at))
    }
}

struct HeldMemory {
    memory: Memory,
    _head: OwnedMutexGuard<()>,
}

#[async_trait]
impl Held for HeldMemory {
    async fn read(&mut self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        self.memory.store().read(after, budget)
    }

    async fn append(self: Box<Self>, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        self.memory.append_held(at, group)
    }
}
