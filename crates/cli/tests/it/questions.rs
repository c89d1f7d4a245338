//! On a terminal somebody is asked.

use std::thread;
use std::time::Duration;

use crate::frs::{Desk, World};
use crate::proxy::{Fate, between};
use crate::snapshot::snapshot;
use crate::terminal::{END, Terminal};

const CHANGE: &str = "unassign namespace team-b --cluster east";

/// The end of a session in which this was answered.
fn answered(world: &World, line: &str, answer: &str) -> (Option<i32>, String) {
    Terminal::start(&world.desk, line).until("[y/N] ").types(answer).end()
}

#[test]
fn a_yes_carries_the_plan_out() {
    for answer in ["y\n", "Yes\n"] {
        let world = World::new();
        let (code, screen) = answered(&world, CHANGE, answer);
        assert_eq!((code, world.service.head()), (Some(0), 2), "{screen}");
    }
}

#[test]
fn anything_else_does_not() {
    let world = World::new();
    for answer in ["n\n", "\n", "yesterday\n", END] {
        let (code, screen) = answered(&world, CHANGE, answer);
        assert_eq!((code, world.service.head()), (Some(1), 1), "{answer:?}: {screen}");
        assert!(screen.contains("Nothing was changed."), "{screen}");
    }
}

/// A `y` that was meant for something else, or pasted, agreed to a plan that nobody had seen.
#[test]
fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let world = World::new();
    let slow = between(world.service.address, |_| {
        thread::sleep(Duration::from_millis(500));
        Fate::Forward
    });
    let terminal = Terminal::start(&Desk::at(&slow), CHANGE).types("y\n");
    let (code, screen) = terminal.until("[y/N] ").types("n\n").end();
    assert_eq!((code, world.service.head()), (Some(1), 1), "{screen}");
}

#[test]
fn the_question_follows_the_plan() {
    let world = World::new().with("NO_COLOR", "1");
    let (_, no) = answered(&world, CHANGE, "n\n");
    let (_, end) = answered(&world, CHANGE, END);
    let (_, yes) = answered(&world, CHANGE, "y\n");
    snapshot!([no, end, yes].join("\n--\n"));
}

#[test]
fn with_yes_nobody_is_asked() {
    let world = World::new();
    let (code, screen) = Terminal::start(&world.desk, &format!("{CHANGE} --yes")).end();
    assert_eq!((code, world.service.head()), (Some(0), 2), "{screen}");
    assert!(!screen.contains("[y/N]"), "{screen}");
}
