//! kill -9 while several clients write. What was acknowledged is there afterwards, at the revision that was told, and no batch is half
//! there.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fleet::{Folder, admin, label, small_fleet};
use crate::http::Client;
use crate::service::{Service, Settings};

const ROUNDS: u64 = 50;
const WRITERS: usize = 6;
const BATCH: usize = 5;

/// One client. The odd ones write batches.
struct Writer {
    number: usize,
    /// How many writes were sent.
    sent: u64,
    /// The last that was acknowledged.
    acknowledged: u64,
    /// By its reason, the revision that was told.
    told: HashMap<String, u64>,
}

impl Writer {
    fn namespaces(&self) -> Vec<String> {
        let parts = if self.number % 2 == 1 { BATCH } else { 1 };
        (0..parts).map(|part| format!("w{}-{part}", self.number)).collect()
    }

    fn reason(&self, n: u64) -> String {
        format!("w{} {n}", self.number)
    }

    fn request(&self, n: u64) -> Vec<u8> {
        let (reason, names) = (self.reason(n), self.namespaces());
        let value = n.to_string();
        if let [one] = &*names {
            return label(one, "n", &value, &reason);
        }
        let operation = |id: &String| json!({"op": "patch", "kind": "namespaces", "id": id, "body": {"labels": {"n": value}}});
        let batch = json!({"operations": names.iter().map(operation).collect::<Vec<_>>()});
        admin("POST", "/batch", &[("x-change-reason", &reason)], Some(&batch))
    }

    /// Writes until the process is gone.
    fn write(&mut self, mut client: Client) {
        loop {
            let n = self.sent + 1;
            self.sent = n;
            let Ok(answer) = client.exchange(&self.request(n)) else { return };
            let revision = answer.expect(200).revision();
            self.acknowledged = n;
            self.told.insert(self.reason(n), revision);
        }
    }
}

/// The revisions after one, oldest first.
fn revisions_after(service: &Service, known: u64) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    loop {
        let before = found.last().map_or(String::new(), |last| format!("&before={}", last["revision"]));
        let page = service.get(&format!("/revisions?limit=1000{before}")).expect(200).json();
        let page = page.as_array().expect("a list");
        let news = page.iter().filter(|revision| revision["revision"].as_u64() > Some(known));
        let count = found.len();
        found.extend(news.cloned());
        if found.len() - count < page.len() || page.is_empty() {
            found.reverse();
            return found;
        }
    }
}

/// Checks what is there after a crash; the head.
fn check(service: &Service, writers: &mut [Writer], known: u64) -> u64 {
    let news = revisions_after(service, known);
    let mut reasons = HashMap::new();
    for (revision, expected) in news.iter().zip(known + 1..) {
        assert_eq!(revision["revision"], expected, "the revisions have a gap");
        assert_eq!(revision["actor"], "file:admin", "{revision}");
        let reason = revision["reason"].as_str().expect("a reason").to_owned();
        let writer: usize = reason[1..2].parse().expect("a number");
        let parts = writers[writer].namespaces().len();
        assert_eq!(revision["changed"], parts, "a write is there in part: {revision}");
        assert_eq!(reasons.insert(reason, expected), None, "a write is there twice: {revision}");
    }
    for writer in writers {
        for (reason, revision) in writer.told.drain() {
            assert_eq!(reasons.get(&reason), Some(&revision), "`{reason}` was acknowledged");
        }
        let mut values = writer.namespaces().into_iter().map(|id| {
            let namespace = service.get(&format!("/namespaces/{id}")).expect(200).json();
            namespace["labels"]["n"].as_str().unwrap_or("0").parse::<u64>().expect("a number")
        });
        let value = values.next().expect("one at least");
        assert!(values.all(|other| other == value), "a batch is half there");
        assert!((writer.acknowledged..=writer.sent).contains(&value), "{value} is not what was written last");
    }
    known + news.len() as u64
}

#[test]
fn what_was_acknowledged_survives_fifty_kills_in_a_burst_of_writes_and_no_batch_is_half_there() {
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer { number, sent: 0, acknowledged: 0, told: HashMap::new() })
        .collect();
    let folder = Folder::new(&small_fleet(writers.iter().flat_map(Writer::namespaces)));
    let settings = Settings::crud(&folder);
    let mut head = 1;
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let service = settings.start().ready();
        let address = service.address;
        let begun = Barrier::new(WRITERS + 1);
        thread::scope(|scope| {
            for writer in &mut writers {
                let begun = &begun;
                scope.spawn(move || {
                    begun.wait();
                    writer.write(Client::new(address));
                });
            }
            begun.wait();
            // From the first writes on to some way into the burst.
            thread::sleep(Duration::from_millis(5 + round * 37 % 120));
            service.kill();
        });
        acknowledged += writers.iter().map(|writer| writer.told.len()).sum::<usize>();
        let service = settings.start().ready();
        head = check(&service, &mut writers, head);
        service.kill();
    }
    assert!(acknowledged > 50, "only {acknowledged} writes were acknowledged at all");
    let service = settings.start().ready();
    assert_eq!(revisions_after(&service, 0).len() as u64, head, "all revisions are there to the first");
}
