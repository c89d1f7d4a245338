//! Colours are for terminals, and for those who want them. Nothing forces them into a file.

use crate::frs::World;
use crate::snapshot::snapshot;
use crate::terminal::Terminal;

const REMOVAL: &str = "unassign namespace team-b --cluster east --plan";

#[test]
fn a_terminal_sees_what_is_deleted_in_red() {
    let world = World::new();
    let (code, screen) = Terminal::start(&world.desk, REMOVAL).end();
    assert_eq!(code, Some(0));
    assert!(screen.contains(r"\e[31m  - namespaces/team-b on 1 cluster: east (removed)\e[0m"), "{screen}");
    snapshot!(screen);
}

#[test]
fn with_no_color_a_terminal_has_none() {
    let world = World::new().with("NO_COLOR", "1");
    for line in [REMOVAL, "describe cluster east", "get clusters nobody", "doctor"] {
        let (_, screen) = Terminal::start(&world.desk, line).end();
        assert!(!screen.contains(r"\e["), "{screen}");
    }
}

#[test]
fn without_a_terminal_there_are_none() {
    let world = World::new().with("TERM", "xterm-256color").with("CLICOLOR_FORCE", "1");
    for line in [REMOVAL, "describe cluster east", "get clusters nobody", "doctor", "frobnicate", "--help"] {
        let run = world.frs(line);
        assert!(!format!("{}{}", run.stdout, run.stderr).contains('\u{1b}'), "{run}");
    }
}
