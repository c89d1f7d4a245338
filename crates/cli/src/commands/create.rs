//! `create`: a document from flags, from a file, or like another.

use std::path::PathBuf;

use api::Operation;
use clap::Args;
use serde_json::{Value, json};

use crate::change::{ChangeFlags, carry_out};
use crate::complete;
use crate::document;
use crate::failure::Failure;
use crate::files;
use crate::kinds::{Kind, Shape};
use crate::session::Session;

/// Create a document
///
/// A cluster can be made like another: everything is copied but its id, its name and its DNS name.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Its kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Its id
    pub id: String,
    /// A field; what type it has, the kind says. May be given several times
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// The rest of the document, as YAML or JSON (`-` for stdin)
    #[arg(short, long, value_name = "FILE", conflicts_with = "like")]
    pub file: Option<PathBuf>,
    /// A cluster to copy
    #[arg(long, value_name = "CLUSTER", add = complete::clusters())]
    pub like: Option<String>,
    /// The DNS name of a new cluster; with --like it follows from the other's if that begins with its id
    #[arg(long, value_name = "NAME")]
    pub dns: Option<String>,
    /// The environment of a new cluster
    #[arg(long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Take the DNS name of a decommissioned cluster
    #[arg(long)]
    pub replace_decommissioned: bool,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl Create {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kind(&self.kind)?;
        let body = self.body(session, kind)?;
        let operation = Operation::Create {
            kind: kind.name.clone(),
            id: Some(self.id),
            body,
            replace_decommissioned: self.replace_decommissioned,
        };
        carry_out(session, &vec![operation].into(), &self.change).map(drop)
    }

    fn body(&self, session: &Session, kind: &Kind) -> Result<Value, Failure> {
        if !kind.is_cluster() && (self.like.is_some() || self.dns.is_some() || self.environment.is_some()) {
            return Err(Failure::usage("`--like`, `--dns` and `--environment` are for clusters"));
        }
        let mut body = match (&self.file, &self.like) {
            (Some(file), _) => files::read_one(file, kind, session.kinds()?)?,
            (None, Some(other)) => self.like(&session.client.document(&kind.name, other)?.document, other)?,
            (None, None) => json!({}),
        };
        if body.get("id").is_some_and(|id| id != self.id.as_str()) {
            return Err(Failure::usage(format!("the file has the id {}, not `{}`", body["id"], self.id)));
        }
        body["id"] = self.id.as_str().into();
        if kind.is_cluster() && body.get("cluster_name").is_none() {
            body["cluster_name"] = self.id.as_str().into();
        }
        for (name, value) in [("cluster_dns", &self.dns), ("environment", &self.environment)] {
            if let Some(value) = value {
                body[name] = value.as_str().into();
            }
        }
        for set in &self.set {
            document::set(&mut body, set, &kind.schema)?;
        }
        Ok(body)
    }

    /// The document of another cluster, as this one.
    fn like(&self, other: &Value, name: &str) -> Result<Value, Failure> {
        let mut body = other.clone();
        body["id"] = self.id.as_str().into();
        body["cluster_name"] = self.id.as_str().into();
        if self.dns.is_none() {
            let dns = other["cluster_dns"].as_str().unwrap_or_default();
            let rest = dns.strip_prefix(name).filter(|rest| rest.starts_with('.'));
            let rest = rest.ok_or_else(|| {
                Failure::usage(format!(
                    "`{dns}` does not begin with `{name}.`, so say the new name: `--dns NAME`"
                ))
            })?;
            body["cluster_dns"] = format!("{}{rest}", self.id).into();
        }
        Ok(body)
    }
}
