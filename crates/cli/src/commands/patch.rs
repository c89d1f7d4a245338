//! `patch`: some fields of a document.

use std::path::{Path, PathBuf};

use api::{Operation, PatchType};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::change::{ChangeFlags, carry_out};
use crate::complete;
use crate::document;
use crate::failure::Failure;
use crate::files;
use crate::kinds::{Kind, Shape};
use crate::session::Session;

/// Change some fields of a document, or of all clusters that a selector selects
///
/// `--set labels.team=a` sets a field, `--unset labels.team` takes it away. In lists of references the next part is an id:
/// `--set platform_components.podinfo.oci_tag=6.9.0`. What is not named stays as it is.
#[derive(Debug, Args)]
pub(crate) struct Patch {
    /// Its kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Its id
    #[arg(required_unless_present = "selector", conflicts_with = "selector", add = complete::documents())]
    pub id: Option<String>,
    /// All clusters that this selects, in place of an id
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Set a field
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// Take a field away
    #[arg(long, value_name = "FIELD")]
    pub unset: Vec<String>,
    /// A patch in a file, YAML or JSON (`-` for stdin)
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The type of the patch in the file
    #[arg(long = "type", value_name = "TYPE", default_value = "strategic", requires = "file")]
    pub meant: PatchKind,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// How a patch is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PatchKind {
    /// Objects merge, references merge by id
    Strategic,
    /// RFC 7396: a list replaces a list
    Merge,
    /// RFC 6902: a list of operations
    Json,
}

impl Patch {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kind(&self.kind)?;
        if self.selector.is_some() && !kind.is_cluster() {
            return Err(Failure::usage("a selector selects clusters; name other documents by their id"));
        }
        let named = !self.set.is_empty() || !self.unset.is_empty();
        let operations = match (&self.file, named) {
            (Some(_), true) => return Err(Failure::usage("either `--file`, or `--set` and `--unset`")),
            (None, false) => {
                return Err(Failure::usage("say what to change: `--set`, `--unset` or `--file`"));
            }
            (Some(file), false) => vec![self.operation(kind, read(file)?, self.patch_type())],
            (None, true) => self.named(kind)?,
        };
        carry_out(session, &operations.into(), &self.change).map(drop)
    }

    /// What `--set` and `--unset` say.
    fn named(&self, kind: &Kind) -> Result<Vec<Operation>, Failure> {
        let mut patch = json!({});
        let mut operations = Vec::new();
        for set in &self.set {
            document::set(&mut patch, set, &kind.schema)?;
        }
        for unset in &self.unset {
            // A field of a reference is taken from the reference: a patch of the cluster would add one that is not there.
            match document::of_reference(unset, &kind.schema)? {
                Some((kind, id, body)) => operations.push(Operation::PatchReference {
                    kind,
                    id,
                    cluster: self.id.clone(),
                    selector: self.selector.clone(),
                    body,
                    patch_type: PatchType::Strategic,
                }),
                None => document::unset(&mut patch, unset, &kind.schema)?,
            }
        }
        if patch.as_object().is_some_and(|patch| !patch.is_empty()) {
            operations.insert(0, self.operation(kind, patch, PatchType::Strategic));
        }
        Ok(operations)
    }

    fn operation(&self, kind: &Kind, body: Value, patch_type: PatchType) -> Operation {
        Operation::Patch {
            kind: kind.name.clone(),
            id: self.id.clone(),
            selector: self.selector.clone(),
            body,
            patch_type,
            revision: None,
        }
    }

    fn patch_type(&self) -> PatchType {
        match self.meant {
            PatchKind::Strategic => PatchType::Strategic,
            PatchKind::Merge => PatchType::Merge,
            PatchKind::Json => PatchType::Json,
        }
    }
}

/// The one value of a file, as it stands: a JSON patch is a list.
fn read(path: &Path) -> Result<Value, Failure> {
    let (source, text) = files::text(path)?;
    files::value(&source, &text)
}
