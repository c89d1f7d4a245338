//! What a cluster has set on what it refers to.

use serde_json::{Map, Value, json};

use crate::document;
use crate::failure::Failure;
use crate::kinds::{Kind, Kinds, Shape};

/// What names a reference and whether it is on: all else that it says overrides the catalog.
const NO_OVERRIDES: [&str; 2] = ["id", "enabled"];

/// Whether a reference, or an input, is on: it is unless it says that it is not.
pub(crate) fn is_enabled(reference: &Value) -> bool {
    reference["enabled"] != false
}

/// The fields of the catalog that a reference overrides.
pub(crate) fn overrides(reference: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields = reference.as_object().into_iter().flatten();
    fields.filter(|(name, _)| !NO_OVERRIDES.contains(&name.as_str()))
}

/// The fields that a reference of this kind may override.
pub(crate) fn overridable(kinds: &Kinds, kind: &Kind) -> Result<Vec<String>, Failure> {
    let list = kinds.clusters()?.property(&kind.name);
    let names = list.and_then(|list| list["items"]["properties"].as_object()).into_iter().flat_map(Map::keys);
    Ok(names.filter(|name| !NO_OVERRIDES.contains(&name.as_str())).cloned().collect())
}

/// A reference with the fields that were named as `name=value`, by the types that the clusters' schema says.
pub(crate) fn reference(kinds: &Kinds, kind: &Kind, id: &str, fields: &[String]) -> Result<Value, Failure> {
    let list = kinds.clusters()?.property(&kind.name);
    let mut schema = list.map_or(Value::Null, |list| list["items"].clone());
    // A reference to a definition may override any of its fields.
    for name in kind.properties() {
        if schema["properties"].get(name).is_none() {
            schema["properties"][name] = kind.property(name).cloned().unwrap_or_default();
        }
    }
    let mut reference = json!({ "id": id });
    for field in fields {
        if document::pair(field)?.0 == "id" {
            return Err(Failure::usage("`id` is not a field of a reference that can be set"));
        }
        document::set(&mut reference, field, &schema)?;
    }
    Ok(reference)
}
