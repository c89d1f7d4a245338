//! Questions about the past.

use fleet::{Key, KindName, Origin, Position, Revision, Tally, Timestamp};

/// Which commits to tell of. Everything that is set must hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// Only commits before this revision: how one goes on to the next page.
    pub before: Option<Revision>,
    /// Only this one.
    pub revision: Option<Revision>,
    /// Only commits that this actor asked for.
    pub actor: Option<String>,
    /// Only commits that changed a document of this kind.
    pub kind: Option<KindName>,
    /// Only commits that changed a document of this id; with a kind, this very document.
    pub id: Option<fleet::Id>,
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
            kind: None,
            id: None,
            since: None,
            until: None,
            limit,
        }
    }
}

/// A commit without the bodies of what it changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its position.
    pub at: Position,
    /// Who, when and why.
    pub origin: Origin,
    /// How many removals it made, and whether they were confirmed.
    pub removals: Tally,
    /// How many entries it changed.
    pub changes: usize,
    /// The first of these, at most [`Record::KEYS`], sorted.
    pub keys: Vec<Key>,
}

impl Record {
    /// How many keys a record tells by name.
    pub const KEYS: usize = 20;
}
