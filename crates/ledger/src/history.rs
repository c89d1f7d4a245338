//! Questions about the past.

use fleet::{Canonical, Change, Header, Key, Revision, Timestamp};

/// Which commits to tell of. Everything that is set must hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// Only commits before this revision: how one goes on to the next page.
    pub before: Option<Revision>,
    /// Only this one.
    pub revision: Option<Revision>,
    /// Only commits that this actor asked for.
    pub actor: Option<String>,
    /// Only commits that changed an entry of this space, as [`Key::space`] has it.
    pub space: Option<String>,
    /// Only commits that changed an entry of this id; with a space, this very entry.
    pub id: Option<String>,
    /// Only commits at or after this time.
    pub since: Option<Timestamp>,
    /// Only commits before this time.
    pub until: Option<Timestamp>,
    /// How many at most.
    pub limit: usize,
}

impl Query {
    /// The newest commits, whatever they changed.
    pub const fn newest(limit: usize) -> Self {
        Self {
            before: None,
            revision: None,
            actor: None,
            space: None,
            id: None,
            since: None,
            until: None,
            limit,
        }
    }
}

/// How much of the past to read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Most {
    /// How many items.
    pub items: usize,
    /// After the item with which they have more bytes of bodies than this, no further one: one item alone may be larger.
    pub bytes: usize,
}

impl Most {
    /// So many, however large they are.
    pub const fn items(items: usize) -> Self {
        Self { items, bytes: usize::MAX }
    }
}

/// A page of something, and whether there is more of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Paged<T> {
    pub items: Vec<T>,
    pub more: bool,
}

/// A commit without the bodies of what it changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub header: Header,
    /// The first of the entries that it changed, at most [`Record::KEYS`], sorted.
    pub keys: Vec<Key>,
}

impl Record {
    /// How many keys a record tells by name.
    pub const KEYS: usize = 20;
}

/// What a commit made of one document, and what that was before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The document before the commit; none if it did not exist.
    pub before: Option<Canonical>,
    /// The document, and what it is after the commit.
    pub change: Change,
}

impl Edit {
    /// The bytes of its bodies.
    pub(crate) fn bytes(&self) -> usize {
        bytes(self.before.as_ref()) + bytes(self.change.after())
    }
}

pub(crate) fn bytes(body: Option<&Canonical>) -> usize {
    body.map_or(0, |body| body.as_str().len())
}

/// One step in the history of one document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// The commit that made it.
    pub header: Header,
    /// The document before the commit; none if it did not exist.
    pub before: Option<Canonical>,
    /// The document after the commit; none if the commit deleted it.
    pub after: Option<Canonical>,
}

impl Version {
    /// The bytes of its bodies.
    pub(crate) fn bytes(&self) -> usize {
        bytes(self.before.as_ref()) + bytes(self.after.as_ref())
    }
}
