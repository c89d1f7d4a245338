//! That no command is forgotten: each is run in some snapshot, against the service where it needs one.

use std::fs;
use std::path::Path;

use crate::help::{commands, leaves};

/// The files of snapshots: what they are called, and what is in them.
fn snapshots() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    let paths = fs::read_dir(folder).expect("snapshots").map(|entry| entry.expect("an entry").path());
    let snapshots = paths.filter(|path| path.extension().is_some_and(|extension| extension == "snap"));
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    snapshots.map(|path| (name(&path), fs::read_to_string(path).expect("a snapshot"))).collect()
}

/// A snapshot that nothing compares any more would still show a command that nobody runs.
#[test]
fn every_snapshot_is_of_a_test_that_is_there() {
    let commands: Vec<String> = commands().iter().map(|words| words.replace([' ', '-'], "_")).collect();
    let is_there = |name: &str| {
        let (module, test) = name.strip_prefix("it__")?.split_once("__")?;
        if let Some(words) = test.strip_prefix("help_").filter(|_| module == "help") {
            return commands.iter().any(|command| command == words).then_some(());
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/{module}.rs"));
        let source = fs::read_to_string(file).ok()?;
        let known = [format!("fn {test}()"), format!("snapshot!(\"{test}\"")];
        known.iter().any(|known| source.contains(known)).then_some(())
    };
    let stale: Vec<String> =
        snapshots().into_iter().map(|(name, _)| name).filter(|name| is_there(name).is_none()).collect();
    assert_eq!(stale, Vec::<String>::new(), "no test compares these: remove them");
}

#[test]
fn every_command_is_run_in_a_snapshot() {
    let texts: Vec<String> = snapshots().into_iter().map(|(_, text)| text).collect();
    let ran = |words: &str| {
        let lines = texts.iter().flat_map(|text| text.lines());
        let mut ran = lines.filter_map(|line| line.strip_prefix("$ frs "));
        ran.any(|line| {
            let rest = line.strip_prefix(words);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) && !line.ends_with("--help")
        })
    };
    let missing: Vec<String> = leaves().into_iter().filter(|words| !ran(words)).collect();
    assert_eq!(missing, Vec::<String>::new(), "these have no snapshot of what they print");
}
