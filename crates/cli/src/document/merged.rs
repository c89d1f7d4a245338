//! Two who have changed the same document: what one wants, on top of what the other has made of it meanwhile.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What comes of it when somebody made `mine` of `base`, and somebody else has made `theirs` of it. Objects merge field by field, lists of
/// references id by id; where both have changed the same, it is mine.
pub(crate) fn merged(base: &Value, mine: &Value, theirs: &Value) -> Value {
    either([Some(base), Some(mine), Some(theirs)], Part::Field).unwrap_or_default()
}

/// What a value is a part of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Field,
    Reference,
}

fn either(sides: [Option<&Value>; 3], part: Part) -> Option<Value> {
    let [base, mine, theirs] = sides;
    if mine == base || mine == theirs {
        return theirs.cloned();
    }
    if theirs == base {
        return mine.cloned();
    }
    let is_gone = mine.is_none() || theirs.is_none();
    // A reference is there or not, whatever is set on it.
    if is_gone && part == Part::Reference {
        return mine.cloned();
    }
    // Who takes all of something away takes away what was there, and nothing that was added meanwhile.
    if let Some(sides) = all(sides, fields) {
        let fields: Map<String, Value> = of_each(&sides, Part::Field).collect();
        return (!is_gone || !fields.is_empty()).then(|| fields.into());
    }
    if let Some(sides) = all(sides, references) {
        let references: Vec<Value> =
            of_each(&sides, Part::Reference).map(|(_, reference)| reference).collect();
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

/// The references of a list by their ids; nothing if one is there twice, which is for the service to refuse.
fn references(value: &Value) -> Option<Map<String, Value>> {
    let list = value.as_array()?;
    let named = |item: &Value| Some((item["id"].as_str()?.to_owned(), item.clone()));
    let all: Map<String, Value> = list.iter().map(named).collect::<Option<_>>()?;
    (all.len() == list.len()).then_some(all)
}

fn of_each(
    [base, mine, theirs]: &[Map<String, Value>; 3],
    part: Part,
) -> impl Iterator<Item = (String, Value)> {
    let names: BTreeSet<&String> = mine.keys().chain(theirs.keys()).collect();
    names.into_iter().filter_map(move |name| {
        let value = either([base.get(name), mine.get(name), theirs.get(name)], part)?;
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
    fn a_field_called_id_makes_no_reference() {
        let base = json!({"labels": {"id": "1", "b": "1"}});
        let (mine, theirs) = (json!({"labels": {"id": "1"}}), json!({}));
        assert_eq!(merged(&base, &mine, &theirs), json!({}));
    }

    #[test]
    fn what_is_there_twice_is_left_to_the_service_to_refuse() {
        let of = |value: serde_json::Value| json!({ "namespaces": value });
        let twice = of(json!([{"id": "n"}, {"id": "n", "labels": {}}]));
        assert_eq!(merged(&of(json!([{"id": "n"}])), &twice, &of(json!([{"id": "m"}, {"id": "n"}]))), twice);
    }

    #[test]
    fn what_has_no_parts_is_mine() {
        let of = |value: serde_json::Value| json!({ "depends_on": value });
        assert_eq!(merged(&of(json!(["a"])), &of(json!(["b"])), &of(json!(["a", "c"]))), of(json!(["b"])));
        assert_eq!(merged(&of(json!(1)), &of(json!({"a": 1})), &of(json!(2))), of(json!({"a": 1})));
    }
}
