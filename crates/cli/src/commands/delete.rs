//! `delete` and `decommission`.

use std::collections::BTreeSet;

use api::Operation;
use clap::Args;

use crate::change::{ChangeFlags, carry_out};
use crate::complete;
use crate::failure::Failure;
use crate::kinds::Shape;
use crate::session::Session;

/// Delete documents that nothing refers to
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Their kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Their ids
    #[arg(value_name = "ID", required = true, add = complete::documents())]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// Delete the record of a cluster: its Flux then removes everything that came from here
///
/// A record of the decommission stays, so that the cluster is answered with empty lists and cleans up; `frs get decommissioned` shows it,
/// `frs forget` removes it.
#[derive(Debug, Args)]
pub(crate) struct Decommission {
    /// The cluster
    #[arg(add = complete::clusters())]
    pub cluster: String,
    #[command(flatten)]
    pub change: ChangeFlags,
}

fn delete(session: &Session, kind: &str, ids: Vec<String>, flags: &ChangeFlags) -> Result<(), Failure> {
    let operation =
        |id| Operation::Delete { kind: kind.to_owned(), id: Some(id), selector: None, revision: None };
    let ids: BTreeSet<String> = ids.into_iter().collect();
    let operations: Vec<Operation> = ids.into_iter().map(operation).collect();
    carry_out(session, &operations.into(), flags).map(drop)
}

impl Delete {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kind(&self.kind)?;
        if kind.is_cluster() {
            return Err(Failure::usage(format!(
                "a cluster is not just deleted, its Flux removes everything from it: `frs decommission {}`",
                self.ids.first().map(String::as_str).unwrap_or_default()
            )));
        }
        delete(session, &kind.name, self.ids, &self.change)
    }
}

impl Decommission {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kinds()?.clusters()?.name.clone();
        delete(session, &kind, vec![self.cluster], &self.change)
    }
}
