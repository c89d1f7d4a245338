//! `apply` of more than one transaction takes.

use std::fmt::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::frs::{Desk, FRS, World, words};
use crate::http::request;
use crate::proxy::{Fate, between, is_commit};
use crate::snapshot::snapshot;
use crate::terminal::Terminal;

const NAMESPACES: &str = "kind: namespace\nid: team-x\n---\nkind: namespace\nid: team-y\n---\nkind: namespace\nid: team-a\nlabels: {team: a, cost: '1'}\n";
const SOUTH: &str = "kind: cluster\nid: south\ncluster_name: south\ncluster_dns: south.k8s.example.com\nenvironment: dev\nnamespaces: [{id: team-x}]\nplatform_components: [{id: one}, {id: two}]\n";
const COMPONENTS: &str = "kind: platform_component\nid: two\ncomponent_path: two\noci_url: oci://example.com/charts/two\noci_tag: 1.0.0\ndepends_on: [one]\n---\nkind: platform_component\nid: one\ncomponent_path: one\noci_url: oci://example.com/charts/one\noci_tag: 1.0.0\n";

/// Clusters first: the order of the files is not the one in which the parts can be made.
fn fleet() -> String {
    [SOUTH, COMPONENTS, NAMESPACES].join("---\n")
}

fn namespaces(number: usize) -> String {
    (0..number).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "kind: ns\nid: n-{number:05}\n---");
        text
    })
}

/// The batches that are to change something, counted; what becomes of each is decided by its number.
fn counting(
    world: &World,
    decide: impl Fn(usize) -> Fate + Send + Sync + 'static,
) -> (Desk, Arc<AtomicUsize>) {
    let commits = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&commits);
    let url = between(world.service.address, move |request| {
        if is_commit(request) { decide(seen.fetch_add(1, Ordering::SeqCst) + 1) } else { Fate::Forward }
    });
    (Desk::at(&url), commits)
}

#[test]
fn parts_are_told_planned_and_made_in_an_order_that_works() {
    let world = World::new();
    world.desk.file("fleet.yaml", &fleet());
    let text = world.transcript(&[
        "apply -f fleet.yaml --batch-size 2",
        "apply -f fleet.yaml --batch-size 2 --plan",
        "apply -f fleet.yaml --batch-size 2 --yes --reason 'from Git'",
        "apply -f fleet.yaml --batch-size 2 --yes",
    ]);
    assert_eq!(world.service.head(), 4, "{text}");
    snapshot!(text);
}

#[test]
fn what_fits_is_one_batch_as_ever() {
    let (small, usual) = (World::new(), World::new());
    let run = |world: &World, flag: &str| {
        world.desk.file("fleet.yaml", &fleet());
        world.frs(&format!("apply -f fleet.yaml --yes{flag}")).expect(0)
    };
    let (one, other) = (run(&small, " --batch-size 6"), run(&usual, ""));
    assert_eq!((one.stdout, one.stderr), (other.stdout, other.stderr));
    assert_eq!((small.service.head(), usual.service.head()), (2, 2));
}

#[test]
fn programs_get_one_json_document_for_each_part() {
    let world = World::new();
    world.desk.file("n.yaml", NAMESPACES);
    let text = world.transcript(&[
        "apply -f n.yaml --batch-size 2 --plan -o name",
        "apply -f n.yaml --batch-size 2 --yes -o json",
        "apply -f n.yaml --batch-size 2 --yes -o name",
    ]);
    snapshot!(text);
    let world = World::new();
    world.desk.file("fleet.yaml", &fleet());
    let plans = world.frs("apply -f fleet.yaml --batch-size 5 --plan -o json").expect(0);
    let plans: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&plans.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON");
    assert_eq!(
        (&plans[0]["part"], &plans[0]["parts"], &plans[0]["changed"]),
        (&json!(1), &json!(2), &json!(5))
    );
    assert_eq!((&plans[1]["part"], &plans[1]["waits"]["status"]), (&json!(2), &json!(422)));
}

#[test]
fn a_part_that_fails_says_what_was_made_and_the_same_command_goes_on() {
    let world = World::new();
    let (desk, _) = counting(&world, |number| match number {
        2 => Fate::Answer(
            "503 Service Unavailable\r\ncontent-type: application/problem+json",
            r#"{"type": "urn:flux-resourceset:unavailable", "title": "The service cannot answer now", "status": 503, "detail": "the store cannot be written now"}"#,
        ),
        _ => Fate::Forward,
    });
    desk.file("fleet.yaml", &fleet());
    let first = desk.frs("apply -f fleet.yaml --batch-size 2 --yes").expect(1);
    assert_eq!(world.service.head(), 2);
    let second = desk.frs("apply -f fleet.yaml --batch-size 2 --yes").expect(0);
    assert_eq!(world.service.head(), 4);
    snapshot!([first.to_string(), second.to_string()].join("\n"));
}

#[test]
fn an_answer_that_is_lost_leaves_one_part_open_and_no_more() {
    let world = World::new();
    let (desk, commits) = counting(&world, |number| if number == 2 { Fate::Lose } else { Fate::Forward });
    desk.file("fleet.yaml", &fleet());
    let run = desk.frs("apply -f fleet.yaml --batch-size 2 --yes").expect(1);
    assert_eq!((commits.load(Ordering::SeqCst), world.service.head()), (2, 3));
    desk.frs("apply -f fleet.yaml --batch-size 2 --yes").expect(0);
    assert_eq!(world.service.head(), 4);
    snapshot!(run.to_string());
}

#[test]
fn a_part_whose_effects_move_is_not_made() {
    let world = World::new();
    let service = world.service.address;
    let commits = AtomicUsize::new(0);
    let url = between(service, move |asked| {
        if is_commit(asked) && commits.fetch_add(1, Ordering::SeqCst) == 1 {
            let label = json!({"labels": {"cost": "2"}});
            request("PATCH", "/namespaces/team-a", Some(&label)).exchange(service).expect("an answer");
        }
        Fate::Forward
    });
    let run = Desk::at(&url).piped("apply -f - --batch-size 2 --yes", NAMESPACES).expect(3);
    assert_eq!(world.document("/namespaces/team-a")["labels"]["cost"], "2");
    snapshot!(run.to_string());
}

/// A mistake in the last of many documents was found when the others were made.
#[test]
fn what_is_wrong_in_a_later_part_is_found_before_the_first_is_made() {
    let world = World::new();
    let wrong = [NAMESPACES, "kind: cluster\nid: x\nenvironment: moon\n", "kind: ns\nid: kube-x\n"];
    world.desk.file("wrong.yaml", &wrong.join("---\n"));
    world.desk.file("names.yaml", NAMESPACES);
    world.desk.file("moon.yaml", &fleet().replace("environment: dev", "environment: moon"));
    snapshot!(world.harmless(&[
        "apply -f moon.yaml --batch-size 2 --yes",
        "apply -f wrong.yaml --batch-size 2 --yes",
        "apply -f wrong.yaml --batch-size 2 --plan",
        "apply -f names.yaml --batch-size 2 --expect 000011112222",
        "apply -f names.yaml --batch-size 0 --yes",
        "apply -f names.yaml --batch-size 10001 --yes",
    ]));
}

/// Until its clusters have what it will depend on, the service refuses the component.
#[test]
fn a_component_gets_a_new_dependency_after_its_clusters_have_it() {
    let world = World::new();
    let cluster = |id: &str| {
        let mut cluster = world.document(&format!("/clusters/{id}"));
        cluster["kind"] = "cluster".into();
        let references = cluster["platform_components"].as_array_mut().expect("references");
        references.push(json!({"id": "traefik"}));
        cluster
    };
    let mut podinfo = world.document("/platform_components/podinfo");
    podinfo["kind"] = "component".into();
    podinfo["depends_on"] = json!(["cert-manager", "traefik"]);
    let mut traefik = world.document("/platform_components/traefik");
    traefik["kind"] = "component".into();
    traefik["oci_tag"] = "34.0.0".into();
    let files = json!([podinfo, cluster("east"), cluster("west"), cluster("north"), traefik]);
    let run = world.desk.piped("apply -f - --batch-size 2 --yes", &files.to_string()).expect(0);
    assert_eq!(world.service.head(), 4, "{run}");
    assert_eq!(
        world.document("/platform_components/podinfo")["depends_on"],
        json!(["cert-manager", "traefik"])
    );
}

#[test]
fn on_a_terminal_each_part_is_asked_about() {
    let world = World::new().with("NO_COLOR", "1");
    world.desk.file("n.yaml", NAMESPACES);
    let (code, screen) = Terminal::start(&world.desk, "apply -f n.yaml --batch-size 2")
        .until("Carry out part 1 of 2? [y/N] ")
        .types("y\n")
        .until("Carry out part 2 of 2? [y/N] ")
        .types("n\n")
        .end();
    assert_eq!((code, world.service.head()), (Some(1), 2), "{screen}");
    snapshot!(screen);
}

#[test]
fn more_documents_than_one_transaction_takes_are_applied() {
    let world = World::new();
    let many = namespaces(10_001);
    let plan = world.desk.piped("apply -f - --plan", &many).expect(0);
    assert!(plan.stdout.contains("  part 2 of 2: 1 namespace (1 new)\n"), "{}", plan.stdout);
    let run = world.desk.piped("apply -f - --yes", &many).expect(0);
    assert!(run.stderr.contains("Made part 2 of 2: revision 3."), "{}", run.stderr);
    assert_eq!(world.service.head(), 3);
    world.desk.piped("apply -f - --yes", &many).expect(0);
    assert_eq!(world.service.head(), 3);
    world.desk.piped("diff -f -", &many).expect(0);
}

/// A request of more than 8 MiB is refused, however few documents are in it.
#[test]
fn more_bytes_than_one_request_takes_are_applied() {
    let world = World::new();
    let note = "x".repeat(60_000);
    let many = (0..150).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "kind: ns\nid: n-{number:03}\nannotations: {{example.com/note: {note}}}\n---");
        text
    });
    world.desk.piped("diff -f -", &many).expect(1);
    let run = world.desk.piped("apply -f - --yes -o name", &many).expect(0);
    assert!(run.stderr.contains("150 documents to apply, in 2 parts"), "{}", run.stderr);
    assert_eq!((run.stdout.lines().count(), world.service.head()), (150, 3));
}

/// Until the namespaces are made nobody can tell what is wrong with the cluster, and what only waits for them.
#[test]
fn a_mistake_that_only_shows_in_its_turn_stops_there() {
    let world = World::new();
    let patches = "environment: dev\npatches: {absent: {a: b}}";
    world.desk.file("fleet.yaml", &fleet().replace("environment: dev", patches));
    let run = world.frs("apply -f fleet.yaml --batch-size 2 --yes").expect(1);
    assert_eq!(world.service.head(), 3);
    snapshot!(
        run.stderr.lines().rev().take(4).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
    );
    world.desk.file("fleet.yaml", &fleet());
    world.frs("apply -f fleet.yaml --batch-size 2 --yes").expect(0);
    assert_eq!(world.service.head(), 4);
}

/// `frs apply … | head`.
#[test]
fn a_reader_that_stops_does_not_stop_the_parts() {
    let world = World::new();
    world.desk.file("fleet.yaml", &fleet());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = world.desk.command(FRS);
    command.args(words("apply -f fleet.yaml --batch-size 2 --yes")).stdout(writer);
    command.stdin(Stdio::null()).stderr(Stdio::null()).status().expect("an end");
    assert_eq!(world.service.head(), 4);
}
