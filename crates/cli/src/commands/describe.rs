//! `describe`: everything about one document that one wants to know before one touches it.

use std::fmt::Write;

use api::Revisioned;
use clap::Args;
use serde_json::Value;

use super::history::changes_in_brief;
use super::inputs;
use crate::complete;
use crate::document::brief;
use crate::failure::Failure;
use crate::kinds::{Kind, Shape};
use crate::output::{BOLD, FAINT, styled};
use crate::references::{self, is_enabled};
use crate::session::Session;
use crate::table::Table;
use crate::when::age;
use crate::words::{count, names, or_dash};

/// At most this many of the last changes are told.
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
                tell_references(&mut text, session, other, &found.document)?;
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

fn tell_references(
    text: &mut String,
    session: &Session,
    kind: &Kind,
    cluster: &Value,
) -> Result<(), Failure> {
    let list = cluster[kind.name.as_str()].as_array().map(Vec::as_slice).unwrap_or_default();
    heading(text, &format!("{} ({})", kind.name.replace('_', " "), list.len()));
    if list.is_empty() {
        return Ok(());
    }
    let table = if kind.is_component() {
        // What comes of catalog and overrides, the service says.
        let id = cluster["id"].as_str().unwrap_or_default();
        components(list, &inputs::read(&session.client.inputs(id, &kind.name)?)?)
    } else {
        definitions(list)
    };
    let _ = writeln!(text, "{}", table.indented());
    Ok(())
}

fn definitions(references: &[Value]) -> Table {
    let mut table = Table::new(["ID", "OVERRIDES"]);
    for reference in references {
        table.row([brief(&reference["id"]), overrides(reference)]);
    }
    table
}

fn components(references: &[Value], inputs: &[Value]) -> Table {
    let mut table = Table::new(["ID", "ENABLED", "TAG", "PATH", "OVERRIDES"]);
    for reference in references {
        let input = inputs.iter().find(|input| input["id"] == reference["id"]).unwrap_or(&Value::Null);
        table.row([
            brief(&reference["id"]),
            if is_enabled(reference) { "yes" } else { "no" }.to_owned(),
            brief(&input["source"]["oci_tag"]),
            brief(&input["component_path"]),
            overrides(reference),
        ]);
    }
    table
}

/// What a cluster sets on a reference, but for whether it is on.
fn overrides(reference: &Value) -> String {
    let set: Vec<String> =
        references::overrides(reference).map(|(name, value)| format!("{name}={}", brief(value))).collect();
    if set.is_empty() { "-".to_owned() } else { set.join(" ") }
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
            or_dash(version.reason.as_ref()),
            changes_in_brief(session.kinds()?, kind, &version),
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
