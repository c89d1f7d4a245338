//! A seed that is too large for one commit, and a process that is killed while it loads it.

use harness::eventually;
use serde_json::{Value, json};

use crate::fleet::{Folder, admin};
use crate::service::{Service, Settings};

/// Three parts: one has at most 10,000 documents.
const CLUSTERS: usize = 20_200;

fn large() -> Value {
    let cluster = |n: usize| {
        json!({"id": format!("c{n}"), "cluster_dns": dns(n), "cluster_name": format!("c{n}"), "environment": "dev",
               "namespaces": [{"id": "team-a"}]})
    };
    json!({"clusters": (0..CLUSTERS).map(cluster).collect::<Vec<_>>(), "namespaces": [{"id": "team-a"}]})
}

fn dns(n: usize) -> String {
    format!("c{n}.example.com")
}

fn poll_of(n: usize) -> String {
    format!("/api/v2/flux/clusters/{}/namespaces", dns(n))
}

/// Whoever acts on a list of half the clusters deletes the machines of the others.
fn answers_nothing(service: &Service) {
    for path in [&poll_of(0), &poll_of(CLUSTERS - 1), "/api/v2/flux/clusters"] {
        assert_eq!(service.poll(path).status, 503, "{path}");
    }
}

/// A store in which the first part of a seed is, and not the last.
fn killed_half_way(seed: &Value) -> (Folder, Settings) {
    for _ in 0..5 {
        let folder = Folder::new(seed);
        let settings = Settings::crud(&folder);
        let service = settings.start();
        answers_nothing(&service);
        eventually("the first part", || service.log().contains(", part 1 of 3").then_some(()));
        let write = service.exchange(&admin("POST", "/namespaces", &[], Some(&json!({"id": "early"}))));
        let is_half = !service.log().contains(", part 3 of 3");
        service.kill();
        if is_half {
            assert_eq!(write.status, 503, "{}", write.text());
            return (folder, settings);
        }
    }
    panic!("the seed was always loaded before the process was killed");
}

#[test]
fn a_process_that_is_killed_while_it_loads_a_seed_goes_on_with_it() {
    let (folder, settings) = killed_half_way(&large());
    let reader = Settings::read_only(&folder).start();
    let because = eventually("a reader that has loaded what there is", || {
        let ready = reader.get("/ready").expect(503).json();
        ready["because"].as_str().filter(|because| because.contains("seed")).map(str::to_owned)
    });
    assert_eq!(because, "the fleet is being filled from a seed");
    answers_nothing(&reader);

    let (code, log) = settings.clone().without("SEED_FILE").run();
    let advice = "start with the same SEED_FILE to continue, or remove the store to start over";
    assert!(code == Some(1) && log.contains(advice), "{log}");
    answers_nothing(&reader);

    let service = settings.start().ready();
    assert!(service.log().contains(", the rest, part 1 of "), "{}", service.log());
    let list = service.get("/clusters?limit=1").expect(200);
    assert_eq!(list.header("x-total-count"), Some(CLUSTERS.to_string().as_str()));
    for n in [0, CLUSTERS - 1] {
        let inputs = service.poll(&poll_of(n)).expect(200).json();
        assert_eq!(inputs["inputs"][0]["id"], "team-a");
        eventually("the same from the reader", || (reader.poll(&poll_of(n)).status == 200).then_some(()));
    }
}
