//! Values on one line, for tables.

use serde_json::Value;

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
    use serde_json::json;

    use super::brief;

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
