//! Who may know whom, held by tests: the direction of dependencies, and the words that a crate does not say. The core has its own in
//! `crates/fleet/tests/it/purity.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fleet::{GuardClass, Shape};

/// Our crates, and which of ours each depends on. `bench` may know all of them, `e2e` none; nobody knows these two.
const OURS: [(&str, &[&str]); 7] = [
    ("crates/fleet", &[]),
    ("crates/api", &[]),
    ("crates/client", &["api"]),
    ("crates/cli", &["api", "client"]),
    ("crates/harness", &[]),
    ("crates/ledger", &["fleet"]),
    ("crates/server", &["api", "fleet", "ledger"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a crate depends on, but for its tests.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let manifest = text(&root().join(folder).join("Cargo.toml"));
    let headings = manifest.lines().filter(|line| line.starts_with('[') && line.contains("dependencies"));
    for heading in headings {
        assert!(
            ["[dependencies]", "[dev-dependencies]"].contains(&heading),
            "{folder} has {heading}, which this test does not read"
        );
    }
    assert!(!manifest.contains("package = "), "{folder} gives a dependency another name");
    section(folder, "[dependencies]")
}

/// The crates that a section of a manifest names.
fn section(folder: &str, heading: &str) -> BTreeSet<String> {
    let manifest = text(&root().join(folder).join("Cargo.toml"));
    let section = manifest.split(&format!("\n{heading}\n")).nth(1).and_then(|rest| rest.split("\n[").next());
    let names = section.unwrap_or_default().lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
}

fn ours_among(names: &BTreeSet<String>) -> BTreeSet<String> {
    let ours = OURS.iter().filter_map(|(folder, _)| folder.strip_prefix("crates/")).chain(["bench", "e2e"]);
    names.intersection(&ours.map(ToOwned::to_owned).collect()).cloned().collect()
}

/// The code of a folder, file by file, without comments and tests.
fn code(folder: &str) -> Vec<(String, String)> {
    fn visit(folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).expect("our sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                let all = text(&path);
                let product = all.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
                found.push((path.display().to_string(), lines.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    let mut found = Vec::new();
    visit(&root().join(folder), &mut found);
    assert!(!found.is_empty(), "{folder} has no sources");
    found
}

fn says_none_of(folder: &str, words: &[&str]) {
    for (file, code) in code(folder) {
        for word in words {
            assert!(!code.contains(word), "{file} says `{word}`");
        }
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_crate_has_a_row_here() {
    let manifest = text(&root().join("Cargo.toml"));
    assert!(
        manifest.contains(r#"members = ["crates/*", "bench", "docs/check", "e2e"]"#),
        "the workspace has other members"
    );
    assert!(!manifest.contains("package = "), "the workspace gives a dependency another name");
    let crates = std::fs::read_dir(root().join("crates")).expect("our crates");
    let found: BTreeSet<String> =
        crates.map(|entry| format!("crates/{}", entry.expect("an entry").file_name().display())).collect();
    assert_eq!(found, OURS.iter().map(|(folder, _)| (*folder).to_owned()).collect());
}

#[test]
fn dependencies_among_our_crates_have_one_direction() {
    for (folder, expected) in OURS {
        assert_eq!(ours_among(&dependencies(folder)), set(expected), "{folder}");
    }
}

#[test]
fn the_loop_knows_the_service_by_its_http_contract_only() {
    assert_eq!(ours_among(&dependencies("e2e")), set(&[]));
    // Its stories ask the core which documents it accepts.
    assert_eq!(ours_among(&section("e2e", "[dev-dependencies]")), set(&["fleet"]));
}

#[test]
fn the_wire_types_depend_on_serde_only() {
    assert_eq!(dependencies("crates/api"), set(&["serde", "serde_json"]));
    says_none_of("crates/api/src", &["async ", "std::io", "std::fs", "std::net", "std::time"]);
}

/// The wire has words of the core, and a client compares them.
#[test]
fn the_words_of_the_wire_are_those_of_the_core() {
    assert_eq!((api::CLUSTER, api::COMPONENT), (Shape::Cluster.as_str(), Shape::Component.as_str()));
    assert_eq!(api::EACH, GuardClass::Each.as_str());
    assert_eq!((api::DECOMMISSIONED, api::KINDS), (fleet::DECOMMISSIONED, fleet::KINDS));
}

#[test]
fn the_ledger_depends_on_the_core_and_a_database_and_not_on_http() {
    assert_eq!(
        dependencies("crates/ledger"),
        set(&["async-trait", "fleet", "getrandom", "rusqlite", "thiserror", "tokio"])
    );
    says_none_of("crates/ledger/src", &["http", "axum", "hyper", "StatusCode", "std::net"]);
}

#[test]
fn the_ledger_does_not_know_what_it_keeps() {
    says_none_of("crates/ledger/src", &["luster", "omponent", "amespace", "apply(", "render"]);
}

#[test]
fn backends_do_not_see_each_other() {
    says_none_of("crates/ledger/src/sqlite", &["crate::memory", "Memory"]);
    for (file, code) in code("crates/ledger/src") {
        if !file.contains("/sqlite/") && !file.ends_with("/lib.rs") {
            assert!(!code.to_lowercase().contains("sqlite"), "{file} knows SQLite");
        }
    }
}

#[test]
fn sql_is_in_the_ledger_only() {
    for (folder, _) in OURS {
        assert_eq!(dependencies(folder).contains("rusqlite"), folder == "crates/ledger", "{folder}");
    }
    for (folder, _) in OURS.iter().filter(|(folder, _)| *folder != "crates/ledger") {
        let words = ["rusqlite", "SELECT ", "INSERT INTO", "DELETE FROM", "PRAGMA"];
        says_none_of(&format!("{folder}/src"), &words);
    }
}

#[test]
fn http_is_answered_by_the_service_and_asked_by_the_client() {
    for (folder, _) in OURS {
        for name in ["axum", "http", "hyper", "hyper-util", "tower"] {
            assert_eq!(
                dependencies(folder).contains(name),
                folder == "crates/server",
                "{folder} and `{name}`"
            );
        }
        assert_eq!(
            dependencies(folder).contains("reqwest"),
            folder == "crates/client",
            "{folder} and `reqwest`"
        );
    }
}

#[test]
fn what_the_core_and_the_ledger_refuse_becomes_a_status_in_one_file() {
    for (file, code) in code("crates/server/src") {
        for from in ["impl From<Rejection>", "impl From<FeedError>", "Reason::"] {
            assert!(!code.contains(from) || file.ends_with("/problem.rs"), "{file} says `{from}`");
        }
    }
}

#[test]
fn the_service_never_writes_a_list_of_inputs_itself() {
    // Flux deletes what is missing from one: it comes from `render` and from the cluster list, and is not made here.
    says_none_of("crates/server/src", &["\"inputs\"", "inputs\\\"", "Inputs {", "ClusterList {"]);
}

#[test]
fn changes_are_decided_by_the_writer_and_at_the_start_and_tried_in_one_place() {
    let calls = |call: &str, files: &[&str]| {
        for (file, code) in code("crates/server/src") {
            let may = files.iter().any(|name| file.ends_with(name));
            assert!(may || !code.contains(call), "{file} calls `{call}`");
        }
    };
    calls(" apply(", &["/writer.rs", "/start.rs"]);
    calls("fleet::plan(", &["/routes/write.rs"]);
    calls(".append(state", &["/start.rs"]);
    calls(".append(group", &["/writer.rs"]);
    calls("ledger.append(", &["/writer.rs", "/start.rs"]);
    calls(".hold(", &["/writer.rs"]);
}
