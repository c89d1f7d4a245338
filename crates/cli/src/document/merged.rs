//! Two who have changed the same document: what one wants, on top of what the other has made of it meanwhile.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What comes of it when somebody made `mine` of `base`, and somebody else has made `theirs` of it. Objects merge field by field, lists of
/// references id by id; where both have changed the same, it is mine.
pub(crate) fn merged(base: &Value, mine: &Value, theirs: &Value) -> Value {
    either(Some(base), Some(mine), Some(theirs)).unwrap_or_default()
}

fn either(base: Option<&Value>, mine: Option<&Value>, theirs: Option<&Value>) -> Option<Value> {
    if mine == base || mine == theirs {
        return theirs.cloned();
    }
    if theirs == base {
        return mine.cloned();
    }
    // Who takes all of something away takes away what was there, and nothing that was added meanwhile.
    let sides = [base, mine, theirs];
    let is_gone = mine.is_none() || theirs.is_none();
    // A reference is there or not, whatever is set on it.
    if is_gone && sides.iter().flatten().any(|side| side.get("id").is_some()) {
        return mine.cloned();
    }
    if let Some(sides) = all(sides, fields) {
        let fields: Map<String, Value> = of_each(&sides).collect();
        return (!is_gone || !fields.is_empty()).then(|| fields.into());
    }
    if let Some(sides) = all(sides, references) {
        let references: Vec<Value> = of_each(&sides).map(|(_, reference)| reference).collect();
        return (!is_gone || !references.is_empty()).then(|| references.into());
    }
    mine.cloned()
}

/// What is in each side, if all of them have something like that in them, or are not there.
fn all<'a>(
    sides: [Option<&'a Value>; 3],
    inside: fn(&'a Value) -> Option<Map<String, Value>>,
) -> Option<[Map<String, Value>; 3]> {
    let [base, mine, theirs] = sides.map(|side| side.map_or_else(|| Some(Map::new()), inside));
    Some([base?, mine?, theirs?])
}

fn fields(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

fn references(value: &Value) -> Option<Map<String, Value>> {
    let named = |item: &Value| Some((item["id"].as_str()?.to_owned(), item.clone()));
    value.as_array()?.iter().map(named).collect()
}

fn of_each([base, mine, theirs]: &[Map<String, Value>; 3]) -> impl Iterator<Item = (String, Value)> {
    let names: BTreeSet<&String> = mine.keys().chain(theirs.keys()).collect();
    names.into_iter().filter_map(|name| {
        let value = either(base.get(name), mine.get(name), theirs.get(name))?;
        Some((name.clone(), value))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merged;

    #[test]
    fn what_only_one_has_changed_is_as_they_made_it() {
        let base = json!({"id": "x", "labels": {"a": "1", "b": "1"}, "namespaces": [{"id": "n"}, {"id": "o"}], "protected": true});
        let mine = json!({"id": "x", "labels": {"a": "2", "b": "1"}, "namespaces": [{"id": "n"}]});
        let theirs = json!({"id": "x", "labels": {"b": "1", "c": "3"}, "namespaces": [{"id": "m"}, {"id": "n", "labels": {"k": "v"}}, {"id": "o"}], "protected": true});
        assert_eq!(merged(&base, &mine, &base), mine);
        assert_eq!(merged(&base, &base, &theirs), theirs);
        assert_eq!(
            merged(&base, &mine, &theirs),
            // Of what both have changed, `/labels/a`, it is mine.
            json!({"id": "x", "labels": {"a": "2", "b": "1", "c": "3"}, "namespaces": [{"id": "m"}, {"id": "n", "labels": {"k": "v"}}]})
        );
    }

    #[test]
    fn who_takes_all_away_takes_nothing_that_was_added_meanwhile() {
        let base = json!({"id": "x", "labels": {"a": "1"}, "namespaces": [{"id": "n"}]});
        let mine = json!({"id": "x"});
        let more =
            json!({"id": "x", "labels": {"a": "1", "b": "2"}, "namespaces": [{"id": "m"}, {"id": "n"}]});
        assert_eq!(
            merged(&base, &mine, &more),
            json!({"id": "x", "labels": {"b": "2"}, "namespaces": [{"id": "m"}]})
        );
        // Nothing is left empty that nobody wrote.
        let other = json!({"id": "x", "labels": {"a": "2"}, "namespaces": [{"id": "n", "labels": {}}]});
        assert_eq!(merged(&base, &mine, &other), mine);
    }

    #[test]
    fn what_has_no_parts_is_mine() {
        let of = |value: serde_json::Value| json!({ "depends_on": value });
        assert_eq!(merged(&of(json!(["a"])), &of(json!(["b"])), &of(json!(["a", "c"]))), of(json!(["b"])));
        assert_eq!(merged(&of(json!(1)), &of(json!({"a": 1})), &of(json!(2))), of(json!({"a": 1})));
    }
}
