//! `completion` and `man`: what is printed once and installed.

use crate::frs::Desk;
use crate::help::commands;
use crate::snapshot::snapshot;

#[test]
fn a_shell_is_told_how_to_complete_both_names() {
    snapshot!(Desk::empty().transcript(&["completion bash", "completion zsh", "completion fish"]));
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let desk = Desk::empty();
    let wrote = desk.frs("man --dir share/man1").expect(0);
    let pages = desk.files("share");
    for words in commands() {
        let page = format!("share/man1/frs-{}.1", words.replace(' ', "-"));
        assert!(pages.contains(&page), "{page} is not among {pages:?}");
        assert!(desk.read(&page).contains(".SH SYNOPSIS"), "{page}");
    }
    desk.file("occupied", "");
    let occupied = desk.frs("man --dir occupied").expect(1);
    snapshot!([wrote, desk.frs("man").expect(0), occupied].map(|run| run.to_string()).join("\n"));
}
