//! Deflate (RFC 1951) for answers: texts of some kilobytes that say the same again and again.
//!
//! A general library spends most of its time on such a text before it begins: it clears tables for a window of 32 KiB and counts letters
//! for a code of their own. This one looks four bytes up in a small table, that it never clears, takes the first repetition that it
//! finds, and writes the code that is fixed in the standard. What it writes is about as long, in a quarter of the time.

/// How far back a repetition may lie.
const WINDOW: usize = 32 * 1024;
/// The longest repetition that can be written at once.
const LONGEST: usize = 258;
/// How many places the table remembers, as a power of two. With more it is pushed out of the nearest cache between two answers.
const PLACE_BITS: u32 = 11;
const PLACES: usize = 1 << PLACE_BITS;

/// A compressor, to be used again and again.
pub(super) struct Deflate {
    /// Where four bytes with this hash were last seen, counted from the beginning of all texts: what is before the beginning of this text
    /// belongs to another one.
    places: Box<[u32; PLACES]>,
    /// The bytes of all texts before this one.
    before: u32,
}

impl Deflate {
    pub(super) fn new() -> Self {
        // No text begins at 0: an empty place is before all of them.
        Self { places: Box::new([0; PLACES]), before: 1 }
    }

    /// Writes a text as one deflate stream.
    pub(super) fn write(&mut self, text: &[u8], out: Vec<u8>) -> Vec<u8> {
        // The last block, in the fixed code.
        let mut bits = Bits { out, waiting: 0b011, count: 3 };
        let before = self.begin(text.len());
        let mut at = 0;
        while let Some(here) = eight(text, at) {
            let place = &mut self.places[hash(here)];
            // A place of an earlier text is below `before`, and wraps around to beyond this text: `begin` keeps its end within 32 bits.
            let seen = place.wrapping_sub(before) as usize;
            *place = before.wrapping_add(position(at));
            if seen < at
                && at - seen <= WINDOW
                && let Some(there) = eight(text, seen)
                && first_four(here) == first_four(there)
            {
                let length = match here ^ there {
                    0 => 8 + alike(text, seen + 8, at + 8),
                    differs => differs.trailing_zeros() as usize / 8,
                };
                bits.repetition(length, at - seen);
                at += length;
            } else {
                bits.literal(here.to_le_bytes()[0]);
                at += 1;
            }
        }
        for byte in &text[at..] {
            bits.literal(*byte);
        }
        // The end of the block.
        bits.push(0, 7);
        bits.finish()
    }

    /// Where a text of this length begins. Once in four gigabytes the table is cleared, and the count begins anew.
    fn begin(&mut self, length: usize) -> u32 {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if self.before.checked_add(length).is_none() {
            *self = Self::new();
        }
        let before = self.before;
        self.before = before.saturating_add(length);
        before
    }
}

/// A place in a text. Beyond four gigabytes it is a wrong one, which costs a look at what is there.
fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn eight(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

fn first_four(eight: u64) -> u64 {
    eight & u64::from(u32::MAX)
}

/// The hash of the first four of eight bytes.
fn hash(eight: u64) -> usize {
    (first_four(eight).wrapping_mul(0x9e37_79b1) >> (32 - PLACE_BITS)) as usize % PLACES
}

/// How many bytes from one place on are those from a later one on, as far as that can be written after eight others.
fn alike(text: &[u8], one: usize, other: usize) -> usize {
    let most = (text.len() - other).min(LONGEST - 8);
    let (one, other) = (&text[one..], &text[other..other + most]);
    let mut length = 0;
    for (a, b) in one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0) {
        let differs = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differs != 0 {
            return length + differs.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    while length < most && one[length] == other[length] {
        length += 1;
    }
    length
}

/// Bits, the lowest first, on their way into bytes.
struct Bits {
    out: Vec<u8>,
    waiting: u64,
    count: u32,
}

impl Bits {
    /// At most 32 bits.
    fn push(&mut self, bits: u32, count: u32) {
        self.waiting |= u64::from(bits) << self.count;
        self.count += count;
        if self.count >= 32 {
            let [a, b, c, d, ..] = self.waiting.to_le_bytes();
            self.out.extend_from_slice(&[a, b, c, d]);
            self.waiting >>= 32;
            self.count -= 32;
        }
    }

    fn literal(&mut self, byte: u8) {
        let (code, count) = LITERALS[usize::from(byte)];
        self.push(code, count);
    }

    fn repetition(&mut self, length: usize, distance: usize) {
        let (code, count) = LENGTHS[length - 3];
        let distance = u32::try_from(distance - 1).unwrap_or_default();
        let (symbol, extra) = match distance {
            0..4 => (distance, 0),
            _ => {
                let extra = 30 - distance.leading_zeros();
                (2 * extra + (distance >> extra), extra)
            }
        };
        // Five bits, and then what the symbol leaves open: with the length that is 31 bits at most.
        let distance = DISTANCES[symbol as usize] | (distance & ((1 << extra) - 1)) << 5;
        self.push(code | distance << count, count + 5 + extra);
    }

    fn finish(mut self) -> Vec<u8> {
        let bytes = self.count.div_ceil(8) as usize;
        self.out.extend_from_slice(&self.waiting.to_le_bytes()[..bytes]);
        self.out
    }
}

/// The fixed code of a symbol for a literal or a length, ready to be written, and how many bits it has.
const fn fixed(symbol: u32) -> (u32, u32) {
    let (code, count) = match symbol {
        0..144 => (0x30 + symbol, 8),
        144..256 => (0x190 + symbol - 144, 9),
        256..280 => (symbol - 256, 7),
        _ => (0xc0 + symbol - 280, 8),
    };
    (code.reverse_bits() >> (32 - count), count)
}

/// The code of a symbol for a distance, the highest of its five bits first.
const DISTANCES: [u32; 32] = {
    let mut distances = [0; 32];
    let mut symbol: u32 = 0;
    while symbol < 32 {
        distances[symbol as usize] = symbol.reverse_bits() >> 27;
        symbol += 1;
    }
    distances
};

const LITERALS: [(u32, u32); 256] = {
    let mut literals = [(0, 0); 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        literals[byte as usize] = fixed(byte);
        byte += 1;
    }
    literals
};

/// How a length is written: its symbol, and what that leaves open. The first is that of 3.
const LENGTHS: [(u32, u32); LONGEST - 2] = {
    let mut lengths = [(0, 0); LONGEST - 2];
    let mut n: u32 = 0;
    while (n as usize) < LONGEST - 2 {
        let (symbol, extra) = match n {
            0..8 => (257 + n, 0),
            255 => (285, 0),
            _ => {
                let extra = n.ilog2() - 2;
                (257 + 4 * extra + (n >> extra), extra)
            }
        };
        let (code, count) = fixed(symbol);
        let open = n & ((1 << extra) - 1);
        lengths[n as usize] = (code | open << count, count + extra);
        n += 1;
    }
    lengths
};

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        flate2::read::DeflateDecoder::new(packed).read_to_end(&mut text).expect("deflate");
        text
    }

    /// Numbers that look drawn and are the same every time.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self, below: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap_or(0) % below
        }
    }

    #[test]
    fn every_length_at_every_sort_of_distance_unpacks() {
        let mut deflate = Deflate::new();
        // Each power of two is where a symbol for distances begins or ends; beyond 32,768 nothing is repeated.
        let borders = (0..=15).flat_map(|power| [1 << power, (1 << power) + 1, 3 << power >> 1]);
        for distance in borders.filter(|distance| *distance > 0) {
            let step = if distance < 1_024 { 1 } else { 37 };
            for length in (1..=300).step_by(step).chain([258, 259, 515, 516, 517, 518]) {
                let mut numbers = Numbers(7);
                let mut text: Vec<u8> = (0..distance).map(|_| numbers.next(256).to_le_bytes()[0]).collect();
                for n in 0..length {
                    text.push(text[n]);
                }
                assert!(unpacked(&deflate.write(&text, Vec::new())) == text, "{length} at {distance}");
            }
        }
    }

    #[test]
    fn texts_of_all_sorts_unpack_one_after_the_other() {
        let mut numbers = Numbers(1);
        let mut deflate = Deflate::new();
        for _ in 0..3_000 {
            let (letters, size, again) = (1 + numbers.next(256), numbers.next(3_000), 1 + numbers.next(200));
            let mut text: Vec<u8> = Vec::new();
            while text.len() < size {
                if !text.is_empty() && numbers.next(4) > 0 {
                    let (from, many) = (numbers.next(text.len()), numbers.next(again));
                    for n in from..from + many {
                        text.push(text[n]);
                    }
                } else {
                    text.push(numbers.next(letters).to_le_bytes()[0]);
                }
            }
            assert!(unpacked(&deflate.write(&text, Vec::new())) == text);
        }
    }

    #[test]
    fn after_four_gigabytes_the_count_begins_anew() {
        let text = b"the same again and again, the same again and again".repeat(20);
        let mut deflate = Deflate::new();
        let first = deflate.write(&text, Vec::new());
        deflate.before = u32::MAX - 1_500;
        assert!(deflate.write(&text, Vec::new()) == first && deflate.before == u32::MAX - 500);
        assert!(deflate.write(&text, Vec::new()) == first && deflate.before == 1_001);
    }

    #[test]
    fn every_byte_is_a_literal() {
        let text: Vec<u8> = (0..=255).collect();
        let mut deflate = Deflate::new();
        for _ in 0..2 {
            assert_eq!(unpacked(&deflate.write(&text, Vec::new())), text);
        }
        assert_eq!(unpacked(&Deflate::new().write(b"", Vec::new())), b"");
    }
}
