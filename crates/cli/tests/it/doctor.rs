//! `doctor`.

use crate::fleet::{ADMIN, READER, fleet};
use crate::frs::{Desk, World};
use crate::proxy::{Fate, between, foreign};
use crate::service::Service;
use crate::snapshot::snapshot;

#[test]
fn all_is_well() {
    let world = World::new();
    snapshot!(world.harmless(&["doctor"]));
}

#[test]
fn nobody_answers_or_somebody_else() {
    let foreign = foreign("200 OK\r\ncontent-type: text/html", "<html><h1>Welcome!</h1></html>");
    let told = ["http://127.0.0.1:1", &foreign, "http://0.0.0.0:1"]
        .map(|url| Desk::at(url).frs("doctor").expect(1).to_string());
    snapshot!(told.join("\n"));
}

#[test]
fn the_token_is_wrong_or_may_not_or_is_missing() {
    let service = Service::start();
    let url = service.url();
    let told = [
        Desk::at(&url).with("FLUX_API_TOKEN", "wrong"),
        Desk::at(&url).with("FLUX_API_TOKEN", READER),
        Desk::at(&url).without("FLUX_API_TOKEN"),
        Desk::at(&url).with("FLUX_API_TOKEN", READER).with("FLUX_API_WRITE_TOKEN", "wrong"),
    ]
    .map(|desk| desk.frs("doctor").expect(1).to_string());
    let both = Desk::at(&url).with("FLUX_API_TOKEN", READER).with("FLUX_API_WRITE_TOKEN", ADMIN);
    let well = both.frs("doctor").expect(0).to_string();
    snapshot!(told.into_iter().chain([well]).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_process_that_clusters_ask_and_that_has_another_fleet_is_found() {
    let (here, there) = (Service::start(), Service::start());
    let desk = Desk::empty();
    let context = format!("config set-context here --url {} --token {ADMIN} --current", here.url());
    desk.frs(&format!("{context} --poll-url {}", there.url())).expect(0);
    // At the same revision, and further on.
    for number in 0..2 {
        let run = desk.frs("doctor").expect(1).to_string();
        assert!(run.contains("has another fleet"), "{run}");
        Desk::at(&there.url()).frs(&format!("create namespace another-{number} --yes")).expect(0);
    }
}

#[test]
fn the_token_stays_where_it_belongs_when_it_is_not_needed() {
    let service = Service::start();
    let (sender, seen) = std::sync::mpsc::channel();
    let url = between(service.address, move |request| {
        let _ = sender.send((request.word(1).to_owned(), request.header("authorization").is_some()));
        Fate::Forward
    });
    let desk = Desk::empty();
    let context = format!("config set-context here --url {} --token {ADMIN} --current", service.url());
    desk.frs(&format!("{context} --poll-url {url}")).expect(0);
    desk.frs("doctor").expect(0);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [("/ready".to_owned(), false)]);
}

#[test]
fn a_service_that_only_answers_clusters_is_the_wrong_one_to_manage() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite://{}", folder.path().join("store.db").display());
    let store = [("STORE_BACKEND", "sqlite"), ("DATABASE_URL", url.as_str())];
    let crud = Service::with(&fleet(), &store);
    let read_only = Service::with(&fleet(), &[&store[..], &[("API_MODE", "read-only")]].concat());
    let wrong = Desk::at(&read_only.url()).transcript(&["doctor", "get clusters"]);

    let right = Desk::empty();
    let context = format!("config set-context here --url {} --token {ADMIN} --current", crud.url());
    right.frs(&format!("{context} --poll-url {}", read_only.url())).expect(0);
    let well = right.transcript(&["doctor", "inputs east namespaces --as-polled -o name"]);
    drop(read_only);
    let gone = right.frs("doctor").expect(1).to_string();
    snapshot!([wrong, well, gone].join("\n"));
}

#[test]
fn a_store_of_a_later_version_says_what_it_needs() {
    let service = Service::start();
    let url = between(service.address, |request| {
        if request.word(1) != "/ready" {
            return Fate::Forward;
        }
        Fate::Answer(
            "200 OK\r\ncontent-type: application/json",
            r#"{"status": "ready", "because": null, "version": "0.0.1", "mode": "crud", "revision": 7, "hash": "00", "store": "not confirmed",
                "needs": "revision 8 has an entry `@freezes` that this version does not understand; it was written by version 9.0.0: run that version or a later one",
                "seconds_behind": 2, "writer": "running", "guard": {"clusters": 3, "deletions_per_hour": 10, "removals_per_hour": 50, "confirmations_per_hour": 5}}"#,
        )
    });
    snapshot!(Desk::at(&url).frs("doctor").expect(1).to_string());
}
