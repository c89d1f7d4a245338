//! `set patch` and `unset patch`: values of a component that one cluster has different.

use clap::Args;
use serde_json::{Map, Value};

use super::targets::Targets;
use crate::change::ChangeFlags;
use crate::complete;
use crate::document::pair;
use crate::failure::Failure;
use crate::session::Session;

/// Set values of a component on these clusters: Helm values by their path, or substitutions of a kustomization
///
/// Of the clusters that a selector selects, those without the component are passed over.
#[derive(Debug, Args)]
pub(crate) struct SetPatch {
    /// The component
    #[arg(add = complete::components())]
    pub component: String,
    #[command(flatten)]
    pub targets: Targets,
    /// `replicaCount=3`, `ui.message=hello`; `3`, `true` and `null` keep their type, `"3"` is a string
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub values: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// Take values of a component away from these clusters
#[derive(Debug, Args)]
pub(crate) struct UnsetPatch {
    /// The component
    #[arg(add = complete::components())]
    pub component: String,
    #[command(flatten)]
    pub targets: Targets,
    /// Which; all of them if none is named
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl SetPatch {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let mut values = Map::new();
        for value in &self.values {
            let (key, value) = pair(value)?;
            values.insert(key.to_owned(), value.into());
        }
        self.targets.patch_values(session, &self.component, &values.into(), &self.change)
    }
}

impl UnsetPatch {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let values = if self.keys.is_empty() {
            Value::Null
        } else {
            self.keys.iter().map(|key| (key.clone(), Value::Null)).collect::<Map<_, _>>().into()
        };
        self.targets.patch_values(session, &self.component, &values, &self.change)
    }
}
