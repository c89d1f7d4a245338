//! What is too large: a document that is not even looked at, and a transaction that cannot be one commit.

use serde_json::{Map, Value};

use super::{MAX_CHANGED_BYTES, MAX_CHANGES};
use crate::canonical::MAX_DEPTH;
use crate::commit::{self, Change};
use crate::finding::Finding;
use crate::pointer::Pointer;
use crate::rejection::Reason;

/// What to do with what is too much for one transaction.
pub(super) const ADVICE: &str = "split it into several changes, for example by a narrower selector";

/// The longest name of a member.
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
    if name.len() > MAX_NAME {
        let start: String = name.chars().take(40).collect();
        return Some(format!("the name `{start}…` has {} bytes; {MAX_NAME} are the most", name.len()));
    }
    weigh(member, depth, weight)
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
