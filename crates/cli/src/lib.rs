//! The command line. It talks to the service over HTTP, and leaves all rules to it. Which kinds there are and what fields they have, the
//! service says; of clusters and components it knows the fields that its tables and commands are about.
//!
//! Data goes to stdout, everything else to stderr. Exit codes are those of `Failure::code`.

// Comments on arguments are help texts, read in a terminal: names there have no marks around them.
#![allow(clippy::doc_markdown)]

mod agree;
mod arguments;
mod ask;
mod bootstrap;
mod change;
mod commands;
mod complete;
mod connection;
mod document;
mod draft;
mod failure;
mod files;
mod kinds;
mod names;
mod output;
mod parts;
mod plan;
#[cfg(test)]
mod reference;
mod references;
mod session;
mod settings;
mod table;
mod when;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use arguments::Arguments;
use output::Output;

/// Everything from the arguments to the exit code.
pub fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(Arguments::command).complete();
    let output = Output::new();
    let command = Arguments::command().color(output.colours());
    let matches = command.get_matches_from(names::apart(Arguments::command, std::env::args_os()));
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match commands::run(arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(&output);
            failure.code()
        }
    }
}
