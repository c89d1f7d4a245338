//! The one written form of a document: compact JSON, sorted keys, no `null` in objects. Two documents that mean the same are
//! the same text, so a digest of the text is a digest of the meaning.

use std::fmt;

use serde_json::{Map, Value};

/// The deepest nesting that a document may have.
pub(crate) const MAX_DEPTH: usize = 32;

/// A document in its canonical form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Canonical(Box<str>);

impl Canonical {
    /// Takes text from a store as it is. Whoever loads it compares its digest with the one that was recorded.
    pub fn stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The object again, of a document that the core wrote.
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).expect("it was encoded as an object")
    }

    pub(crate) fn of(map: &Map<String, Value>) -> Self {
        Self(encode(map).into())
    }
}

impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Encodes something that cannot fail to be JSON.
pub(crate) fn encode(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("values without exotic keys always encode")
}

/// Whether a string between quotes is its own JSON.
pub(crate) fn needs_no_escape(value: &str) -> bool {
    // No early exit, so that the loop vectorises.
    value.bytes().filter(|b| matches!(b, ..0x20 | b'"' | b'\\')).count() == 0
}

/// Encodes a string. Most of ours need no escape, and then it is a copy.
pub(crate) fn push_string(text: &mut String, value: &str) {
    if needs_no_escape(value) {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        text.push_str(&encode(value));
    }
}

/// Encodes an object whose members are in order.
pub(crate) fn push_object<'a, V>(
    text: &mut String,
    members: impl IntoIterator<Item = (&'a str, V)>,
    mut write: impl FnMut(&mut String, V),
) {
    text.push('{');
    for (n, (name, value)) in members.into_iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        push_string(text, name);
        text.push(':');
        write(text, value);
    }
    text.push('}');
}

/// Removes every object member that is `null`: absent and `null` are one thing in a stored document.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => drop_nulls_in(map),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The same for an object.
pub(crate) fn drop_nulls_in(map: &mut Map<String, Value>) {
    map.retain(|_, member| {
        drop_nulls(member);
        !member.is_null()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_members_go_and_null_items_stay_for_the_schema_to_refuse() {
        let mut value = json!({"a": null, "b": {"c": null, "d": [null, {"e": null}]}});
        drop_nulls(&mut value);
        assert_eq!(value, json!({"b": {"d": [null, {}]}}));
    }

    #[test]
    fn keys_are_sorted_and_numbers_kept_whatever_features_other_crates_ask_for() {
        let text = r#"{"b":1,"a":0.1,"c":9007199254740993,"d":1.0}"#;
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(encode(&value), r#"{"a":0.1,"b":1,"c":9007199254740993,"d":1.0}"#);
    }

    #[test]
    fn a_string_is_encoded_as_serde_json_does() {
        for text in
            ["", "plain", "ü🚀", "quote\"", "back\\slash", "new\nline", "\u{1}", "\u{7f}", "</script>"]
        {
            let mut pushed = String::new();
            push_string(&mut pushed, text);
            assert_eq!(pushed, encode(text));
        }
    }
}
