//! A writer that is killed: what it acknowledged is there, and nothing is there by half.

use std::time::Duration;

use crate::place::Place;
use crate::process::{Other, Task};
use ledger_conformance::fixture::{Fleet, grow};

#[test]
fn what_a_killed_writer_acknowledged_is_there_and_whole() {
    for round in 1..=5 {
        let place = Place::new();
        let writer = Other::start(Task::Write, &place.store());
        let first = writer.says();
        std::thread::sleep(Duration::from_millis(20 * round));
        let acknowledged = writer.kill().last().map_or(first, Clone::clone);
        let state = place.reader().load().expect("a verified fleet");
        let acknowledged: u64 = acknowledged.parse().expect("a number");
        assert!(state.head().revision.0 >= acknowledged, "{state:?} after {acknowledged}");
        grow(&mut place.writer(), &mut Fleet::at(state), "after");
    }
}

/// While a reader lives, nobody recovers the `-wal`: what a killed writer left in it is written over, in part. That is no damage, and
/// a mark that a killed writer did not write is no reason to refuse.
#[test]
fn a_store_whose_writers_are_killed_again_and_again_is_never_refused_and_loses_nothing() {
    let place = Place::new();
    drop(place.writer());
    let reader = place.reader();
    let mut acknowledged = 0;
    for round in 0..12 {
        let writers = [Other::start(Task::Write, &place.store()), Other::start(Task::Write, &place.store())];
        for writer in &writers {
            // It opened the store and appended.
            acknowledged = acknowledged.max(writer.says().parse().expect("a number"));
        }
        std::thread::sleep(Duration::from_millis(7 * round));
        for said in writers.into_iter().flat_map(Other::kill) {
            acknowledged = acknowledged.max(said.parse().expect("a number"));
        }
        let head = reader.load().expect("a verified fleet").head().revision.0;
        assert!(head >= acknowledged, "{head} after {acknowledged}");
    }
    println!("{acknowledged} acknowledged");
}
