//! `get`: documents in a table, or as they are.

use api::Revisioned;
use clap::Args;
use client::Asked;
use serde_json::Value;

use super::tables::table;
use super::watch;
use crate::complete;
use crate::document::pair;
use crate::failure::Failure;
use crate::files;
use crate::kinds::{Kind, Kinds, means_records};
use crate::output::Format;
use crate::session::Session;
use crate::table::Table;

/// Show documents
///
/// KIND is the plural or the singular of a kind, `frs kinds` lists them; `decommissioned` are the records of decommissioned clusters.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// What kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Their ids; all of them if none is named
    #[arg(value_name = "ID", add = complete::documents())]
    pub ids: Vec<String>,
    /// Only those that this selects, such as `environment=prod,region in (eu,us)`
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with = "ids")]
    pub selector: Option<String>,
    /// Only those with this value of a field that the kind can be filtered by
    #[arg(long, value_name = "FIELD=VALUE", conflicts_with = "ids")]
    pub filter: Vec<String>,
    /// Keep running, and show what changes
    #[arg(short, long)]
    pub watch: bool,
    /// How often to look, with --watch
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "watch")]
    pub interval: String,
    /// How to show them; `apply` reads the YAML and the JSON
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    pub output: Format,
}

impl Get {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = match session.kind(&self.kind) {
            Err(Failure::Usage(_)) if means_records(&self.kind) => return self.decommissioned(session),
            other => other?,
        };
        if self.watch {
            return watch::watch(&self, session, kind);
        }
        let (found, missing) = self.find(session, kind)?;
        if found.is_empty() && missing.is_none() && matches!(self.output, Format::Table | Format::Wide) {
            session.output.note(&format!(
                "There are no {}{}.",
                kind.name,
                if self.is_narrowed() { " like that" } else { "" }
            ));
        } else if !found.is_empty() || missing.is_none() {
            session.output.data(&self.shown(session.kinds()?, kind, &found)?)?;
        }
        missing.map_or(Ok(()), Err)
    }

    fn is_narrowed(&self) -> bool {
        self.selector.is_some() || !self.filter.is_empty()
    }

    /// Only what the kind says it can be filtered by: other parameters of a list mean something else.
    fn check_filters(&self, kind: &Kind) -> Result<(), Failure> {
        for filter in &self.filter {
            let name = pair(filter)?.0;
            if !kind.query_parameters.iter().any(|known| known == name) {
                let known = kind.query_parameters.join(", ");
                return Err(Failure::usage(format!(
                    "`{name}` is no filter of {}; there are: {known}",
                    kind.name
                )));
            }
        }
        Ok(())
    }

    /// The documents, and what to say of those that are not there.
    pub(super) fn find(
        &self,
        session: &Session,
        kind: &Kind,
    ) -> Result<(Vec<Revisioned>, Option<Failure>), Failure> {
        if self.ids.is_empty() {
            self.check_filters(kind)?;
            let filters = self
                .filter
                .iter()
                .map(|filter| pair(filter).map(|(name, value)| (name.to_owned(), value.to_owned())));
            let asked =
                Asked { selector: self.selector.clone(), filters: filters.collect::<Result<_, _>>()? };
            return Ok((session.list(&kind.name, &asked)?, None));
        }
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for id in &self.ids {
            match session.client.document(&kind.name, id) {
                Ok(document) => found.push(document),
                Err(error) if error.is(api::ProblemName::Missing) => missing.push(error),
                Err(error) => return Err(error.into()),
            }
        }
        let failure = match missing.len() {
            0 => None,
            1 => missing.pop().map(Failure::from),
            _ => {
                let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
                Some(Failure::failed(all.join("\n       ")))
            }
        };
        Ok((found, failure))
    }

    pub(super) fn shown(&self, kinds: &Kinds, kind: &Kind, found: &[Revisioned]) -> Result<String, Failure> {
        Ok(match self.output {
            Format::Table | Format::Wide => table(kinds, kind, found, self.output == Format::Wide).text(),
            Format::Name => names(kind, found).join("\n"),
            Format::Yaml => {
                let documents = found.iter().map(|found| files::yaml(kind, &found.document));
                documents.collect::<Result<Vec<_>, _>>()?.join("---\n")
            }
            Format::Json => {
                let mut all: Vec<Value> =
                    found.iter().map(|found| files::with_kind(kind, &found.document)).collect();
                let whole = if self.ids.len() == 1 { all.pop().unwrap_or_default() } else { all.into() };
                format!("{whole:#}")
            }
        })
    }

    fn decommissioned(&self, session: &Session) -> Result<(), Failure> {
        if self.watch || self.is_narrowed() || !self.ids.is_empty() {
            return Err(Failure::usage("`get decommissioned` shows all of them"));
        }
        let records = session.client.decommissioned()?;
        if let Some(text) = self.output.encoded(&records) {
            return session.output.data(&text?);
        }
        if self.output == Format::Name {
            let names = records.iter().map(|record| record.dns.as_str());
            return session.output.data(&names.collect::<Vec<_>>().join("\n"));
        }
        if records.is_empty() {
            session.output.note("No cluster is decommissioned.");
            return Ok(());
        }
        let mut table = Table::new(["DNS", "ID", "REVISION", "UID"]);
        for record in records {
            table.row([record.dns, record.id, record.revision.to_string(), record.uid]);
        }
        session.output.data(&table.text())
    }
}

pub(super) fn names(kind: &Kind, found: &[Revisioned]) -> Vec<String> {
    found.iter().map(|one| format!("{}/{}", kind.name, one.id())).collect()
}
