//! `demo`.

use crate::frs::{FRS, World};
use crate::snapshot::snapshot;
use crate::terminal::Terminal;

fn everything(world: &World) -> String {
    world.frs("export").expect(0).stdout + &world.frs("get decommissioned -o json").expect(0).stdout
}

#[test]
fn the_walk_through_shows_each_step_and_leaves_nothing_behind() {
    let world = World::new();
    let before = everything(&world);
    let run = world.frs("demo --yes").expect(0);
    assert_eq!(everything(&world), before);
    assert!(world.service.head() > 1);
    snapshot!(run.to_string());
}

#[test]
fn what_one_that_was_broken_off_has_left_is_removed() {
    let world = World::new();
    let before = everything(&world);
    for line in [
        "create namespace frs-demo-team-a --set labels.team=a --yes",
        "create cluster frs-demo-east --dns frs-demo-east.frs-demo.invalid --environment dev --set namespaces.frs-demo-team-a={} --yes",
        "create cluster frs-demo-west --like frs-demo-east --yes",
        "decommission frs-demo-west --yes",
    ] {
        world.frs(line).expect(0);
    }
    let text = world.transcript(&["demo --clean", "demo --clean"]);
    assert_eq!(everything(&world), before);
    snapshot!(text);
}

#[test]
fn one_that_nobody_reads_any_more_says_what_it_has_left() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = world.desk.command(FRS).args(["demo", "--yes"]).stdout(writer).output().expect("an end");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).expect("UTF-8"),
        "error: the walk-through is broken off\nnext: `frs demo --clean` removes what it has left\n"
    );
}

#[test]
fn what_only_has_the_same_name_is_not_touched() {
    let world = World::new();
    world.frs("create namespace frs-demo-team-a --set labels.team=ours --yes").expect(0);
    snapshot!(world.harmless(&["demo --yes", "demo --clean"]));
}

#[test]
fn on_a_terminal_it_waits_for_enter() {
    let world = World::new();
    let before = everything(&world);
    let start = |answer: &str| Terminal::start(&world.desk, "demo").until("[y/N] ").types(answer);
    assert_eq!(start("n\n").end().0, Some(1), "there is a fleet already");
    let terminal = start("y\n").until("Press Enter to do it. ");
    assert_eq!(everything(&world), before, "nothing happens before that");
    let (code, screen) = terminal.types(&"\n".repeat(9)).end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(screen.matches("Press Enter to do it.").count(), 9, "{screen}");
    assert_eq!(everything(&world), before);
}

#[test]
fn without_a_terminal_somebody_must_say_yes() {
    let world = World::new();
    snapshot!(world.harmless(&["demo", "demo --yes --clean"]));
}
