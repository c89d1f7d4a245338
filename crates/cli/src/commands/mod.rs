//! What each command does. A file is a command, or two that belong together; its arguments are there too.

pub(crate) mod apply;
pub(crate) mod assign;
pub(crate) mod audit;
pub(crate) mod cluster;
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
pub(crate) mod history;
pub(crate) mod inputs;
pub(crate) mod kinds;
pub(crate) mod manual;
pub(crate) mod overrides;
pub(crate) mod patch;
mod targets;
pub(crate) mod values;

use crate::arguments::{Arguments, Command, Set, SetArguments, Unset, UnsetArguments};
use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

/// Does what the arguments say.
pub(crate) fn run(arguments: Arguments, output: &Output) -> Result<(), Failure> {
    let flags = arguments.connection;
    match arguments.command {
        // Those that need no service, or look at whether there is one.
        Command::Config(config) => config.run(&flags, output),
        Command::Completion(completion) => completion.run(output),
        Command::Man(man) => man.run(output),
        Command::Doctor(doctor::Doctor {}) => doctor::Doctor::run(&flags, output),
        command => with_session(command, &Session::open(&flags, output)?),
    }
}

/// Does what a command says that talks to a service.
fn with_session(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Get(get) => get.run(session),
        Command::Describe(describe) => describe.run(session),
        Command::Create(create) => create.run(session),
        Command::Patch(patch) => patch.run(session),
        Command::Edit(edit) => edit.run(session),
        Command::Delete(delete) => delete.run(session),
        Command::Assign(assign) => assign.run(session),
        Command::Unassign(unassign) => unassign.run(session),
        Command::Set(SetArguments { what: Set::Override(set) }) => set.run(session),
        Command::Set(SetArguments { what: Set::Patch(set) }) => set.run(session),
        Command::Unset(UnsetArguments { what: Unset::Override(unset) }) => unset.run(session),
        Command::Unset(UnsetArguments { what: Unset::Patch(unset) }) => unset.run(session),
        Command::Enable(enable) => enable.run(session),
        Command::Disable(disable) => disable.run(session),
        Command::Decommission(decommission) => decommission.run(session),
        Command::Forget(forget) => forget.run(session),
        Command::Apply(apply) => apply.run(session),
        Command::Diff(diff) => diff.run(session),
        Command::Export(export) => export.run(session),
        Command::History(history) => history.run(session),
        Command::Audit(audit) => audit.run(session),
        Command::Inputs(inputs) => inputs.run(session),
        Command::Kinds(kinds) => kinds.run(session),
        Command::Cluster(cluster) => cluster.run(session),
        Command::Demo(demo) => demo.run(session),
        Command::Config(_) | Command::Completion(_) | Command::Man(_) | Command::Doctor(_) => {
            Err(Failure::usage("this command does not work on a service"))
        }
    }
}
