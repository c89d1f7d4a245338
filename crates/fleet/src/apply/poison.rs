//! What would not survive the way to a cluster.

use serde_json::{Map, Value};

use crate::canonical::MAX_DEPTH;
use crate::finding::Finding;
use crate::pointer::Pointer;

/// The largest integer that every JSON reader on the way to a cluster keeps exactly (Go reads numbers as float64).
const MAX_EXACT: u64 = 1 << 53;

/// Finds what would not survive the way to a cluster: control characters, noncharacters, numbers that are rounded,
/// nesting without end.
pub(super) fn find_poison(document: &Map<String, Value>, findings: &mut Vec<Finding>) {
    members(document, &Place { inside: None, step: Step::Document, depth: 0 }, findings);
}

/// Where the walk is. Pointers are only put together where something is found, for almost nothing ever is.
struct Place<'a> {
    inside: Option<&'a Place<'a>>,
    step: Step<'a>,
    depth: usize,
}

enum Step<'a> {
    Document,
    Member(&'a str),
    Item(usize),
}

impl<'a> Place<'a> {
    fn at(&'a self, step: Step<'a>) -> Place<'a> {
        Place { inside: Some(self), step, depth: self.depth + 1 }
    }

    fn pointer(&self) -> Pointer {
        let outer = self.inside.map_or_else(Pointer::root, Place::pointer);
        match self.step {
            Step::Document => outer,
            Step::Member(name) => outer.join(name),
            Step::Item(index) => outer.item(index),
        }
    }
}

fn members(map: &Map<String, Value>, place: &Place<'_>, findings: &mut Vec<Finding>) {
    for (name, member) in map {
        let place = place.at(Step::Member(name));
        if let Some(character) = first_poison(name) {
            let message = format!("the name {name:?} has {}", poison(character));
            findings.push(Finding::new(place.pointer(), message));
        }
        walk(member, &place, findings);
    }
}

fn walk(value: &Value, place: &Place<'_>, findings: &mut Vec<Finding>) {
    let problem = match value {
        Value::Object(_) | Value::Array(_) if place.depth > MAX_DEPTH => {
            Some(format!("nested too deeply: {MAX_DEPTH} levels are the most"))
        }
        Value::Object(map) => {
            members(map, place, findings);
            None
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &place.at(Step::Item(index)), findings);
            }
            None
        }
        Value::String(text) => {
            first_poison(text).map(|character| format!("the text has {}", poison(character)))
        }
        Value::Number(number) if !is_exact(number) => Some(format!(
            "{number} is beyond ±2^53 and would be rounded on its way to a cluster; send it as a string"
        )),
        Value::Number(_) | Value::Null | Value::Bool(_) => None,
    };
    findings.extend(problem.map(|problem| Finding::new(place.pointer(), problem)));
}

fn is_exact(number: &serde_json::Number) -> bool {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(n), _, _) => n.unsigned_abs() <= MAX_EXACT,
        (_, Some(n), _) => n <= MAX_EXACT,
        #[expect(clippy::cast_precision_loss, reason = "2^53 is exact as a double")]
        (_, _, Some(n)) => n.abs() <= MAX_EXACT as f64,
        _ => false,
    }
}

fn first_poison(text: &str) -> Option<char> {
    // Printable ASCII, which most text is, has none.
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) { None } else { text.chars().find(|c| is_poison(*c)) }
}

fn is_poison(character: char) -> bool {
    (character.is_control() && !matches!(character, '\t' | '\n' | '\r'))
        || matches!(character, '\u{fffe}' | '\u{ffff}')
}

fn poison(character: char) -> String {
    format!(
        "the character U+{:04X}, which does not survive the way to a cluster; of control characters only tab, newline and carriage return may be used",
        u32::from(character)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn poison_in(value: Value) -> Vec<(String, String)> {
        let Value::Object(map) = value else { unreachable!("an object is given") };
        let mut findings = Vec::new();
        find_poison(&map, &mut findings);
        findings.into_iter().map(|f| (f.pointer.to_string(), f.message)).collect()
    }

    #[test]
    fn ordinary_text_and_numbers_pass() {
        let clean = json!({"a": "tab\tnew\nline\r", "b": 9_007_199_254_740_992_u64, "c": -9_007_199_254_740_992_i64, "d": 0.5, "e": "ü🚀\u{2028}"});
        assert_eq!(poison_in(clean), []);
    }

    #[test]
    fn each_poison_is_found_where_it_is() {
        let found = poison_in(json!({
            "a": "x\u{0}", "b": ["\u{7f}", "\u{85}"], "c\u{1}": "", "d": {"e": "\u{fffe}", "f/g": "\u{ffff}"},
            "n": 9_007_199_254_740_993_u64, "o": -9_007_199_254_740_993_i64, "p": 1e300,
        }));
        let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/a", "/b/0", "/b/1", "/c\u{1}", "/d/e", "/d/f~1g", "/n", "/o", "/p"]);
        assert!(found[0].1.contains("U+0000"), "{}", found[0].1);
        assert!(found[6].1.contains("9007199254740993 is beyond ±2^53"), "{}", found[6].1);
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        assert_eq!(poison_in(nested(MAX_DEPTH + 1)).len(), 0);
        assert_eq!(poison_in(nested(MAX_DEPTH + 2)).len(), 1);
    }
}
