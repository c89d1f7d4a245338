//! Many who ask for what takes long, at once, while clusters poll: every answer is right or says when to come again, no poll is refused,
//! and memory stays bounded. How long polls take is measured by `make bench-starvation`.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fleet::{Folder, admin, small_fleet};
use crate::http::{Answer, Connection};
use crate::pollers::{Pollers, Right};
use crate::service::{Service, Settings};

const CLUSTERS: usize = 400;
const PLANNERS: usize = 24;
const HISTORIANS: usize = 48;
const TURNS: usize = 4;
/// What the tasks may add to the memory of the process.
const MIB: usize = 400;

/// The small fleet, and more clusters beside those that are polled.
fn fleet() -> Value {
    let mut fleet = small_fleet([]);
    let more = (0..CLUSTERS).map(|n| {
        json!({"id": format!("c{n:03}"), "cluster_name": "c", "cluster_dns": format!("c{n:03}.example.com"),
               "environment": "qa", "platform_components": [{"id": "podinfo"}], "namespaces": [{"id": "team-b"}]})
    });
    fleet["clusters"].as_array_mut().expect("a list").extend(more);
    fleet
}

fn most_resident_mib(service: &Service) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
}

/// How many were answered, and how many were told to come again.
#[derive(Default)]
struct Tally(AtomicUsize, AtomicUsize);

impl Tally {
    fn note(&self, answer: &Answer, is_right: impl FnOnce(&Answer) -> bool) {
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), Some("5"), "{}", answer.text());
            assert!(!answer.text().contains("outcome_unknown"), "{}", answer.text());
            self.1.fetch_add(1, Ordering::Relaxed);
        } else {
            assert!(is_right(answer), "{}: {:.300}", answer.status, answer.text());
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn told(&self) -> (usize, usize) {
        (self.0.load(Ordering::Relaxed), self.1.load(Ordering::Relaxed))
    }
}

#[test]
fn polls_go_on_while_many_ask_for_plans_histories_and_large_writes() {
    let folder = Folder::new(&fleet());
    let service = Settings::crud(&folder).start().ready();
    let close = [("connection", "close")];
    // A namespace that nobody has, with a long history of large documents.
    service.exchange(&admin("POST", "/namespaces", &close, Some(&json!({"id": "spare"})))).expect(201);
    for n in 0..60 {
        let body = json!({"annotations": {"example.com/text": format!("{n}{}", "x".repeat(60_000))}});
        service.exchange(&admin("PATCH", "/namespaces/spare", &close, Some(&body))).expect(200);
    }
    let label = |value: &str| {
        let patch = json!({"op": "patch", "kind": "clusters", "selector": "environment=qa", "body": {"labels": {"wave": value}}});
        json!({"operations": [patch]})
    };
    let right = Right::of(&service);
    let before = most_resident_mib(&service);
    let pollers = Pollers::start(service.address, 3, Duration::from_millis(5), &right);
    let (plans, histories, writes) = (Tally::default(), Tally::default(), Tally::default());
    thread::scope(|scope| {
        for client in 0..PLANNERS {
            let (service, label, plans) = (&service, &label, &plans);
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let body = label(&format!("plan-{client}-{turn}"));
                    let answer = service.exchange(&admin("POST", "/batch?dry_run=true", &close, Some(&body)));
                    plans
                        .note(&answer, |answer| answer.status == 200 && answer.json()["changed"] == CLUSTERS);
                }
            });
        }
        for _ in 0..HISTORIANS {
            let (service, histories) = (&service, &histories);
            scope.spawn(move || {
                for _ in 0..TURNS {
                    let answer = service.get("/namespaces/spare/history?limit=1000");
                    histories.note(&answer, |answer| {
                        let told = answer.json().as_array().map_or(0, Vec::len);
                        answer.status == 200 && (10..61).contains(&told) && answer.header("link").is_some()
                    });
                }
            });
        }
        let (service, label, writes) = (&service, &label, &writes);
        scope.spawn(move || {
            for turn in 0..TURNS {
                let body = label(&format!("write-{turn}"));
                let answer = service.exchange(&admin("POST", "/batch", &close, Some(&body)));
                writes.note(&answer, |answer| answer.status == 200);
            }
        });
    });
    let polls = pollers.stop();
    assert_eq!((polls.unavailable, polls.failed), (0, 0), "no poll is refused: {polls:?}");
    assert!(polls.right > 20, "{polls:?}");
    let (worked_out, refused) = plans.told();
    assert!(worked_out >= 10 && worked_out + refused == PLANNERS * TURNS, "plans: {:?}", plans.told());
    let (read, refused) = histories.told();
    assert!(read >= 32 && read + refused == HISTORIANS * TURNS, "histories: {:?}", histories.told());
    assert_eq!(writes.told(), (TURNS, 0));
    let metrics = service.get("/metrics").expect(200).text();
    let counted = |task: &str| {
        let name = format!("flux_resourceset_busy_refusals_total{{task=\"{task}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<usize>().ok())
    };
    assert_eq!((counted("plan"), counted("read")), (Some(plans.told().1), Some(histories.told().1)));
    let grown = most_resident_mib(&service).saturating_sub(before);
    assert!(grown <= MIB, "memory grew by {grown} MiB");
}

#[test]
fn a_change_whose_client_hangs_up_while_it_waits_is_not_made() {
    let folder = Folder::new(&fleet());
    let service = Settings::crud(&folder).start().ready();
    let revision = || service.get("/ready").json()["revision"].as_u64().expect("a revision");
    let connect = || Connection::open(service.address).expect("a connection");
    for attempt in 0..20 {
        let before = revision();
        let patch = |n: usize| {
            let body = json!({"labels": {"wave": format!("{attempt}-{n}")}});
            json!({"op": "patch", "kind": "clusters", "selector": "environment=qa", "body": body})
        };
        let long = json!({"operations": (0..150).map(patch).collect::<Vec<_>>()});
        let mut busy = connect();
        busy.send(&admin("POST", "/batch", &[], Some(&long))).expect("sent");
        thread::sleep(Duration::from_millis(50));
        for n in 0..5 {
            let label = json!({"labels": {"n": format!("{attempt}-{n}")}});
            connect().send(&admin("PATCH", "/namespaces/team-b", &[], Some(&label))).expect("sent");
        }
        thread::sleep(Duration::from_millis(25));
        let was_in_time = revision() == before;
        busy.answer().expect("an answer").expect(200);
        if was_in_time {
            let label = json!({"labels": {"n": "last"}});
            service.exchange(&admin("PATCH", "/namespaces/team-b", &[], Some(&label))).expect(200);
            assert_eq!(revision(), before + 2, "of those that had gone none was made");
            return;
        }
    }
    panic!("the long change was always decided before the others had gone");
}

/// `nice` as the kernel has it, by the name of the thread.
#[test]
fn threads_that_work_long_have_a_lower_priority_than_those_that_answer_polls() {
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let mut nice = std::collections::BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{}/task", service.pid())).expect("threads") {
        let stat = fs::read_to_string(task.expect("a thread").path().join("stat")).expect("it is there");
        let (name, rest) = stat.split_once('(').and_then(|(_, rest)| rest.split_once(") ")).expect("a name");
        nice.insert(name.to_owned(), rest.split(' ').nth(16).expect("its niceness").to_owned());
    }
    // Whoever runs the tests may have lowered the priority of all of it.
    let polls: i32 = nice["tokio-rt-worker"].parse().expect("a number");
    for (name, lower) in [("plan-1", 19), ("read-1", 19), ("commit-log", 19), ("writer", 10)] {
        assert_eq!(nice[name], (polls + lower).min(19).to_string(), "{name}: {nice:?}");
    }
}
