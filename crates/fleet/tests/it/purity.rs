//! The invariant of this crate, held by a test: it is pure, and depends on nothing of ours.

use std::collections::BTreeSet;
use std::path::Path;

const ALLOWED: [&str; 10] = [
    "blake3",
    "hashbrown",
    "json-patch",
    "jsonschema",
    "rpds",
    "rustc-hash",
    "serde",
    "serde-saphyr",
    "serde_json",
    "thiserror",
];

/// What code without I/O, clock, chance, threads and HTTP does not say.
const FORBIDDEN: [&str; 20] = [
    "std::fs",
    "std::net",
    "std::time",
    "std::thread",
    "std::process",
    "std::env",
    "std::io",
    "SystemTime",
    "Instant",
    "async fn",
    "tokio",
    "axum",
    "rusqlite",
    "println!",
    "std::{",
    "RandomState",
    "HashMap::new",
    "rand::",
    "http::",
    "hyper",
];

#[test]
fn the_core_depends_only_on_what_is_on_the_list() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .expect("our manifest");
    let section = manifest
        .split("[dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .expect("dependencies");
    let names: BTreeSet<&str> = section
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(names, BTreeSet::from(ALLOWED));
}

#[test]
fn the_core_says_nothing_of_clocks_files_sockets_threads_or_http() {
    fn visit(folder: &Path, files: &mut usize) {
        for entry in std::fs::read_dir(folder).expect("our sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(&path, files);
                continue;
            }
            *files += 1;
            let text = std::fs::read_to_string(&path).expect("a source file");
            let code: String = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect::<Vec<_>>()
                .join("\n");
            for word in FORBIDDEN {
                assert!(!code.contains(word), "{} says `{word}`", path.display());
            }
        }
    }
    let mut files = 0;
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files > 20, "only {files} files were looked at");
}

#[test]
fn inputs_are_made_in_two_places_only() {
    // Privacy holds it to `render/`; this holds it to one call of each of its two makers.
    let source = |name: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/render").join(name))
            .expect("a source file")
    };
    let (render, inputs) = (source("mod.rs"), source("inputs.rs"));
    assert_eq!(
        inputs.matches("-> Self").count(),
        2,
        "from a live cluster or from a tombstone, and in no other way"
    );
    assert!(
        inputs.contains(
            "pub struct Inputs {\n    body: Vec<u8>,\n    count: usize,\n    revision: Revision,\n}"
        ),
        "its fields are private"
    );
    assert_eq!(render.matches("Inputs::of_references(").count(), 1);
    assert_eq!(render.matches("Inputs::of_tombstone(").count(), 1);
    assert_eq!(source("cluster_list.rs").matches("Inputs::").count(), 0);
}
