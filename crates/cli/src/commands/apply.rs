//! `apply`: documents from files, all of them in one transaction.

use std::path::PathBuf;

use clap::Args;

use super::compared::{self, Compared};
use crate::change::{ChangeFlags, Outcome, carry_out};
use crate::failure::Failure;
use crate::session::Session;

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

impl Apply {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let compared = compared::read(session, &self.files)?;
        let mut change = compared::change(compared.iter().filter(|one| !one.is_same()));
        if change.operations.is_empty() {
            // The service is asked for the plan of nothing, too.
            change = compared::change(compared.iter().take(1));
        }
        let (changed, documents, done) = match carry_out(session, &change, &self.change)? {
            Outcome::Done(answer) => (answer.changed, answer.documents, "the change was made"),
            Outcome::Shown => (0, Vec::new(), "nothing was to be changed"),
        };
        if !self.change.plan {
            compared::still_same(session, compared.iter().filter(|one| one.is_same()), done)?;
        }
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
