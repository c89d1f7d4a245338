//! Documents in tables: the columns that are worth reading, by what sort of document it is.

use api::Revisioned;
use serde_json::Value;

use crate::document::brief;
use crate::kinds::{Kind, Kinds, Shape};
use crate::references::{is_enabled, overrides};
use crate::table::Table;

/// At most this many fields of a definition are columns, unless it is to be wide.
const FIELDS: usize = 3;

/// A table of documents of a kind.
pub(super) fn table(kinds: &Kinds, kind: &Kind, found: &[Revisioned], wide: bool) -> Table {
    if kind.is_cluster() {
        clusters(kinds, found, wide)
    } else if kind.is_component() {
        components(found, wide)
    } else {
        definitions(kind, found, wide)
    }
}

/// How many references of a cluster there are; if some are off, how many are on.
fn enabled(list: &Value) -> String {
    let all = list.as_array().map_or(0, Vec::len);
    let on = list.as_array().into_iter().flatten().filter(|reference| is_enabled(reference)).count();
    if on == all { all.to_string() } else { format!("{on}/{all}") }
}

/// How many references override anything of the catalog.
fn overriding(document: &Value, kinds: &Kinds) -> usize {
    let lists = kinds.referable().filter_map(|kind| document[kind.name.as_str()].as_array());
    lists.flatten().filter(|reference| overrides(reference).next().is_some()).count()
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
        row.extend(kinds.referable().map(|kind| enabled(&document[kind.name.as_str()])));
        let patches = document["patches"].as_object().into_iter().flatten();
        let patches: usize =
            patches.filter_map(|(_, values)| values.as_object()).map(serde_json::Map::len).sum();
        row.extend([overriding(document, kinds).to_string(), patches.to_string(), revision.to_string()]);
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
