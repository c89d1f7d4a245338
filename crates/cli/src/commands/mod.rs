//! What each command does. A file is a command, or two that belong together; its arguments are there too.

pub(crate) mod apply;
pub(crate) mod assign;
pub(crate) mod audit;
pub(crate) mod cluster;
mod compared;
pub(crate) mod config;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod describe;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod enable;
pub(crate) mod export;
pub(crate) mod forget;
pub(crate) mod get;
pub(crate) mod guard;
pub(crate) mod history;
pub(crate) mod inputs;
pub(crate) mod kinds;
pub(crate) mod manual;
pub(crate) mod overrides;
pub(crate) mod patch;
pub(crate) mod set_patch;
mod tables;
mod targets;
mod watch;

use crate::arguments::{Arguments, Command, FleetCommand, Set, SetArguments, Unset, UnsetArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// Does what the arguments say.
pub(crate) fn run(arguments: Arguments, output: &Output) -> Result<(), Failure> {
    let flags = arguments.connection;
    match arguments.command {
        Command::Fleet(command) => on_fleet(command, &Session::open(&flags, output)?),
        Command::Config(config) => config.run(&flags, output),
        Command::Completion(completion) => completion.run(output),
        Command::Man(man) => man.run(output),
        Command::Doctor(doctor::Doctor {}) => doctor::Doctor::run(&flags, output),
    }
}

/// Does what a command says that works on a fleet.
fn on_fleet(command: FleetCommand, session: &Session) -> Result<(), Failure> {
    match command {
        FleetCommand::Get(get) => get.run(session),
        FleetCommand::Describe(describe) => describe.run(session),
        FleetCommand::Create(create) => create.run(session),
        FleetCommand::Patch(patch) => patch.run(session),
        FleetCommand::Edit(edit) => edit.run(session),
        FleetCommand::Delete(delete) => delete.run(session),
        FleetCommand::Assign(assign) => assign.run(session),
        FleetCommand::Unassign(unassign) => unassign.run(session),
        FleetCommand::Set(SetArguments { what: Set::Override(set) }) => set.run(session),
        FleetCommand::Set(SetArguments { what: Set::Patch(set) }) => set.run(session),
        FleetCommand::Unset(UnsetArguments { what: Unset::Override(unset) }) => unset.run(session),
        FleetCommand::Unset(UnsetArguments { what: Unset::Patch(unset) }) => unset.run(session),
        FleetCommand::Enable(enable) => enable.run(session),
        FleetCommand::Disable(disable) => disable.run(session),
        FleetCommand::Decommission(decommission) => decommission.run(session),
        FleetCommand::Forget(forget) => forget.run(session),
        FleetCommand::Apply(apply) => apply.run(session),
        FleetCommand::Diff(diff) => diff.run(session),
        FleetCommand::Export(export) => export.run(session),
        FleetCommand::History(history) => history.run(session),
        FleetCommand::Audit(audit) => audit.run(session),
        FleetCommand::Inputs(inputs) => inputs.run(session),
        FleetCommand::Kinds(kinds) => kinds.run(session),
        FleetCommand::Guard(guard) => guard.run(session),
        FleetCommand::Cluster(cluster) => cluster.run(session),
        FleetCommand::Demo(demo) => demo.run(session),
    }
}
