//! What the ledger holds: commits. A commit holds results (canonical after-images and deletions), never operations, so
//! another version of this program with other rules follows it all the same.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::canonical::Canonical;
use crate::document::Interner;
use crate::guard::Tally;
use crate::hash::{self, Hash, Position, StateDigest};
use crate::ids::{CommitId, KINDS, Key, Timestamp};
use crate::kind::{Kind, Kinds};
use crate::state::{Entry, Stamp, State, Step, decode};

/// What a transaction cannot invent: identity, time, and who asked for it and why.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The identity of the commit.
    pub commit: CommitId,
    /// When it was asked for. The commit's time is never before that of the commit before it.
    pub time: Timestamp,
    /// Who asked for it.
    pub actor: Box<str>,
    /// Why.
    pub reason: Option<Box<str>>,
    /// Which request it was.
    pub request: Option<Box<str>>,
}

/// What a commit made of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    key: Key,
    after: Option<Canonical>,
    hash: Hash,
}

impl Change {
    /// What became of an entry; none if it is gone.
    pub fn new(key: Key, after: Option<Canonical>) -> Self {
        let hash = after.as_ref().map_or(Hash::default(), |after| hash::entry(&key, after.as_str()));
        Self { key, after, hash }
    }

    /// The entry.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What it is now; none if it is gone.
    pub fn after(&self) -> Option<&Canonical> {
        self.after.as_ref()
    }

    /// The hash of the entry as it is now; zero if it is gone.
    pub fn hash(&self) -> Hash {
        self.hash
    }
}

/// One step of the ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// The position that it makes.
    pub at: Position,
    /// The hash of the commit before it.
    pub previous: Hash,
    /// The digest of the state that it makes.
    pub state: StateDigest,
    /// Who, when and why; the time is the commit's.
    pub origin: Origin,
    /// How many removals it made, and whether they were confirmed.
    pub removals: Tally,
    /// What it changed, sorted by key.
    pub changes: Vec<Change>,
}

/// A commit that does not follow from the state it was replayed on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Diverged {
    /// It comes after another position.
    #[error("the commit follows another position than this state's")]
    Position,
    /// It does not hash to what it says.
    #[error("the commit's hash is not that of its contents")]
    Commit,
    /// The state that it makes has another digest.
    #[error("the state after the commit has another digest than the commit says")]
    State,
    /// An entry cannot be read.
    #[error("`{key}` cannot be read: {problem}")]
    Undecodable {
        /// The entry.
        key: Key,
        /// What is wrong.
        problem: String,
    },
}

impl Commit {
    /// How many bytes the bodies of its changes have.
    pub fn body_bytes(&self) -> usize {
        self.changes.iter().filter_map(Change::after).map(|body| body.as_str().len()).sum()
    }

    /// The hash that the commit should have: over the one before, everything it says, and the state that it makes.
    pub fn expected_hash(&self) -> Hash {
        let Origin { commit, time, actor, reason, request } = &self.origin;
        let Tally { decommissions, each, ordinary, confirmed } = self.removals;
        let optional = |text: &Option<Box<str>>| {
            text.as_ref().map_or_else(Vec::new, |text| [b"+", text.as_bytes()].concat())
        };
        let counts = [decommissions, each, ordinary].map(u32::to_be_bytes).concat();
        let mut changes = Vec::new();
        for change in &self.changes {
            let Key { kind, id } = &change.key;
            let parts: [&[u8]; 3] = [kind.as_str().as_bytes(), id.as_str().as_bytes(), &change.hash().0];
            changes.extend_from_slice(&hash::tagged("change", &parts).0);
        }
        hash::tagged(
            "commit",
            &[
                &self.previous.0,
                &self.at.revision.0.to_be_bytes(),
                &commit.0.to_be_bytes(),
                &time.0.to_be_bytes(),
                actor.as_bytes(),
                &optional(reason),
                &optional(request),
                &counts,
                &[u8::from(confirmed)],
                &self.state.0.0,
                &changes,
            ],
        )
    }
}

impl State {
    /// Follows a commit. Checks that it belongs here and arrives where it says; never validates a document.
    pub fn replay(&self, commit: &Commit) -> Result<State, Diverged> {
        if commit.previous != self.head().hash || commit.at.revision != self.head().revision.next() {
            return Err(Diverged::Position);
        }
        if commit.expected_hash() != commit.at.hash {
            return Err(Diverged::Commit);
        }
        let mut read = Vec::with_capacity(commit.changes.len());
        let mut changed_kinds = Vec::new();
        for change in &commit.changes {
            let body = change.after.as_ref().map(|after| parse(&change.key, after)).transpose()?;
            match body {
                Some(file) if change.key.kind.as_str() == KINDS => {
                    let kind = Arc::new(stored_kind(&change.key, file)?);
                    changed_kinds.push(kind.clone());
                    read.push((change, Some(Body::Kind(kind))));
                }
                // Documents depend on their kind; nothing makes such a commit.
                None if change.key.kind.as_str() == KINDS => {
                    return Err(undecodable(&change.key, "a kind does not go"));
                }
                body => read.push((change, body.map(Body::Document))),
            }
        }
        let kinds = if changed_kinds.is_empty() { None } else { Some(merged(self.kinds(), changed_kinds)?) };
        let mut names = Interner::new(Some(self));
        let mut steps = Vec::with_capacity(read.len());
        for (change, body) in read {
            let entry = match body {
                None => None,
                Some(Body::Kind(kind)) => Some(Entry::Kind(kind)),
                Some(Body::Document(map)) => {
                    let decoded =
                        decode(kinds.as_deref().unwrap_or(self.kinds()), &change.key, map, None, &mut names);
                    Some(decoded.map_err(|finding| undecodable(&change.key, &finding.message))?)
                }
            };
            steps.push(Step { key: change.key.clone(), after: entry.map(|entry| (entry, change.hash())) });
        }
        let stamp = Stamp { revision: commit.at.revision, commit: commit.origin.commit };
        let next = self.advance(stamp, kinds, steps);
        if next.digest() != commit.state {
            return Err(Diverged::State);
        }
        let spending = self.spending().after(commit.origin.time, commit.removals);
        Ok(next.at(commit.at, commit.origin.time, spending))
    }
}

enum Body {
    Kind(Arc<Kind>),
    Document(Map<String, Value>),
}

pub(crate) fn parse(key: &Key, body: &Canonical) -> Result<Map<String, Value>, Diverged> {
    serde_json::from_str(body.as_str()).map_err(|error| undecodable(key, &error.to_string()))
}

pub(crate) fn stored_kind(key: &Key, file: Map<String, Value>) -> Result<Kind, Diverged> {
    let kind = Kind::stored(file).map_err(|bad| undecodable(key, &bad.to_string()))?;
    if kind.name().as_str() != key.id.as_str() {
        return Err(undecodable(key, "it is recorded under another name than it has"));
    }
    Ok(kind)
}

/// The kinds in force with some of them changed or added.
fn merged(kinds: &Kinds, changed: Vec<Arc<Kind>>) -> Result<Arc<Kinds>, Diverged> {
    let key = Key::new(KINDS, changed[0].name().as_str());
    let all = kinds.iter().cloned().chain(changed);
    Kinds::new(all).map(Arc::new).map_err(|bad| undecodable(&key, &bad.to_string()))
}

pub(crate) fn undecodable(key: &Key, problem: &str) -> Diverged {
    Diverged::Undecodable { key: key.clone(), problem: problem.to_owned() }
}
