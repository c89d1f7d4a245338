//! How much work one transaction may be. The writer decides about one transaction at a time, and everybody else's changes wait for it, so
//! its work is counted while it is done, and one that is too much is refused before the rest of it is begun.
//!
//! Work is counted, not timed: the same transaction on the same fleet is accepted or refused everywhere. One unit is about a nanosecond
//! on the machine that the costs were measured on; `make bench-work` says what the worst accepted transactions take.

/// The most work that one transaction may be: about two and a half seconds. The costs below are rather too high than too low, and what
/// comes after the operations is bounded by the entries that they change.
const MAX_WORK: u64 = 2_500_000_000;

/// Going to one cluster, in a walk over all of them: it is not in any cache.
const CLUSTER: u64 = 400;
/// Comparing something with a cluster once there.
const LOOK: u64 = 100;
/// An operation on a document, whatever its size.
const DOCUMENT: u64 = 10_000;
/// One byte of a document that is opened: written as text, and read as a tree of values.
const OPENED_BYTE: u64 = 12;
/// One byte of a document that is written: normalised, checked, decoded, encoded.
const WRITTEN_BYTE: u64 = 40;
/// One byte of a document as a whole that becomes its canonical text, however little of it was opened.
const ENCODED_BYTE: u64 = 4;
/// One byte of a patch, for each document that it is merged into.
const PATCH_BYTE: u64 = 10;
/// One item of a JSON patch.
const ITEM: u64 = 2_000;
/// One element that makes room for another in a list, or is looked at before it moves.
const ELEMENT: u64 = 2;

/// What a transaction has taken so far.
#[derive(Default)]
pub(crate) struct Work {
    done: u64,
}

impl Work {
    fn add(&mut self, count: usize, each: u64) {
        self.done = self.done.saturating_add((count as u64).saturating_mul(each));
    }

    /// Whether it is more than one transaction may be.
    pub(crate) fn is_too_much(&self) -> bool {
        self.done > MAX_WORK
    }

    /// A walk over so many clusters, to compare each with so many things.
    pub(crate) fn walk(&mut self, clusters: usize, things: usize) {
        self.add(clusters, CLUSTER);
        self.look(clusters.saturating_mul(things));
    }

    pub(crate) fn look(&mut self, things: usize) {
        self.add(things, LOOK);
    }

    /// An operation is carried out on so many documents.
    pub(crate) fn documents(&mut self, count: usize) {
        self.add(count, DOCUMENT);
    }

    pub(crate) fn open(&mut self, bytes: usize) {
        self.add(bytes, OPENED_BYTE);
    }

    pub(crate) fn write(&mut self, bytes: usize) {
        self.add(bytes, WRITTEN_BYTE);
    }

    /// A document as a whole, of which maybe a small part was opened and written.
    pub(crate) fn encode(&mut self, bytes: usize) {
        self.add(bytes, ENCODED_BYTE);
    }

    pub(crate) fn merge(&mut self, bytes: usize) {
        self.add(bytes, PATCH_BYTE);
    }

    /// One item of a JSON patch, and the elements that it moves or looks at.
    pub(crate) fn item(&mut self, elements: usize) {
        self.add(1, ITEM);
        self.add(elements, ELEMENT);
    }
}
