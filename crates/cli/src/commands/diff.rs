//! `diff`: files beside what the service has.

use std::collections::HashSet;

use std::path::PathBuf;

use clap::Args;
use similar::TextDiff;

use super::compared::{self, Compared};
use crate::document::normalised;
use crate::failure::Failure;
use crate::files;
use crate::output::{BOLD, GREEN, RED, styled};
use crate::parts::{self, Limits};
use crate::session::Session;

/// Show how files differ from what the service has; the exit code is 1 if they do
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A file, a folder with .yaml, .yml and .json files, or `-` for stdin; may be given several times
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

impl Diff {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let compared = compared::read(session, &self.files)?;
        let different = different(session, &compared)?;
        if different.is_empty() {
            session.output.note("No difference.");
            return Ok(());
        }
        for one in different {
            match session.output.data(&unified(session, one)?) {
                // They differ, whether or not anybody reads how.
                Err(failure) if failure.is_unread() => break,
                other => other?,
            }
        }
        Err(Failure::Shown)
    }
}

/// Those that the service would not have unchanged: it knows when two ways to write a document are the same.
fn different<'a>(session: &Session, compared: &'a [Compared]) -> Result<Vec<&'a Compared>, Failure> {
    let different: Vec<&Compared> = compared.iter().filter(|one| !one.is_same()).collect();
    if different.is_empty() {
        return Ok(different);
    }
    let pieces = compared::pieces(session.kinds()?, different.iter().copied());
    let parts = parts::split(pieces, Limits::default());
    // The service compares only what one transaction takes.
    let [all] = &*parts else { return Ok(different) };
    match session.client.plan(&parts::change(all).operations) {
        Ok(plan) => {
            let changed: HashSet<(&str, &str)> = plan.names().map(|(kind, id, _)| (kind, id)).collect();
            Ok(different.into_iter().filter(|one| changed.contains(&one.name())).collect())
        }
        // Some of them are not acceptable: they differ, as far as we can tell.
        Err(error)
            if error.problem().is_some_and(|problem| matches!(problem.status, 409 | 412 | 413 | 422)) =>
        {
            Ok(different)
        }
        Err(error) => Err(error.into()),
    }
}

fn unified(session: &Session, one: &Compared) -> Result<String, Failure> {
    let kind = session.kind(&one.found.kind)?;
    let stored =
        one.stored.as_ref().map(|stored| files::yaml(kind, &normalised(&stored.document))).transpose()?;
    let of_file = files::yaml(kind, &normalised(&one.found.document))?;
    let name = format!("{}/{}", one.found.kind, one.found.id);
    let stored_name = match &one.stored {
        Some(stored) => format!("{name} (revision {})", stored.revision),
        None => "(not there)".to_owned(),
    };
    let stored = stored.unwrap_or_default();
    let diff = TextDiff::from_lines(stored.as_str(), of_file.as_str());
    let text =
        diff.unified_diff().header(&stored_name, &format!("{name} ({})", one.found.source)).to_string();
    Ok(text.lines().map(coloured).collect::<Vec<_>>().join("\n"))
}

fn coloured(line: &str) -> String {
    match line.as_bytes() {
        [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => styled(BOLD, line),
        [b'-', ..] => styled(RED, line),
        [b'+', ..] => styled(GREEN, line),
        _ => line.to_owned(),
    }
}
