//! The one form that a document's meaning has: what every request is brought into before it is judged.

use serde_json::{Map, Value};

use crate::canonical;
use crate::finding::Finding;
use crate::ids::PATCHES;
use crate::kind::{Kind, Kinds, Shape};
use crate::pointer::Pointer;

/// Brings an object into the one form that its meaning has: no `null`, references and dependencies sorted, no empty
/// reference array and no empty patches, integers and switches in patches as text. Tells which references are there twice.
pub(super) fn normalise(
    kind: &Kind,
    kinds: &Kinds,
    map: &mut Map<String, Value>,
    findings: &mut Vec<Finding>,
) {
    canonical::drop_nulls_in(map);
    match kind.shape() {
        Shape::Definition => {}
        Shape::Component => sort_ids(map),
        Shape::Cluster => {
            for kind in kinds.referable() {
                normalise_references(kind, map, findings);
            }
            if let Some(Value::Object(patches)) = map.get_mut(PATCHES) {
                patches
                    .values_mut()
                    .filter_map(Value::as_object_mut)
                    .flat_map(Map::values_mut)
                    .for_each(as_text);
                patches.retain(|_, of| of.as_object().is_none_or(|of| !of.is_empty()));
                if patches.is_empty() {
                    map.remove(PATCHES);
                }
            }
        }
    }
}

fn normalise_references(kind: &Kind, map: &mut Map<String, Value>, findings: &mut Vec<Finding>) {
    let name = kind.name().as_str();
    let Some(Value::Array(items)) = map.get_mut(name) else { return };
    if items.is_empty() {
        map.remove(name);
        return;
    }
    if kind.shape() == Shape::Component {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(sort_ids);
    }
    items.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
    for (n, pair) in items.windows(2).enumerate() {
        if let (Some(one), Some(other)) = (pair[0]["id"].as_str(), pair[1]["id"].as_str())
            && one == other
        {
            let at = Pointer::to(name).item(n + 1);
            findings.push(Finding::new(
                at,
                format!("`{one}` is there twice; list each {} once", kind.singular()),
            ));
        }
    }
}

/// A patch value is text, and its type is what the text looks like: `3` and `"3"` mean the same. What would arrive as another type than it
/// was written in, as a decimal number would, stays for the schema to refuse.
fn as_text(value: &mut Value) {
    if value.is_i64() || value.is_boolean() {
        *value = Value::String(value.to_string());
    }
}

fn sort_ids(map: &mut Map<String, Value>) {
    if let Some(Value::Array(ids)) = map.get_mut("depends_on") {
        ids.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }
}
