//! What a process is told at its start, and what it leaves alone.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use harness::within;
use serde_json::json;

use crate::fleet::{ADMIN, Folder, POLLS, READER, admin, label, poll, small_fleet};
use crate::http::{Connection, request};
use crate::service::{Settings, free_port};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn all_mistakes_are_told_at_once_and_no_secret_is() {
    let mistakes = [
        ("API_MODE", "write-only"),
        ("STORE_BACKEND", "etcd"),
        ("DATABASE_URL", "postgres://fleet:canary-password@db/fleet"),
        ("AUTH_TOKEN", "canary token"),
        ("CRUD_AUTH_TOKEN", "canary-tökén"),
        ("LISTEN_ADDR", "nowhere"),
        ("METRICS_ADDR", "9090"),
        ("MAX_STALENESS", "1s"),
        ("GUARD_CLUSTERS", "off"),
        ("LOG_FORMAT", "xml"),
        ("RUST_LOG", "loud=="),
        ("TLS_CERT_FILE", "tls.crt"),
    ];
    let settings = mistakes.iter().fold(Settings::none(), |all, (name, value)| all.with(name, value));
    let (code, told) = settings.run();
    assert_eq!(code, Some(64), "{told}");
    for (name, _) in mistakes {
        assert!(told.contains(&format!("  {name} ")), "{name} is not in: {told}");
    }
    assert!(told.contains(&format!("the configuration has {} mistakes", mistakes.len())), "{told}");
    assert!(!told.contains("canary"), "{told}");

    let (code, told) =
        Settings::none().with("AUTH_TOKEN", "canary-token").with("CRUD_AUTH_TOKEN", "canary-token").run();
    assert_eq!(code, Some(64), "{told}");
    assert!(
        told.contains("AUTH_TOKEN and CRUD_AUTH_TOKEN are the same") && !told.contains("canary"),
        "{told}"
    );
}

#[test]
fn a_bad_seed_leaves_no_file_behind() {
    let folder = Folder::new(&json!({"namespaces": [{"id": "Team A"}], "clusters": [{"id": "one"}]}));
    let (code, told) = Settings::crud(&folder).run();
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("namespaces[0]") && told.contains("clusters[0]"), "{told}");
    assert_eq!(folder.names(), ["seed.json"]);
}

#[test]
fn a_second_start_keeps_what_is_there_and_does_not_read_the_seed_again() {
    let folder = Folder::new(&small_fleet(["spare".to_owned()]));
    let settings = Settings::crud(&folder);
    let service = settings.start().ready();
    service.exchange(&label("spare", "n", "1", "a change")).expect(200);
    assert_eq!(service.terminate().0.code(), Some(0));
    fs::write(folder.seed(), json!({"namespaces": [{"id": "other"}]}).to_string()).expect("written");
    for stop in 0..2 {
        let service = settings.start().ready();
        assert_eq!(service.get("/namespaces/spare").expect(200).json()["labels"]["n"], "1");
        assert_eq!(service.get("/namespaces/other").status, 404);
        assert_eq!(service.get("/ready").json()["revision"], 2, "start {stop} has written nothing");
        service.kill();
    }
}

#[test]
fn a_read_only_process_without_a_store_makes_none_and_is_ready_when_somebody_has() {
    let folder = Folder::new(&small_fleet([]));
    let reader = Settings::read_only(&folder).start();
    assert_eq!(reader.get("/health").status, 200);
    for path in POLLS.into_iter().chain(["/ready"]) {
        assert_eq!(reader.poll(path).status, 503, "{path}");
    }
    // Longer than it takes to look again.
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!(folder.names(), ["seed.json"]);
    let writer = Settings::crud(&folder).start().ready();
    within(SOON, "a reader that is ready", || (reader.get("/ready").status == 200).then_some(()));
    for path in POLLS {
        assert_eq!(reader.poll(path).expect(200).body, writer.poll(path).expect(200).body, "{path}");
    }
    assert_eq!(reader.get("/namespaces").status, 404, "it has no REST API");
}

#[test]
fn two_hundred_dry_runs_leave_every_byte_of_the_database_as_it_is() {
    let folder = Folder::new(&small_fleet(["spare".to_owned()]));
    let service = Settings::crud(&folder).start().ready();
    let bytes = || ["store.db", "store.db-wal"].map(|part| fs::read(folder.file(part)).expect("read"));
    let before = bytes();
    let mut connection = Connection::open(service.address).expect("a connection");
    for n in 0..50 {
        let labels = json!({"labels": {"n": n.to_string()}});
        let batch =
            json!({"operations": [{"op": "patch", "kind": "namespaces", "id": "spare", "body": labels}]});
        for (method, path, body) in [
            ("PATCH", "/namespaces/spare?dry_run=true", Some(&labels)),
            ("POST", "/namespaces?dry_run=true", Some(&json!({"id": format!("new-{n}")}))),
            ("DELETE", "/clusters/one?dry_run=true", None),
            ("POST", "/batch?dry_run=true", Some(&batch)),
        ] {
            let answer = connection.exchange(&admin(method, path, &[], body)).expect("an answer").expect(200);
            assert_eq!(answer.json()["revision"], 1, "{method} {path}");
        }
    }
    assert!(bytes() == before, "a dry run has written");
    assert_eq!(service.get("/ready").json()["revision"], 1);
    service.exchange(&label("spare", "n", "1", "a change")).expect(200);
    assert!(bytes() != before, "a real one does write");
}

#[test]
fn a_token_is_never_in_the_log_however_much_is_logged() {
    let folder = Folder::new(&small_fleet(["spare".to_owned()]));
    let file = folder.file("tokens");
    fs::write(&file, "deployer=canary-deployer\n").expect("written");
    let service = Settings::crud(&folder)
        .with("RUST_LOG", "trace")
        .with("AUTH_TOKEN", "canary-reader")
        .without("CRUD_AUTH_TOKEN")
        .with("CRUD_AUTH_TOKEN_FILE", &file)
        .start();
    // "canary-reader", as a password.
    let basic = "Basic eDpjYW5hcnktcmVhZGVy";
    for (authorization, status) in [
        ("Bearer canary-reader", 403),
        ("Bearer canary-deployer", 200),
        ("Bearer canary-wrong", 401),
        (basic, 403),
        ("canary-odd", 401),
    ] {
        let asked = request(
            "PATCH",
            "/namespaces/spare",
            &[("authorization", authorization)],
            Some(&json!({"labels": {"a": "b"}})),
        );
        within(SOON, "a process that is ready", || (service.get("/ready").status == 200).then_some(()));
        assert_eq!(service.exchange(&asked).status, status, "{authorization}");
        let asked = request("GET", POLLS[0], &[("authorization", authorization)], None);
        assert_eq!(service.exchange(&asked).status, if status == 401 { 401 } else { 200 }, "{authorization}");
    }
    fs::write(&file, "deployer=canary-deployer\nother=canary with spaces\n").expect("written");
    within(SOON, "a word about the token file", || {
        service.log().contains("token files not reloaded").then_some(())
    });
    let (status, log) = service.terminate();
    assert_eq!(status.code(), Some(0));
    assert!(
        log.contains("\"level\":\"TRACE\"") || log.contains("\"level\":\"DEBUG\""),
        "it logs much: {log}"
    );
    for secret in ["canary", "eDpjYW5hcnk"] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}

#[test]
fn metrics_can_have_an_address_of_their_own() {
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).with("METRICS_ADDR", "127.0.0.1:0").start().ready();
    assert_eq!(service.get("/metrics").status, 404);
    let mut metrics = Connection::open(service.told_address("metrics")).expect("a connection");
    let answer = metrics.exchange(&request("GET", "/metrics", &[], None)).expect("an answer").expect(200);
    assert!(answer.text().contains("flux_resourceset_revision 1\n"), "{}", answer.text());
    let answer = metrics.exchange(&poll(POLLS[0])).expect("an answer");
    assert_eq!(answer.status, 404, "nothing else is there");
    let service = Settings::crud(&folder).start().ready();
    assert_eq!(service.get("/metrics").status, 200);
}

#[test]
fn a_token_file_is_read_again_when_it_changes() {
    let folder = Folder::new(&small_fleet([]));
    let file = folder.file("tokens");
    fs::write(&file, format!("{READER}\n")).expect("written");
    let service =
        Settings::crud(&folder).without("AUTH_TOKEN").with("AUTH_TOKEN_FILE", &file).start().ready();
    let status = |token: &str| {
        let asked = request("GET", POLLS[0], &[("authorization", &format!("Bearer {token}"))], None);
        service.exchange(&asked).status
    };
    assert_eq!((status(READER), status("second-token")), (200, 401));
    fs::write(&file, format!("{READER}\nsecond-token\n")).expect("written");
    within(SOON, "the second token", || (status("second-token") == 200).then_some(()));
    assert_eq!(status(READER), 200);
    // One that cannot be used changes nothing.
    fs::write(&file, "").expect("written");
    within(SOON, "a warning", || service.log().contains("has no token in it").then_some(()));
    assert_eq!((status(READER), status("second-token"), status(ADMIN)), (200, 200, 200));
    fs::write(&file, "second-token\n").expect("written");
    within(SOON, "the end of the first token", || (status(READER) == 401).then_some(()));
    assert_eq!(status("second-token"), 200);
}

#[test]
fn a_port_that_is_taken_is_told_and_nothing_is_made() {
    let folder = Folder::new(&small_fleet([]));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, told) = Settings::crud(&folder).with("LISTEN_ADDR", &address).run();
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains(&format!("LISTEN_ADDR: cannot listen on {address}")), "{told}");
    assert!(told.contains("in use"), "{told}");
    assert_eq!(folder.names(), ["seed.json"]);
}

/// It aborted: the log, the complaint about the log, and the complaint about that.
#[test]
fn a_log_that_nobody_takes_harms_nobody() {
    let folder = Folder::new(&small_fleet(["spare".to_owned()]));
    for log in ["2>/dev/full", "2>&-"] {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let mut process = Settings::crud(&folder)
            .with("LISTEN_ADDR", address.to_string())
            .with("RUST_LOG", "debug")
            .under(["sh", "-c", &format!("exec \"$@\" {log}"), "sh"].map(Into::into))
            .spawn();
        within(SOON, "an answer", || {
            let answer = Connection::open(address).and_then(|mut it| it.exchange(&poll(POLLS[0]))).ok()?;
            (answer.status == 200).then_some(())
        });
        for n in 0..20 {
            let change = label("spare", "n", &format!("{}-{n}", log.len()), "a reason");
            let answer =
                Connection::open(address).and_then(|mut it| it.exchange(&change)).expect("an answer");
            answer.expect(200);
        }
        assert_eq!(process.try_wait().expect("a process"), None, "it lives");
        process.kill().expect("killed");
        process.wait().expect("a status");
    }
}

#[test]
fn whoever_closes_their_side_after_a_request_still_gets_the_answer() {
    let folder = Folder::new(&small_fleet([]));
    let service = Settings::crud(&folder).start().ready();
    let mut stream = TcpStream::connect(service.address).expect("it listens");
    stream.write_all(&poll(POLLS[0])).expect("sent");
    stream.shutdown(Shutdown::Write).expect("closed");
    let mut answer = String::new();
    stream.set_read_timeout(Some(SOON)).expect("set");
    // It is an idle connection after that; what counts is there.
    let mut bytes = [0; 4096];
    while !answer.contains("{\"inputs\":[{") {
        let count = stream.read(&mut bytes).expect("an answer");
        assert!(count > 0, "nothing came but: {answer}");
        answer.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}
