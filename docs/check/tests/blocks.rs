//! The blocks of the book that can run, run: chapter by chapter, in their order, in one shell for each chapter, as a reader would paste
//! them. Each chapter has a service of its own with the demo fleet, started as `make run` starts it, in a folder that looks like the
//! checkout. Where `<!-- output -->` stands before a block, the block before it has to print that: blanks do not count, and `…` stands for
//! anything.
//!
//! The addresses of `make run` in a block become those of the chapter's service.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use book::{Block, Page, root};
use harness::Process;
use tempfile::TempDir;

const MANAGE: &str = "127.0.0.1:8080";
const POLL: &str = "127.0.0.1:8081";
const READER: &str = "0f0e0d0c0b0a0908070605040302010000000poller";
const ADMIN: &str = "00102030405060708090a0b0c0d0e0f0the-admin";
/// How long the blocks of a chapter may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a chapter runs in: a folder, and two processes of the service. They end with it.
struct Stage {
    folder: TempDir,
    path: OsString,
    manage: SocketAddr,
    poll: SocketAddr,
    processes: Vec<Process>,
}

impl Stage {
    fn new(programs: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder");
        fs::copy(root().join("data/seed.json"), data.join("seed.json")).expect("the seed");
        fs::write(data.join("local.env"), format!("AUTH_TOKEN={READER}\nCRUD_AUTH_TOKEN={ADMIN}\n"))
            .expect("tokens");
        for shared in ["cluster", "resources"] {
            symlink(root().join(shared), folder.path().join(shared)).expect("a link");
        }
        let usual = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([programs.to_owned()].into_iter().chain(env::split_paths(&usual)))
            .expect("a PATH");
        let mut stage = Self { folder, path, manage: nowhere(), poll: nowhere(), processes: Vec::new() };
        let service = programs.join("flux-resourceset");
        let settings = [("API_MODE", "crud"), ("SEED_FILE", "data/seed.json"), ("CRUD_AUTH_TOKEN", ADMIN)];
        stage.manage = stage.start(&service, &settings);
        stage.poll = stage.start(&service, &[("API_MODE", "read-only")]);
        fs::write(data.join("local.token"), READER).expect("a token");
        fs::write(data.join("local.write-token"), ADMIN).expect("a token");
        let context = format!(
            "frs config set-context local --url http://{} --poll-url http://{} --token-file data/local.token \
             --write-token-file data/local.write-token --current-if-none",
            stage.manage, stage.poll
        );
        let configured = stage.shell().args(["-c", &context]).output().expect("bash");
        assert!(configured.status.success(), "{context}: {}", String::from_utf8_lossy(&configured.stderr));
        stage
    }

    fn start(&mut self, service: &Path, settings: &[(&str, &str)]) -> SocketAddr {
        let mut command = Command::new(service);
        command
            .env_clear()
            .envs([("DATABASE_URL", "sqlite://data/flux-resourceset.db"), ("AUTH_TOKEN", READER)])
            .envs([("LISTEN_ADDR", "127.0.0.1:0"), ("LOG_FORMAT", "json")])
            .envs(settings.iter().copied())
            .current_dir(self.folder.path());
        let (process, address) = Process::ready(command);
        self.processes.push(process);
        address
    }

    /// A shell as after `make run` in another terminal.
    fn shell(&self) -> Command {
        let mut shell = Command::new("timeout");
        shell
            .args([&PATIENCE.as_secs().to_string(), "bash"])
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.folder.path())
            .env("LC_ALL", "C.UTF-8")
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        shell
    }

    /// Runs the blocks of a page, one after the other; what is wrong with them.
    fn run(&self, page: &Page) -> Option<String> {
        let scratch = self.folder.path().join(".blocks");
        fs::create_dir(&scratch).expect("a folder");
        let mut script = String::from("set -euo pipefail\n");
        for block in page.blocks.iter().filter(|block| runs(block)) {
            let file = scratch.join(block.line.to_string());
            let text =
                block.text.replace(MANAGE, &self.manage.to_string()).replace(POLL, &self.poll.to_string());
            let file = file.display();
            writeln!(
                script,
                "echo {} > {}/now\nexec > {file}.out 2> {file}.err",
                block.line,
                scratch.display()
            )
            .ok();
            writeln!(script, "{text}").ok();
        }
        let ended = self.shell().args(["-c", &script]).status().expect("bash");
        let text = |name: &str| fs::read_to_string(scratch.join(name)).unwrap_or_default();
        if !ended.success() {
            let line = text("now");
            let line = line.trim();
            let printed = format!("{}{}", text(&format!("{line}.out")), text(&format!("{line}.err")));
            return Some(format!("{}:{line}: the block failed ({ended}):\n{printed}", page.path.display()));
        }
        let mut before = None;
        for block in &page.blocks {
            if block.is_output {
                let Some(line) = before else {
                    return Some(format!(
                        "{}:{}: no block that runs is before it",
                        page.path.display(),
                        block.line
                    ));
                };
                let printed = text(&format!("{line}.out")) + &text(&format!("{line}.err"));
                if !prints(&printed, &block.text) {
                    return Some(format!(
                        "{}:{}: it prints this:\n{printed}",
                        page.path.display(),
                        block.line
                    ));
                }
            }
            before = runs(block).then_some(block.line).or(before.filter(|_| block.is_output));
        }
        None
    }
}

fn nowhere() -> SocketAddr {
    SocketAddr::from(([0; 4], 0))
}

fn runs(block: &Block) -> bool {
    block.language == "sh"
}

/// Whether something printed is what the book says, from its beginning to its end: without blanks, and with anything for each `…`.
fn prints(printed: &str, expected: &str) -> bool {
    let solid = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
    let (printed, expected) = (solid(printed), solid(expected));
    let parts: Vec<&str> = expected.split('…').collect();
    let [first, inner @ .., last] = &*parts else { return printed == expected };
    let Some(rest) = printed.strip_prefix(first) else { return false };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    inner.iter().all(|part| match rest.find(part) {
        Some(start) => {
            rest = &rest[start + part.len()..];
            true
        }
        None => false,
    })
}

#[test]
fn every_block_that_can_run_runs_and_prints_what_the_book_says() {
    let programs = harness::programs();
    let only = env::var("CHAPTER").ok();
    let pages: Vec<_> = Page::all()
        .into_iter()
        .filter(|page| page.blocks.iter().any(runs))
        .filter(|page| only.as_ref().is_none_or(|only| page.path.to_string_lossy().contains(only)))
        .collect();
    assert!(!pages.is_empty(), "there is nothing to run");
    let wrong: Vec<_> = pages.iter().filter_map(|page| Stage::new(programs).run(page)).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n\n"));
}

#[test]
fn every_block_to_paste_is_at_least_a_script() {
    for page in Page::all() {
        for block in page.blocks.iter().filter(|block| block.language == "sh,norun") {
            let read = Command::new("bash").args(["-n", "-c", &block.text]).output().expect("bash");
            let said = String::from_utf8_lossy(&read.stderr);
            assert!(
                read.status.success() && said.is_empty(),
                "{}:{}: {said}",
                page.path.display(),
                block.line
            );
        }
    }
}

#[test]
fn output_is_compared_without_blanks_and_with_anything_for_an_ellipsis() {
    assert!(prints("{\"a\":1,\"time\":\"now\"}", "{\n  \"a\": 1,\n  \"time\": \"…\"\n}"));
    assert!(prints("one\ntwo\nthree\n", "one\n…\nthree"));
    assert!(!prints("one\ntwo\n", "one\nthree\n"));
    assert!(!prints("three one", "one … three"));
    // What comes before or after is not left out unless the book says so.
    assert!(!prints("one\ntwo", "one"));
    assert!(!prints("one\ntwo", "two"));
    assert!(prints("one\ntwo", "one\n…"));
}
