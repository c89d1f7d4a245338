//! `get`: documents in a table, or as they are.

use std::collections::BTreeMap;
use std::time::Duration;

use api::Revisioned;
use clap::Args;
use client::Asked;
use serde_json::{Value, json};

use crate::complete;
use crate::document::{brief, pair};
use crate::failure::Failure;
use crate::files;
use crate::kinds::{Kind, Kinds, Shape};
use crate::output::Format;
use crate::session::Session;
use crate::table::Table;
use crate::when;

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
        if "decommissioned".starts_with(&self.kind.to_lowercase()) && self.kind.len() > 2 {
            return self.decommissioned(session);
        }
        let kind = session.kind(&self.kind)?;
        if self.watch {
            return self.watch(session, kind);
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
    fn find(&self, session: &Session, kind: &Kind) -> Result<(Vec<Revisioned>, Option<Failure>), Failure> {
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

    fn shown(&self, kinds: &Kinds, kind: &Kind, found: &[Revisioned]) -> Result<String, Failure> {
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

    /// Looks again and again, and shows what is new, different or gone. Ends with Ctrl-C.
    fn watch(&self, session: &Session, kind: &Kind) -> Result<(), Failure> {
        if matches!(self.output, Format::Yaml | Format::Json) {
            return Err(Failure::usage("`--watch` shows tables and names"));
        }
        let interval = when::duration(&self.interval).filter(jiff::SignedDuration::is_positive);
        let interval = interval
            .and_then(|interval| Duration::try_from(interval).ok())
            .ok_or_else(|| Failure::usage("`--interval` must be a time such as 2s"))?;
        let (first, missing) = self.find(session, kind)?;
        if let Some(missing) = missing {
            return Err(missing);
        }
        session.output.data(&self.shown(session.kinds()?, kind, &first)?)?;
        let by_id = |found: Vec<Revisioned>| -> BTreeMap<String, Revisioned> {
            found.into_iter().map(|one| (one.id().to_owned(), one)).collect()
        };
        let mut known = by_id(first);
        let mut lost = false;
        loop {
            std::thread::sleep(interval);
            let found = match self.find(session, kind) {
                Ok((found, _)) => found,
                // A service that is restarted is no reason to stop watching.
                Err(Failure::Service(error))
                    if !matches!(error.problem().map(|problem| problem.status), Some(400..500)) =>
                {
                    if !lost {
                        session.output.note(&format!("{error}; going on"));
                    }
                    lost = true;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            lost = false;
            let now = by_id(found);
            let gone = known.iter().filter(|(id, _)| !now.contains_key(*id)).map(|(_, one)| (one, true));
            let news = now
                .iter()
                .filter(|(id, one)| known.get(*id).is_none_or(|known| known.revision != one.revision));
            let told: Vec<(&Revisioned, bool)> = gone.chain(news.map(|(_, one)| (one, false))).collect();
            if !told.is_empty() {
                let lines = self.lines(session.kinds()?, kind, &told, known.values());
                session.output.data(&lines.join("\n"))?;
            }
            known = now;
        }
    }

    /// A line for each of these, as wide as in the table that was shown before.
    fn lines<'a>(
        &self,
        kinds: &Kinds,
        kind: &Kind,
        told: &[(&'a Revisioned, bool)],
        before: impl Iterator<Item = &'a Revisioned>,
    ) -> Vec<String> {
        let rows: Vec<Revisioned> = told.iter().map(|(one, _)| *one).chain(before).cloned().collect();
        let lines = match self.output {
            Format::Name => names(kind, &rows),
            _ => table(kinds, kind, &rows, self.output == Format::Wide).lines().split_off(1),
        };
        let mark = |is_gone: bool| if is_gone { "   (gone)" } else { "" };
        lines.iter().zip(told).map(|(line, (_, is_gone))| format!("{line}{}", mark(*is_gone))).collect()
    }

    fn decommissioned(&self, session: &Session) -> Result<(), Failure> {
        if self.watch || self.is_narrowed() || !self.ids.is_empty() {
            return Err(Failure::usage("`get decommissioned` shows all of them"));
        }
        let records = session.client.decommissioned()?;
        match self.output {
            Format::Json => return session.output.data(&format!("{:#}", json!(records))),
            Format::Yaml => return session.output.data(&files::to_yaml(&records)?),
            Format::Name => {
                return session
                    .output
                    .data(&records.iter().map(|record| record.dns.as_str()).collect::<Vec<_>>().join("\n"));
            }
            Format::Table | Format::Wide => {}
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

fn names(kind: &Kind, found: &[Revisioned]) -> Vec<String> {
    found.iter().map(|one| format!("{}/{}", kind.name, one.id())).collect()
}

/// The columns that are worth reading, by what sort of document it is.
fn table(kinds: &Kinds, kind: &Kind, found: &[Revisioned], wide: bool) -> Table {
    if kind.is_cluster() {
        clusters(kinds, found, wide)
    } else if kind.is_component() {
        components(found, wide)
    } else {
        definitions(kind, found, wide)
    }
}

/// How many references of a cluster there are; if some are off, how many are on.
fn references(list: &Value) -> String {
    let all = list.as_array().map_or(0, Vec::len);
    let off = list.as_array().into_iter().flatten().filter(|reference| reference["enabled"] == false).count();
    if off == 0 { all.to_string() } else { format!("{}/{all}", all - off) }
}

/// How many references have anything set on them but whether they are on.
fn overrides(document: &Value, kinds: &Kinds) -> usize {
    let lists = kinds.referable().filter_map(|kind| document[kind.name.as_str()].as_array());
    let overridden = |reference: &&Value| {
        reference
            .as_object()
            .is_some_and(|fields| fields.keys().any(|name| name != "id" && name != "enabled"))
    };
    lists.flatten().filter(overridden).count()
}

fn clusters(kinds: &Kinds, found: &[Revisioned], wide: bool) -> Table {
    let heads = kinds.referable().map(|kind| kind.name.rsplit('_').next().unwrap_or_default().to_uppercase());
    let mut columns: Vec<String> =
        ["ID", "ENVIRONMENT"].map(ToOwned::to_owned).into_iter().chain(heads).collect();
    columns.extend(["OVERRIDES", "PATCHES", "REVISION"].map(ToOwned::to_owned));
    if wide {
        columns.extend(["DNS", "PROTECTED", "LABELS"].map(ToOwned::to_owned));
    }
    let mut table = Table::new(columns);
    for Revisioned { revision, document } in found {
        let mut row = vec![brief(&document["id"]), brief(&document["environment"])];
        row.extend(kinds.referable().map(|kind| references(&document[kind.name.as_str()])));
        let patches = document["patches"].as_object().into_iter().flatten();
        let patches: usize =
            patches.filter_map(|(_, values)| values.as_object()).map(serde_json::Map::len).sum();
        row.extend([overrides(document, kinds).to_string(), patches.to_string(), revision.to_string()]);
        if wide {
            let protected = if document["protected"] == true { "yes" } else { "no" };
            row.extend([brief(&document["cluster_dns"]), protected.to_owned(), brief(&document["labels"])]);
        }
        table.row(row);
    }
    table
}

fn components(found: &[Revisioned], wide: bool) -> Table {
    let mut columns = vec!["ID", "DELIVERY", "TAG", "PATH", "DEPENDS ON", "REVISION"];
    let mut fields = vec!["id", "delivery", "oci_tag", "component_path", "depends_on"];
    if wide {
        columns.extend(["VERSION", "BY ENVIRONMENT", "URL"]);
        fields.extend(["component_version", "cluster_env_enabled", "oci_url"]);
    }
    let mut table = Table::new(columns);
    for Revisioned { revision, document } in found {
        let mut row: Vec<String> = fields.iter().map(|field| brief(&document[*field])).collect();
        row.insert(5, revision.to_string());
        table.row(row);
    }
    table
}

/// So many fields of a definition are columns.
const FIELDS: usize = 3;

fn definitions(kind: &Kind, found: &[Revisioned], wide: bool) -> Table {
    let properties = kind.properties();
    let fields = &properties[..if wide { properties.len() } else { properties.len().min(FIELDS) }];
    let heads = fields.iter().map(|field| field.replace('_', " ").to_uppercase());
    let mut table = Table::new(std::iter::once("ID".to_owned()).chain(heads).chain(["REVISION".to_owned()]));
    for Revisioned { revision, document } in found {
        let cells = fields.iter().map(|field| brief(&document[*field]));
        table.row(std::iter::once(brief(&document["id"])).chain(cells).chain([revision.to_string()]));
    }
    table
}
