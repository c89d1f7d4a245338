//! What every change has in common: its plan, and who agrees to it.

use crate::frs::{FRS, World};
use crate::snapshot::snapshot;

const CHANGE: &str = "patch component podinfo --set oci_tag=7.0.0";

#[test]
fn what_was_done_is_told_even_if_the_result_cannot_be_written() {
    let world = World::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let words = ["patch", "ns", "spare", "--set", "labels.a=b", "--yes"];
    let output = world.desk.command(FRS).args(words).stdout(full).output().expect("an end");
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((output.status.code(), world.service.head()), (Some(1), 2));
    assert!(told.contains("\nRevision 2.\nerror: the output cannot be written"), "{told}");
}

#[test]
fn without_anybody_to_ask_a_change_is_only_shown() {
    let world = World::new();
    let run = world.frs(CHANGE).expect(1);
    assert_eq!(run.stdout, "");
    assert_eq!(world.service.head(), 1);
    snapshot!(run.to_string());
}

#[test]
fn a_plan_is_data_if_it_is_what_was_asked_for() {
    let world = World::new();
    let lines = [
        format!("{CHANGE} --plan"),
        format!("{CHANGE} --plan -o json"),
        format!("{CHANGE} --plan -o name"),
        "unassign namespace team-a -l region --plan".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for line in &lines {
        assert_eq!(world.frs(line).expect(0).stderr, "", "{line}");
    }
    snapshot!(world.harmless(&lines));
}

#[test]
fn yes_agrees_to_the_plan_that_is_shown() {
    let world = World::new();
    let text = world.transcript(&[
        &format!("{CHANGE} --yes --reason 'größer, schöner'"),
        &format!("{CHANGE} --yes"),
        &format!("{CHANGE} --plan"),
        "patch component podinfo --set oci_tag=7.0.1 --yes -o json",
        "patch component podinfo --set oci_tag=7.0.1 --yes -o json",
        "patch component podinfo --set oci_tag=7.0.2 -y -o name",
        "audit --limit 3",
    ]);
    assert_eq!(world.document("/platform_components/podinfo")["oci_tag"], "7.0.2");
    snapshot!(text);
}

#[test]
fn a_plan_of_earlier_is_agreed_to_by_its_digest() {
    let world = World::new();
    let planned = world.frs(&format!("{CHANGE} --plan -o json")).expect(0).json();
    let digest = planned["plan"].as_str().expect("a digest").to_owned();
    // Something else happens, which these clusters see nothing of.
    world.frs("create namespace other --yes").expect(0);
    let wrong = world.frs(&format!("{CHANGE} --yes --expect 000011112222")).expect(3);
    assert_eq!(world.service.head(), 2);
    let right = world.frs(&format!("{CHANGE} --expect {digest}")).expect(0);
    assert_eq!(world.service.head(), 3);
    let text = [wrong, right].map(|run| run.to_string()).join("\n");
    snapshot!(text.replace(&digest, "DIGEST"));
}

#[test]
fn a_plan_that_does_something_else_by_now_is_not_carried_out() {
    let world = World::new();
    let planned = world.frs(&format!("{CHANGE} --plan -o json")).expect(0).json();
    let digest = planned["plan"].as_str().expect("a digest").to_owned();
    world.frs("set override podinfo --cluster west oci_tag=6.6.6 --yes").expect(0);
    let run = world.frs(&format!("{CHANGE} --yes --expect {digest}")).expect(3);
    assert_eq!(world.document("/platform_components/podinfo")["oci_tag"], "6.7.1");
    snapshot!(run.to_string().replace(&digest, "DIGEST"));
}

#[test]
fn a_plan_that_somebody_else_has_carried_out_is_another_by_now() {
    let world = World::new();
    let planned = world.frs(&format!("{CHANGE} --plan -o json")).expect(0).json();
    let digest = planned["plan"].as_str().expect("a digest").to_owned();
    world.frs(&format!("{CHANGE} --yes")).expect(0);
    let run = world.frs(&format!("{CHANGE} --expect {digest}")).expect(3);
    assert_eq!(world.service.head(), 2);
    snapshot!(run.to_string().replace(&digest, "DIGEST"));
}

#[test]
fn a_reason_is_one_line() {
    let world = World::new();
    let run = world.frs(&format!("{CHANGE} --yes --reason 'one\ntwo'")).expect(2);
    assert_eq!(world.service.head(), 1);
    snapshot!(run.to_string());
}

#[test]
fn a_plan_of_many_documents_names_the_first_of_them() {
    let world = World::new();
    let many =
        (0..30).fold(String::new(), |text, number| text + &format!("kind: ns\nid: n-{number:02}\n---\n"));
    let shown = world.desk.piped("apply -f - --plan", &many).expect(0);
    let done = world.desk.piped("apply -f - --yes", &many).expect(0);
    snapshot!([shown, done].map(|run| run.to_string()).join("\n"));
}
