//! A look into the `-wal` before SQLite recovers it. SQLite reads a `-wal` up to the first frame that does not fit and forgets the
//! rest: right for a write that was torn by a power cut, wrong for a disk that lost a bit in the middle, after which acknowledged
//! commits follow. This tells the two apart. It knows the file format of the `-wal` and nothing of what is in its pages; opening the
//! `-wal` is harmless, as SQLite's locks are on other files.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;
use std::time::Duration;

use super::file::{sibling, unreachable};
use super::mark::advice;
use crate::error::FeedError;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;
/// What SQLite takes for new databases; if the header does not say it.
const PAGE: usize = 4096;

/// A live writer may be in the middle of the file: look again before refusing.
const LOOKS: usize = 3;
const BETWEEN: Duration = Duration::from_millis(10);

/// How many bytes a `-wal` with so many frames has at least.
pub(super) fn length(frames: u64, page: u64) -> u64 {
    if frames == 0 { 0 } else { HEADER as u64 + frames * (FRAME_HEADER as u64 + page) }
}

/// Refuses a `-wal` in which two or more commits that follow each other come after a frame that does not fit. One may: a commit that
/// failed, or whose process was killed in the middle, can leave one behind.
pub(super) fn must_be_whole(database: &Path) -> Result<(), FeedError> {
    match damage(database)? {
        None => Ok(()),
        Some(damage) => Err(FeedError::Behind(format!("{damage}. {}", advice(None)))),
    }
}

/// What is wrong with a `-wal`, if something is.
pub(super) fn damage(database: &Path) -> Result<Option<String>, FeedError> {
    let path = sibling(database, "-wal");
    let mut scanned = Scan::default();
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(BETWEEN);
        }
        scanned = match File::open(&path) {
            Ok(file) => {
                scan(BufReader::with_capacity(1 << 16, file)).map_err(|error| unreachable(&path, &error))?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreachable(&path, &error)),
        };
        if scanned.commits_after < 2 {
            return Ok(None);
        }
    }
    Ok(Some(format!(
        "{} is damaged in frame {}, and {} commits follow that SQLite would forget",
        path.display(),
        scanned.good + 1,
        scanned.commits_after
    )))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Scan {
    /// How many frames fit, from the beginning.
    good: usize,
    /// How many commits that follow each other come after the first frame that does not fit.
    commits_after: usize,
}

fn scan(mut wal: impl Read) -> io::Result<Scan> {
    let mut header = [0; HEADER];
    if !fill(&mut wal, &mut header)? {
        return Ok(Scan::default());
    }
    let page = usize::try_from(word(&header, 8)).unwrap_or(0);
    let known = word(&header, 0) & !1 == MAGIC && page.is_power_of_two() && (512..=65_536).contains(&page);
    let mut sum = Sum { big_endian: word(&header, 0) & 1 == 1, s1: 0, s2: 0 };
    sum.add(&header[..24]);
    let mut fits = known && sum.is(&header[24..]);
    if !fits {
        // SQLite ignores a whole `-wal` whose header does not fit. Then it is taken as SQLite writes it here, with the salts of the
        // first frame.
        sum.big_endian = cfg!(target_endian = "big");
    }
    let mut salts = fits.then(|| [word(&header, 16), word(&header, 20)]);
    let mut frame = vec![0; FRAME_HEADER + if fits { page } else { PAGE }];
    let mut scanned = Scan::default();
    // Commits since the last frame that did not follow the one before it.
    let mut run = 0;
    while fill(&mut wal, &mut frame)? {
        let (head, body) = frame.split_at(FRAME_HEADER);
        let found = [word(head, 8), word(head, 12)];
        let ours = *salts.get_or_insert(found) == found && word(head, 0) != 0;
        sum.add(&head[..8]);
        sum.add(body);
        let follows = ours && sum.is(&head[16..]);
        if fits && follows {
            scanned.good += 1;
            continue;
        }
        if !follows {
            run = 0;
            // From here on each frame is compared with what the one before it says, right or wrong.
            sum.continue_from(&head[16..]);
        }
        // The first frame that does not fit is not one of those that follow it.
        if !fits && ours && word(head, 4) != 0 {
            run += 1;
        }
        scanned.commits_after = scanned.commits_after.max(run);
        fits = false;
    }
    Ok(scanned)
}

/// Reads as much as fits; `false` if there is less.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The running checksum of a `-wal`: over its header, then frame by frame.
struct Sum {
    big_endian: bool,
    s1: u32,
    s2: u32,
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let number = |at: usize, pair: &[u8]| {
            let number = word(pair, at);
            if self.big_endian { number } else { number.swap_bytes() }
        };
        let (mut s1, mut s2) = (self.s1, self.s2);
        for pair in bytes.chunks_exact(8) {
            s1 = s1.wrapping_add(number(0, pair)).wrapping_add(s2);
            s2 = s2.wrapping_add(number(4, pair)).wrapping_add(s1);
        }
        (self.s1, self.s2) = (s1, s2);
    }

    fn continue_from(&mut self, stored: &[u8]) {
        (self.s1, self.s2) = (word(stored, 0), word(stored, 4));
    }

    fn is(&self, stored: &[u8]) -> bool {
        [self.s1, self.s2] == [word(stored, 0), word(stored, 4)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `-wal` of some commits, as SQLite writes it, and how many frames each has.
    fn written(commits: i64) -> Vec<u8> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("any.db");
        let connection = rusqlite::Connection::open(&path).expect("a database");
        connection.pragma_update(None, "journal_mode", "WAL").expect("set");
        connection.execute_batch("CREATE TABLE t (x)").expect("a table");
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("empty");
        for n in 0..commits {
            connection.execute("INSERT INTO t VALUES (?1)", [n]).expect("a commit");
        }
        std::fs::read(sibling(&path, "-wal")).expect("a wal")
    }

    fn frame(n: usize) -> usize {
        HEADER + n * (FRAME_HEADER + PAGE)
    }

    #[test]
    fn what_sqlite_wrote_fits_to_the_last_frame() {
        let wal = written(5);
        assert_eq!(wal.len(), frame(5), "a frame for each commit");
        assert_eq!(scan(&*wal).expect("read"), Scan { good: 5, commits_after: 0 });
        assert_eq!(length(5, PAGE as u64), wal.len() as u64);
        assert_eq!(scan(&[][..]).expect("read"), Scan::default());
        assert_eq!(
            scan(&wal[..frame(3) + 100]).expect("read"),
            Scan { good: 3, commits_after: 0 },
            "a torn tail"
        );
    }

    #[test]
    fn commits_after_a_flipped_bit_are_counted_wherever_in_its_frame_it_is() {
        for at in [0, 4, 9, 13, 17, 23, FRAME_HEADER, FRAME_HEADER + PAGE - 1] {
            let mut wal = written(5);
            wal[frame(1) + at] ^= 1;
            assert_eq!(scan(&*wal).expect("read"), Scan { good: 1, commits_after: 3 }, "byte {at}");
        }
    }

    #[test]
    fn commits_after_a_damaged_header_are_counted() {
        for at in 0..HEADER {
            let mut wal = written(3);
            wal[at] ^= 0x10;
            assert_eq!(scan(&*wal).expect("read"), Scan { good: 0, commits_after: 3 }, "byte {at}");
        }
    }

    /// As two commits leave them whose processes were killed before anybody could see them, and that others wrote over in part.
    #[test]
    fn commits_that_do_not_follow_each_other_are_no_damage() {
        let (mut one, two) = (written(6), written(6));
        let salts = two[16..24].to_vec();
        // The `-wal` is `two` up to frame 2, then the last frame of a failed commit, then those of an earlier one.
        one[..frame(2)].copy_from_slice(&two[..frame(2)]);
        for n in 2..6 {
            one[frame(n) + 8..frame(n) + 16].copy_from_slice(&salts);
            one[frame(n) + 16] ^= u8::try_from(n).expect("small");
        }
        assert_eq!(scan(&*one).expect("read"), Scan { good: 2, commits_after: 1 });
    }

    /// After a checkpoint SQLite begins at the front again, with other salts: what follows is no damage.
    #[test]
    fn what_is_left_of_an_earlier_use_of_the_file_is_no_damage() {
        let (mut old, new) = (written(5), written(2));
        old[..new.len()].copy_from_slice(&new);
        assert_eq!(scan(&*old).expect("read"), Scan { good: 2, commits_after: 0 });
    }
}
