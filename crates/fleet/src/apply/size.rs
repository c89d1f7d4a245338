//! What is too large: a document that is not even looked at, and a transaction that cannot be one commit, or is too much work.

use serde_json::{Map, Value};

use super::{MAX_CHANGED_BYTES, MAX_CHANGES};
use crate::canonical::MAX_DEPTH;
use crate::commit::{self, Change};
use crate::finding::Finding;
use crate::fragment::escapes;
use crate::pointer::Pointer;
use crate::rejection::Reason;

/// What to do with what is too much for one transaction.
pub(super) const ADVICE: &str = "split it into several changes, for example by a narrower selector";

/// The longest name of a member as JSON, quotes and escapes included: what is longer the operator's YAML does not take for a key, and every
/// input of the answer is lost with it.
const MAX_NAME: usize = 1024;

/// How many bytes of text an object has at least, or why it is not even looked at: too large by far, nested without end, or with
/// members of endless names.
pub(super) fn fit(map: &Map<String, Value>, most: usize) -> Result<usize, (Reason, Finding)> {
    let mut weight = 0;
    let problem = map.iter().find_map(|(name, member)| weigh_member(name, member, 1, &mut weight));
    if weight > most {
        let message = format!("the document has more than {weight} bytes; {most} are the most");
        return Err((Reason::TooLarge, Finding::new(Pointer::root(), message)));
    }
    match problem {
        Some(problem) => Err((Reason::Invalid, Finding::new(Pointer::root(), problem))),
        None => Ok(weight),
    }
}

/// Adds up text, which is less than what the document will be, and stops at what cannot be.
fn weigh(value: &Value, depth: usize, weight: &mut usize) -> Option<String> {
    if depth > MAX_DEPTH + 1 {
        return Some(format!("nested too deeply: {MAX_DEPTH} levels are the most"));
    }
    match value {
        Value::Object(map) => {
            map.iter().find_map(|(name, member)| weigh_member(name, member, depth + 1, weight))
        }
        Value::Array(items) => {
            *weight += items.len();
            items.iter().find_map(|item| weigh(item, depth + 1, weight))
        }
        Value::String(text) => {
            *weight += text.len();
            None
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn weigh_member(name: &str, member: &Value, depth: usize, weight: &mut usize) -> Option<String> {
    // Quotes and a colon.
    *weight += name.len() + 3;
    let length = written(name);
    if length > MAX_NAME {
        let start: String = name.chars().take(40).collect();
        return Some(format!(
            "the name `{start}…` has {length} bytes as JSON, with quotes and escapes; {MAX_NAME} are the most"
        ));
    }
    weigh(member, depth, weight)
}

/// How long a text is as Go writes it in JSON.
fn written(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t')).count();
    text.len() + escaped + escapes(text) + 2
}

/// Why a transaction is too large to be one commit, if it is. Every process that follows takes a commit in as a whole.
pub(super) fn too_much(changes: &[Change]) -> Option<String> {
    let advice = ADVICE;
    if changes.len() > MAX_CHANGES {
        let count = changes.len();
        return Some(format!("this changes {count} documents; at most {MAX_CHANGES} at once: {advice}"));
    }
    let bytes = commit::body_bytes(changes);
    (bytes > MAX_CHANGED_BYTES).then(|| {
        format!("the changed documents have {bytes} bytes; at most {MAX_CHANGED_BYTES} at once: {advice}")
    })
}

/// How to split a transaction of so many operations, when one of them is more than still fits.
pub(super) fn how_to_split(operation: usize, of: usize) -> String {
    match (operation, of) {
        (_, 0 | 1) => ADVICE.to_owned(),
        (0, _) => format!("its first operation alone is too much; {ADVICE}"),
        (fit, of) => format!("the first {fit} of its {of} operations fit; send the others separately"),
    }
}

/// So much of the catalog changes at once, in so large a fleet.
pub(super) const TOO_MANY_IN_CATALOG: &str = "this is too much work for one transaction: every changed document of the catalog is compared with every cluster; change fewer of them at once";

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::{MAX_NAME, fit};

    /// 171 `<` and 512 `"` were accepted, and stopped every component of the cluster.
    #[test]
    fn a_name_is_as_long_as_it_is_in_json() {
        let name = |name: String| {
            let patches: Map<_, _> = [(name, json!("1"))].into_iter().collect();
            fit(&patches, 1 << 20).err().map(|(_, finding)| finding.message)
        };
        for (character, most) in [
            ("a", MAX_NAME - 2),
            ("<", 170),
            ("&", 170),
            ("\u{2028}", 170),
            ("\"", 511),
            ("\\", 511),
            ("\n", 511),
        ] {
            assert_eq!(name(character.repeat(most)), None, "{character:?}");
            let message = name(character.repeat(most + 1)).unwrap_or_default();
            assert!(
                message.contains("as JSON, with quotes and escapes; 1024 are the most"),
                "{character:?}: {message}"
            );
        }
    }
}
