//! `get --watch`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use harness::PATIENCE;
use serde_json::json;

use crate::frs::{Desk, FRS, World, words};
use crate::proxy::{Fate, between};
use crate::snapshot::snapshot;

/// A command line that goes on until it is dropped.
struct Watch {
    child: Child,
    lines: Receiver<String>,
    said: Receiver<String>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watch {
    fn start(desk: &Desk, line: &str) -> Self {
        let mut command = desk.command(FRS);
        command.args(words(line)).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let lines = read(child.stdout.take().expect("a pipe"));
        let said = read(child.stderr.take().expect("a pipe"));
        Self { child, lines, said }
    }

    fn lines(&self, number: usize) -> Vec<String> {
        (0..number).map(|_| self.lines.recv_timeout(PATIENCE).expect("a line")).collect()
    }
}

/// The lines of a pipe, as they come.
fn read(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    let pipe = BufReader::new(pipe);
    thread::spawn(move || pipe.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

#[test]
fn a_watch_shows_what_changes_and_what_goes() {
    let world = World::new();
    let table = Watch::start(&world.desk, "get namespaces --watch --interval 1s");
    let names = Watch::start(&world.desk, "get cluster -l region=us -o name -w --interval 1s");
    let mut seen = table.lines(4);
    assert_eq!(names.lines(1), ["clusters/west"]);
    world.service.ask("PATCH", "/namespaces/spare", Some(&json!({"labels": {"team": "c"}})));
    seen.extend(table.lines(1));
    world.service.ask("DELETE", "/namespaces/spare", None);
    seen.extend(table.lines(1));
    world.service.ask("PATCH", "/clusters/west", Some(&json!({"labels": {"region": "eu"}})));
    assert_eq!(names.lines(1), ["clusters/west   (gone)"]);
    snapshot!(seen.join("\n"));
}

#[test]
fn a_watch_outlives_a_service_that_is_away() {
    let world = World::new();
    let away = Arc::new(AtomicBool::new(false));
    let gone = Arc::clone(&away);
    let url = between(world.service.address, move |_| {
        if gone.load(Ordering::SeqCst) { Fate::Answer("502 Bad Gateway", "away") } else { Fate::Forward }
    });
    let watch = Watch::start(&Desk::at(&url), "get namespaces -o name --watch --interval 1s");
    assert_eq!(watch.lines(3), ["namespaces/spare", "namespaces/team-a", "namespaces/team-b"]);
    away.store(true, Ordering::SeqCst);
    let said = watch.said.recv_timeout(PATIENCE).expect("a line");
    assert!(said.ends_with("HTTP 502: away; going on"), "{said}");
    world.service.ask("DELETE", "/namespaces/spare", None);
    away.store(false, Ordering::SeqCst);
    assert_eq!(watch.lines(1), ["namespaces/spare   (gone)"]);
}

#[test]
fn only_tables_and_names_can_be_watched() {
    let world = World::new();
    snapshot!(world.harmless(&[
        "get clusters --watch -o yaml",
        "get clusters --watch --interval soon",
        "get clusters --watch --interval 0s",
        "get clusters --interval 5s",
    ]));
}
