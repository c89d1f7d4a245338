//! On a terminal somebody is asked.

use crate::frs::World;
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
