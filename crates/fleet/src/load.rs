//! A state from the documents at head, so that a start does not replay history.

use std::sync::Arc;

use crate::canonical::Canonical;
use crate::commit::{self, Change, Diverged, Header};
use crate::document::Interner;
use crate::guard::{Spending, Tally};
use crate::hash::{self, Counted, StateDigest};
use crate::ids::{Revision, Timestamp, Uid};
use crate::key::Key;
use crate::kind::Kinds;
use crate::state::State;

/// An entry as a store holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub key: Key,
    pub body: Canonical,
    /// The revision that last changed it.
    pub revision: Revision,
    /// The identity of this life of it.
    pub uid: Uid,
}

impl Row {
    /// The row that a store keeps after a change; none if the entry is gone.
    pub fn after(header: &Header, change: &Change) -> Option<Self> {
        let body = change.after()?.clone();
        Some(Self { key: change.key().clone(), body, revision: header.at.revision, uid: change.uid() })
    }
}

/// Takes rows in two passes, kinds first, and checks at the end that they are what the head commit says they are.
pub struct Loader {
    state: State,
    names: Interner<'static>,
}

impl Loader {
    /// Begins with the rows of all kinds.
    pub fn new(kinds: impl IntoIterator<Item = Row>) -> Result<Self, Diverged> {
        let rows: Vec<Row> = kinds.into_iter().collect();
        let mut in_force = Vec::with_capacity(rows.len());
        for row in &rows {
            in_force.push(commit::stored_kind(&row.key, &row.body)?);
        }
        let in_force = Kinds::new(in_force)
            .map_err(|bad| commit::undecodable(&Key::kind(&bad.kind), &bad.to_string()))?;
        let mut loader =
            Self { state: State::empty().with_kinds(Arc::new(in_force)), names: Interner::new(None) };
        rows.into_iter().try_for_each(|row| loader.push(row))?;
        Ok(loader)
    }

    /// Takes any other row.
    pub fn push(&mut self, row: Row) -> Result<(), Diverged> {
        let Row { key, body, revision, uid } = row;
        let kinds = self.state.kinds().clone();
        let entry = commit::read(&kinds, &key, &body, revision, &mut self.names)?;
        let hash = hash::entry(&key, body.as_str());
        self.state.put(key, entry, Counted { hash, uid, revision });
        Ok(())
    }

    /// The digest of what was taken so far.
    pub fn digest(&self) -> StateDigest {
        self.state.digest()
    }

    /// The state, if its digest is the one that the head commit recorded. `recent` are the commits of the last hour, oldest first.
    pub fn finish(
        self,
        head: &Header,
        recent: impl IntoIterator<Item = (Timestamp, Tally)>,
    ) -> Result<State, Diverged> {
        if !head.is_proven() {
            return Err(Diverged::Commit);
        }
        if self.digest() != head.state {
            return Err(Diverged::State);
        }
        // As a replay would have left it: forgotten up to the last commit.
        let spending = Spending::of(recent).after(head.origin.time, Tally::default());
        Ok(self.state.at(head, spending))
    }
}
