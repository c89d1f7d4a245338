//! `audit`: what happened to the fleet.

use std::fmt::Write;

use api::{Counts, Revision, RevisionDetail};
use clap::Args;
use client::AuditQuery;

use crate::complete;
use crate::document::differences;
use crate::failure::Failure;
use crate::kinds::{Kinds, means_records};
use crate::output::{BOLD, Format, styled};
use crate::session::Session;
use crate::table::Table;
use crate::when;
use crate::words::{count, difference, or_dash};

/// Show what happened to the fleet: who, when, why, what, and what Flux deleted for it
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// One revision, with each field that it changed
    #[arg(conflicts_with_all = ["actor", "kind", "id", "since", "until"])]
    pub revision: Option<u64>,
    /// Only what this actor did, such as file:alice
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Only what happened to documents of this kind
    #[arg(long, value_name = "KIND", add = complete::kinds())]
    pub kind: Option<String>,
    /// Only what happened to documents of this id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Not before this time, such as 2026-11-16T09:00:00Z, or an age: 2h, 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Show at most this many, newest first
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// How to show them
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    pub output: Format,
}

impl Audit {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        if let Some(number) = self.revision {
            let detail = session.client.revision(number)?;
            if let Some(text) = self.output.encoded(&detail) {
                return session.output.data(&text?);
            }
            let text =
                if self.output == Format::Name { names(&detail) } else { whole(session.kinds()?, &detail) };
            return session.output.data(&text);
        }
        // Kinds and decommission records are in the log too, under names that are no kinds.
        let kind = match &self.kind {
            Some(name) if name == api::KINDS => Some(name.clone()),
            Some(name) => match session.kind(name) {
                Err(Failure::Usage(_)) if means_records(name) => Some(api::DECOMMISSIONED.to_owned()),
                other => Some(other?.name.clone()),
            },
            None => None,
        };
        let asked = AuditQuery {
            actor: self.actor,
            kind,
            id: self.id,
            since: self.since.as_deref().map(when::moment).transpose()?,
            until: self.until.as_deref().map(when::moment).transpose()?,
        };
        let revisions = session.client.revisions(&asked, self.limit as usize)?;
        if let Some(text) = self.output.encoded(&revisions) {
            return session.output.data(&text?);
        }
        let text = match self.output {
            Format::Name => {
                revisions.iter().map(|revision| revision.revision.to_string()).collect::<Vec<_>>().join("\n")
            }
            _ => table(&revisions, self.output == Format::Wide).text(),
        };
        if revisions.is_empty() && matches!(self.output, Format::Table | Format::Wide) {
            session.output.note("There is no revision like that.");
            return Ok(());
        }
        session.output.data(&text)
    }
}

fn names(detail: &RevisionDetail) -> String {
    detail.changes.iter().map(|change| change.document.to_string()).collect::<Vec<_>>().join("\n")
}

/// The first document, and how many more.
fn what(revision: &Revision) -> String {
    let first = revision.documents.first().map(ToString::to_string);
    match (first, revision.changed) {
        (None, _) => "-".to_owned(),
        (Some(first), 0 | 1) => first,
        (Some(first), changed) => format!("{first} and {} more", changed - 1),
    }
}

/// What Flux deleted.
fn removals(counts: Counts) -> String {
    let inputs = counts.each + counts.ordinary;
    let parts = [(counts.decommissions, "cluster"), (inputs, "input")];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let text = parts.map(|(number, what)| count(*number as usize, what)).collect::<Vec<_>>().join(", ");
    match () {
        () if text.is_empty() => "-".to_owned(),
        () if counts.confirmed => format!("{text}, confirmed"),
        () if counts.allowed => format!("{text}, allowed"),
        () => text,
    }
}

fn table(revisions: &[Revision], wide: bool) -> Table {
    let mut columns = vec!["REVISION", "TIME", "ACTOR", "CHANGED", "DELETED BY FLUX", "REASON"];
    if wide {
        columns.extend(["REQUEST", "HASH"]);
    }
    let mut table = Table::new(columns);
    for revision in revisions {
        let mut row = vec![
            revision.revision.to_string(),
            revision.time.clone(),
            revision.actor.clone(),
            what(revision),
            removals(revision.removals),
            or_dash(revision.reason.as_ref()),
        ];
        if wide {
            row.extend([or_dash(revision.request_id.as_ref()), revision.hash.clone()]);
        }
        table.row(row);
    }
    table
}

fn whole(kinds: &Kinds, detail: &RevisionDetail) -> String {
    let revision = &detail.revision;
    let mut text = format!("{}\n", styled(BOLD, format_args!("revision {}", revision.revision)));
    for (name, value) in [
        ("time", Some(revision.time.clone())),
        ("actor", Some(revision.actor.clone())),
        ("reason", revision.reason.clone()),
        ("request", revision.request_id.clone()),
        ("deleted", Some(removals(revision.removals))),
        ("hash", Some(revision.hash.clone())),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:8} {value}");
        }
    }
    for change in &detail.changes {
        let happened = match (&change.before, &change.after) {
            (None, _) => "created",
            (_, None) => kinds.deletion(&change.document.kind),
            _ => "changed",
        };
        let _ = writeln!(text, "\n{} {happened}", change.document);
        for one in differences(change.before.as_ref(), change.after.as_ref()) {
            let _ = writeln!(text, "  {}", difference(&one.place, one.old.as_ref(), one.new.as_ref()));
        }
    }
    text
}
