//! Numbers, names and differences as sentences have them.

use std::fmt::Write;

use serde_json::Value;

use crate::output::{FAINT, GREEN, RED, styled, visible};

/// At most this many names are told of each list.
const NAMES: usize = 8;
/// The longest value that is shown whole.
const VALUE: usize = 100;
/// How much of what two long values have in common is shown before they become different.
const BEFORE: usize = 20;

/// A text, or a dash where there is none.
pub(crate) fn or_dash(text: Option<&String>) -> String {
    text.cloned().unwrap_or_else(|| "-".to_owned())
}

/// `1 cluster`, `2 clusters`.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// `/a/b  old → new`. Of long values, what is shown begins shortly before they become different.
pub(crate) fn difference(place: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    let (old, new) = (old.map(in_words), new.map(in_words));
    let same = match (&old, &new) {
        (Some(old), Some(new)) => old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count(),
        _ => 0,
    };
    let side = |text: Option<&String>, style| match text {
        None => styled(FAINT, "(none)"),
        Some(text) => styled(style, short(text, same.saturating_sub(BEFORE))),
    };
    format!("{}  {} → {}", visible(place), side(old.as_ref(), RED), side(new.as_ref(), GREEN))
}

/// Whether a difference is told in part only.
pub(crate) fn is_cut(old: Option<&Value>, new: Option<&Value>) -> bool {
    [old, new].into_iter().flatten().any(|value| in_words(value).chars().count() > VALUE)
}

/// A value as JSON, or a text as it stands.
fn in_words(value: &Value) -> String {
    let is_plain = |text: &str| !text.is_empty() && !text.contains(|c: char| c == '"' || c.is_control());
    match value {
        Value::String(text) if is_plain(text) => visible(text),
        other => visible(&other.to_string()),
    }
}

/// A text whole, or if it is too long a part of it from that character on.
fn short(text: &str, from: usize) -> String {
    let length = text.chars().count();
    if length <= VALUE {
        return text.to_owned();
    }
    let part: String = text.chars().skip(from).take(VALUE).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if from + VALUE < length { "…" } else { "" };
    format!("{before}{part}{after} ({length} characters)")
}

/// A line of a document, and whether it is told in part only.
pub(crate) fn line(text: &str) -> (String, bool) {
    let text = visible(text);
    (short(&text, 0), text.chars().count() > VALUE)
}

/// The first names of a list, and how many more there are.
pub(crate) fn names(names: &[String], total: usize) -> String {
    let told = &names[..names.len().min(NAMES)];
    let more = total.saturating_sub(told.len());
    let mut text = told.join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{count, difference, names};

    #[test]
    fn one_is_not_many() {
        assert_eq!(
            [count(0, "cluster"), count(1, "cluster"), count(2, "cluster")],
            ["0 clusters", "1 cluster", "2 clusters"]
        );
    }

    #[test]
    fn a_long_value_is_cut_and_its_length_told() {
        let long = json!("x".repeat(150));
        let line = difference("/a", None, Some(&long));
        let plain = anstream::adapter::strip_str(&line).to_string();
        assert_eq!(plain, format!("/a  (none) → {}… (150 characters)", "x".repeat(100)));
    }

    /// Both sides were cut before the first character that was different, and looked the same.
    #[test]
    fn of_two_long_values_that_part_is_shown_in_which_they_differ() {
        let value = |end: &str| json!("x".repeat(150) + end);
        let line = difference("/a", Some(&value("1")), Some(&value("2")));
        let x = "x".repeat(20);
        assert_eq!(
            anstream::adapter::strip_str(&line).to_string(),
            format!("/a  …{x}1 (151 characters) → …{x}2 (151 characters)")
        );
    }

    #[test]
    fn long_lists_end_with_how_many_more() {
        let many: Vec<String> = (0..20).map(|number| format!("c{number}")).collect();
        assert_eq!(names(&many, 9_812), "c0, c1, c2, c3, c4, c5, c6, c7 and 9804 more");
    }
}
