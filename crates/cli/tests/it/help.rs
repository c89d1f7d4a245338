//! What the command line says of itself.

use crate::frs::{Desk, FRS};
use crate::snapshot::snapshot;

/// The commands below these words, by what `--help` lists.
fn below(desk: &Desk, words: &str) -> Vec<String> {
    let help = desk.frs(&format!("{words} --help")).expect(0).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // What goes on in the next line is indented further.
    let listed = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let listed = listed.filter_map(|line| line.split_whitespace().next());
    listed.filter(|name| *name != "help").map(|name| format!("{words} {name}").trim().to_owned()).collect()
}

/// All commands, those that only hold others included.
pub(crate) fn commands() -> Vec<String> {
    let desk = Desk::empty();
    let mut all = below(&desk, "");
    let mut next = 0;
    while let Some(words) = all.get(next).cloned() {
        all.extend(below(&desk, &words));
        next += 1;
    }
    all
}

/// The commands that do something.
pub(crate) fn leaves() -> Vec<String> {
    let all = commands();
    let holds_others = |words: &str| all.iter().any(|other| other.starts_with(&format!("{words} ")));
    all.iter().filter(|words| !holds_others(words)).cloned().collect()
}

#[test]
fn the_first_page_says_what_there_is() {
    snapshot!(Desk::empty().transcript(&["-h", "--help", "--version"]));
}

#[test]
fn every_command_says_how_it_is_used() {
    let desk = Desk::empty();
    let all = commands();
    assert!(all.contains(&"get".to_owned()) && all.contains(&"set override".to_owned()), "{all:?}");
    for words in all {
        let name = format!("help_{}", words.replace([' ', '-'], "_"));
        snapshot!(name, desk.frs(&format!("{words} --help")).to_string());
    }
}

#[test]
fn both_names_are_the_same_program() {
    let long = FRS.strip_suffix("frs").expect("a folder").to_owned() + "flux-resourceset-cli";
    let desk = Desk::empty();
    let said = |program: &str| {
        let output = desk.command(program).arg("--help").output().expect("an end");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let renamed = said(FRS).replace("Usage: frs", "Usage: flux-resourceset-cli");
    assert_eq!(said(&long), renamed);
}

#[test]
fn a_wrong_command_line_is_said_to_be_one_with_exit_code_2() {
    let desk = Desk::empty();
    let lines = [
        "",
        "frobnicate",
        "get",
        "get clusters --output paper",
        "get clusters east -l region=eu",
        "assign namespace spare",
        "assign namespace spare --cluster east -l region=eu",
        "patch cluster",
        "create cluster new --like east --file f.yaml",
        "set override podinfo --cluster east",
        "apply",
        "audit 3 --actor me",
        "audit --limit 0",
        "export --prune",
        "delete namespace spare --plan --yes",
        "completion tcsh",
    ];
    for line in lines {
        desk.frs(line).expect(2);
    }
    snapshot!(desk.transcript(&lines));
}
