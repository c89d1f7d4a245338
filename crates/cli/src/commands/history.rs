//! `history`: the revisions of one document.

use api::DocumentVersion;
use clap::Args;

use crate::complete;
use crate::document::differences;
use crate::failure::Failure;
use crate::kinds::{Kind, Kinds};
use crate::output::Format;
use crate::session::Session;
use crate::table::Table;
use crate::words::{count, difference, or_dash};

/// Show what happened to one document: who, when, why, and what
#[derive(Debug, Args)]
pub(crate) struct History {
    /// Its kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Its id; it may be gone
    #[arg(add = complete::documents())]
    pub id: String,
    /// Show at most this many, newest first
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// How to show them; `wide` tells each changed field
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    pub output: Format,
}

impl History {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kind(&self.kind)?;
        let versions = session.client.history(&kind.name, &self.id, self.limit as usize)?;
        if let Some(text) = self.output.encoded(&versions) {
            return session.output.data(&text?);
        }
        let text = match self.output {
            Format::Name => {
                versions.iter().map(|version| version.revision.to_string()).collect::<Vec<_>>().join("\n")
            }
            Format::Wide => versions.iter().map(whole).collect::<Vec<_>>().join("\n"),
            _ => table(session.kinds()?, kind, &versions).text(),
        };
        session.output.data(&text)
    }
}

fn table(kinds: &Kinds, kind: &Kind, versions: &[DocumentVersion]) -> Table {
    let mut table = Table::new(["REVISION", "TIME", "ACTOR", "REASON", "CHANGE"]);
    for version in versions {
        table.row([
            version.revision.to_string(),
            version.time.clone(),
            version.actor.clone(),
            or_dash(version.reason.as_ref()),
            changes_in_brief(kinds, kind, version),
        ]);
    }
    table
}

/// What a revision did to a document, on one line.
pub(super) fn changes_in_brief(kinds: &Kinds, kind: &Kind, version: &DocumentVersion) -> String {
    match (&version.before, &version.after) {
        (None, _) => "created".to_owned(),
        (Some(_), None) => kinds.deletion(&kind.name).to_owned(),
        (before, after) => {
            let all = differences(before.as_ref(), after.as_ref());
            match &*all {
                [only] => {
                    let line = difference(&only.place, only.old.as_ref(), only.new.as_ref());
                    anstream::adapter::strip_str(&line).to_string()
                }
                several => {
                    let places: Vec<&str> = several.iter().take(3).map(|one| one.place.as_str()).collect();
                    let more = if several.len() > 3 { ", …" } else { "" };
                    format!("{}: {}{more}", count(several.len(), "field"), places.join(", "))
                }
            }
        }
    }
}

/// A revision with each field that it changed.
fn whole(version: &DocumentVersion) -> String {
    let reason = version.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let mut text = format!("revision {}, {}, {}{reason}\n", version.revision, version.time, version.actor);
    for one in differences(version.before.as_ref(), version.after.as_ref()) {
        text.push_str("  ");
        text.push_str(&difference(&one.place, one.old.as_ref(), one.new.as_ref()));
        text.push('\n');
    }
    text
}
