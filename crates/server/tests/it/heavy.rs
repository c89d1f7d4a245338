//! Heavy tasks: few at a time, a few more wait, others are told to come again; and polls do not notice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use axum::response::IntoResponse;
use http::StatusCode;
use ledger::{FeedError, History, Memory, Most, Paged, Query, Record};
use serde_json::{Value, json};
use server::config::Mode;
use server::heavy::Heavy;
use server::metrics::Metrics;
use server::problem::Answered;
use tokio::task::JoinHandle;

use crate::api::{ADMIN, Answer, Api, fill, small_fleet};

/// A door that tasks wait at until it is opened.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    fn wait(&self) {
        let (open, changed) = &*self.0;
        let opened = changed.wait_while(open.lock().expect("not poisoned"), |open| !*open);
        drop(opened.expect("not poisoned"));
    }

    fn open(&self) {
        let (open, changed) = &*self.0;
        *open.lock().expect("not poisoned") = true;
        changed.notify_all();
    }
}

async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

fn heavy() -> (Arc<Heavy>, Metrics) {
    let metrics = Metrics::new();
    let heavy = Heavy::start(Memory::new().open().history, 4, &metrics).expect("threads");
    (Arc::new(heavy), metrics)
}

fn refused(metrics: &Metrics, task: &str) -> String {
    let name = format!("flux_resourceset_busy_refusals_total{{task=\"{task}\"}} ");
    let text = metrics.text();
    text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or("none").to_owned()
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a task gives")]
fn done() -> Answered {
    Ok(StatusCode::OK.into_response())
}

/// Asks for a plan that counts itself and then waits at the door.
fn plan_behind(heavy: &Arc<Heavy>, door: &Door, begun: &Arc<AtomicUsize>) -> JoinHandle<Answered> {
    let (heavy, door, begun) = (heavy.clone(), door.clone(), begun.clone());
    let work = move || {
        begun.fetch_add(1, Ordering::SeqCst);
        door.wait();
        done()
    };
    tokio::spawn(async move { heavy.plan(false, work).await })
}

#[tokio::test]
async fn two_plans_are_worked_out_eight_wait_and_others_are_told_to_come_again() {
    let (heavy, metrics) = heavy();
    let (door, begun) = (Door::default(), Arc::new(AtomicUsize::new(0)));
    let plan = || plan_behind(&heavy, &door, &begun);
    let tasks: Vec<_> = (0..10).map(|_| plan()).collect();
    eventually("two are worked out", || begun.load(Ordering::SeqCst) == 2).await;
    let response = heavy.plan(false, done).await.into_response();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!((refused(&metrics, "plan"), refused(&metrics, "read")), ("1".to_owned(), "0".to_owned()));
    // Plans do not keep reads from being done.
    assert_eq!(heavy.read(false, |_| done()).await.into_response().status(), 200);
    door.open();
    for task in tasks {
        assert_eq!(task.await.expect("no panic").into_response().status(), 200);
    }
    assert_eq!(begun.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn a_task_whose_client_has_gone_is_not_begun_and_makes_room_for_another() {
    let (heavy, _) = heavy();
    let (door, begun) = (Door::default(), Arc::new(AtomicUsize::new(0)));
    let plan = || plan_behind(&heavy, &door, &begun);
    let first = [plan(), plan()];
    eventually("two are worked out", || begun.load(Ordering::SeqCst) == 2).await;
    let gone: Vec<_> = (0..8).map(|_| plan()).collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(heavy.plan(false, done).await.into_response().status(), 503);
    for task in gone {
        task.abort();
        assert!(task.await.is_err());
    }
    let last = plan();
    tokio::time::sleep(Duration::from_millis(50)).await;
    door.open();
    for task in first.into_iter().chain([last]) {
        assert_eq!(task.await.expect("no panic").into_response().status(), 200);
    }
    assert_eq!(begun.load(Ordering::SeqCst), 3, "those that had gone were not begun");
}

#[tokio::test]
async fn an_answer_holds_its_place_until_it_is_sent() {
    let (heavy, _) = heavy();
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(heavy.plan(false, done).await.expect("a place"));
    }
    assert_eq!(heavy.plan(false, done).await.into_response().status(), 503);
    held.pop();
    assert_eq!(heavy.plan(false, done).await.into_response().status(), 200);
}

#[tokio::test]
async fn a_task_that_panics_is_a_bug_and_its_thread_goes_on() {
    let (heavy, _) = heavy();
    for _ in 0..5 {
        let response = heavy.read(false, |_| panic!("as it happens")).await.into_response();
        assert_eq!(response.status(), 500);
    }
    assert_eq!(heavy.read(false, |_| done()).await.into_response().status(), 200);
}

#[tokio::test]
async fn bodies_that_are_being_read_or_wait_have_room_for_four_of_the_largest() {
    let (heavy, metrics) = heavy();
    let mut rooms: Vec<_> = (0..4).map(|_| heavy.room_for(api::MAX_BODY).expect("there is room")).collect();
    let refusal = heavy.room_for(1).map(drop).expect_err("it is full").into_response();
    assert_eq!((refusal.status().as_u16(), &*refused(&metrics, "body")), (503, "1"));
    assert_eq!(refusal.headers()["retry-after"], "5");
    rooms.pop();
    assert!(heavy.room_for(1).is_ok());
}

/// Four of them, with two bytes each, stopped every change for as long as they liked.
#[tokio::test]
async fn bodies_that_do_not_come_take_no_room_from_others() {
    let api = Arc::new(Api::crud().await);
    let stalled: Vec<_> = (0..6)
        .map(|_| {
            let api = api.clone();
            let begun = futures_util::stream::iter([Ok::<_, std::io::Error>("{ ")]);
            let never = futures_util::stream::pending();
            let request = http::Request::builder()
                .method("POST")
                .uri("/batch")
                .header("authorization", format!("Bearer {ADMIN}"))
                .header("content-type", "application/json")
                .body(axum::body::Body::from_stream(futures_util::StreamExt::chain(begun, never)))
                .expect("a request");
            tokio::spawn(async move { api.send(request).await.status })
        })
        .collect();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert!(stalled.iter().all(|request| !request.is_finished()), "they wait for the rest");
    api.call("PATCH", "/namespaces/team-b", &[], json!({"labels": {"a": "b"}})).await.expect(200);
    stalled.iter().for_each(JoinHandle::abort);
}

/// A past that does not answer until it is let.
struct Slow {
    door: Door,
    inner: Arc<dyn History>,
}

impl History for Slow {
    fn history(&self, query: &Query) -> Result<Vec<Record>, FeedError> {
        self.door.wait();
        self.inner.history(query)
    }

    fn changes(&self, of: fleet::Revision, from: usize, most: Most) -> Result<Vec<ledger::Edit>, FeedError> {
        self.inner.changes(of, from, most)
    }

    fn versions(
        &self,
        key: &fleet::Key,
        before: Option<fleet::Revision>,
        most: Most,
    ) -> Result<Paged<ledger::Version>, FeedError> {
        self.inner.versions(key, before, most)
    }
}

/// Sends many requests at once.
async fn many(api: &Arc<Api>, count: usize, path: &'static str) -> Vec<tokio::task::JoinHandle<Answer>> {
    let asked = (0..count).map(|_| {
        let api = api.clone();
        tokio::spawn(async move { api.get(path).await })
    });
    let asked = asked.collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polls_and_writes_are_answered_while_more_ask_about_the_past_than_can_wait() {
    let store = Memory::new();
    fill(&store, &small_fleet()).await;
    let mut opened = store.open();
    let door = Door::default();
    opened.history = Arc::new(Slow { door: door.clone(), inner: opened.history });
    let api = Arc::new(Api::on_store(Mode::Crud, opened));
    let inputs = api.inputs("one.example.com", "platform-components").await;
    let waiting = many(&api, 40, "/revisions").await;
    for _ in 0..20 {
        assert_eq!(api.inputs("one.example.com", "platform-components").await, inputs);
    }
    api.call("PATCH", "/namespaces/team-a", &[], json!({"labels": {"a": "b"}})).await.expect(200);
    let plan = json!({"labels": {"a": "c"}});
    api.call("PATCH", "/namespaces/team-a?dry_run=true", &[], plan).await.expect(200);
    let too_many = api.get("/clusters").await;
    assert_eq!(too_many.problem(), (503, "unavailable".to_owned()));
    assert_eq!(too_many.header("retry-after"), "5");
    door.open();
    let mut statuses = Vec::new();
    for answer in waiting {
        let answer = answer.await.expect("no panic");
        statuses.push(answer.status.as_u16());
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), "5");
        }
    }
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(200), count(503)), (32, 8));
}

#[tokio::test]
async fn pages_end_early_when_their_documents_are_large_and_the_link_leads_on() {
    let api = Api::crud().await;
    // Each version has about 60 kB before and after.
    let text = |n: usize| format!("{n:03}{}", "x".repeat(60_000));
    for n in 0..40 {
        let body = json!({"annotations": {"example.com/text": text(n)}});
        api.call("PATCH", "/namespaces/team-a", &[], body).await.expect(200);
    }
    let mut path = "/namespaces/team-a/history?limit=1000".to_owned();
    let (mut pages, mut told) = (0, Vec::new());
    loop {
        let answer = api.get(&path).await.expect(200);
        assert!(answer.bytes.len() < 3 * 1024 * 1024, "{} bytes", answer.bytes.len());
        pages += 1;
        let versions = answer.json();
        for version in versions.as_array().expect("a list") {
            let text = |side: &str| {
                version[side]["annotations"]["example.com/text"].as_str().map(|t| t[..3].to_owned())
            };
            told.push((text("before"), text("after")));
        }
        match answer.header("link").strip_prefix('<').and_then(|link| link.split('>').next()) {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(pages, 3, "about 2 MiB each");
    let number = |n: usize| Some(format!("{n:03}"));
    let mut expected: Vec<_> = (1..40).rev().map(|n| (number(n - 1), number(n))).collect();
    expected.extend([(None, number(0)), (None, None)]);
    assert_eq!(told, expected);
}

#[tokio::test]
async fn one_revision_with_large_documents_comes_in_several_pages() {
    let api = Api::crud().await;
    let body =
        |n: usize| json!({"id": format!("n{n:02}"), "annotations": {"example.com/text": "x".repeat(60_000)}});
    let create = |n: usize| json!({"op": "create", "kind": "namespaces", "body": body(n)});
    let operations: Vec<Value> = (0..50).map(create).collect();
    api.call("POST", "/batch", &[], json!({"operations": operations})).await.expect(200);
    let first = api.get("/revisions/2?limit=1000").await.expect(200);
    let changes = first.json()["changes"].as_array().map_or(0, Vec::len);
    assert_eq!(changes, 2 * 1024 * 1024 / 60_000 + 1);
    assert_eq!(first.header("link"), format!("</revisions/2?limit=1000&offset={changes}>; rel=\"next\""));
    let rest = api.get(&format!("/revisions/2?limit=1000&offset={changes}")).await.expect(200);
    assert_eq!(rest.json()["changes"].as_array().map_or(0, Vec::len), 50 - changes);
    assert_eq!(rest.header("link"), "");
    // The list of the same documents.
    let list = api.get("/namespaces?limit=1000").await.expect(200);
    assert!(list.bytes.len() < 3 * 1024 * 1024);
    assert_eq!(list.header("x-total-count"), "52");
    assert!(list.header("link").contains("after="), "{}", list.header("link"));
}
