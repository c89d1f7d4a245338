//! The command line. It talks to the service over HTTP and knows nothing else of it: kinds, fields and rules are what the service says
//! they are, so a newer service needs no newer command line.
//!
//! Data goes to stdout, everything else to stderr. Exit codes are those of `Failure::code`.

// Comments on arguments are help texts, read in a terminal: names there have no marks around them.
#![allow(clippy::doc_markdown)]

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
mod output;
mod plan;
#[cfg(test)]
mod reference;
mod session;
mod settings;
mod table;
mod when;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use arguments::Arguments;
use output::Output;

/// Everything from the arguments to the exit code.
pub fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(Arguments::command).complete();
    let arguments = Arguments::parse_from(arguments::with_names_apart(std::env::args_os()));
    let output = Output::new();
    match commands::run(arguments, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(&output);
            failure.code()
        }
    }
}
