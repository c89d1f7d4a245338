//! Patches as Helm values. A patch key is a Helm path (`ui.message`, `a\.b`, `list[0].name`), a patch value is text; together they
//! make one nested, typed tree, so that a template has nothing left to parse.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::canonical;

/// The most entries a list may have.
const MAX_LIST: usize = 1000;
/// The most steps a path may have.
const MAX_STEPS: usize = 20;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    Member(String),
    Item(usize),
}

enum Node {
    Leaf(Value),
    Members(BTreeMap<String, Node>),
    Items(BTreeMap<usize, Node>),
}

/// A patch key that cannot be used, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadPath {
    /// The key, if the problem is in one and not between several.
    pub(crate) key: Option<String>,
    pub(crate) problem: String,
}

/// Builds the tree. It is total, for documents of other times must still load: what contradicts an earlier path, in the
/// order of keys, is left out and told.
pub(crate) fn tree<'a>(patches: impl IntoIterator<Item = (&'a str, &'a str)>) -> (Value, Vec<BadPath>) {
    let mut root = Node::Members(BTreeMap::new());
    let mut bad = Vec::new();
    for (key, value) in patches {
        let placed = parse(key).and_then(|steps| place(&mut root, &steps, typed(value)));
        if let Err(problem) = placed {
            bad.push(BadPath { key: Some(key.to_owned()), problem });
        }
    }
    let tree = finish(root, &mut String::new(), &mut bad);
    (tree, bad)
}

/// Writes the tree as canonical JSON, from patches sorted by key. Of plain paths, which most are, it is written as it goes.
pub(crate) fn push_tree<'a, P: Iterator<Item = (&'a str, &'a str)>>(
    text: &mut String,
    patches: impl Fn() -> P,
) {
    let before = text.len();
    if push_plain(text, patches()).is_none() {
        text.truncate(before);
        text.push_str(&canonical::encode(&tree(patches()).0));
    }
}

/// The same for names that are joined by dots. Nothing if there is any other path: an escape, a list, a contradiction, or a character
/// before the dot, which sorts keys in another way than the names in them.
fn push_plain<'a>(text: &mut String, patches: impl Iterator<Item = (&'a str, &'a str)>) -> Option<()> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut before = "";
    let mut open = 1;
    text.push('{');
    for (key, value) in patches {
        let names = || key.split('.');
        if names().any(str::is_empty) || !key.bytes().all(|byte| byte == b'.' || is_name(&byte)) {
            return None;
        }
        let shared = names().zip(before.split('.')).take_while(|(one, other)| one == other).count();
        let is_first = before.is_empty();
        // The last name of the key before is no object, and no key is there twice.
        if !is_first && shared == before.split('.').count() || names().count() > MAX_STEPS {
            return None;
        }
        while open > shared + 1 {
            text.push('}');
            open -= 1;
        }
        for (n, name) in names().skip(shared).enumerate() {
            match n {
                0 if is_first => {}
                0 => text.push(','),
                _ => {
                    text.push('{');
                    open += 1;
                }
            }
            text.push('"');
            text.push_str(name);
            text.push_str("\":");
        }
        match typed(value) {
            Value::String(value) => canonical::push_string(text, &value),
            other => text.push_str(&canonical::encode(&other)),
        }
        before = key;
    }
    text.extend(std::iter::repeat_n('}', open));
    Some(())
}

/// The type of a value, decided by the text alone.
fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        _ => match (integer(text), text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))) {
            (Some(number), _) => Value::from(number),
            (None, Some(quoted)) => Value::from(quoted),
            (None, None) => Value::from(text),
        },
    }
}

fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    let number = text.parse::<i64>().ok().filter(|_| plain && text != "-0")?;
    (number.unsigned_abs() <= 1 << 53).then_some(number)
}

fn parse(key: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = key;
    loop {
        let (name, after) = member(rest)?;
        steps.push(Step::Member(name));
        rest = after;
        while let Some(inside) = rest.strip_prefix('[') {
            let (digits, after) = inside.split_once(']').ok_or("a `[` is never closed")?;
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let index = digits.parse::<usize>().ok().filter(|index| plain && *index < MAX_LIST);
            let wanted = format!("an index in `[…]` is a number below {MAX_LIST}, not `{digits}`");
            steps.push(Step::Item(index.ok_or(wanted)?));
            rest = after;
        }
        if steps.len() > MAX_STEPS {
            return Err(format!("the path has more than {MAX_STEPS} steps"));
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(steps),
            None => return Err("after a `]` comes `.`, `[` or the end".to_owned()),
        }
    }
}

/// One name up to an unescaped `.` or `[`.
fn member(text: &str) -> Result<(String, &str), String> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let end = loop {
        match characters.next() {
            Some((_, '\\')) => match characters.next() {
                Some((_, escaped)) => name.push(escaped),
                None => return Err("a `\\` at the end escapes nothing".to_owned()),
            },
            Some((at, '.' | '[')) => break at,
            Some((_, character)) => name.push(character),
            None => break text.len(),
        }
    };
    if name.is_empty() {
        return Err("a step of the path has no name; write `\\.` for a dot that belongs to a name".to_owned());
    }
    Ok((name, &text[end..]))
}

fn place(root: &mut Node, steps: &[Step], value: Value) -> Result<(), String> {
    const CONTRADICTS: &str =
        "contradicts another key: one place cannot be a value, a list and a map at once";
    let mut at = root;
    for (n, step) in steps.iter().enumerate() {
        let fresh = || match steps.get(n + 1) {
            Some(Step::Member(_)) => Node::Members(BTreeMap::new()),
            Some(Step::Item(_)) => Node::Items(BTreeMap::new()),
            None => Node::Leaf(Value::Null),
        };
        let mut is_new = false;
        let mut new = || {
            is_new = true;
            fresh()
        };
        at = match (at, step) {
            (Node::Members(members), Step::Member(name)) => {
                members.entry(name.clone()).or_insert_with(&mut new)
            }
            (Node::Items(items), Step::Item(index)) => items.entry(*index).or_insert_with(&mut new),
            _ => return Err(CONTRADICTS.to_owned()),
        };
        if n + 1 == steps.len() && !is_new {
            return Err(CONTRADICTS.to_owned());
        }
    }
    *at = Node::Leaf(value);
    Ok(())
}

fn finish(node: Node, path: &mut String, bad: &mut Vec<BadPath>) -> Value {
    let mut inside = |step: &str, node: Node, bad: &mut Vec<BadPath>| {
        let before = path.len();
        path.push_str(step);
        let value = finish(node, path, bad);
        path.truncate(before);
        value
    };
    match node {
        Node::Leaf(value) => value,
        Node::Members(members) => members
            .into_iter()
            .map(|(name, node)| (name.clone(), inside(&format!(".{name}"), node, bad)))
            .collect(),
        Node::Items(items) => {
            let gap = items
                .keys()
                .enumerate()
                .find(|(expected, index)| expected != *index)
                .map(|(expected, _)| expected);
            let list =
                items.into_iter().map(|(index, node)| inside(&format!("[{index}]"), node, bad)).collect();
            if let Some(missing) = gap {
                let list = path.strip_prefix('.').unwrap_or(path);
                let problem = format!(
                    "the list `{list}` has a gap: entry [{missing}] is missing; a list begins at [0] and skips none"
                );
                bad.push(BadPath { key: None, problem });
            }
            Value::Array(list)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good(patches: &[(&str, &str)]) -> Value {
        let (tree, bad) = tree(patches.iter().copied());
        assert_eq!(bad, []);
        tree
    }

    fn problem(patches: &[(&str, &str)]) -> String {
        let (_, bad) = tree(patches.iter().copied());
        assert_eq!(bad.len(), 1, "{bad:?}");
        format!("{}: {}", bad[0].key.as_deref().unwrap_or_default(), bad[0].problem)
    }

    #[test]
    fn paths_nest_escape_and_index() {
        assert_eq!(
            good(&[
                ("ingress.annotations.nginx\\.io/x", "y"),
                ("list[0].name", "a"),
                ("list[1].name", "b"),
                ("matrix[0][0]", "1"),
                ("replicaCount", "3"),
                ("ui.color", "#34577c"),
                ("ui.message", "a,b={c}"),
                ("we\\[ird\\\\", "z"),
            ]),
            json!({
                "ingress": {"annotations": {"nginx.io/x": "y"}},
                "list": [{"name": "a"}, {"name": "b"}],
                "matrix": [[1]],
                "replicaCount": 3,
                "ui": {"color": "#34577c", "message": "a,b={c}"},
                "we[ird\\": "z",
            })
        );
    }

    #[test]
    fn the_text_alone_decides_the_type() {
        let cases = [
            ("0", json!(0)),
            ("-7", json!(-7)),
            ("9007199254740992", json!(9_007_199_254_740_992_i64)),
            ("-9007199254740992", json!(-9_007_199_254_740_992_i64)),
            ("9007199254740993", json!("9007199254740993")),
            ("99999999999999999999", json!("99999999999999999999")),
            ("007", json!("007")),
            ("-0", json!("-0")),
            ("+1", json!("+1")),
            ("1e3", json!("1e3")),
            ("0.5", json!("0.5")),
            ("-", json!("-")),
            ("", json!("")),
            ("true", json!(true)),
            ("True", json!("True")),
            ("false", json!(false)),
            ("null", json!(null)),
            ("\"3\"", json!("3")),
            ("\"\"", json!("")),
            ("\"", json!("\"")),
            ("\"a\"b\"", json!("a\"b")),
            ("\"\\n\"", json!("\\n")),
        ];
        for (text, value) in cases {
            assert_eq!(typed(text), value, "{text}");
        }
    }

    #[test]
    fn contradictions_gaps_and_bad_paths_are_told() {
        assert!(problem(&[("a", "1"), ("a.b", "2")]).starts_with("a.b: contradicts"));
        assert!(problem(&[("a.b", "1"), ("a[0]", "2")]).starts_with("a[0]: contradicts"));
        assert!(problem(&[("a.b.c", "1"), ("a.b", "2")]).starts_with("a.b: contradicts"));
        assert!(problem(&[("a", "1"), ("\\a", "2")]).starts_with("\\a: contradicts"));
        assert!(problem(&[("l[0]", "1"), ("l[2]", "2")]).contains("entry [1] is missing"));
        assert!(problem(&[("x.l[1]", "1")]).starts_with(": the list `x.l` has a gap: entry [0]"));
        assert!(problem(&[("l[1000]", "1")]).contains("below 1000"));
        assert!(problem(&[("l[+1]", "1")]).contains("not `+1`"));
        assert!(problem(&[("l[]", "1")]).contains("not ``"));
        assert!(problem(&[("l[0", "1")]).contains("never closed"));
        assert!(problem(&[("l[0]x", "1")]).contains("after a `]`"));
        for key in ["", ".a", "a.", "a..b", "[0]"] {
            assert!(problem(&[(key, "1")]).contains("has no name"), "{key}");
        }
        assert!(problem(&[("a\\", "1")]).contains("escapes nothing"));
        assert!(problem(&[(&"a.".repeat(30000), "1")]).contains("more than 20 steps"));
        let steps = |count: usize| vec!["a"; count].join(".");
        assert!(problem(&[(&steps(21), "1")]).contains("more than 20 steps"));
        assert!(good(&[(&steps(20), "1")]).is_object());
    }

    #[test]
    fn a_tree_that_is_written_as_it_goes_is_the_tree() {
        let pool = [
            "a", "a.b", "a.b.c", "a.b.d", "a.c", "a-b", "a-b.c", "a[0]", "a\\.b", "b", "b.a", "b.a.a.a",
            "c..d", "ü", "_",
        ];
        for chosen in 0_u32..1 << pool.len() {
            let mut keys: Vec<&str> =
                pool.iter().enumerate().filter(|(n, _)| chosen >> n & 1 == 1).map(|(_, key)| *key).collect();
            keys.sort_unstable();
            let patches = || {
                keys.iter().zip(["1", "x", "\"2\"", "null"].iter().cycle()).map(|(key, value)| (*key, *value))
            };
            let mut written = String::new();
            push_tree(&mut written, patches);
            assert_eq!(written, canonical::encode(&tree(patches()).0), "{keys:?}");
        }
    }

    #[test]
    fn the_tree_is_total_and_the_first_key_wins() {
        let (tree, bad) = tree([("a", "1"), ("a.b", "2"), ("l[0]", "x"), ("l[5]", "y")]);
        assert_eq!(tree, json!({"a": 1, "l": ["x", "y"]}));
        assert_eq!(bad.len(), 2);
    }
}
