//! Who may know whom, held by tests: the direction of dependencies, and the words that a crate does not say. The core has its own in
//! `crates/fleet/tests/it/purity.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fleet::{GuardClass, Shape};

/// Our crates, and which of ours each depends on. `bench` may know all of them, `e2e` none; nobody knows these two.
const OURS: [(&str, &[&str]); 8] = [
    ("crates/fleet", &[]),
    ("crates/api", &[]),
    ("crates/client", &["api"]),
    ("crates/cli", &["api", "client"]),
    ("crates/harness", &[]),
    ("crates/ledger", &["fleet"]),
    ("crates/ledger-conformance", &["fleet", "ledger"]),
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
    let shown = [fleet::Key::tombstone("x"), fleet::Key::kind("x")].map(|key| key.to_string());
    assert_eq!(shown, [api::DECOMMISSIONED, api::KINDS].map(|space| format!("{space}/x")));
    // What the command line splits by must fit into what the core takes.
    const { assert!(api::MAX_OPERATIONS <= fleet::MAX_CHANGES) };
}

#[test]
fn the_ledger_depends_on_the_core_and_a_database_and_not_on_http() {
    assert_eq!(
        dependencies("crates/ledger"),
        set(&["blake3", "fleet", "getrandom", "rusqlite", "thiserror"])
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
        for from in ["impl From<Rejection>", "impl From<FeedError>", "Reason::", "NoClusterList::"] {
            assert!(!code.contains(from) || file.ends_with("/problem.rs"), "{file} says `{from}`");
        }
    }
}

#[test]
fn who_may_do_what_is_decided_in_one_place_and_asked_in_one_place() {
    for (file, code) in code("crates/server/src") {
        let is_identity = file.contains("/identity/");
        // The configuration gives a role to each variable.
        assert!(
            is_identity || file.contains("/config/") || !code.contains("Role::"),
            "{file} looks at a role"
        );
        assert!(
            is_identity || file.ends_with("/guard.rs") || !code.contains("authorise("),
            "{file} authorises"
        );
    }
}

#[test]
fn a_handler_gets_the_fleet_from_one_extractor() {
    for (file, code) in code("crates/server/src/routes") {
        let may = file.ends_with("/call.rs") || file.ends_with("/service.rs");
        assert!(may || !code.contains(".replica"), "{file} asks the replica itself");
    }
}

#[test]
fn the_service_never_writes_a_list_of_inputs_itself() {
    // Flux deletes what is missing from one: it comes from `render` and from the cluster list, and is not made here.
    says_none_of("crates/server/src", &["\"inputs\"", "inputs\\\"", "Inputs {", "ClusterList {"]);
}

/// Whether code calls a function of this name, however it is spelt before that.
fn calls(code: &str, name: &str) -> bool {
    let call = format!("{name}(");
    code.match_indices(&call).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let is_definition = code[..at].ends_with("fn ");
        !is_definition && before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.')
    })
}

/// That no handler can append is held by a type: the writer owns the only `Append` of a process.
#[test]
fn changes_are_decided_by_the_writer_checked_for_a_seed_and_tried_in_one_place() {
    for (name, files) in
        [("apply", &["/writer/group.rs", "/writer/decided.rs"][..]), ("plan", &["/routes/write.rs"])]
    {
        for (file, code) in code("crates/server/src") {
            let may = files.iter().any(|allowed| file.ends_with(allowed));
            let is_own = name == "plan" && file.ends_with("/wire.rs");
            assert!(may || is_own || !calls(&code, name), "{file} calls `{name}`");
        }
    }
    for (file, code) in code("crates/server/src") {
        let may = ["/writer/mod.rs", "/writer/thread.rs"].iter().any(|name| file.ends_with(name));
        assert!(may || !code.contains("dyn Append"), "{file} knows what appends");
    }
}

/// What takes long is worked out by `heavy`, so that there is a limit to it, and never where polls are answered.
#[test]
fn only_the_start_and_the_end_of_the_process_use_the_threads_of_the_runtime_for_what_blocks() {
    for (file, code) in code("crates/server/src") {
        let blocks = code.contains("spawn_blocking") || code.contains("block_in_place");
        let may = ["/give_way.rs", "/run.rs"].iter().any(|name| file.ends_with(name));
        assert!(!blocks || may, "{file} has something blocking done without a limit");
    }
}
