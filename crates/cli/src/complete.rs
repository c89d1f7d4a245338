//! What a shell offers when a name is half typed. Names come from the service that environment and configuration choose; if it does not
//! answer, nothing is offered.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use client::Client;

use crate::connection::{ConnectionFlags, environment};
use crate::kinds::Kinds;
use crate::settings::Settings;

fn starting_with(typed: &OsStr, names: Vec<String>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(&*typed)).map(CompletionCandidate::new).collect()
}

/// The service that the line so far chooses; whoever waits for a completion does not wait long.
fn client() -> Option<Client> {
    let words: Vec<String> = std::env::args().skip_while(|word| word != "--").collect();
    let value_of = |flag: &str| {
        let position = words.iter().position(|word| word == flag || word.starts_with(&format!("{flag}=")))?;
        words[position]
            .split_once('=')
            .map(|(_, value)| value.to_owned())
            .or_else(|| words.get(position + 1).cloned())
    };
    let flags = ConnectionFlags {
        url: value_of("--url"),
        context: value_of("--context"),
        config: value_of("--config").map(Into::into),
        ..ConnectionFlags::default()
    };
    flags.resolve(&environment).ok()?.hasty_client().ok()
}

fn ids(shape: &str) -> Option<Vec<String>> {
    let client = client()?;
    let kinds = Kinds::new(client.kinds().ok()?);
    let kind = kinds.iter().find(|kind| kind.shape == shape)?;
    client.first_ids(&kind.name).ok()
}

/// Names of kinds.
pub(crate) fn kinds() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let kinds = client().and_then(|client| client.kinds().ok()).unwrap_or_default();
        starting_with(typed, kinds.into_iter().map(|kind| kind.name).collect())
    })
}

/// Names of clusters.
pub(crate) fn clusters() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| starting_with(typed, ids("cluster").unwrap_or_default()))
}

/// Names of components.
pub(crate) fn components() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| starting_with(typed, ids("component").unwrap_or_default()))
}

/// Names of documents of whichever kind is named on the line before.
pub(crate) fn documents() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| starting_with(typed, of_the_line().unwrap_or_default()))
}

/// The shell hands over the words so far; one of them is the kind.
fn of_the_line() -> Option<Vec<String>> {
    let client = client()?;
    let kinds = Kinds::new(client.kinds().ok()?);
    let words = std::env::args().skip_while(|word| word != "--").skip(2);
    let kind = words.filter(|word| !word.starts_with('-')).find_map(|word| kinds.find(&word).ok())?;
    client.first_ids(&kind.name).ok()
}

/// Names of contexts.
pub(crate) fn contexts() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let path = ConnectionFlags::default().settings_path(&environment).ok();
        let settings = path.and_then(|path| Settings::read(&path).ok()).unwrap_or_default();
        starting_with(typed, settings.contexts.into_iter().map(|context| context.name).collect())
    })
}
