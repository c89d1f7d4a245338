//! Which clusters a change of references or patches is for.

use std::collections::BTreeSet;

use api::{Operation, PatchType};
use clap::Args;
use serde_json::Value;

use crate::change::{ChangeFlags, carry_out};
use crate::complete;
use crate::failure::Failure;
use crate::session::Session;

/// Clusters by name, or by selector.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Targets {
    /// A cluster; may be given several times
    #[arg(short, long = "cluster", value_name = "CLUSTER", add = complete::clusters())]
    pub clusters: Vec<String>,
    /// All clusters that this selects, such as `environment=prod,region in (eu,us)`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
}

impl Targets {
    /// One operation for each cluster, or one for the selector: it is given whichever it is for.
    pub(crate) fn each<T>(&self, operation: impl Fn(Option<String>, Option<String>) -> T) -> Vec<T> {
        match &self.selector {
            Some(selector) => vec![operation(None, Some(selector.clone()))],
            None => {
                let clusters: BTreeSet<&String> = self.clusters.iter().collect();
                clusters.into_iter().map(|cluster| operation(Some(cluster.clone()), None)).collect()
            }
        }
    }

    /// Changes these clusters.
    pub(crate) fn patch(&self, session: &Session, body: &Value, flags: &ChangeFlags) -> Result<(), Failure> {
        let kind = &session.kinds()?.clusters()?.name;
        let operations = self.each(|id, selector| Operation::Patch {
            kind: kind.clone(),
            id,
            selector,
            body: body.clone(),
            patch_type: PatchType::Strategic,
            revision: None,
        });
        carry_out(session, &operations.into(), flags).map(drop)
    }

    /// Changes what these clusters have set on a component that they have.
    pub(crate) fn patch_component(
        &self,
        session: &Session,
        component: &str,
        body: &Value,
        flags: &ChangeFlags,
    ) -> Result<(), Failure> {
        let kind = &session.kinds()?.components()?.name;
        let operations = self.each(|cluster, selector| Operation::PatchReference {
            kind: kind.clone(),
            id: component.to_owned(),
            cluster,
            selector,
            body: body.clone(),
            patch_type: PatchType::Strategic,
        });
        carry_out(session, &operations.into(), flags).map(drop)
    }

    /// Changes what these clusters have as patches for a component that they have.
    pub(crate) fn patch_values(
        &self,
        session: &Session,
        component: &str,
        values: &Value,
        flags: &ChangeFlags,
    ) -> Result<(), Failure> {
        let operations = self.each(|cluster, selector| Operation::PatchValues {
            id: component.to_owned(),
            cluster,
            selector,
            body: values.clone(),
        });
        carry_out(session, &operations.into(), flags).map(drop)
    }
}
