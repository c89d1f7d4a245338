//! `apply`: documents from files, all of them in one transaction.

use std::collections::BTreeMap;
use std::path::PathBuf;

use api::{Operation, ProblemName, Revisioned};
use clap::Args;
use client::Asked;

use crate::change::{Change, ChangeFlags, Outcome, carry_out};
use crate::document::normalised;
use crate::failure::Failure;
use crate::files::{self, Found};
use crate::session::Session;

/// From so many documents of a kind on, the whole kind is fetched rather than each.
const WHOLE_KIND: usize = 20;

/// Create or replace documents from files, all of them in one transaction
///
/// A file holds YAML or JSON, one document or many, each with its `kind`, its `id` and its fields; `frs export` writes such files. A document
/// is replaced by what the file says: what the file leaves out is taken away. Nothing is deleted that the files do not have.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// A file, a folder with .yaml, .yml and .json files, or `-` for stdin; may be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// A document from a file beside what the service has.
pub(crate) struct Compared {
    /// The document from the file.
    pub found: Found,
    /// What the service has.
    pub stored: Option<Revisioned>,
}

impl Compared {
    /// Whether the file says what the service has.
    pub(crate) fn is_same(&self) -> bool {
        self.stored
            .as_ref()
            .is_some_and(|stored| normalised(&stored.document) == normalised(&self.found.document))
    }

    /// Whether it is this document.
    pub(crate) fn is(&self, kind: &str, id: &str) -> bool {
        self.found.kind == kind && self.found.id == id
    }

    /// What makes the service have what the file says.
    fn operation(&self) -> Operation {
        let Found { kind, id, document, .. } = &self.found;
        match &self.stored {
            None => Operation::Create {
                kind: kind.clone(),
                id: Some(id.clone()),
                body: document.clone(),
                replace_decommissioned: false,
            },
            Some(stored) => Operation::Put {
                kind: kind.clone(),
                id: id.clone(),
                body: document.clone(),
                revision: Some(stored.revision),
            },
        }
    }
}

/// Reads files, and fetches what the service has of the same documents.
pub(crate) fn compared(session: &Session, paths: &[PathBuf]) -> Result<Vec<Compared>, Failure> {
    let found = files::read(paths, session.kinds()?)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &found {
        *counts.entry(&one.kind).or_default() += 1;
    }
    let mut stored: BTreeMap<(String, String), Revisioned> = BTreeMap::new();
    for (kind, count) in counts {
        if count >= WHOLE_KIND {
            for one in session.list(kind, &Asked::default())? {
                stored.insert((kind.to_owned(), one.id().to_owned()), one);
            }
            continue;
        }
        for one in found.iter().filter(|one| one.kind == kind) {
            match session.client.document(kind, &one.id) {
                Ok(document) => drop(stored.insert((kind.to_owned(), one.id.clone()), document)),
                Err(error) if error.is(ProblemName::Missing) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let beside = |found: Found| {
        let stored = stored.remove(&(found.kind.clone(), found.id.clone()));
        Compared { found, stored }
    };
    Ok(found.into_iter().map(beside).collect())
}

/// What makes the service have what the files say.
pub(crate) fn change<'a>(different: impl Iterator<Item = &'a Compared>) -> Change {
    let (operations, sources) = different.map(|one| (one.operation(), one.found.source.clone())).unzip();
    Change { operations, sources }
}

impl Apply {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let compared = compared(session, &self.files)?;
        let mut change = change(compared.iter().filter(|one| !one.is_same()));
        if change.operations.is_empty() {
            // The service is asked for the plan of nothing, too.
            change = self::change(compared.iter().take(1));
        }
        let (changed, documents) = match carry_out(session, &change, &self.change)? {
            Outcome::Done(answer) => (answer.changed, answer.documents),
            Outcome::Shown => (0, Vec::new()),
        };
        // The service does not name all of very many; what is the same to it, though not to us, it names none of.
        let are_all_named = changed == documents.len();
        let is_named = |one: &Compared| documents.iter().any(|document| one.is(&document.kind, &document.id));
        let unchanged = compared.iter().filter(|one| one.is_same() || are_all_named && !is_named(one));
        tell_unchanged(session, unchanged, &self.change)
    }
}

fn tell_unchanged<'a>(
    session: &Session,
    unchanged: impl Iterator<Item = &'a Compared>,
    flags: &ChangeFlags,
) -> Result<(), Failure> {
    if flags.output.is_some() || flags.plan {
        return Ok(());
    }
    let lines: Vec<String> =
        unchanged.map(|one| format!("{}/{} unchanged", one.found.kind, one.found.id)).collect();
    session.output.data(&lines.join("\n"))
}
