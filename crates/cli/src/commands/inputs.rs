//! `inputs`: what a cluster gets.

use std::fmt::Write;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::complete;
use crate::document::brief;
use crate::failure::Failure;
use crate::kinds::{Kind, Shape};
use crate::output;
use crate::references::is_enabled;
use crate::session::Session;
use crate::table::Table;

/// Show what a cluster gets of a kind when its Flux asks
///
/// `-o flux` is a file that `flux-operator build resourceset --inputs-from` reads, to render what a cluster would apply without asking it.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// The cluster
    #[arg(add = complete::clusters())]
    pub cluster: String,
    /// The kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Ask as the cluster itself does: at the address and with the token for polls
    #[arg(long)]
    pub as_polled: bool,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    pub output: InputsFormat,
}

/// How inputs are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum InputsFormat {
    /// A table
    Table,
    /// The answer, readable
    Json,
    /// The answer as YAML
    Yaml,
    /// The answer, to the byte
    Raw,
    /// The ids, one a line
    Name,
    /// The list that `flux-operator build resourceset --inputs-from` reads
    Flux,
}

impl Inputs {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kind(&self.kind)?;
        let text = if self.as_polled {
            self.polled(session, kind)?
        } else {
            session.client.inputs(&self.cluster, &kind.name)?
        };
        let inputs = read(&text)?;
        session.output.data(&match self.output {
            InputsFormat::Raw => return session.output.exact(&text),
            InputsFormat::Json => output::json(&json!({ "inputs": inputs }))?,
            InputsFormat::Yaml => output::yaml(&json!({ "inputs": inputs }))?,
            InputsFormat::Name => {
                inputs.iter().map(|input| brief(&input["id"])).collect::<Vec<_>>().join("\n")
            }
            InputsFormat::Flux => for_flux(&inputs.into()),
            InputsFormat::Table => {
                if inputs.is_empty() {
                    session.output.note(&format!("{} gets no {}.", self.cluster, kind.name));
                    return Ok(());
                }
                table(kind, &inputs).text()
            }
        })
    }

    fn polled(&self, session: &Session, kind: &Kind) -> Result<String, Failure> {
        let document = session.client.document(&session.kinds()?.clusters()?.name, &self.cluster)?.document;
        let dns = document["cluster_dns"].as_str().unwrap_or_default();
        let connection = &session.connection;
        let client = connection.client_of(connection.poll_url.as_deref().unwrap_or(&connection.url))?;
        Ok(client.poll(dns, &kind.path)?)
    }
}

/// The list in an answer to a cluster.
pub(super) fn read(answer: &str) -> Result<Vec<Value>, Failure> {
    let mut answer: Value = serde_json::from_str(answer)
        .map_err(|error| Failure::failed(format!("the answer is not JSON: {error}")))?;
    match answer["inputs"].take() {
        Value::Array(inputs) => Ok(inputs),
        _ => Err(Failure::failed("the answer has no list `inputs`")),
    }
}

/// The list alone. It is read as YAML, where these two characters end a line.
fn for_flux(inputs: &Value) -> String {
    let mut text = String::new();
    for character in format!("{inputs:#}").chars() {
        match character {
            '\u{2028}' | '\u{2029}' | '\u{85}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text
}

/// The fields that tell inputs apart; `-o json` has all.
fn table(kind: &Kind, inputs: &[Value]) -> Table {
    if kind.is_component() {
        let mut table = Table::new(["ID", "ENABLED", "DELIVERY", "TAG", "PATH", "PATCHES"]);
        for input in inputs {
            let enabled = if is_enabled(input) { "yes" } else { "no" };
            table.row([
                brief(&input["id"]),
                enabled.to_owned(),
                brief(&input["delivery"]),
                brief(&input["source"]["oci_tag"]),
                brief(&input["component_path"]),
                brief(&input["patches"]),
            ]);
        }
        return table;
    }
    let names = inputs.first().and_then(Value::as_object).into_iter().flat_map(serde_json::Map::keys);
    let names: Vec<&str> =
        names.map(String::as_str).filter(|name| !matches!(*name, "id" | "cluster")).collect();
    let heads = names.iter().map(|name| name.replace('_', " ").to_uppercase());
    let mut table = Table::new(std::iter::once("ID".to_owned()).chain(heads));
    for input in inputs {
        table.row(std::iter::once("id").chain(names.iter().copied()).map(|name| brief(&input[name])));
    }
    table
}
