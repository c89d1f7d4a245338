//! What the ledger holds: commits. A commit holds results (canonical after-images and deletions), never operations, so
//! another version of this program with other rules follows it all the same.
//!
//! Its header proves itself: the hash covers everything that the header says, and of the changes their digest.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::canonical::Canonical;
use crate::document::Interner;
use crate::guard::Tally;
use crate::hash::{self, Hash, Position, StateDigest};
use crate::ids::{CommitId, Revision, Timestamp, Uid};
use crate::key::Key;
use crate::kind::{Kind, Kinds};
use crate::space::{SystemEntry, Unreadable};
use crate::state::{Entry, Source, State, Step, decode_document, decode_tombstone};

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
    /// The version of the program that decided about it.
    pub version: Box<str>,
    /// How a repeated request is told from a new one. Reserved: nothing sets it yet.
    pub idempotency: Option<Idempotency>,
}

/// A key that the actor of a commit chose for a request, so that the request can be sent twice and happens once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idempotency {
    pub key: Box<str>,
    /// A digest of the request: the same key with another request is a mistake.
    pub request: Hash,
}

/// How often somebody has declared another history to be the right one. Reserved: it is 0 so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Epoch(pub u64);

/// What a commit made of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    key: Key,
    uid: Uid,
    after: Option<Canonical>,
    hash: Hash,
}

impl Change {
    /// What became of an entry, none if it is gone; and which life of it that is.
    pub fn new(key: Key, uid: Uid, after: Option<Canonical>) -> Self {
        let hash = after.as_ref().map_or(Hash::default(), |after| hash::entry(&key, after.as_str()));
        Self { key, uid, after, hash }
    }

    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The identity of this life of the entry, or of the one that has ended.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// What it is now; none if it is gone.
    pub fn after(&self) -> Option<&Canonical> {
        self.after.as_ref()
    }

    /// The hash of the entry as it is now; zero if it is gone.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    fn proof(&self) -> Hash {
        hash::tagged(
            "change",
            &[
                self.key.space().as_bytes(),
                self.key.id().as_bytes(),
                &self.uid.0.to_be_bytes(),
                &[u8::from(self.after.is_some())],
                &self.hash.0,
            ],
        )
    }
}

/// The changes of a commit in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChangesDigest {
    pub count: u32,
    pub hash: Hash,
}

impl ChangesDigest {
    /// The digest of changes in their order.
    pub fn of(changes: &[Change]) -> Self {
        let proofs: Vec<u8> = changes.iter().flat_map(|change| change.proof().0).collect();
        Self {
            count: u32::try_from(changes.len()).unwrap_or(u32::MAX),
            hash: hash::tagged("changes", &[&proofs]),
        }
    }
}

/// What a commit says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The position that it makes.
    pub at: Position,
    /// The hash of the commit before it.
    pub previous: Hash,
    pub epoch: Epoch,
    /// The digest of the state that it makes.
    pub state: StateDigest,
    /// Who, when and why; the time is the commit's.
    pub origin: Origin,
    /// How many removals it made, and on what grounds the guard let them pass.
    pub removals: Tally,
    pub changes: ChangesDigest,
}

/// One step of the ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    pub header: Header,
    /// What it changed, sorted by key.
    pub changes: Vec<Change>,
}

/// A commit, or an entry at the head, that this process cannot follow.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Diverged {
    #[error("the commit follows another position than this state's")]
    Position,
    #[error("the commit's hash is not that of its contents")]
    Commit,
    #[error("the state after the commit has another digest than the commit says")]
    State,
    #[error("`{key}` cannot be read: {problem}")]
    Undecodable { key: Key, problem: String },
    /// A later version wrote something that has to be understood.
    #[error("{0}")]
    Newer(NeedsNewer),
}

/// An entry of a later version that has to be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeedsNewer {
    pub key: Key,
    /// The revision that wrote it.
    pub revision: Revision,
    /// The version that wrote it, where that is known.
    pub version: Option<Box<str>>,
}

impl std::fmt::Display for NeedsNewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.version.as_deref().map(|version| format!("version {version}"));
        write!(
            f,
            "revision {} has an entry `{}` that this version does not understand; it was written by {}: run that version or a later one",
            self.revision,
            self.key.space(),
            version.as_deref().unwrap_or("a later version"),
        )
    }
}

impl Header {
    /// The hash that the commit should have: over the one before, everything it says, and the state that it makes.
    pub fn expected_hash(&self) -> Hash {
        let Self { at, previous, epoch, state, origin, removals, changes } = self;
        let Origin { commit, time, actor, reason, request, version, idempotency } = origin;
        let Tally { decommissions, each, ordinary, passed } = *removals;
        let optional = |text: Option<&[u8]>| text.map_or_else(Vec::new, |text| [b"+", text].concat());
        let text = |text: &Option<Box<str>>| optional(text.as_deref().map(str::as_bytes));
        let counts = [decommissions, each, ordinary, changes.count].map(u32::to_be_bytes).concat();
        hash::tagged(
            "commit",
            &[
                &previous.0,
                &at.revision.0.to_be_bytes(),
                &epoch.0.to_be_bytes(),
                &commit.0.to_be_bytes(),
                &time.0.to_be_bytes(),
                actor.as_bytes(),
                &text(reason),
                &text(request),
                version.as_bytes(),
                &optional(idempotency.as_ref().map(|idempotency| idempotency.key.as_bytes())),
                &optional(idempotency.as_ref().map(|idempotency| &idempotency.request.0[..])),
                &counts,
                &[passed.number()],
                &state.0.0,
                &changes.hash.0,
            ],
        )
    }

    /// Whether it is what its hash says.
    pub fn is_proven(&self) -> bool {
        self.expected_hash() == self.at.hash
    }
}

impl Commit {
    /// How many bytes the bodies of its changes have.
    pub fn body_bytes(&self) -> usize {
        body_bytes(&self.changes)
    }

    /// Whether header and changes are what the hash says.
    pub fn is_proven(&self) -> bool {
        self.header.is_proven() && ChangesDigest::of(&self.changes) == self.header.changes
    }
}

pub(crate) fn body_bytes(changes: &[Change]) -> usize {
    changes.iter().filter_map(Change::after).map(|body| body.as_str().len()).sum()
}

impl State {
    /// Follows a commit. Checks that it belongs here and arrives where it says; never validates a document.
    pub fn replay(&self, commit: &Commit) -> Result<State, Diverged> {
        let header = &commit.header;
        if header.previous != self.head().hash || header.at.revision != self.head().revision.next() {
            return Err(Diverged::Position);
        }
        if !commit.is_proven() {
            return Err(Diverged::Commit);
        }
        let revision = header.at.revision;
        let kinds = self.kinds_after(&commit.changes)?;
        let in_force = kinds.as_ref().unwrap_or(self.kinds());
        let mut names = Interner::new(Some(self));
        let mut steps = Vec::with_capacity(commit.changes.len());
        for change in &commit.changes {
            let read = |body: &Canonical| read(in_force, &change.key, body, revision, &mut names);
            let entry = change.after.as_ref().map(read).transpose().map_err(|diverged| match diverged {
                Diverged::Newer(needs) => {
                    Diverged::Newer(NeedsNewer { version: Some(header.origin.version.clone()), ..needs })
                }
                other => other,
            })?;
            let after = entry.map(|entry| (entry, change.hash));
            steps.push(Step { key: change.key.clone(), uid: change.uid, after });
        }
        let next = self.advance(revision, kinds, steps);
        if next.digest() != header.state {
            return Err(Diverged::State);
        }
        let spending = self.spending().after(header.origin.time, header.removals);
        Ok(next.at(header, spending))
    }

    /// The kinds in force after some changes, if these change them.
    fn kinds_after(&self, changes: &[Change]) -> Result<Option<Arc<Kinds>>, Diverged> {
        let mut kinds = Vec::new();
        for change in changes {
            let Key::Kind(_) = change.key else { continue };
            // Documents depend on their kind; nothing makes such a commit.
            let after =
                change.after.as_ref().ok_or_else(|| undecodable(&change.key, "a kind does not go"))?;
            kinds.push(stored_kind(&change.key, after)?);
        }
        let Some(first) = kinds.first().map(|kind| Key::Kind(kind.name().clone())) else { return Ok(None) };
        let all = self.kinds().iter().cloned().chain(kinds);
        Kinds::new(all)
            .map(|kinds| Some(Arc::new(kinds)))
            .map_err(|bad| undecodable(&first, &bad.to_string()))
    }
}

/// Reads an entry as it was recorded, given the kinds in force.
pub(crate) fn read(
    kinds: &Kinds,
    key: &Key,
    body: &Canonical,
    revision: Revision,
    names: &mut Interner<'_>,
) -> Result<Entry, Diverged> {
    match key {
        Key::Kind(name) => match kinds.get(name.as_str()) {
            Some(kind) => Ok(Entry::Kind(kind.clone())),
            None => Err(undecodable(key, "it is not among the kinds in force")),
        },
        Key::Document(document) => {
            let decoded = decode_document(kinds, document, Source::Text(body.as_str()), None, names);
            decoded.map_err(|finding| undecodable(key, &finding.message))
        }
        Key::Tombstone(dns) => {
            let decoded = decode_tombstone(dns, Source::Text(body.as_str()));
            decoded.map_err(|finding| undecodable(key, &finding.message))
        }
        Key::System(system) => match SystemEntry::decode(&system.space, body) {
            Ok(entry) => Ok(Entry::System(entry)),
            Err(Unreadable::Malformed(finding)) => Err(undecodable(key, &finding.message)),
            Err(Unreadable::UnknownSpace) => {
                Err(Diverged::Newer(NeedsNewer { key: key.clone(), revision, version: None }))
            }
        },
    }
}

fn parse(key: &Key, body: &Canonical) -> Result<Map<String, Value>, Diverged> {
    serde_json::from_str(body.as_str()).map_err(|error| undecodable(key, &error.to_string()))
}

pub(crate) fn stored_kind(key: &Key, body: &Canonical) -> Result<Arc<Kind>, Diverged> {
    let kind = Kind::stored(parse(key, body)?).map_err(|bad| undecodable(key, &bad.to_string()))?;
    if kind.name().as_str() != key.id() {
        return Err(undecodable(key, "it is recorded under another name than it has"));
    }
    Ok(Arc::new(kind))
}

pub(crate) fn undecodable(key: &Key, problem: &str) -> Diverged {
    Diverged::Undecodable { key: key.clone(), problem: problem.to_owned() }
}
