//! The command line as a whole. Each command says its own arguments, in its own file.

use clap::{Parser, Subcommand};

use crate::commands::{
    apply, assign, audit, cluster, config, create, delete, demo, describe, diff, doctor, edit, enable,
    export, forget, get, guard, history, inputs, kinds, manual, overrides, patch, set_patch,
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
/// the plan that is shown and to no other. What the guard asks about, `--yes` does not answer: `--expect`, `--max-removals` and
/// `--max-clusters` do.
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
    Guard(guard::Guard),
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
    Patch(set_patch::SetPatch),
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
    Patch(set_patch::UnsetPatch),
}
