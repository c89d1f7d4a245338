//! A writer that is killed: what it acknowledged is there, and nothing is there by half.

use std::time::Duration;

use ledger::Feed;

use crate::fixture::{Fleet, grow, run};
use crate::place::Place;
use crate::process::{Other, Task};

#[test]
fn what_a_killed_writer_acknowledged_is_there_and_whole() {
    for round in 1..=5 {
        let place = Place::new();
        let writer = Other::start(Task::Write, &place.store());
        let first = writer.says();
        std::thread::sleep(Duration::from_millis(20 * round));
        let acknowledged = writer.kill().last().map_or(first, Clone::clone);
        run(async {
            let state = place.reader().load().await.expect("a verified fleet");
            let acknowledged: u64 = acknowledged.parse().expect("a number");
            assert!(state.head().revision.0 >= acknowledged, "{state:?} after {acknowledged}");
            grow(&place.writer(), &mut Fleet::at(state), "after").await;
        });
    }
}
