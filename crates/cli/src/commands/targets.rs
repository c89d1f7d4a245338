//! Which clusters a change of references or patches is for.

use std::collections::BTreeSet;

use api::{Operation, PatchType, Revisioned};
use clap::Args;
use client::Asked;
use serde_json::Value;

use crate::change::{ChangeFlags, carry_out};
use crate::complete;
use crate::failure::Failure;
use crate::session::Session;
use crate::words::count;

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

    /// Those of the selected clusters that have a component; the others are passed over. Clusters that were named stay what was asked for.
    pub(crate) fn with_component(self, session: &Session, component: &str) -> Result<Self, Failure> {
        let Some(selector) = &self.selector else { return Ok(self) };
        let kinds = session.kinds()?;
        let asked = Asked { selector: Some(selector.clone()), ..Asked::default() };
        let selected = session.list(&kinds.clusters()?.name, &asked)?;
        let list = kinds.components()?.name.as_str();
        let has = |cluster: &&Revisioned| {
            let references = cluster.document[list].as_array().into_iter().flatten();
            references.into_iter().any(|reference| reference["id"] == component)
        };
        let having: Vec<String> =
            selected.iter().filter(has).map(|cluster| cluster.id().to_owned()).collect();
        if having.is_empty() && !selected.is_empty() {
            return Err(Failure::failed(format!("no cluster that `{selector}` selects has `{component}`")));
        }
        if having.len() == selected.len() {
            return Ok(self);
        }
        let without = count(selected.len() - having.len(), "cluster");
        session.output.note(&format!("{without} without `{component}` will be passed over."));
        Ok(Self { clusters: having, selector: None })
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
}
