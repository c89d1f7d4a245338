//! The chapter of the book about the commands, made from the commands. It is made by its test, which `make generated` runs: all of this module is test code.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use crate::arguments::Arguments;

/// What is written by hand.
const BEGINNING: &str = include_str!("reference.md");

/// The chapter: what is written by hand, then every command with its arguments.
fn chapter() -> String {
    let mut command = Arguments::command();
    command.build();
    let mut text = format!("{BEGINNING}\n## Flags of every command\n\n");
    flags(&mut text, command.get_arguments().filter(|argument| !is_common(argument)));
    for inner in command.get_subcommands() {
        tell(&mut text, inner, "frs");
    }
    text.trim_end().to_owned() + "\n"
}

fn is_common(argument: &Arg) -> bool {
    matches!(argument.get_id().as_str(), "help" | "version")
}

fn tell(text: &mut String, command: &Command, before: &str) {
    if command.get_name() == "help" || command.is_hide_set() {
        return;
    }
    let name = format!("{before} {}", command.get_name());
    let inner: Vec<&Command> = command.get_subcommands().filter(|inner| inner.get_name() != "help").collect();
    if inner.is_empty() {
        let _ = writeln!(text, "\n## {name}\n");
        let usage = command.clone().bin_name(&name).render_usage().to_string();
        let about =
            command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "{}\n", sentence(&about));
        let _ = writeln!(text, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
        let own =
            command.get_arguments().filter(|argument| !argument.is_global_set() && !is_common(argument));
        flags(text, own);
    }
    for inner in inner {
        tell(text, inner, &name);
    }
}

/// The first line of a help text has no full stop; in a book it has.
fn sentence(about: &str) -> String {
    let (first, rest) = about.split_once('\n').unwrap_or((about, ""));
    let end = if first.ends_with('.') { "" } else { "." };
    format!("{first}{end}\n{rest}").trim_end().to_owned()
}

fn flags<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let arguments: Vec<&Arg> = arguments.filter(|argument| !argument.is_hide_set()).collect();
    if arguments.is_empty() {
        return;
    }
    let _ = writeln!(text, "| | |\n|---|---|");
    for argument in arguments {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let mut help = help.replace('|', "\\|");
        let possible: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !possible.is_empty() && argument.get_action().takes_values() {
            let _ = write!(help, ": {}", possible.join(", "));
        }
        let _ = writeln!(text, "| `{}` | {help} |", shown(argument));
    }
}

/// `-o, --output <FORMAT>` or `[ID]...`.
fn shown(argument: &Arg) -> String {
    let names = argument
        .get_value_names()
        .map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    if argument.is_positional() {
        return names.unwrap_or_else(|| argument.get_id().to_string().to_uppercase());
    }
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let long = argument.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    let value = if argument.get_action().takes_values() {
        names.map(|names| format!(" {names}")).unwrap_or_default()
    } else {
        String::new()
    };
    format!("{short}{long}{value}")
}

#[test]
fn the_chapter_of_the_book_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/cli.md");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(path, chapter()).expect("written");
    }
    let written = std::fs::read_to_string(path).expect("docs/src/cli.md");
    assert!(written == chapter(), "docs/src/cli.md is not what the commands say: run `make generated`");
}
