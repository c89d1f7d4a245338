//! That no command is forgotten: each is run in some snapshot, against the service where it needs one.

use std::fs;
use std::path::Path;

use crate::help::leaves;

#[test]
fn every_command_is_run_in_a_snapshot() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    let texts: Vec<String> = fs::read_dir(folder)
        .expect("snapshots")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "snap"))
        .map(|path| fs::read_to_string(path).expect("a snapshot"))
        .collect();
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
