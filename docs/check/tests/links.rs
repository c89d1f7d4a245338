//! What the book says of other things is there: chapters, headings, diagrams, tests, targets of the Makefile. Addresses on the net are
//! not fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use book::{Page, chapters, root};

/// What a fence may say. `sh` is run by the test beside this one, `sh,norun` is to be pasted too but needs more than we have here, and
/// `console` shows commands with prompts and what they print.
const LANGUAGES: [&str; 8] = ["sh", "sh,norun", "console", "text", "json", "yaml", "nginx", "rust"];

fn fail_with(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn at(page: &Page, line: usize) -> String {
    format!("{}:{line}", page.path.display())
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn every_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let pages: BTreeMap<_, _> = Page::all().into_iter().map(|page| (page.path.clone(), page)).collect();
    let mut wrong = Vec::new();
    for page in pages.values() {
        for link in &page.links {
            let target = link.target.as_str();
            if target.starts_with("https://") {
                continue;
            }
            if target.contains("://") {
                wrong.push(format!("{}: {target} is not https", at(page, link.line)));
                continue;
            }
            let (path, anchor) =
                target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
            let folder = page.path.parent().unwrap_or(Path::new(""));
            let path = if path.is_empty() { page.path.clone() } else { plain(&folder.join(path)) };
            if page.path.starts_with("docs/src") && !path.starts_with("docs/src") {
                wrong.push(format!("{}: {target} is not in the book", at(page, link.line)));
            } else if !root().join(&path).exists() {
                wrong.push(format!("{}: {target} is not there", at(page, link.line)));
            } else if let Some(anchor) = anchor
                && !pages.get(&path).is_some_and(|page| page.anchors.contains(anchor))
            {
                wrong.push(format!("{}: {} has no heading #{anchor}", at(page, link.line), path.display()));
            }
        }
    }
    fail_with(&wrong);
}

#[test]
fn every_chapter_is_in_the_summary_once() {
    let summary = Page::read(Path::new("docs/src/SUMMARY.md"));
    let mut listed: Vec<_> =
        summary.links.iter().map(|link| Path::new("docs/src").join(&link.target)).collect();
    listed.sort();
    let written: Vec<_> = chapters().into_iter().filter(|path| !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, written);
}

#[test]
fn every_diagram_is_shown_somewhere() {
    let shown: BTreeSet<_> = Page::all()
        .iter()
        .flat_map(|page| {
            page.links
                .iter()
                .map(|link| plain(&page.path.parent().unwrap_or(Path::new("")).join(&link.target)))
                .collect::<Vec<_>>()
        })
        .collect();
    for entry in fs::read_dir(root().join("docs/src/diagrams")).expect("diagrams") {
        let path = Path::new("docs/src/diagrams").join(entry.expect("an entry").file_name());
        assert!(shown.contains(&path), "nothing shows {}", path.display());
    }
}

#[test]
fn every_block_says_what_it_is_and_what_is_not_run_looks_so() {
    let mut wrong = Vec::new();
    for page in Page::all() {
        for block in &page.blocks {
            if !LANGUAGES.contains(&block.language.as_str()) {
                wrong.push(format!(
                    "{}: a block of `{}`; known are {LANGUAGES:?}",
                    at(&page, block.line),
                    block.language
                ));
            }
            if block.language == "console" && !block.text.starts_with("$ ") {
                wrong.push(format!(
                    "{}: a block of `console` begins with a prompt, `$ `",
                    at(&page, block.line)
                ));
            }
        }
    }
    fail_with(&wrong);
}

/// All our sources: of the crates and of the loop.
fn sources() -> String {
    fn visit(folder: &Path, found: &mut String) {
        for entry in fs::read_dir(folder).expect("our sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push_str(&fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    let mut found = String::new();
    for folder in ["crates", "e2e/src", "e2e/tests"] {
        visit(&root().join(folder), &mut found);
    }
    found
}

/// The names of the functions that are tests: those with `#[test]` or the like before them.
fn tests_in(sources: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for line in sources.lines().map(str::trim) {
        let code = ["pub ", "pub(crate) ", "async "]
            .iter()
            .fold(line, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        if let Some(name) = code.strip_prefix("fn ").and_then(|rest| rest.split('(').next()) {
            if is_test {
                found.insert(name);
            }
            is_test = false;
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with(['#', '/']) {
            is_test = false;
        }
    }
    found
}

#[test]
fn every_fault_of_the_book_has_a_test_or_says_that_there_is_none() {
    let page = Page::read(Path::new("docs/src/what-happens-when.md"));
    let sources = sources();
    let tests_there = tests_in(&sources);
    let mut wrong = Vec::new();
    let mut tests = BTreeSet::new();
    for row in page.rows.iter().filter(|row| row.headings.last().is_some_and(|heading| heading == "shown by"))
    {
        let (names, said) = (row.words.last(), row.cells.last());
        if names.is_none_or(Vec::is_empty) && !said.is_some_and(|said| said.contains("no test yet")) {
            wrong.push(format!("{}: neither a test, nor `no test yet`", at(&page, row.line)));
        }
        for name in names.into_iter().flatten() {
            // Stories of the loop and of the conformance suite are named in lists, all others are functions with `#[test]`.
            let listed = [format!("(\"{name}\", "), format!("::{name},")];
            if tests_there.contains(name.as_str()) || listed.iter().any(|entry| sources.contains(entry)) {
                tests.insert(name.clone());
            } else {
                wrong.push(format!("{}: there is no test `{name}`", at(&page, row.line)));
            }
        }
    }
    fail_with(&wrong);
    assert!(tests.len() > 80, "only {} tests were found in the tables: are they read rightly?", tests.len());
}

#[test]
fn every_target_of_make_that_is_named_exists() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let mut wrong = Vec::new();
    // The changelog may name what once was.
    for page in Page::all().iter().filter(|page| !page.path.ends_with("CHANGELOG.md")) {
        for word in &page.words {
            let target = word.text.strip_prefix("make ").and_then(|rest| rest.split(' ').next());
            if let Some(target) = target
                && !makefile.lines().any(|line| line.starts_with(&format!("{target}:")))
            {
                wrong.push(format!("{}: there is no `make {target}`", at(page, word.line)));
            }
        }
    }
    fail_with(&wrong);
}
