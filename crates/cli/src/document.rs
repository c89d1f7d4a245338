//! Documents as people write and read them: `a.b=c` on a command line, and what became different between two of them.
//!
//! What a field is, the kind's schema says; what may be in it, the service decides.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// The parts of `a.b\.c.d`: a backslash makes a dot, or itself, an ordinary character.
fn path(text: &str) -> Result<Vec<String>, Failure> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let last = parts.last_mut();
        match (character, last) {
            ('.', _) => parts.push(String::new()),
            ('\\', Some(last)) => last.extend(characters.next()),
            (other, Some(last)) => last.push(other),
            (_, None) => {}
        }
    }
    if parts.iter().any(String::is_empty) {
        return Err(Failure::usage(format!(
            "`{text}` is not a field: write `a` or `a.b`, and `\\.` for a dot in a name"
        )));
    }
    Ok(parts)
}

/// `name=value`.
pub(crate) fn pair(text: &str) -> Result<(&str, &str), Failure> {
    text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        Failure::usage(format!("`{text}` must be NAME=VALUE; the value may be empty, as in `NAME=`"))
    })
}

fn type_of(schema: Option<&Value>) -> &str {
    schema.and_then(|schema| schema["type"].as_str()).unwrap_or_default()
}

/// Whether these are references or the like: a list of objects that have an id.
fn keyed_items(schema: Option<&Value>) -> Option<&Value> {
    let items = &schema?["items"];
    items["properties"].get("id").map(|_| items)
}

fn inner<'a>(schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let schema = schema?;
    schema["properties"]
        .get(name)
        .or_else(|| schema.get("additionalProperties").filter(|inner| inner.is_object()))
}

/// A text as the type that the schema asks for.
pub(crate) fn typed(field: &str, text: &str, schema: Option<&Value>) -> Result<Value, Failure> {
    let wrong = |what: &str| Failure::usage(format!("`{field}` must be {what}, not `{text}`"));
    match type_of(schema) {
        "integer" => text.parse::<i64>().map(Value::from).map_err(|_| wrong("an integer")),
        "boolean" => text.parse::<bool>().map(Value::from).map_err(|_| wrong("`true` or `false`")),
        "array" if !text.trim_start().starts_with('[') => {
            let items = schema.map(|schema| &schema["items"]);
            if type_of(items) != "string" {
                return Err(wrong("a list in JSON"));
            }
            Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect())
        }
        "array" => serde_json::from_str(text).map_err(|_| wrong("a list in JSON")),
        "object" => {
            serde_json::from_str(text).ok().filter(Value::is_object).ok_or_else(|| wrong("an object in JSON"))
        }
        _ => Ok(Value::from(text)),
    }
}

/// `a.b=c` as a strategic patch, added to what is there. In a list of references, the part after its name is an id.
pub(crate) fn set(patch: &mut Value, assignment: &str, schema: &Value) -> Result<(), Failure> {
    let (field, text) = pair(assignment)?;
    put(patch, &path(field)?, Some(schema), &|schema| typed(field, text, schema))
}

/// `a.b.c`, if it is a field of a reference: the list, the id, and the field as a patch that takes it away.
pub(crate) fn of_reference(field: &str, schema: &Value) -> Result<Option<(String, String, Value)>, Failure> {
    let parts = path(field)?;
    let [list, id, rest @ ..] = &*parts else { return Ok(None) };
    let Some(items) = keyed_items(inner(Some(schema), list)).filter(|_| !rest.is_empty()) else {
        return Ok(None);
    };
    let mut patch = json!({});
    put(&mut patch, rest, Some(items), &|_| Ok(Value::Null))?;
    Ok(Some((list.clone(), id.clone(), patch)))
}

/// `a.b` as a strategic patch that takes it away, added to what is there.
pub(crate) fn unset(patch: &mut Value, field: &str, schema: &Value) -> Result<(), Failure> {
    put(patch, &path(field)?, Some(schema), &|_| Ok(Value::Null))
}

fn put(
    at: &mut Value,
    path: &[String],
    schema: Option<&Value>,
    value: &dyn Fn(Option<&Value>) -> Result<Value, Failure>,
) -> Result<(), Failure> {
    let Some((name, rest)) = path.split_first() else {
        *at = value(schema)?;
        return Ok(());
    };
    if let Some(items) = keyed_items(schema) {
        let list = list_at(at);
        let position = list.iter().position(|item| item["id"] == **name).unwrap_or_else(|| {
            list.push(json!({ "id": name }));
            list.len() - 1
        });
        let item = &mut list[position];
        if rest.is_empty() {
            match value(Some(items))? {
                Value::Null => item["$patch"] = "delete".into(),
                Value::Object(fields) => {
                    *item = Value::Object(
                        fields.into_iter().chain([("id".to_owned(), name.as_str().into())]).collect(),
                    )
                }
                _ => return Err(Failure::usage(format!("say which field of `{name}`: {name}.FIELD=VALUE"))),
            }
            return Ok(());
        }
        return put(item, rest, Some(items), value);
    }
    if !at.is_object() {
        *at = Value::Object(Map::new());
    }
    put(&mut at[name.as_str()], rest, inner(schema, name), value)
}

fn list_at(at: &mut Value) -> &mut Vec<Value> {
    if !at.is_array() {
        *at = Value::Array(Vec::new());
    }
    match at {
        Value::Array(list) => list,
        _ => unreachable!("it was made a list"),
    }
}

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

/// What turns one document into another, as a strategic patch: only what is different, references by their ids.
pub(crate) fn strategic_patch(before: &Value, after: &Value) -> Value {
    let empty = Map::new();
    let (old, new) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(same) if same == value => {}
            Some(was) if was.is_object() && value.is_object() => {
                patch.insert(name.clone(), strategic_patch(was, value));
            }
            was => {
                let value = match (references(was), references(Some(value))) {
                    (Some(was), Some(now)) => references_patch(was, now),
                    _ => value.clone(),
                };
                patch.insert(name.clone(), value);
            }
        }
    }
    for (name, was) in old {
        if !new.contains_key(name) {
            // Key by key and id by id, so that what somebody else adds meanwhile stays.
            let gone = match (was, references(Some(was))) {
                (Value::Object(fields), _) if !fields.is_empty() => strategic_patch(was, &Value::Null),
                (_, Some(was)) if !was.is_empty() => references_patch(was, &[]),
                _ => Value::Null,
            };
            patch.insert(name.clone(), gone);
        }
    }
    patch.into()
}

fn references(value: Option<&Value>) -> Option<&[Value]> {
    match value {
        None => Some(&[]),
        Some(value) => value
            .as_array()
            .map(Vec::as_slice)
            .filter(|items| items.iter().all(|item| item["id"].is_string())),
    }
}

fn references_patch(was: &[Value], now: &[Value]) -> Value {
    let find = |list: &[Value], id: &Value| list.iter().find(|item| item["id"] == *id).cloned();
    let changed = now.iter().filter_map(|item| match find(was, &item["id"]) {
        Some(same) if same == *item => None,
        Some(before) => {
            let mut patch = strategic_patch(&before, item);
            patch["id"] = item["id"].clone();
            Some(patch)
        }
        None => Some(item.clone()),
    });
    let gone = was.iter().filter(|item| find(now, &item["id"]).is_none());
    changed.chain(gone.map(|item| json!({"id": item["id"], "$patch": "delete"}))).collect()
}

/// A document with a strategic patch made to it, as the service would make it.
pub(crate) fn patched(document: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut fields = document.as_object().cloned().unwrap_or_default();
    for (name, change) in changes {
        let was = fields.get(name).cloned().unwrap_or_default();
        match (change, references(Some(change))) {
            (Value::Null, _) => drop(fields.remove(name)),
            (Value::Array(_), Some(changes)) if !changes.is_empty() => {
                let was = was.as_array().map(Vec::as_slice).unwrap_or_default();
                fields.insert(name.clone(), patched_references(was, changes));
            }
            _ => drop(fields.insert(name.clone(), patched(&was, change))),
        }
    }
    fields.into()
}

fn patched_references(was: &[Value], changes: &[Value]) -> Value {
    let mut all = was.to_vec();
    for change in changes {
        let position = all.iter().position(|item| item["id"] == change["id"]);
        match (position, change["$patch"] == "delete") {
            (Some(position), true) => drop(all.remove(position)),
            (None, true) => {}
            (Some(position), false) => all[position] = patched(&all[position], change),
            (None, false) => all.push(change.clone()),
        }
    }
    all.into()
}

/// A value on one line, for a table: a text without quotes, `a=b,c=d`, names of objects.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.replace('\n', "⏎"),
        Value::Object(fields) if fields.is_empty() => "-".to_owned(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| format!("{name}={}", brief(value)))
            .collect::<Vec<_>>()
            .join(","),
        Value::Array(items) => items.iter().map(name_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// An item of a list on one line: what it is called, if it is called anything.
fn name_of(item: &Value) -> String {
    let text = |field: &str| item[field].as_str();
    match (text("id").or(text("name")), text("kind")) {
        (Some(name), Some(kind)) => format!("{kind}:{name}"),
        (Some(name), None) => name.to_owned(),
        (None, _) => brief(item),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Difference, brief, differences, normalised, patched, set, strategic_patch, unset};
    use crate::failure::Failure;
    use crate::kinds::tests::kinds;

    fn patch(changes: &[&str]) -> Result<Value, Failure> {
        let kinds = kinds();
        let schema = &kinds.clusters()?.schema;
        let mut patch = json!({});
        for change in changes {
            match change.strip_prefix('!') {
                Some(field) => unset(&mut patch, field, schema)?,
                None => set(&mut patch, change, schema)?,
            }
        }
        Ok(patch)
    }

    #[test]
    fn a_field_gets_the_type_that_its_schema_says() {
        let found = patch(&[
            "node_count=3",
            "protected=true",
            "labels.team=7",
            r"labels.example\.com/a=x=y",
            "labels.empty=",
        ]);
        assert_eq!(
            found.expect("a patch"),
            json!({"node_count": 3, "protected": true, "labels": {"team": "7", "example.com/a": "x=y", "empty": ""}})
        );
        let Err(Failure::Usage(what)) = patch(&["node_count=three"]) else { panic!("it was taken") };
        assert_eq!(what, "`node_count` must be an integer, not `three`");
        let Err(Failure::Usage(what)) = patch(&["labels"]) else { panic!("it was taken") };
        assert_eq!(what, "`labels` must be NAME=VALUE; the value may be empty, as in `NAME=`");
        assert!(matches!(patch(&["labels..a=b"]), Err(Failure::Usage(_))));
    }

    #[test]
    fn references_are_named_by_their_ids() {
        let found = patch(&[
            "platform_components.podinfo.oci_tag=2",
            "platform_components.podinfo.enabled=false",
            "platform_components.agent.depends_on=a,b",
            "!platform_components.old",
            "!labels.team",
            "!patches.podinfo",
        ]);
        assert_eq!(
            found.expect("a patch"),
            json!({
                "platform_components": [
                    {"id": "podinfo", "oci_tag": "2", "enabled": false},
                    {"id": "agent", "depends_on": ["a", "b"]},
                    {"id": "old", "$patch": "delete"},
                ],
                "labels": {"team": null},
                "patches": {"podinfo": null},
            })
        );
    }

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
    fn an_edit_becomes_a_patch_of_what_was_edited_and_nothing_else() {
        let before = json!({"id": "x", "namespaces": [{"id": "a"}, {"id": "b", "labels": {"k": "v", "l": "v"}}], "labels": {"t": "1", "u": "2"}, "protected": true});
        let after = json!({"id": "x", "namespaces": [{"id": "b", "labels": {"k": "w"}}, {"id": "c"}], "labels": {"t": "1"}});
        assert_eq!(
            strategic_patch(&before, &after),
            json!({
                "namespaces": [{"id": "b", "labels": {"k": "w", "l": null}}, {"id": "c"}, {"id": "a", "$patch": "delete"}],
                "labels": {"u": null},
                "protected": null,
            })
        );
        assert_eq!(strategic_patch(&before, &before), json!({}));
        // And back: what the patch makes of the one is the other.
        assert_eq!(normalised(&patched(&before, &strategic_patch(&before, &after))), after);
        let gone = strategic_patch(&before, &json!({"id": "x"}));
        assert_eq!(
            gone["namespaces"],
            json!([{"id": "a", "$patch": "delete"}, {"id": "b", "$patch": "delete"}])
        );
        assert_eq!(gone["labels"], json!({"t": null, "u": null}));
        assert_eq!(
            strategic_patch(&json!({"depends_on": [], "a": {}}), &json!({})),
            json!({"depends_on": null, "a": null})
        );
    }

    #[test]
    fn order_and_nulls_make_no_difference() {
        let one = json!({"id": "x", "labels": null, "namespaces": [{"id": "b"}, {"id": "a"}], "depends_on": ["b", "a"]});
        assert_eq!(
            normalised(&one),
            json!({"id": "x", "namespaces": [{"id": "a"}, {"id": "b"}], "depends_on": ["b", "a"]})
        );
    }

    #[test]
    fn a_value_fits_on_a_line() {
        assert_eq!(brief(&json!({"a": "b", "c": ["d"]})), "a=b,c=d");
        assert_eq!(
            brief(&json!([{"kind": "Group", "name": "admins"}, {"kind": "User", "name": "eva"}])),
            "Group:admins,User:eva"
        );
        assert_eq!(brief(&json!("two\nlines")), "two⏎lines");
        assert_eq!(brief(&json!({})), "-");
    }
}
