//! The one type that becomes the body of an answer. Its fields are private to this file, which has two makers and no others.

use super::ANSWER_FORMAT;
use crate::document::{Stored, Tombstone};
use crate::ids::Revision;

/// The body of an answer: `{"inputs":[…]}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Inputs {
    body: Vec<u8>,
    count: usize,
    revision: Revision,
}

impl Inputs {
    /// The bytes to send.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The bytes to send, without a copy.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// How many inputs there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The highest revision of what the answer was made from.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// A weak entity tag: equal tags of one store mean equal bytes.
    pub fn etag(&self) -> String {
        format!("W/\"{ANSWER_FORMAT}.{}\"", self.revision)
    }

    /// What a live cluster gets: one input for each of its references, written already.
    pub(super) fn of_references(body: Vec<u8>, count: usize, revision: Revision) -> Self {
        Self { body, count, revision }
    }

    /// What a decommissioned cluster gets: the one empty list that means "delete everything".
    pub(super) fn of_tombstone(tombstone: &Stored<Tombstone>) -> Self {
        let revision = tombstone.revision;
        Self { body: b"{\"inputs\":[]}".to_vec(), count: 0, revision }
    }
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Inputs({} inputs, {} bytes, {})", self.count, self.body.len(), self.etag())
    }
}
