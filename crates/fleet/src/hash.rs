//! Hashes: of one entry, of the whole state, of a commit.
//!
//! The state's digest is a sum over all entries that does not depend on their order and is updated in the size of a change. A
//! plain sum of 256-bit hashes can be forged with many chosen entries (Wagner's generalised birthday), so each entry's
//! hash is first stretched to 1,024 lanes of 16 bits and the lanes are added: the `LtHash` construction.

use std::fmt;
use std::sync::Arc;

use crate::ids::{Revision, Uid};
use crate::key::Key;

/// A BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Reads the 64 hexadecimal digits that `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// The digest of everything that a [`crate::State`] holds: each entry with its uid and its revision. Not the hash of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StateDigest(pub Hash);

impl StateDigest {
    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        Hash::parse(text).map(Self)
    }
}

impl fmt::Display for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place in the ledger. Two ledgers that agree on a position agree on everything before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Position {
    /// How many commits there are.
    pub revision: Revision,
    /// The hash of the last of them.
    pub hash: Hash,
}

impl Position {
    /// Reads the `REVISION:HASH` that `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (revision, hash) = text.split_once(':')?;
        let digits = revision.bytes().all(|b| b.is_ascii_digit()).then_some(revision)?;
        Some(Self { revision: Revision(digits.parse().ok()?), hash: Hash::parse(hash)? })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.revision, self.hash)
    }
}

/// Hashes parts so that no two lists of parts collide by moving a boundary.
pub(crate) fn tagged(tag: &str, parts: &[&[u8]]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tag.as_bytes());
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    Hash(*hasher.finalize().as_bytes())
}

/// The hash of one entry: its key and canonical body, without uid and revision.
pub(crate) fn entry(key: &Key, body: &str) -> Hash {
    tagged("entry", &[key.space().as_bytes(), key.id().as_bytes(), body.as_bytes()])
}

/// An entry as the state's digest counts it: what it says, which life of it, and which revision wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counted {
    pub(crate) hash: Hash,
    pub(crate) uid: Uid,
    pub(crate) revision: Revision,
}

const LANES: usize = 1024;

/// The running sum behind a [`StateDigest`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Sum(Arc<[u16; LANES]>);

impl Default for Sum {
    fn default() -> Self {
        Self(Arc::new([0; LANES]))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sum({})", self.digest())
    }
}

impl Sum {
    pub(crate) fn add(&mut self, entry: Counted) {
        let stretched = stretch(entry);
        for (lane, add) in Arc::make_mut(&mut self.0).iter_mut().zip(stretched.chunks_exact(2)) {
            *lane = lane.wrapping_add(u16::from_le_bytes([add[0], add[1]]));
        }
    }

    /// Adds all that another sum holds.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (lane, add) in Arc::make_mut(&mut self.0).iter_mut().zip(other.0.iter()) {
            *lane = lane.wrapping_add(*add);
        }
    }

    pub(crate) fn remove(&mut self, entry: Counted) {
        let stretched = stretch(entry);
        for (lane, add) in Arc::make_mut(&mut self.0).iter_mut().zip(stretched.chunks_exact(2)) {
            *lane = lane.wrapping_sub(u16::from_le_bytes([add[0], add[1]]));
        }
    }

    pub(crate) fn digest(&self) -> StateDigest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"state");
        let mut bytes = [0; LANES * 2];
        for (pair, lane) in bytes.chunks_exact_mut(2).zip(self.0.iter()) {
            pair.copy_from_slice(&lane.to_le_bytes());
        }
        hasher.update(&bytes);
        StateDigest(Hash(*hasher.finalize().as_bytes()))
    }
}

fn stretch(entry: Counted) -> [u8; LANES * 2] {
    let Counted { hash, uid, revision } = entry;
    let mut stretched = [0; LANES * 2];
    let mut hasher = blake3::Hasher::new();
    // Each part has a fixed length, so none can be mistaken for another.
    hasher.update(&hash.0).update(&uid.0.to_be_bytes()).update(&revision.0.to_be_bytes());
    hasher.finalize_xof().fill(&mut stretched);
    stretched
}

/// The hash of an input: a sum, modulo 2^64, over its fields. A sum, so that a poll adds up what catalog and cluster have worked out
/// beforehand; it tells the versions of an input apart, and proves nothing to somebody who forges one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct InputHash(u64);

impl InputHash {
    /// How many digits it is written with.
    pub(crate) const DIGITS: usize = 16;

    /// What one field adds, given its value as canonical JSON.
    pub(crate) fn of_field(name: &str, json: &str) -> Self {
        let Hash(bytes) = tagged("field", &[name.as_bytes(), json.as_bytes()]);
        let mut first = [0; 8];
        first.copy_from_slice(&bytes[..8]);
        Self(u64::from_be_bytes(first))
    }

    /// Its hexadecimal digits. Every input of every poll has them, so a byte is one look-up.
    pub(crate) fn digits(self) -> [u8; Self::DIGITS] {
        let pairs = self.0.to_be_bytes().map(|byte| PAIRS[usize::from(byte)]);
        let mut digits = [0; Self::DIGITS];
        for (to, pair) in digits.chunks_exact_mut(2).zip(pairs) {
            to.copy_from_slice(&pair);
        }
        digits
    }
}

/// The two hexadecimal digits of each byte.
const PAIRS: [[u8; 2]; 256] = {
    let digits = *b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

impl std::ops::Add for InputHash {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

impl std::ops::Sub for InputHash {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl std::iter::Sum for InputHash {
    fn sum<I: Iterator<Item = Self>>(fields: I) -> Self {
        fields.fold(Self::default(), |sum, field| sum + field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Counted> {
        let counted = |n: u64| Counted {
            hash: entry(&Key::document("namespaces", &*format!("n{n}")), "{}"),
            uid: Uid(u128::from(n)),
            revision: Revision(n),
        };
        (0..8).map(counted).collect()
    }

    fn sum(entries: impl IntoIterator<Item = Counted>) -> Sum {
        let mut sum = Sum::default();
        for entry in entries {
            sum.add(entry);
        }
        sum
    }

    #[test]
    fn the_sum_does_not_depend_on_order_and_removal_undoes_addition() {
        let mut forwards = sum(entries());
        let backwards = sum(entries().into_iter().rev());
        assert_eq!(forwards.digest(), backwards.digest());
        let mut parts = sum(entries().into_iter().take(3));
        parts.add_all(&sum(entries().into_iter().skip(3)));
        assert_eq!(forwards.digest(), parts.digest());
        for entry in entries() {
            forwards.remove(entry);
        }
        assert_eq!(forwards.digest(), Sum::default().digest());
        assert_ne!(backwards.digest(), Sum::default().digest());
    }

    #[test]
    fn another_uid_or_revision_is_another_digest() {
        let entry = entries()[3];
        let digests = [entry, Counted { uid: Uid(99), ..entry }, Counted { revision: Revision(99), ..entry }]
            .map(|entry| sum([entry]).digest());
        assert!(digests[0] != digests[1] && digests[0] != digests[2] && digests[1] != digests[2]);
    }

    #[test]
    fn a_boundary_moved_between_space_id_and_body_is_another_hash() {
        let of = |kind: &str, id: &str, body: &str| entry(&Key::document(kind, id), body);
        assert_ne!(of("a", "bc", "d"), of("ab", "c", "d"));
        assert_ne!(of("a", "b", "cd"), of("a", "bc", "d"));
    }

    #[test]
    fn the_hash_of_an_input_is_a_sum_that_overflows_quietly() {
        let (a, b) = (InputHash(u64::MAX), InputHash(2));
        assert_eq!(a + b, InputHash(1));
        assert_eq!(a + b - b, a);
        assert_eq!(&InputHash(0xab01).digits(), b"000000000000ab01");
    }

    #[test]
    fn a_printed_hash_reads_back() {
        let hash = entries()[0].hash;
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
        assert_eq!(Hash::parse("zz"), None);
        assert_eq!(Hash::parse(&"+1".repeat(32)), None);
        assert_eq!(Hash::parse(&"é".repeat(32)), None);
    }
}
