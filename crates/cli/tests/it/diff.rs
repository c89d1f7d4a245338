//! `diff`.

use crate::frs::{FRS, World};
use crate::snapshot::snapshot;

#[test]
fn a_difference_is_shown_and_is_exit_code_1() {
    let world = World::new();
    world.desk.file("new.yaml", "kind: ns\nid: team-c\nlabels: {team: c}\n");
    world.desk.file("changed.yaml", "kind: ns\nid: team-a\nlabels: {team: a, cost: '1'}\n");
    world.desk.file("same.yaml", "kind: ns\nid: team-a\nlabels: {team: a}\nannotations: null\n");
    world.desk.file("broken.yaml", "kind: ns\nid: [\n");
    snapshot!(world.harmless(&[
        "diff -f new.yaml",
        "diff -f changed.yaml -f new.yaml",
        "diff -f same.yaml",
        "diff -f broken.yaml",
        "diff -f nowhere.yaml",
    ]));
    // They differ, whether or not anybody reads how.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut unread = world.desk.command(FRS);
    let output = unread.args(["diff", "-f", "new.yaml"]).stdout(writer).output().expect("an end");
    assert_eq!(output.status.code(), Some(1));
    let references = world.frs("get cluster east -o json").expect(0).stdout;
    world.desk.piped("diff -f -", &references).expect(0);
}
