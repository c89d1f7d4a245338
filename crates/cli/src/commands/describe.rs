//! `describe`: everything about one document that one wants to know before one touches it.

use std::fmt::Write;

use api::Revisioned;
use clap::Args;
use serde_json::Value;

use super::history::changes_in_brief;
use crate::complete;
use crate::document::brief;
use crate::failure::Failure;
use crate::kinds::{Kind, Shape};
use crate::output::{BOLD, FAINT, styled};
use crate::session::Session;
use crate::table::Table;
use crate::when::age;
use crate::words::{count, names};

/// So many of the last changes are told.
const CHANGES: usize = 5;

/// Show one document in full: what it refers to and overrides, who uses it, what changed last
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Its kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Its id
    #[arg(add = complete::documents())]
    pub id: String,
}

impl Describe {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kind(&self.kind)?;
        let found = session.client.document(&kind.name, &self.id)?;
        let mut text = format!("{}\n", styled(BOLD, format_args!("{} {}", kind.singular, self.id)));
        fields(&mut text, session, kind, &found)?;
        if kind.is_cluster() {
            for other in session.kinds()?.referable() {
                references(&mut text, session, other, &found.document)?;
            }
            patches(&mut text, &found.document);
        } else {
            users(&mut text, session, kind, &self.id)?;
        }
        last_changes(&mut text, session, kind, &self.id)?;
        session.output.data(&text)
    }
}

fn heading(text: &mut String, what: &str) {
    let _ = writeln!(text, "\n{}", styled(BOLD, what));
}

/// What is not told elsewhere: plain fields, aligned.
fn fields(text: &mut String, session: &Session, kind: &Kind, found: &Revisioned) -> Result<(), Failure> {
    let mut elsewhere: Vec<&str> = vec!["id"];
    if kind.is_cluster() {
        elsewhere.push("patches");
        elsewhere.extend(session.kinds()?.referable().map(|kind| kind.name.as_str()));
    }
    let names = kind.properties();
    let told: Vec<(&str, String)> = names
        .into_iter()
        .filter(|name| !elsewhere.contains(name))
        .filter_map(|name| found.document.get(name).map(|value| (name, brief(value))))
        .chain([("revision", found.revision.to_string())])
        .collect();
    let width = told.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in told {
        let _ = writeln!(text, "  {name:width$}  {value}");
    }
    Ok(())
}

fn references(text: &mut String, session: &Session, kind: &Kind, cluster: &Value) -> Result<(), Failure> {
    let list = cluster[kind.name.as_str()].as_array().map(Vec::as_slice).unwrap_or_default();
    heading(text, &format!("{} ({})", kind.name.replace('_', " "), list.len()));
    if list.is_empty() {
        return Ok(());
    }
    let is_component = kind.shape == "component";
    // What comes of catalog and overrides, the service says.
    let inputs = if is_component {
        session.client.inputs(brief(&cluster["id"]).as_str(), &kind.name)?
    } else {
        String::new()
    };
    let inputs: Value = serde_json::from_str(&inputs).unwrap_or_default();
    let mut table = if is_component {
        Table::new(["ID", "ENABLED", "TAG", "PATH", "OVERRIDES"])
    } else {
        Table::new(["ID", "OVERRIDES"])
    };
    for reference in list {
        let overrides = reference.as_object().into_iter().flatten();
        let overrides = overrides.filter(|(name, _)| !matches!(name.as_str(), "id" | "enabled"));
        let overrides: Vec<String> =
            overrides.map(|(name, value)| format!("{name}={}", brief(value))).collect();
        let overrides = if overrides.is_empty() { "-".to_owned() } else { overrides.join(" ") };
        if !is_component {
            table.row([brief(&reference["id"]), overrides]);
            continue;
        }
        let input =
            inputs["inputs"].as_array().into_iter().flatten().find(|input| input["id"] == reference["id"]);
        let effective =
            |pointer: &str| brief(input.and_then(|input| input.pointer(pointer)).unwrap_or(&Value::Null));
        let enabled = if reference["enabled"] == false { "no" } else { "yes" };
        table.row([
            brief(&reference["id"]),
            enabled.to_owned(),
            effective("/source/oci_tag"),
            effective("/component_path"),
            overrides,
        ]);
    }
    let _ = writeln!(text, "{}", table.indented());
    Ok(())
}

fn patches(text: &mut String, cluster: &Value) {
    heading(text, "patches");
    let components = cluster["patches"].as_object().into_iter().flatten();
    let mut table = Table::new(["COMPONENT", "KEY", "VALUE"]);
    for (component, values) in components {
        for (key, value) in values.as_object().into_iter().flatten() {
            table.row([component.clone(), key.clone(), brief(value)]);
        }
    }
    let _ = writeln!(text, "{}", if table.is_empty() { "  none".to_owned() } else { table.indented() });
}

fn users(text: &mut String, session: &Session, kind: &Kind, id: &str) -> Result<(), Failure> {
    heading(text, "used by");
    let users = session.client.users(&kind.name, id)?;
    let told = match users.len() {
        0 => "no cluster".to_owned(),
        number => format!("{}: {}", count(number, "cluster"), names(&users, number)),
    };
    let _ = writeln!(text, "  {told}");
    Ok(())
}

fn last_changes(text: &mut String, session: &Session, kind: &Kind, id: &str) -> Result<(), Failure> {
    heading(text, "last changes");
    let mut table = Table::new(["REVISION", "AGE", "ACTOR", "REASON", "CHANGE"]);
    for version in session.client.history(&kind.name, id, CHANGES)? {
        table.row([
            version.revision.to_string(),
            age(&version.time),
            version.actor.clone(),
            version.reason.clone().unwrap_or_else(|| "-".to_owned()),
            changes_in_brief(&version),
        ]);
    }
    let _ = writeln!(text, "{}", table.indented());
    let _ = writeln!(
        text,
        "  {}",
        styled(FAINT, format_args!("frs history {} {id} has all of them", kind.singular))
    );
    Ok(())
}
