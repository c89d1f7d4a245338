//! What becomes different between two JSON texts, field by field. Text that is the same on both sides is passed over unread, so that a
//! small change of a large document costs little.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::canonical::push_string;
use crate::pointer::Pointer;

/// One field that is different.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FieldChange {
    /// Which field. An item of a list of objects with ids is called by its id: `/namespaces/team-a`.
    pub pointer: Pointer,
    /// What it was, as JSON; none if it was not there.
    pub old: Option<String>,
    /// What it is, as JSON; none if it is not there.
    pub new: Option<String>,
}

/// What becomes different, sorted by where it is. Something that is an object on one side and absent on the other is told member by
/// member, so that the same member set on two documents is the same change whether or not they had others.
pub(crate) fn differences(old: &str, new: &str) -> Vec<FieldChange> {
    let mut fields = Vec::new();
    compare(&mut Pointer::root(), Some(old), Some(new), &mut fields);
    fields
}

/// An object without its `id`.
pub(crate) fn without_id(text: &str) -> String {
    let Some(members) = members(text) else { return text.to_owned() };
    let members = members.into_iter().filter(|(name, _)| name != "id");
    let mut rest = String::with_capacity(text.len());
    for (name, member) in members {
        rest.push(if rest.is_empty() { '{' } else { ',' });
        push_string(&mut rest, &name);
        rest.push(':');
        rest.push_str(member);
    }
    rest.push_str(if rest.is_empty() { "{}" } else { "}" });
    rest
}

fn compare(at: &mut Pointer, old: Option<&str>, new: Option<&str>, fields: &mut Vec<FieldChange>) {
    if old == new {
        return;
    }
    let told = fields.len();
    if let Some((old, new)) = both(old, new, members) {
        for (name, old, new) in joined(old, new) {
            at.with(&name, |at| compare(at, old, new, fields));
        }
    } else if let Some((old, new)) = both(old, new, items) {
        for (id, old, new) in joined(old, new) {
            at.with(&id, |at| match (old, new) {
                (Some(_), Some(_)) => compare(at, old, new, fields),
                _ => fields.push(change(at, old, new)),
            });
        }
    }
    // Neither objects nor lists by id; or nothing in them, or their order, is what is different.
    if fields.len() == told {
        fields.push(change(at, old, new));
    }
}

fn change(at: &Pointer, old: Option<&str>, new: Option<&str>) -> FieldChange {
    let text = |side: Option<&str>| side.map(ToOwned::to_owned);
    FieldChange { pointer: at.clone(), old: text(old), new: text(new) }
}

type Parts<'t> = BTreeMap<String, &'t str>;

/// Both sides taken apart, an absent one as if it were empty; none if one of them cannot be.
fn both<'t>(
    old: Option<&'t str>,
    new: Option<&'t str>,
    parts: impl Fn(&'t str) -> Option<Parts<'t>>,
) -> Option<(Parts<'t>, Parts<'t>)> {
    let side = |text: Option<&'t str>| text.map_or(Some(Parts::new()), &parts);
    Some((side(old)?, side(new)?))
}

fn members(text: &str) -> Option<Parts<'_>> {
    if !text.starts_with('{') {
        return None;
    }
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    Some(members.into_iter().map(|(name, member)| (name, member.get())).collect())
}

/// The items of a list of objects, each with an id of its own.
fn items(text: &str) -> Option<Parts<'_>> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: String,
    }
    if !text.starts_with('[') {
        return None;
    }
    let list: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut items = Parts::new();
    for item in &list {
        let Named { id } = serde_json::from_str(item.get()).ok()?;
        items.insert(id, item.get());
    }
    (items.len() == list.len()).then_some(items)
}

/// Every name that is on either side, sorted, with what each side has under it.
fn joined<'t>(old: Parts<'t>, mut new: Parts<'t>) -> Vec<(String, Option<&'t str>, Option<&'t str>)> {
    let mut all: Vec<_> = old
        .into_iter()
        .map(|(name, old)| {
            let new = new.remove(&name);
            (name, Some(old), new)
        })
        .collect();
    all.extend(new.into_iter().map(|(name, new)| (name, None, Some(new))));
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::{differences, without_id};

    fn told(old: &str, new: &str) -> Vec<String> {
        let text = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
        let tell = |field: super::FieldChange| {
            format!("{} {} → {}", field.pointer.as_str(), text(field.old), text(field.new))
        };
        differences(old, new).into_iter().map(tell).collect()
    }

    #[test]
    fn members_are_told_one_by_one_whether_or_not_there_were_others() {
        let new = r#"{"id":"x","labels":{"wave":"2"}}"#;
        let wave = ["/labels/wave - → \"2\""];
        assert_eq!(told(r#"{"id":"x"}"#, new), wave);
        assert_eq!(told(r#"{"id":"x","labels":{}}"#, new), wave);
        assert_eq!(
            told(r#"{"labels":{"a~/":"1"}}"#, r#"{"labels":{"b":"1"}}"#),
            ["/labels/a~0~1 \"1\" → -", "/labels/b - → \"1\""]
        );
        assert_eq!(told(r#"{"a":{"b":{"c":1}}}"#, "{}"), ["/a/b/c 1 → -"]);
    }

    #[test]
    fn references_are_told_apart_by_their_ids_and_a_new_one_is_one_thing() {
        assert_eq!(
            told(
                r#"{"namespaces":[{"id":"a"},{"id":"b","labels":{"k":"v"}}]}"#,
                r#"{"namespaces":[{"id":"b","labels":{"k":"w"}},{"id":"c","labels":{"k":"v"}}]}"#
            ),
            [
                r#"/namespaces/a {"id":"a"} → -"#,
                r#"/namespaces/b/labels/k "v" → "w""#,
                r#"/namespaces/c - → {"id":"c","labels":{"k":"v"}}"#,
            ]
        );
        assert_eq!(told("{}", r#"{"namespaces":[{"id":"a"}]}"#), [r#"/namespaces/a - → {"id":"a"}"#]);
    }

    #[test]
    fn an_object_without_its_id_has_everything_else() {
        assert_eq!(without_id(r#"{"a":{"id":"x"},"id":"y","z\"":[1]}"#), r#"{"a":{"id":"x"},"z\"":[1]}"#);
        assert_eq!(without_id(r#"{"id":"y"}"#), "{}");
    }

    #[test]
    fn whatever_is_different_is_told() {
        assert_eq!(told("1", "1"), [""; 0]);
        // Empty and absent, order, ids that occur twice, other types.
        for (old, new) in [
            (r#"{"a":{}}"#, "{}"),
            (r#"{"a":[]}"#, "{}"),
            (r#"{"a":[{"id":"x"},{"id":"y"}]}"#, r#"{"a":[{"id":"y"},{"id":"x"}]}"#),
            (r#"{"a":[{"id":"x"},{"id":"x"}]}"#, r#"{"a":[{"id":"x"}]}"#),
            (r#"{"a":["x","y"]}"#, r#"{"a":["y","x"]}"#),
            (r#"{"a":{"id":"x"}}"#, r#"{"a":[{"id":"x"}]}"#),
            (r#"{"a":null}"#, r#"{"a":{"b":1}}"#),
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
        ] {
            let side = |text: &str| {
                let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
                value.get("a").map_or_else(|| "-".to_owned(), ToString::to_string)
            };
            assert_eq!(told(old, new), [format!("/a {} → {}", side(old), side(new))], "{old} → {new}");
        }
    }
}
