//! `a.b=c` on a command line, as a patch. What a field is, the kind's schema says.

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
fn typed(field: &str, text: &str, schema: Option<&Value>) -> Result<Value, Failure> {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{set, unset};
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
}
