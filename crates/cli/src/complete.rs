//! What a shell offers when a name is half typed. Names come from the service that environment and configuration choose; if it does not
//! answer, nothing is offered.

use std::ffi::{OsStr, OsString};

use clap::CommandFactory;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use client::Client;

use crate::arguments::Arguments;
use crate::connection::{ConnectionFlags, environment};
use crate::kinds::{Kind, Kinds};
use crate::names::positions;
use crate::settings::Settings;

fn starting_with(typed: &OsStr, names: Vec<String>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(&*typed)).map(CompletionCandidate::new).collect()
}

/// The words of the line so far, which the shell hands over.
fn line() -> Vec<OsString> {
    std::env::args_os().skip_while(|word| word != "--").skip(1).collect()
}

/// What the line so far says about the service.
fn flags(line: &[OsString]) -> ConnectionFlags {
    let line: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
    let value_of = |flag: &str| {
        line.iter().enumerate().find_map(|(position, word)| match word.strip_prefix(flag)? {
            "" => line.get(position + 1).map(ToString::to_string),
            rest => rest.strip_prefix('=').map(ToOwned::to_owned),
        })
    };
    ConnectionFlags {
        context: value_of("--context"),
        config: value_of("--config").map(Into::into),
        url: value_of("--url"),
        token: value_of("--token"),
        write_token: value_of("--write-token"),
        ca_file: value_of("--ca-file").map(Into::into),
    }
}

/// The service that the line so far chooses; whoever waits for a completion does not wait long.
fn client() -> Option<Client> {
    flags(&line()).resolve(&environment).ok()?.hasty_client().ok()
}

/// The first ids of a kind that begin as typed.
fn ids(typed: &OsStr, which: impl FnOnce(&Kinds) -> Option<&Kind>) -> Vec<CompletionCandidate> {
    let found = || {
        let client = client()?;
        let kinds = Kinds::new(client.kinds().ok()?);
        client.first_ids(&which(&kinds)?.name, &typed.to_string_lossy()).ok()
    };
    starting_with(typed, found().unwrap_or_default())
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
    ArgValueCompleter::new(|typed: &OsStr| ids(typed, |kinds| kinds.clusters().ok()))
}

/// Names of components.
pub(crate) fn components() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| ids(typed, |kinds| kinds.components().ok()))
}

/// Names of documents of whichever kind is named on the line before.
pub(crate) fn documents() -> ArgValueCompleter {
    let named = |kinds: &Kinds| {
        let line = line();
        // The first argument of the command.
        let word = line.get(*positions(&Arguments::command(), &line).get(1)?)?;
        kinds.find(&word.to_string_lossy()).ok().map(|kind| kind.name.clone())
    };
    ArgValueCompleter::new(move |typed: &OsStr| {
        ids(typed, |kinds| named(kinds).and_then(|name| kinds.iter().find(|kind| kind.name == name)))
    })
}

/// Names of contexts.
pub(crate) fn contexts() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let path = flags(&line()).settings_path(&environment).ok();
        let settings = path.and_then(|path| Settings::read(&path).ok()).unwrap_or_default();
        starting_with(typed, settings.contexts.into_iter().map(|context| context.name).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::flags;

    #[test]
    fn a_completion_asks_where_the_command_would() {
        let line = |text: &str| flags(&text.split(' ').map(Into::into).collect::<Vec<_>>());
        let found = line("frs --context=home --token t get --ca-file ca.pem clusters --config c.yaml e");
        assert_eq!((found.context.as_deref(), found.token.as_deref()), (Some("home"), Some("t")));
        assert_eq!((found.ca_file, found.config), (Some("ca.pem".into()), Some("c.yaml".into())));
        assert_eq!((found.url, found.write_token), (None, None));
        // `--config` is not `--config-something`.
        assert_eq!(line("frs --contexts x").context, None);
    }
}
