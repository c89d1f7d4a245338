//! `apply`: documents from files, all of them in one transaction if they fit.

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;

use super::compared::{self, Compared};
use crate::change::{ChangeFlags, Done, Outcome, carry_out};
use crate::failure::Failure;
use crate::parts::{self, Limits};
use crate::session::Session;

/// Create or replace documents from files, all of them in one transaction if they fit
///
/// A file holds YAML or JSON, one document or many, each with its `kind`, its `id` and its fields; `frs export` writes such files. A document
/// is replaced by what the file says: what the file leaves out is taken away. Nothing is deleted that the files do not have.
///
/// What is too large for one request (10,000 documents or 8 MiB) is split into parts: first what clusters refer to, then clusters. Each
/// part is planned when the parts before it are made, and is a transaction of its own. If it stops halfway, run the same command again: it
/// goes on with what is left.
#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// A file, a folder with .yaml, .yml and .json files, or `-` for stdin; may be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Change at most this many documents in one transaction, and split what is more into parts
    #[arg(long, value_name = "N", default_value_t = api::MAX_OPERATIONS, value_parser = batch_size)]
    pub batch_size: usize,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl Apply {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let compared = compared::read(session, &self.files)?;
        let kinds = session.kinds()?;
        let mut pieces = compared::pieces(kinds, compared.iter().filter(|one| !one.is_same()));
        if pieces.is_empty() {
            // The service is asked for the plan of nothing, too.
            pieces = compared::pieces(kinds, compared.iter().take(1));
        }
        let limits = Limits { operations: self.batch_size, ..Limits::default() };
        let parts = parts::split(pieces, limits);
        let outcome = match &*parts {
            [all] => carry_out(session, &parts::change(all), &self.change)?,
            several => parts::carry_out(session, several, limits, &self.change)?,
        };
        let (changed, documents, done) = match outcome {
            Outcome::Done(Done { answer, .. }) => (answer.changed, answer.documents, "the change was made"),
            Outcome::Shown => (0, Vec::new(), "nothing was to be changed"),
        };
        if !self.change.plan {
            compared::still_same(session, compared.iter().filter(|one| one.is_same()), done)?;
        }
        // The service does not name all of very many; what is the same to it, though not to us, it names none of.
        let are_all_named = changed == documents.len();
        let named: HashSet<(&str, &str)> =
            documents.iter().map(|document| (&*document.kind, &*document.id)).collect();
        let is_named = |one: &Compared| named.contains(&(&*one.found.kind, &*one.found.id));
        let unchanged = compared.iter().filter(|one| one.is_same() || are_all_named && !is_named(one));
        tell_unchanged(session, unchanged, &self.change)
    }
}

fn batch_size(text: &str) -> Result<usize, String> {
    let most = api::MAX_OPERATIONS;
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("it must be a number from 1 to {most}"))
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
