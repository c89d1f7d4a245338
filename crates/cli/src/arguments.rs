//! The command line as a whole. Each command says its own arguments, in its own file.

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    apply, assign, audit, cluster, config, create, delete, demo, describe, diff, doctor, edit, enable,
    export, forget, get, history, inputs, kinds, manual, overrides, patch, values,
};
use crate::connection::ConnectionFlags;

/// Manage what every Kubernetes cluster of a fleet runs
///
/// `frs` is the short name of `flux-resourceset-cli`. It talks to the service in crud mode: set FLUX_API_URL and FLUX_API_TOKEN, or
/// name services in a configuration file with `frs config set-context`.
///
/// A document is named KIND ID or KIND/ID, which is what `-o name` prints.
///
/// Every change shows first what the clusters would see of it and what Flux would delete, and asks. Without a terminal, `--yes` agrees to
/// the plan that is shown and to no other.
///
/// Exit codes: 0 done; 1 failed, or `diff` found differences; 2 the command line is wrong; 3 the effects moved since the plan.
#[derive(Parser)]
#[command(
    name = "frs",
    version,
    propagate_version = true,
    max_term_width = 110,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub connection: ConnectionFlags,
    #[command(subcommand)]
    pub command: Command,
}

/// The commands whose first argument is a kind, and the next an id.
const NAMING: [&str; 10] =
    ["get", "describe", "create", "patch", "edit", "delete", "rm", "assign", "unassign", "history"];

/// The places of the words that are neither flags nor their values: the command first, then its own arguments.
pub(crate) fn positions(words: &[OsString]) -> Vec<usize> {
    let root = Arguments::command();
    let mut command = &root;
    let mut found = Vec::new();
    let mut place = 1;
    while let Some(word) = words.get(place) {
        let text = word.to_string_lossy();
        if let Some(flag) = text.strip_prefix('-').filter(|flag| !flag.is_empty()) {
            let known = |known: &&clap::Arg| match flag.strip_prefix('-') {
                Some(long) => known.get_long() == Some(long),
                None => flag.chars().eq(known.get_short()),
            };
            let mut flags = root.get_arguments().chain(command.get_arguments());
            // The value of `--flag=value` and `-fvalue` is in the same word.
            let takes_next = flags.find(known).is_some_and(|flag| flag.get_action().takes_values());
            place += usize::from(takes_next);
        } else {
            if found.is_empty() {
                command = root.find_subcommand(&*text).unwrap_or(&root);
            }
            found.push(place);
        }
        place += 1;
    }
    found
}

/// The words of a command line, with `KIND/ID` as `KIND ID`; of several of the same kind, the kind once.
pub(crate) fn with_names_apart(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    // Most command lines have no name like that.
    if !words.iter().skip(1).any(|word| word.as_encoded_bytes().contains(&b'/')) {
        return words;
    }
    let positions = positions(&words);
    let [command, names @ ..] = &*positions else { return words };
    let Some(first) = names.first().filter(|_| NAMING.iter().any(|name| words[*command] == *name)) else {
        return words;
    };
    let split = |word: &OsString| {
        let (kind, id) = word.to_str()?.split_once('/')?;
        let is_name = !kind.is_empty() && !id.is_empty() && !id.contains('/');
        is_name.then(|| (kind.to_owned(), id.to_owned()))
    };
    let Some((kind, _)) = split(&words[*first]) else { return words };
    for name in names {
        if let Some((_, id)) = split(&words[*name]).filter(|(other, _)| *other == kind) {
            words[*name] = id.into();
        }
    }
    words.insert(*first, kind.into());
    words
}

/// What can be done.
#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Fleet(FleetCommand),
    Doctor(doctor::Doctor),
    Config(config::Config),
    Completion(manual::Completion),
    Man(manual::Man),
}

/// What can be done with a fleet: a service has to be there.
#[derive(Subcommand)]
pub(crate) enum FleetCommand {
    Get(get::Get),
    Describe(describe::Describe),
    Create(Box<create::Create>),
    Patch(patch::Patch),
    Edit(edit::Edit),
    #[command(visible_alias = "rm")]
    Delete(delete::Delete),
    Assign(assign::Assign),
    Unassign(assign::Unassign),
    Set(SetArguments),
    Unset(UnsetArguments),
    Enable(enable::Enable),
    Disable(enable::Disable),
    Decommission(delete::Decommission),
    Forget(forget::Forget),
    Apply(apply::Apply),
    Diff(diff::Diff),
    Export(export::Export),
    History(history::History),
    Audit(audit::Audit),
    Inputs(inputs::Inputs),
    Kinds(kinds::ListKinds),
    Cluster(cluster::Cluster),
    Demo(demo::Demo),
}

/// Override the catalog on clusters
#[derive(clap::Args)]
pub(crate) struct SetArguments {
    #[command(subcommand)]
    pub what: Set,
}

/// What can be set.
#[derive(Subcommand)]
pub(crate) enum Set {
    Override(overrides::SetOverride),
    Patch(values::SetPatch),
}

/// Remove overrides from clusters
#[derive(clap::Args)]
pub(crate) struct UnsetArguments {
    #[command(subcommand)]
    pub what: Unset,
}

/// What can be taken away.
#[derive(Subcommand)]
pub(crate) enum Unset {
    Override(overrides::UnsetOverride),
    Patch(values::UnsetPatch),
}

#[cfg(test)]
mod tests {
    use super::with_names_apart;

    #[test]
    fn a_document_may_be_named_as_kubectl_names_it() {
        let apart = |line: &str| {
            let words = with_names_apart(line.split(' ').map(Into::into));
            words.join(" ".as_ref()).into_string().expect("UTF-8")
        };
        assert_eq!(apart("frs get clusters/east"), "frs get clusters east");
        assert_eq!(
            apart("frs get clusters/east clusters/west -o json"),
            "frs get clusters east west -o json"
        );
        assert_eq!(
            apart("frs --context home patch ns/a --set b=c/d"),
            "frs --context home patch ns a --set b=c/d"
        );
        assert_eq!(apart("frs delete --plan ns/a ns/b"), "frs delete --plan ns a b");
        assert_eq!(apart("frs get -o name clusters/x"), "frs get -o name clusters x");
        assert_eq!(apart("frs patch --set a=b clusters/x"), "frs patch --set a=b clusters x");
        assert_eq!(apart("frs unassign --cluster X ns/sandbox"), "frs unassign --cluster X ns sandbox");
        assert_eq!(
            apart("frs --context get get -ojson clusters/x"),
            "frs --context get get -ojson clusters x"
        );
        for line in [
            "frs set override history component_path=apps/history",
            "frs inputs get ns/x",
            "frs get clusters east",
            "frs get",
            "frs apply -f a/b",
            "frs get --output json",
            "frs get /east",
            "frs get clusters/",
            "frs get clusters/a/b",
            "frs inputs east namespaces",
        ] {
            assert_eq!(apart(line), line);
        }
        // Two kinds at once are no one's names: the parser says so.
        assert_eq!(apart("frs get clusters/east ns/a"), "frs get clusters east ns/a");
    }
}
