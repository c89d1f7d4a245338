//! A state from the documents at head, so that a start does not replay history.

use std::sync::Arc;

use crate::canonical::Canonical;
use crate::commit::{self, Change, Commit, Diverged};
use crate::document::Interner;
use crate::guard::{Spending, Tally};
use crate::hash::{self, Position, StateDigest};
use crate::ids::{KINDS, Key, Revision, Timestamp, Uid};
use crate::kind::{Kind, Kinds};
use crate::state::{Entry, State, decode};

/// An entry as a store holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// What it is recorded under.
    pub key: Key,
    /// The entry.
    pub body: Canonical,
    /// The revision that last changed it.
    pub revision: Revision,
    /// The identity of this life of it.
    pub uid: Uid,
}

impl Row {
    /// What a commit makes of an entry: the row that a store keeps, or none if the entry is gone. A changed entry keeps its uid.
    pub fn after(previous: Option<&Self>, commit: &Commit, change: &Change) -> Option<Self> {
        let key = change.key().clone();
        let body = change.after()?.clone();
        let uid = previous.map_or_else(|| Uid::derive(commit.origin.commit, &key), |row| row.uid);
        Some(Self { key, body, revision: commit.at.revision, uid })
    }
}

/// Takes rows in two passes, kinds first, and checks at the end that they are what the head commit says they are.
pub struct Loader {
    state: State,
    names: Interner<'static>,
}

impl Loader {
    /// Begins with the kinds: all rows of the key space [`KINDS`].
    pub fn new(kinds: impl IntoIterator<Item = Row>) -> Result<Self, Diverged> {
        let mut rows: Vec<(Row, Arc<Kind>)> = Vec::new();
        for row in kinds.into_iter().filter(|row| row.key.kind.as_str() == KINDS) {
            let kind = commit::stored_kind(&row.key, commit::parse(&row.key, &row.body)?)?;
            rows.push((row, Arc::new(kind)));
        }
        let in_force = Kinds::new(rows.iter().map(|(_, kind)| kind.clone()));
        let in_force =
            in_force.map_err(|bad| commit::undecodable(&Key::new(KINDS, &bad.kind), &bad.to_string()))?;
        let mut loader =
            Self { state: State::empty().with_kinds(Arc::new(in_force)), names: Interner::new(None) };
        for (row, kind) in rows {
            loader.put(row, Entry::Kind(kind));
        }
        Ok(loader)
    }

    /// Takes any other row; rows of kinds are passed over.
    pub fn push(&mut self, row: Row) -> Result<(), Diverged> {
        if row.key.kind.as_str() == KINDS {
            return Ok(());
        }
        let map = commit::parse(&row.key, &row.body)?;
        let kinds = self.state.kinds().clone();
        let entry = decode(&kinds, &row.key, map, None, &mut self.names)
            .map_err(|finding| commit::undecodable(&row.key, &finding.message))?;
        self.put(row, entry);
        Ok(())
    }

    /// The digest of what was taken so far.
    pub fn digest(&self) -> StateDigest {
        self.state.digest()
    }

    fn put(&mut self, row: Row, entry: Entry) {
        let hash = hash::entry(&row.key, row.body.as_str());
        self.state.put(row.key, entry, row.revision, row.uid, hash);
    }

    /// The state, if its digest is the one that the head commit recorded. `recent` are the commits of the last hour, oldest first.
    pub fn finish(
        self,
        head: Position,
        time: Timestamp,
        digest: StateDigest,
        recent: impl IntoIterator<Item = (Timestamp, Tally)>,
    ) -> Result<State, Diverged> {
        if self.digest() != digest {
            return Err(Diverged::State);
        }
        // As a replay would have left it: forgotten up to the last commit.
        let spending = Spending::of(recent).after(time, Tally::default());
        Ok(self.state.at(head, time, spending))
    }
}
