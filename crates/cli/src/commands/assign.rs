//! `assign` and `unassign`: what a cluster refers to.

use api::Operation;
use clap::Args;
use serde_json::json;

use super::targets::Targets;
use crate::change::{ChangeFlags, carry_out};
use crate::complete;
use crate::failure::Failure;
use crate::kinds::{Kind, Shape};
use crate::references;
use crate::session::Session;

/// Give clusters a component, namespace, rolebinding or other definition
///
/// What a cluster has set on it already stays: `assign` only adds, and sets the fields that are named.
#[derive(Debug, Args)]
pub(crate) struct Assign {
    /// The kind of what is assigned
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// What is assigned
    #[arg(add = complete::documents())]
    pub id: String,
    #[command(flatten)]
    pub targets: Targets,
    /// Fields to override on these clusters
    #[arg(value_name = "FIELD=VALUE")]
    pub fields: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// Take a component, namespace, rolebinding or other definition away from clusters; Flux deletes it there
#[derive(Debug, Args)]
pub(crate) struct Unassign {
    /// The kind of what is taken away
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// What is taken away
    #[arg(add = complete::documents())]
    pub id: String,
    #[command(flatten)]
    pub targets: Targets,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// The kind that clusters refer to under this name.
fn referable<'a>(session: &'a Session, name: &str) -> Result<&'a Kind, Failure> {
    let kind = session.kind(name)?;
    if kind.is_cluster() {
        return Err(Failure::usage("a cluster cannot be assigned to a cluster"));
    }
    Ok(kind)
}

impl Assign {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = referable(session, &self.kind)?;
        let reference = references::reference(session.kinds()?, kind, &self.id, &self.fields)?;
        self.targets.patch(session, &json!({ (kind.name.as_str()): [reference] }), &self.change)
    }
}

impl Unassign {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = referable(session, &self.kind)?;
        let operations = self.targets.each(|cluster, selector| Operation::Unassign {
            kind: kind.name.clone(),
            id: self.id.clone(),
            cluster,
            selector,
        });
        carry_out(session, &operations.into(), &self.change).map(drop)
    }
}
