//! `config`: the file with contexts.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::frs::Desk;
use crate::snapshot::snapshot;

const FILE: &str = ".config/flux-resourceset/config.yaml";

#[test]
fn contexts_are_set_chosen_shown_and_removed() {
    let desk = Desk::empty();
    desk.file("token", "secret-of-file\n");
    desk.file("ca.pem", "");
    let text = desk.transcript(&[
        "config get-contexts",
        "config current-context",
        "config view",
        "config set-context home --url http://localhost:8080 --token secret-home --current-if-none",
        "config set-context work --url https://fleet.example.com --token-file token --write-token secret-write --ca-file ca.pem --poll-url https://polls.example.com --current-if-none",
        "config get-contexts",
        "config current-context",
        "config use-context work",
        "config current-context",
        "config set-context work --url https://other.example.com --current",
        "config view",
        "config delete-context work",
        "config current-context",
        "config get-contexts",
    ]);
    assert!(
        !text.replace("--token secret-home", "").replace("--write-token secret-write", "").contains("secret"),
        "{text}"
    );
    snapshot!(text);
}

#[test]
fn a_mistake_in_the_file_is_told_without_the_tokens_beside_it() {
    let desk = Desk::empty();
    for text in [
        "contexts:\n  - name: a\n    token: SECRET\n    bogus: x\n",
        "contexts:\n  - name: a\n    token: SECRET\n   url: [\n",
    ] {
        desk.file(FILE, text);
        let run = desk.frs("get clusters").expect(1).to_string();
        assert!(run.contains("is not understood") && !run.contains("SECRET"), "{run}");
    }
}

#[test]
fn a_token_does_not_follow_a_context_to_another_address() {
    let desk = Desk::empty();
    desk.frs("config set-context a --url http://127.0.0.1:1 --token SECRET --write-token SECRET").expect(0);
    desk.frs("config set-context a --url http://127.0.0.1:1/ --current").expect(0);
    assert!(desk.read(FILE).contains("SECRET"), "it is the same address");
    let run = desk.frs("config set-context a --url http://127.0.0.1:2").expect(0);
    assert!(!desk.read(FILE).contains("SECRET"), "{run}");
    assert!(run.stderr.contains("the tokens, CA file and poll address of that one are forgotten"), "{run}");
    desk.frs("config set-context '' --url http://127.0.0.1:1").expect(2);
    desk.frs("config set-context b --url http://127.0.0.1:1 --token ''").expect(2);
}

#[test]
fn only_its_owner_may_read_the_file() {
    let desk = Desk::empty();
    let mode = || fs::metadata(desk.path(FILE)).expect("a file").permissions().mode() & 0o777;
    desk.frs("config set-context home --url http://localhost:8080 --token secret").expect(0);
    assert_eq!(mode(), 0o600);
    fs::set_permissions(desk.path(FILE), fs::Permissions::from_mode(0o644)).expect("changed");
    desk.frs("config use-context home").expect(0);
    assert_eq!(mode(), 0o600);
    assert_eq!(desk.files(".config"), [FILE], "nothing is left beside it");
}

#[test]
fn a_link_to_the_file_stays_one() {
    let desk = Desk::empty();
    desk.file("dotfiles/frs.yaml", "contexts: []\n");
    desk.file(".config/flux-resourceset/keep", "");
    symlink(desk.path("dotfiles/frs.yaml"), desk.path(FILE)).expect("a link");
    desk.frs("config set-context home --url http://localhost:8080").expect(0);
    assert!(fs::symlink_metadata(desk.path(FILE)).expect("a file").is_symlink());
    assert!(desk.read("dotfiles/frs.yaml").contains("home"));
}

#[test]
fn the_file_can_be_elsewhere() {
    let desk = Desk::empty().with("FLUX_API_CONFIG", "of-environment.yaml");
    desk.frs("config set-context one --url http://127.0.0.1:1").expect(0);
    desk.frs("config set-context two --url http://127.0.0.1:2 --config of-flag.yaml").expect(0);
    assert!(desk.read("of-environment.yaml").contains("one") && desk.read("of-flag.yaml").contains("two"));
    let desk = Desk::empty();
    let home = desk.path("xdg").display().to_string();
    let desk = desk.with("XDG_CONFIG_HOME", &home);
    desk.frs("config set-context three --url http://127.0.0.1:3").expect(0);
    assert_eq!(desk.files("xdg"), ["xdg/flux-resourceset/config.yaml"]);
}

#[test]
fn what_is_wrong_with_it_is_said() {
    let desk = Desk::empty();
    desk.file("broken.yaml", "contexts: [\n");
    desk.file("unknown.yaml", "contexts: []\ncolour: red\n");
    desk.file("a-file", "");
    snapshot!(desk.transcript(&[
        "config use-context nowhere",
        "config delete-context nowhere",
        "config set-context new",
        "config set-context new --url fleet.example.com",
        "config set-context new --url ftp://fleet.example.com",
        "config set-context new --url https://me:secret@fleet.example.com",
        "config set-context new --url https://fleet.example.com --token-file nowhere",
        "config set-context new --url https://fleet.example.com --current --current-if-none",
        "config view --config broken.yaml",
        "config view --config unknown.yaml",
        "config set-context new --url https://fleet.example.com --config a-file/config.yaml",
        "get clusters --config broken.yaml",
    ]));
    assert!(!desk.path(FILE).exists());
}
