//! The last rows of a fleet, read on several threads: there are many of them, and to understand one takes longer than to fetch it. It
//! knows neither SQL nor what the rows are about.

use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread;

use fleet::{Diverged, Loader, ReadRows, Row, RowReader};

use super::fault::Fault;

/// How many rows a thread gets at once.
const BATCH: usize = 128;
/// How many batches may wait for a thread.
const WAITING: usize = 2;
/// The most threads besides the one that fetches.
const MOST: usize = 7;

type Outcome = Result<ReadRows, Diverged>;

/// Takes everything that can be fetched. The thread that fetches reads, too, while all others have enough to do.
pub(super) fn read(
    loader: &mut Loader,
    mut fetch: impl FnMut() -> Result<Option<Row>, Fault>,
) -> Result<(), Fault> {
    let catalog = loader.catalog();
    let mut own = RowReader::new(&catalog);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let (done, outcomes) = mpsc::channel::<Outcome>();
        let mut threads: Vec<SyncSender<Vec<Row>>> = Vec::new();
        loop {
            let mut batch = Vec::with_capacity(BATCH);
            while batch.len() < BATCH
                && let Some(row) = fetch()?
            {
                batch.push(row);
            }
            let is_last = batch.len() < BATCH;
            if !is_last && threads.is_empty() {
                for _ in 1..cores.clamp(1, MOST + 1) {
                    let (work, batches) = mpsc::sync_channel::<Vec<Row>>(WAITING);
                    let (done, mut reader) = (done.clone(), RowReader::new(&catalog));
                    scope.spawn(move || {
                        // Nobody takes the outcome once there was an error.
                        batches.iter().all(|batch| done.send(reader.read(batch)).is_ok())
                    });
                    threads.push(work);
                }
            }
            if let Some(batch) = handed_over(&threads, batch) {
                loader.take(own.read(batch)?);
            }
            if is_last {
                break;
            }
            while let Ok(read) = outcomes.try_recv() {
                loader.take(read?);
            }
        }
        drop((threads, done));
        outcomes.iter().try_for_each(|read| {
            loader.take(read?);
            Ok(())
        })
    })
}

/// Gives a batch to a thread that has room for it; gives it back if none has.
fn handed_over(threads: &[SyncSender<Vec<Row>>], mut batch: Vec<Row>) -> Option<Vec<Row>> {
    for thread in threads {
        match thread.try_send(batch) {
            Ok(()) => return None,
            Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => batch = back,
        }
    }
    Some(batch)
}

#[cfg(test)]
mod tests {
    use fleet::{Canonical, Key, Kind, Revision, Uid};

    use super::*;

    fn row(key: Key, body: String) -> Row {
        Row { key, body: Canonical::stored(body), revision: Revision(1), uid: Uid(1) }
    }

    fn kinds() -> Vec<Row> {
        let row = |kind: Kind| {
            let file = serde_json::to_string(kind.file()).expect("JSON");
            row(Key::Kind(kind.name().clone()), file)
        };
        Kind::shipped().into_iter().map(row).collect()
    }

    fn cluster(n: usize) -> Row {
        let id = format!("c{n}");
        let body = format!(
            r#"{{"cluster_dns":"{id}.example.com","cluster_name":"{id}","environment":"dev","id":"{id}"}}"#
        );
        row(Key::document("clusters", &*id), body)
    }

    #[test]
    fn rows_that_several_threads_read_come_to_what_one_reads() {
        for many in [0, 1, BATCH - 1, BATCH, BATCH + 1, 20 * BATCH + 7] {
            let mut alone = Loader::new(kinds()).expect("kinds");
            alone.push((0..many).map(cluster)).expect("rows");
            let mut together = Loader::new(kinds()).expect("kinds");
            let mut rows = (0..many).map(cluster);
            read(&mut together, || Ok(rows.next())).expect("rows");
            assert_eq!(together.digest(), alone.digest(), "{many}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_is_an_error_wherever_it_is() {
        for bad in [0, BATCH + 3, 9 * BATCH, 20 * BATCH - 1] {
            let mut loader = Loader::new(kinds()).expect("kinds");
            let mut rows = (0..20 * BATCH).map(|n| match cluster(n) {
                row if n == bad => Row { body: Canonical::stored("{}"), ..row },
                row => row,
            });
            assert!(read(&mut loader, || Ok(rows.next())).is_err(), "{bad}");
            let mut fetched = 0;
            let mut loader = Loader::new(kinds()).expect("kinds");
            let read = read(&mut loader, || {
                fetched += 1;
                if fetched > bad { Err(Fault::corrupt("no more")) } else { Ok(Some(cluster(fetched))) }
            });
            assert!(read.is_err(), "{bad}");
        }
    }
}
