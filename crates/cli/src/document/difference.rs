//! What became different between two documents, and what makes no difference.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A document as the service keeps it, as far as that can be told from here: what is null is absent, references are sorted by id.
pub(crate) fn normalised(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), normalised(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(normalised).collect();
            if items.iter().all(|item| item["id"].is_string()) {
                items.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
            }
            items.into()
        }
        other => other.clone(),
    }
}

/// One field that became different.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Difference {
    /// Where: `/labels/team`, `/platform_components/podinfo/oci_tag`.
    pub place: String,
    /// What it was.
    pub old: Option<Value>,
    /// What it is.
    pub new: Option<Value>,
}

/// What became different between two documents, field by field. References are told apart by their ids, not by where they stand.
pub(crate) fn differences(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    let leaves = |document: Option<&Value>| {
        let mut leaves = BTreeMap::new();
        if let Some(document) = document {
            collect(String::new(), document, &mut leaves);
        }
        leaves
    };
    let (old, mut new) = (leaves(before), leaves(after));
    let mut all = Vec::new();
    for (place, value) in old {
        let now = new.remove(&place);
        if now.as_ref() != Some(&value) {
            all.push(Difference { place, old: Some(value), new: now });
        }
    }
    all.extend(new.into_iter().map(|(place, value)| Difference { place, old: None, new: Some(value) }));
    all.sort_by(|one, other| one.place.cmp(&other.place));
    all
}

fn collect(place: String, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                collect(format!("{place}/{}", escaped(name)), value, leaves);
            }
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| item["id"].is_string()) => {
            for item in items {
                let id = escaped(item["id"].as_str().unwrap_or_default());
                collect(format!("{place}/{id}"), item, leaves);
            }
        }
        other => drop(leaves.insert(place, other.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Difference, differences, normalised};

    #[test]
    fn differences_are_told_field_by_field_and_by_id() {
        let before = json!({"id": "x", "namespaces": [{"id": "a"}, {"id": "b", "labels": {"k": "v"}}], "labels": {"t": "1"}});
        let after = json!({"id": "x", "namespaces": [{"id": "b", "labels": {"k": "w"}}, {"id": "c"}], "labels": {"t": "1"}});
        let difference = |place: &str, old: Option<Value>, new: Option<Value>| Difference {
            place: place.to_owned(),
            old,
            new,
        };
        assert_eq!(
            differences(Some(&before), Some(&after)),
            [
                difference("/namespaces/a/id", Some("a".into()), None),
                difference("/namespaces/b/labels/k", Some("v".into()), Some("w".into())),
                difference("/namespaces/c/id", None, Some("c".into())),
            ]
        );
        assert_eq!(differences(Some(&before), Some(&before)), []);
    }

    #[test]
    fn order_and_nulls_make_no_difference() {
        let one = json!({"id": "x", "labels": null, "namespaces": [{"id": "b"}, {"id": "a"}], "depends_on": ["b", "a"]});
        assert_eq!(
            normalised(&one),
            json!({"id": "x", "namespaces": [{"id": "a"}, {"id": "b"}], "depends_on": ["b", "a"]})
        );
    }
}
