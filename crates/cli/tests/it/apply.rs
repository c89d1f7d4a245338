//! `apply`.

use serde_json::json;

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::frs::World;
use crate::snapshot::snapshot;

const NEW: &str = "kind: namespace\nid: team-c\nlabels: {team: c}\n";
const CHANGED: &str = "kind: namespace\nid: team-a\nlabels: {team: a, cost: '1'}\n";
const SAME: &str =
    "kind: namespace\nid: team-b\nannotations: {example.com/owner: b@example.com}\nlabels: {team: b}\n";

#[test]
fn created_changed_and_unchanged_are_told_apart_and_are_one_revision() {
    let world = World::new();
    world.desk.file("fleet.yaml", &[NEW, CHANGED, SAME].join("---\n"));
    let text = world.transcript(&[
        "apply -f fleet.yaml",
        "apply -f fleet.yaml --plan",
        "apply -f fleet.yaml --yes --reason 'from Git'",
        "apply -f fleet.yaml --yes",
        "apply -f fleet.yaml --plan",
        "apply -f fleet.yaml --yes -o json",
        "apply -f fleet.yaml --yes -o name",
    ]);
    assert_eq!(world.service.head(), 2);
    snapshot!(text);
}

/// The service names the first thousand of them only.
#[test]
fn of_very_many_none_is_called_unchanged_that_was_changed() {
    let world = World::new();
    let many =
        (0..1_002).fold(SAME.to_owned(), |text, number| text + &format!("---\nkind: ns\nid: n-{number}\n"));
    let run = world.desk.piped("apply -f - --yes", &many).expect(0);
    let unchanged: Vec<&str> = run.stdout.lines().filter(|line| line.ends_with(" unchanged")).collect();
    assert_eq!(unchanged, ["namespaces/team-b unchanged"]);
    assert_eq!(run.stdout.lines().filter(|line| line.ends_with(" created")).count(), 1_000);
    assert!(run.stdout.contains("\nand 2 more\n"), "{}", run.stdout);
    let again = world.desk.piped("apply -f - --plan -o json", &many).expect(0);
    assert_eq!(again.json()["changed"], 0);
}

/// What is there already is no reason to agree to another plan.
#[test]
fn a_plan_of_nothing_is_a_plan_like_others() {
    let world = World::new();
    world.desk.file("same.yaml", SAME);
    let plan = world.frs("apply -f same.yaml --plan -o json").expect(0).json();
    assert_eq!((&plan["changed"], &plan["removals"]["inputs"]), (&json!(0), &json!(0)));
    world.frs("apply -f same.yaml --expect 000011112222").expect(3);
    let name = plan["plan"].as_str().expect("a name");
    world.frs(&format!("apply -f same.yaml --expect {name}")).expect(0);
    let shown = world.frs("apply -f same.yaml --plan").expect(0);
    assert_eq!((shown.stdout.trim(), shown.stderr.trim()), ("Nothing would change.", ""));
    assert_eq!(world.service.head(), 1);
}

#[test]
fn links_that_lead_back_are_said_and_do_not_run_on() {
    let world = World::new();
    world.desk.file("loop/a/x.yaml", NEW);
    for (name, folder) in [("back", "a"), ("again", "b")] {
        world.desk.file(&format!("loop/{folder}/y.yaml"), CHANGED);
        std::os::unix::fs::symlink("..", world.desk.path(&format!("loop/{folder}/{name}"))).expect("a link");
    }
    let run = world.frs("apply -f loop --yes").expect(1);
    assert!(run.stderr.contains("leads back to"), "{run}");
}

/// The lock of an editor is a hidden link to nowhere, beside the file that is being edited.
#[test]
fn what_is_hidden_or_no_document_does_not_get_in_the_way() {
    let world = World::new();
    world.desk.file("d/a.yaml", NEW);
    for (name, to) in [("d/.#a.yaml", "me@host.1:2"), ("d/README", "nowhere"), ("d/.self", ".")] {
        std::os::unix::fs::symlink(to, world.desk.path(name)).expect("a link");
    }
    // Who opened it would wait for ever.
    mkfifoat(CWD, world.desk.path("d/pipe.yaml"), Mode::RWXU).expect("a pipe");
    world.frs("apply -f d --yes").expect(0);
    assert_eq!(world.service.head(), 2);
    std::os::unix::fs::symlink("nowhere", world.desk.path("d/b.yaml")).expect("a link");
    let run = world.frs("apply -f d --yes").expect(1);
    assert!(run.stderr.contains("b.yaml cannot be read: No such file"), "{run}");
}

#[test]
fn a_document_becomes_what_the_file_says() {
    let world = World::new();
    world.desk.file("b.yaml", "kind: ns\nid: team-b\n");
    world.frs("apply -f b.yaml --yes").expect(0);
    assert_eq!(world.document("/namespaces/team-b"), json!({"id": "team-b"}));
}

#[test]
fn folders_files_and_stdin_in_yaml_and_json_are_read() {
    let world = World::new();
    world.desk.file("fleet/a.yaml", NEW);
    world.desk.file("fleet/more/b.yml", "kind: namespaces\nid: team-d\n");
    world
        .desk
        .file("fleet/more/c.json", r#"[{"kind": "ns", "id": "team-e"}, {"kind": "ns", "id": "team-f"}]"#);
    world.desk.file("fleet/.hidden.yaml", "kind: nothing\n");
    world.desk.file("fleet/README.md", "nothing: at all\n");
    world.desk.file(
        "lines.json",
        "{\"kind\": \"ns\", \"id\": \"team-g\"}\n{\"kind\": \"ns\", \"id\": \"team-h\"}\n",
    );
    let run =
        world.desk.piped("apply -f fleet -f lines.json -f - --yes", "kind: ns\nid: team-i\n---\n").expect(0);
    assert_eq!(world.service.head(), 2);
    snapshot!(run.to_string());
}

#[test]
fn a_cluster_and_what_it_needs_come_in_any_order() {
    let world = World::new();
    world.desk.file(
        "south.yaml",
        "kind: cluster\nid: south\ncluster_name: south\ncluster_dns: south.k8s.example.com\nenvironment: dev\n\
         namespaces: [{id: team-z}, {id: team-a}]\n---\nkind: namespace\nid: team-z\n",
    );
    snapshot!(world.transcript(&["apply -f south.yaml --yes", "apply -f south.yaml --yes"]));
}

#[test]
fn what_is_wrong_is_said_with_file_and_document_and_nothing_is_done() {
    let world = World::new();
    for (name, text) in [
        (
            "two-wrong.yaml",
            "kind: namespace\nid: fine\n---\nkind: cluster\nid: x\nenvironment: moon\n---\nkind: ns\nid: kube-x\n",
        ),
        ("no-kind.yaml", "kind: ns\nid: a\n---\nid: b\n"),
        ("no-id.yaml", "kind: ns\n"),
        ("unknown-kind.yaml", "kind: pod\nid: a\n"),
        ("kind-is-no-text.yaml", "kind: 7\nid: a\n"),
        ("no-object.yaml", "- a\n- b\n"),
        ("broken.yaml", "kind: ns\nid: [\n"),
        ("broken.json", "{\"kind\": \"ns\",\n \"id\": }\n"),
        ("twice.yaml", "kind: ns\nid: a\n---\nkind: ns\nid: a\n"),
        ("empty.yaml", "# nothing\n"),
        ("duplicate-key.yaml", "kind: ns\nid: a\nid: b\n"),
        (
            "dns-moved.yaml",
            "kind: cluster\nid: west\ncluster_name: west\ncluster_dns: other.example.com\nenvironment: prod\n",
        ),
    ] {
        world.desk.file(name, text);
    }
    std::fs::create_dir(world.desk.path("empty-folder")).expect("a folder");
    let files = world.desk.files("");
    let lines: Vec<String> = files.iter().map(|file| format!("apply -f {file} --yes")).collect();
    let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    lines.extend(["apply -f nowhere.yaml --yes", "apply -f empty-folder --yes", "apply -f - --yes"]);
    snapshot!(world.harmless(&lines));
}

#[test]
fn many_documents_of_a_kind_are_compared_too() {
    let world = World::new();
    let many =
        (0..40).fold(String::new(), |text, number| text + &format!("kind: ns\nid: n-{number:02}\n---\n"));
    world.desk.piped("apply -f - --yes", &many).expect(0);
    let again = world.desk.piped("apply -f - --yes", &many).expect(0);
    assert_eq!(world.service.head(), 2);
    assert_eq!(again.stdout.lines().filter(|line| line.ends_with(" unchanged")).count(), 40, "{again}");
}
