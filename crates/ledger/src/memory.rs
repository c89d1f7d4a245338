//! A store that is gone with its process: for tests, for trying things out, and as the plainest statement of what a ledger does. It
//! keeps every promise of the traits but durability, and must not know how any other backend keeps them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleet::{
    Canonical, Change, Commit, CommitId, GUARD_WINDOW, Key, Loader, Position, Revision, Row, State, Timestamp,
};

use crate::chain;
use crate::error::{AppendError, FeedError};
use crate::feed::{Append, Budget, Follow, Held, History, Opened};
use crate::history::{Edit, Most, Paged, Query, Record, Version};

/// A store in memory. Clones are handles on the same store.
#[derive(Clone, Default)]
pub struct Memory(Arc<Shared>);

#[derive(Default)]
struct Shared {
    store: Mutex<Store>,
    /// Who has it may append. Apart from the store's own lock, so that reads go on while somebody holds the head.
    head: Mutex<()>,
    appended: Condvar,
}

#[derive(Default)]
struct Store {
    commits: Vec<Commit>,
    entries: BTreeMap<Key, Row>,
    revisions: HashMap<CommitId, Revision>,
}

impl Memory {
    /// A store that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The sides of the store. Each call gives others, as another process would have.
    pub fn open(&self) -> Opened {
        Opened {
            follow: Arc::new(Follower { shared: self.0.clone(), seen: AtomicUsize::new(0) }),
            history: Arc::new(Historian(self.0.clone())),
            append: Some(Box::new(Appender(self.0.clone()))),
            store_id: None,
        }
    }
}

impl Shared {
    /// What is in it is whole even if somebody panicked: an append checks everything before it changes anything.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self) -> MutexGuard<'_, ()> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For who holds the head.
    fn append(&self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        self.store().append(at, group)?;
        self.appended.notify_all();
        Ok(())
    }
}

impl Store {
    fn head(&self) -> Position {
        self.commits.last().map(|commit| commit.header.at).unwrap_or_default()
    }

    /// The commit of a revision.
    fn commit(&self, revision: Revision) -> Option<&Commit> {
        let index = usize::try_from(revision.0.checked_sub(1)?).ok()?;
        self.commits.get(index)
    }

    fn contains(&self, position: Position) -> Result<(), FeedError> {
        chain::contains(
            position,
            self.head(),
            self.commit(position.revision).map(|commit| commit.header.at.hash),
        )
    }

    fn load(&self) -> Result<State, FeedError> {
        let version_at = |revision| Some(self.commit(revision)?.header.origin.version.clone());
        self.load_entries().map_err(|error| error.written_by(version_at))
    }

    fn load_entries(&self) -> Result<State, FeedError> {
        let Some(Commit { header: head, .. }) = self.commits.last() else { return Ok(State::empty()) };
        chain::header_is_itself(head)?;
        let rows = self.entries.values().cloned();
        let (kinds, others): (Vec<Row>, Vec<Row>) = rows.partition(|row| matches!(row.key, Key::Kind(_)));
        let mut loader = Loader::new(kinds)?;
        loader.push(others)?;
        let Timestamp(now) = head.origin.time;
        let headers = self.commits.iter().map(|commit| &commit.header);
        let recent = headers.filter(|header| header.origin.time.0 > now.saturating_sub(GUARD_WINDOW));
        Ok(loader.finish(head, recent.map(|header| (header.origin.time, header.removals)))?)
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

    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        self.contains(at)?;
        chain::is_head(at, self.head())?;
        chain::follows(at, group)?;
        let mut ids = HashSet::new();
        for id in group.iter().map(|commit| commit.header.origin.commit) {
            if self.revisions.contains_key(&id) || !ids.insert(id) {
                let twice = format!("there is a commit {id} already");
                return Err(FeedError::Corrupt(twice).into());
            }
        }
        for commit in group {
            for change in &commit.changes {
                match Row::after(&commit.header, change) {
                    Some(row) => self.entries.insert(change.key().clone(), row),
                    None => self.entries.remove(change.key()),
                };
            }
            self.revisions.insert(commit.header.origin.commit, commit.header.at.revision);
            self.commits.push(commit.clone());
        }
        Ok(())
    }

    fn history(&self, query: &Query) -> Vec<Record> {
        self.commits.iter().rev().filter(|commit| told(query, commit)).take(query.limit).map(record).collect()
    }

    /// The document as a commit found it.
    fn before(&self, key: &Key, commit: &Commit) -> Option<Canonical> {
        let earlier = self
            .commits
            .iter()
            .rev()
            .filter(|earlier| earlier.header.at.revision < commit.header.at.revision);
        earlier.flat_map(|earlier| &earlier.changes).find(|change| change.key() == key)?.after().cloned()
    }

    fn versions(&self, key: &Key, before: Option<Revision>, most: Most) -> Paged<Version> {
        let earlier = self.commits.iter().rev();
        let earlier = earlier.filter(|commit| before.is_none_or(|before| commit.header.at.revision < before));
        let mut of_key = earlier.filter_map(|commit| {
            let change = commit.changes.iter().find(|change| change.key() == key)?;
            Some(Version {
                header: commit.header.clone(),
                before: self.before(key, commit),
                after: change.after().cloned(),
            })
        });
        let items = cut(of_key.by_ref(), most, Version::bytes);
        Paged { items, more: of_key.next().is_some() }
    }
}

/// The first items, as many as are asked for.
fn cut<T>(items: impl Iterator<Item = T>, most: Most, bytes: impl Fn(&T) -> usize) -> Vec<T> {
    let mut taken = Vec::new();
    let mut so_far = 0;
    for item in items.take(most.items) {
        so_far += bytes(&item);
        taken.push(item);
        if so_far > most.bytes {
            break;
        }
    }
    taken
}

/// Whether a query asks for a commit.
fn told(query: &Query, commit: &Commit) -> bool {
    let Query { before, revision, actor, space, id, since, until, limit: _ } = query;
    let about = |change: &Change| {
        space.as_ref().is_none_or(|space| change.key().space() == space)
            && id.as_ref().is_none_or(|id| change.key().id() == id)
    };
    before.is_none_or(|before| commit.header.at.revision < before)
        && revision.is_none_or(|revision| commit.header.at.revision == revision)
        && actor.as_ref().is_none_or(|actor| *commit.header.origin.actor == **actor)
        && since.is_none_or(|since| commit.header.origin.time >= since)
        && until.is_none_or(|until| commit.header.origin.time < until)
        && (space.is_none() && id.is_none() || commit.changes.iter().any(about))
}

fn record(commit: &Commit) -> Record {
    Record {
        header: commit.header.clone(),
        keys: commit.changes.iter().take(Record::KEYS).map(|change| change.key().clone()).collect(),
    }
}

/// The side that follows; `seen` is how many commits there were at its last look.
struct Follower {
    shared: Arc<Shared>,
    seen: AtomicUsize,
}

impl Follower {
    fn look(&self) -> MutexGuard<'_, Store> {
        let store = self.shared.store();
        self.seen.store(store.commits.len(), Ordering::Relaxed);
        store
    }
}

impl Follow for Follower {
    fn load(&self) -> Result<State, FeedError> {
        self.look().load()
    }

    fn read(&self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        self.look().read(after, budget)
    }

    fn is_head(&self, at: Position) -> Result<bool, FeedError> {
        let store = self.shared.store();
        store.contains(at)?;
        Ok(store.head() == at)
    }

    fn changed(&self, at_most: Duration) {
        let nothing_new = |store: &mut Store| store.commits.len() == self.seen.load(Ordering::Relaxed);
        let waited = self.shared.appended.wait_timeout_while(self.shared.store(), at_most, nothing_new);
        let (store, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.seen.store(store.commits.len(), Ordering::Relaxed);
    }
}

/// The side that writes.
struct Appender(Arc<Shared>);

impl Append for Appender {
    fn append(&mut self, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        let _head = self.0.hold();
        self.0.append(at, group)
    }

    fn hold(&mut self) -> Result<Box<dyn Held + '_>, FeedError> {
        Ok(Box::new(HeldMemory { shared: &self.0, _head: self.0.hold() }))
    }

    fn find(&mut self, commit: CommitId) -> Result<Option<Position>, FeedError> {
        let store = self.0.store();
        Ok(store
            .revisions
            .get(&commit)
            .and_then(|revision| store.commit(*revision))
            .map(|commit| commit.header.at))
    }
}

struct HeldMemory<'a> {
    shared: &'a Shared,
    _head: MutexGuard<'a, ()>,
}

impl Held for HeldMemory<'_> {
    fn read(&mut self, after: Position, budget: Budget) -> Result<Vec<Commit>, FeedError> {
        self.shared.store().read(after, budget)
    }

    fn append(self: Box<Self>, at: Position, group: &[Commit]) -> Result<(), AppendError> {
        self.shared.append(at, group)
    }
}

/// The side that answers questions about the past.
struct Historian(Arc<Shared>);

impl History for Historian {
    fn history(&self, query: &Query) -> Result<Vec<Record>, FeedError> {
        Ok(self.0.store().history(query))
    }

    fn changes(&self, revision: Revision, from: usize, most: Most) -> Result<Vec<Edit>, FeedError> {
        let store = self.0.store();
        let Some(commit) = store.commit(revision) else { return Ok(Vec::new()) };
        let edit =
            |change: &Change| Edit { before: store.before(change.key(), commit), change: change.clone() };
        Ok(cut(commit.changes.iter().skip(from).map(edit), most, Edit::bytes))
    }

    fn versions(&self, key: &Key, before: Option<Revision>, most: Most) -> Result<Paged<Version>, FeedError> {
        Ok(self.0.store().versions(key, before, most))
    }
}
