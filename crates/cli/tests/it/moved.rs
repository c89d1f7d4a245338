//! What happens if the fleet changes between the plan and the change: somebody stands between, and changes it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::fleet::fleet;
use crate::frs::{Desk, World};
use crate::http::{Message, request};
use crate::proxy::{Fate, between, is_commit};
use crate::service::Service;
use crate::snapshot::snapshot;

const CHANGE: &str = "patch component podinfo --set oci_tag=7.0.0 --yes";

/// Makes this write before the first of the given number of commits arrives.
fn meddling(
    service: SocketAddr,
    times: usize,
    write: impl Fn(usize) -> Message + Send + Sync + 'static,
) -> String {
    let seen = AtomicUsize::new(0);
    between(service, move |request| {
        if is_commit(request) {
            let number = seen.fetch_add(1, Ordering::SeqCst);
            if number < times {
                let answer = write(number).exchange(service).expect("an answer");
                assert!(answer.word(1).starts_with('2'), "{}", String::from_utf8_lossy(&answer.body));
            }
        }
        Fate::Forward
    })
}

fn tag(world: &World) -> Value {
    world.document("/platform_components/podinfo")["oci_tag"].clone()
}

#[test]
fn effects_that_moved_are_shown_and_nothing_is_done() {
    let world = World::new();
    let url = meddling(world.service.address, 1, |_| {
        request("DELETE", "/clusters/west/platform_components/podinfo", None)
    });
    let run = Desk::at(&url).frs(CHANGE).expect(3);
    assert_eq!((tag(&world), world.service.head()), (json!("6.7.1"), 2));
    snapshot!(run.to_string());
}

#[test]
fn a_change_elsewhere_is_no_reason_to_stop() {
    let world = World::new();
    let url = meddling(world.service.address, 3, |number| {
        request("POST", "/namespaces", Some(&json!({"id": format!("new-{number}")})))
    });
    let run = Desk::at(&url).frs(CHANGE).expect(0);
    assert_eq!((tag(&world), world.service.head()), (json!("7.0.0"), 5));
    snapshot!(run.to_string());
}

#[test]
fn a_document_that_somebody_else_changed_is_not_replaced_by_a_file() {
    let world = World::new();
    let url = meddling(world.service.address, 1, |_| {
        request("PATCH", "/namespaces/team-a", Some(&json!({"labels": {"cost": "1"}})))
    });
    let run = Desk::at(&url).piped("apply -f - --yes", "kind: ns\nid: team-a\n");
    assert_ne!(run.code, Some(0));
    assert_eq!(world.document("/namespaces/team-a")["labels"], json!({"team": "a", "cost": "1"}));
    snapshot!(run.to_string());
}

/// It was as in the file when that was compared, so it was no part of the change; and was then said to be unchanged.
#[test]
fn what_somebody_else_changes_meanwhile_is_not_said_to_be_unchanged() {
    let world = World::new();
    let url = meddling(world.service.address, 1, |_| {
        request("PATCH", "/namespaces/team-a", Some(&json!({"labels": {"cost": "1"}})))
    });
    let files = "kind: ns\nid: spare\nlabels: {a: b}\n---\nkind: ns\nid: team-a\nlabels: {team: a}\n";
    let run = Desk::at(&url).piped("apply -f - --yes", files).expect(1);
    assert_eq!(world.document("/namespaces/spare")["labels"], json!({"a": "b"}));
    snapshot!(run.to_string());
}

#[test]
fn nor_if_there_is_nothing_else_to_change() {
    let world = World::new();
    let service = world.service.address;
    let url = between(service, move |asked| {
        if asked.word(1).starts_with("/batch") {
            let label = json!({"labels": {"cost": "1"}});
            request("PATCH", "/namespaces/team-a", Some(&label)).exchange(service).expect("an answer");
        }
        Fate::Forward
    });
    let files = "kind: ns\nid: spare\n---\nkind: ns\nid: team-a\nlabels: {team: a}\n";
    let run = Desk::at(&url).piped("apply -f - --yes", files).expect(1);
    assert!(run.stderr.contains("nothing was to be changed, but namespaces/team-a is no longer"), "{run}");
}

#[test]
fn an_expected_plan_that_is_not_possible_any_more_has_moved() {
    let world = World::new();
    let line = "assign namespace spare --cluster east";
    let plan = world.frs(&format!("{line} --plan -o json")).expect(0).json();
    world.frs("delete namespace spare --yes").expect(0);
    world.frs(&format!("{line} --expect {}", plan["plan"].as_str().expect("a name"))).expect(3);
    world.frs(&format!("{line} --yes")).expect(1);
}

#[test]
fn what_is_not_possible_any_more_has_moved_too() {
    let world = World::new();
    let url = meddling(world.service.address, 1, |_| request("DELETE", "/clusters/west", None));
    let run = Desk::at(&url).frs("patch cluster west --set labels.a=b --yes").expect(3);
    snapshot!(run.to_string());
}

#[test]
fn a_fleet_that_never_rests_is_given_up_on() {
    let world = World::new();
    let url = meddling(world.service.address, usize::MAX, |number| {
        request("POST", "/namespaces", Some(&json!({"id": format!("new-{number}")})))
    });
    let run = Desk::at(&url).frs(CHANGE).expect(1);
    assert_eq!(tag(&world), "6.7.1");
    snapshot!(run.to_string());
}

/// What was sent as `X-Confirm` and `X-Plan-Revision`, commit by commit.
type Notes = Arc<Mutex<Vec<[Option<String>; 2]>>>;

/// Takes notes of what is sent.
fn listening(service: SocketAddr) -> (String, Notes) {
    let heard = Notes::default();
    let notes = Arc::clone(&heard);
    let url = between(service, move |request| {
        if is_commit(request) {
            let header = |name| request.header(name).map(ToOwned::to_owned);
            notes.lock().expect("notes").push(["x-confirm", "x-plan-revision"].map(header));
        }
        Fate::Forward
    });
    (url, heard)
}

#[test]
fn the_guard_is_told_exactly_the_removals_that_were_shown() {
    let world = World::of(Service::with(&fleet(), &[("GUARD_CLUSTERS", "1")]));
    let (url, heard) = listening(world.service.address);
    let desk = Desk::at(&url);
    let plan = desk.frs("unassign namespace team-a -l region --plan -o json").expect(0).json();
    let confirm = plan["confirm"].as_str().expect("the guard asks").to_owned();
    let done = desk.frs("unassign namespace team-a -l region --max-removals 3").expect(0);
    desk.frs("assign namespace team-a --cluster east --yes").expect(0);
    let heard = heard.lock().expect("notes").clone();
    assert_eq!(heard, [[Some(confirm.clone()), Some("1".to_owned())], [None, Some("2".to_owned())]]);
    snapshot!(done.to_string().replace(&confirm, "CONFIRM"));
}

#[test]
fn more_removals_than_were_shown_are_not_confirmed() {
    let world = World::of(Service::with(&fleet(), &[("GUARD_CLUSTERS", "1")]));
    let url = meddling(world.service.address, 1, |_| {
        request("PATCH", "/clusters/west", Some(&json!({"labels": {"region": "eu"}})))
    });
    let run = Desk::at(&url).frs("unassign namespace team-a -l region=eu --max-removals 5").expect(3);
    assert_eq!(world.service.head(), 2);
    snapshot!(run.to_string());
}

#[test]
fn an_answer_that_is_lost_leaves_it_open_whether_the_change_was_made() {
    let world = World::new();
    let url =
        between(world.service.address, |request| if is_commit(request) { Fate::Lose } else { Fate::Forward });
    let run = Desk::at(&url).frs(CHANGE).expect(1);
    assert_eq!(tag(&world), "7.0.0", "it was made");
    snapshot!(run.to_string());
}

/// What is said if this is the answer to the change itself.
fn answered(head: &'static str, body: &'static str) -> String {
    let world = World::new();
    let url = between(world.service.address, move |request| {
        if is_commit(request) { Fate::Answer(head, body) } else { Fate::Forward }
    });
    Desk::at(&url).frs(CHANGE).expect(1).to_string()
}

#[test]
fn so_does_a_gateway_that_answers_for_the_service() {
    snapshot!(answered("504 Gateway Timeout", "<html>gateway timeout</html>"));
}

#[test]
fn so_does_a_service_that_does_not_know_itself() {
    let unknown = r#"{"type": "urn:flux-resourceset:unavailable", "title": "The service cannot answer now", "status": 503,
        "detail": "whether this change was made is not known: read the document again before you repeat it", "outcome_unknown": true}"#;
    snapshot!(answered("503 Service Unavailable", unknown));
}
