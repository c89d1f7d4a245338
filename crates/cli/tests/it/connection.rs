//! Which service is asked, and with which token.

use crate::fleet::{ADMIN, READER};
use crate::frs::{Desk, World};
use crate::service::Service;
use crate::snapshot::snapshot;

#[test]
fn one_token_is_enough() {
    let world = World::new();
    for line in [
        "get clusters",
        "inputs east namespaces",
        "inputs east namespaces --as-polled",
        "patch cluster east --set node_count=4 --yes",
        "doctor",
    ] {
        world.frs(line).expect(0);
    }
}

#[test]
fn the_write_token_is_for_everything_but_polls() {
    let world = World::new().with("FLUX_API_TOKEN", READER).with("FLUX_API_WRITE_TOKEN", ADMIN);
    world.frs("get clusters").expect(0);
    world.frs("patch cluster east --set node_count=4 --yes").expect(0);
    world.frs("inputs east namespaces --as-polled").expect(0);
    let world = world.with("FLUX_API_WRITE_TOKEN", "wrong");
    world.frs("get clusters").expect(1);
    let flags = world.frs(&format!("get clusters -o name --write-token {ADMIN}")).expect(0);
    assert_eq!(flags.stdout, "clusters/east\nclusters/north\nclusters/west\n");
    world.frs(&format!("get clusters --token {ADMIN}")).expect(0);
}

#[test]
fn a_token_that_is_wrong_missing_or_may_not_says_what_to_do() {
    let service = Service::start();
    let desk = |token: &str| Desk::at(&service.url()).with("FLUX_API_TOKEN", token);
    let lines = ["get clusters", "patch cluster east --set node_count=4 --yes"];
    let told =
        [desk("wrong"), desk(READER), desk("two\nlines"), Desk::at(&service.url()).without("FLUX_API_TOKEN")]
            .map(|desk| desk.transcript(&lines));
    assert_eq!(service.head(), 1);
    snapshot!(told.join("\n"));
}

#[test]
fn no_service_or_a_wrong_address_says_what_to_do() {
    let empty = Desk::empty();
    empty.file(
        ".config/flux-resourceset/config.yaml",
        "contexts: [{name: home, url: 'http://127.0.0.1:1'}]\n",
    );
    empty.file("ca.pem", "not a certificate");
    let told = [
        Desk::empty().transcript(&["get clusters", "doctor"]),
        empty.transcript(&[
            "get clusters",
            "get clusters --context work",
            "get clusters --context home",
            "get clusters --url 127.0.0.1:8080",
            "get clusters --url https://fleet.example.com?x=y",
            "get clusters --context home --ca-file nowhere.pem",
            "get clusters --url https://127.0.0.1:1 --ca-file ca.pem",
            "doctor --url https://127.0.0.1:1 --ca-file ca.pem",
        ]),
        empty.with("FLUX_API_CONTEXT", "work").transcript(&["get clusters"]),
    ];
    snapshot!(told.join("\n"));
}

#[test]
fn contexts_bring_their_own_tokens() {
    let service = Service::start();
    let desk = Desk::empty();
    desk.file("token", &format!("{ADMIN}\n"));
    let url = service.url();
    for flags in ["admin --token-file token", &format!("reader --token {READER}"), "bare"] {
        desk.frs(&format!("config set-context {flags} --url {url}")).expect(0);
    }
    desk.frs("get clusters").expect(1);
    desk.frs("get clusters --context admin").expect(0);
    desk.frs("get clusters --context reader").expect(1);
    desk.frs("get clusters --context bare").expect(1);
    let desk = desk.with("FLUX_API_TOKEN", ADMIN);
    desk.frs("get clusters --context bare").expect(0);
    desk.frs("get clusters --context reader").expect(1);
    desk.frs("config use-context admin").expect(0);
    desk.frs("get clusters").expect(0);
    let desk = desk.with("FLUX_API_CONTEXT", "reader");
    desk.frs("get clusters").expect(1);
    desk.frs(&format!("get clusters --url {url}")).expect(0);
}
