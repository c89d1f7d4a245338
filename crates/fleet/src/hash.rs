//! Hashes: of one entry, of the whole state, of a commit.
//!
//! The state's digest is a sum over all entries that does not depend on their order and is updated in the size of a change. A
//! plain sum of 256-bit hashes can be forged with many chosen entries (Wagner's generalised birthday), so each entry's
//! hash is first stretched to 1,024 lanes of 16 bits and the lanes are added: the `LtHash` construction.

use std::fmt;
use std::sync::Arc;

use crate::ids::{Key, Revision};

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

/// The digest of everything a [`crate::State`] holds, but for revision numbers. Not to be mistaken for the hash of a commit.
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

/// The hash of one entry: its key and canonical body, without any revision.
pub(crate) fn entry(key: &Key, body: &str) -> Hash {
    tagged("entry", &[key.kind.as_str().as_bytes(), key.id.as_str().as_bytes(), body.as_bytes()])
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
    pub(crate) fn add(&mut self, entry: Hash) {
        let stretched = stretch(entry);
        for (lane, add) in Arc::make_mut(&mut self.0).iter_mut().zip(stretched.chunks_exact(2)) {
            *lane = lane.wrapping_add(u16::from_le_bytes([add[0], add[1]]));
        }
    }

    pub(crate) fn remove(&mut self, entry: Hash) {
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

fn stretch(entry: Hash) -> [u8; LANES * 2] {
    let mut stretched = [0; LANES * 2];
    blake3::Hasher::new().update(&entry.0).finalize_xof().fill(&mut stretched);
    stretched
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes() -> Vec<Hash> {
        (0..8).map(|n| entry(&Key::new("namespaces", &format!("n{n}")), "{}")).collect()
    }

    #[test]
    fn the_sum_does_not_depend_on_order_and_removal_undoes_addition() {
        let (mut forwards, mut backwards) = (Sum::default(), Sum::default());
        for hash in hashes() {
            forwards.add(hash);
        }
        for hash in hashes().into_iter().rev() {
            backwards.add(hash);
        }
        assert_eq!(forwards.digest(), backwards.digest());
        for hash in hashes() {
            forwards.remove(hash);
        }
        assert_eq!(forwards.digest(), Sum::default().digest());
        assert_ne!(backwards.digest(), Sum::default().digest());
    }

    #[test]
    fn a_boundary_moved_between_id_and_body_is_another_hash() {
        assert_ne!(entry(&Key::new("a", "bc"), "d"), entry(&Key::new("ab", "c"), "d"));
        assert_ne!(entry(&Key::new("a", "b"), "cd"), entry(&Key::new("a", "bc"), "d"));
    }

    #[test]
    fn a_printed_hash_reads_back() {
        let hash = hashes()[0];
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
        assert_eq!(Hash::parse("zz"), None);
        assert_eq!(Hash::parse(&"+1".repeat(32)), None);
        assert_eq!(Hash::parse(&"é".repeat(32)), None);
    }
}
