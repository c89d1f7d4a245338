//! `set override` and `unset override`: the version or path of a component that one cluster has different.

use clap::Args;
use serde_json::{Map, Value};

use super::targets::Targets;
use crate::change::ChangeFlags;
use crate::complete;
use crate::failure::Failure;
use crate::references::{overridable, reference};
use crate::session::Session;

/// Override fields of a component on clusters: a canary, a hotfix, a pinned version
#[derive(Debug, Args)]
pub(crate) struct SetOverride {
    /// The component
    #[arg(add = complete::components())]
    pub component: String,
    #[command(flatten)]
    pub targets: Targets,
    /// `oci_tag=…`, `component_path=…`, `depends_on=a,b`
    #[arg(value_name = "FIELD=VALUE", required = true)]
    pub fields: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// Go back to what the catalog says
#[derive(Debug, Args)]
pub(crate) struct UnsetOverride {
    /// The component
    #[arg(add = complete::components())]
    pub component: String,
    #[command(flatten)]
    pub targets: Targets,
    /// Which fields; all of them if none is named (whether it is enabled is not one of them)
    #[arg(value_name = "FIELD")]
    pub fields: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl SetOverride {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kinds = session.kinds()?;
        let mut body = reference(kinds, kinds.components()?, &self.component, &self.fields)?;
        if let Some(fields) = body.as_object_mut() {
            fields.remove("id");
        }
        self.targets.patch_component(session, &self.component, &body, &self.change)
    }
}

impl UnsetOverride {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kinds = session.kinds()?;
        let known = overridable(kinds, kinds.components()?)?;
        if let Some(unknown) = self.fields.iter().find(|field| !known.contains(field)) {
            return Err(Failure::usage(format!(
                "`{unknown}` is no override; there are {}",
                known.join(", ")
            )));
        }
        let fields = if self.fields.is_empty() { known } else { self.fields };
        let body: Map<String, Value> = fields.into_iter().map(|field| (field, Value::Null)).collect();
        self.targets.patch_component(session, &self.component, &body.into(), &self.change)
    }
}
