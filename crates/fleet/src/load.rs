//! A state from the documents at head, so that a start does not replay history.

use std::sync::Arc;

use crate::canonical::Canonical;
use crate::commit::{self, Change, Diverged, Header};
use crate::document::Interner;
use crate::guard::{Spending, Tally};
use crate::hash::{self, Counted, StateDigest, Sum};
use crate::ids::{CLUSTERS, Revision, Timestamp, Uid};
use crate::key::Key;
use crate::kind::Kinds;
use crate::state::{Entry, State, Uses};

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

/// Takes rows, kinds first and those of [`Loader::LAST`] last, and checks at the end that they are what the head commit says they are.
pub struct Loader {
    state: State,
    uses: Uses,
}

/// What the last rows refer to: the names in it are shared with theirs.
pub struct Catalog(State);

/// Reads rows, apart from the state that they are to be part of. Several can be at work at once, each on its own rows.
pub struct RowReader<'a> {
    kinds: &'a Kinds,
    names: Interner<'a>,
}

/// Rows that were read, on their way into the state.
pub struct ReadRows {
    rows: Vec<(Key, Entry, Counted)>,
    sum: Sum,
}

impl Loader {
    /// The space whose rows come last. There are many of them, and they refer to all others.
    pub const LAST: &str = CLUSTERS;

    /// Begins with the rows of all kinds.
    pub fn new(kinds: impl IntoIterator<Item = Row>) -> Result<Self, Diverged> {
        let rows: Vec<Row> = kinds.into_iter().collect();
        let mut in_force = Vec::with_capacity(rows.len());
        for row in &rows {
            in_force.push(commit::stored_kind(&row.key, &row.body)?);
        }
        let in_force = Kinds::new(in_force)
            .map_err(|bad| commit::undecodable(&Key::kind(&bad.kind), &bad.to_string()))?;
        let mut loader = Self { state: State::empty().with_kinds(Arc::new(in_force)), uses: Uses::default() };
        loader.push(rows)?;
        Ok(loader)
    }

    /// Reads and takes any other rows.
    pub fn push(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<(), Diverged> {
        let catalog = self.catalog();
        let read = RowReader::new(&catalog).read(rows)?;
        self.take(read);
        Ok(())
    }

    /// What was taken so far, for those who read the last rows.
    pub fn catalog(&self) -> Catalog {
        Catalog(self.state.clone())
    }

    /// Takes rows that were read.
    pub fn take(&mut self, read: ReadRows) {
        self.state.count_all(&read.sum);
        for (key, entry, counted) in read.rows {
            if let Entry::Cluster(cluster) = &entry {
                self.uses.count(cluster);
            }
            self.state.place(key, entry, counted);
        }
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
        Ok(self.state.with_uses(self.uses).at(head, spending))
    }
}

impl<'a> RowReader<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        Self { kinds: catalog.0.kinds(), names: Interner::new(Some(&catalog.0)) }
    }

    /// Reads rows, and adds up their digest.
    pub fn read(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<ReadRows, Diverged> {
        let rows = rows.into_iter();
        let mut read = ReadRows { rows: Vec::with_capacity(rows.size_hint().0), sum: Sum::default() };
        for Row { key, body, revision, uid } in rows {
            let entry = commit::read(self.kinds, &key, &body, revision, &mut self.names)?;
            let counted = Counted { hash: hash::entry(&key, body.as_str()), uid, revision };
            read.sum.add(counted);
            read.rows.push((key, entry, counted));
        }
        Ok(read)
    }
}
