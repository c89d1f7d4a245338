//! Numbers, names and differences as sentences have them.

use std::fmt::Write;

use serde_json::Value;

use crate::output::{FAINT, GREEN, RED, styled};

/// So many names are told of each list.
const NAMES: usize = 8;
/// The longest value that is shown whole.
const VALUE: usize = 100;

/// `1 cluster`, `2 clusters`.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// `/a/b  old → new`.
pub(crate) fn difference(place: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    let side = |value: Option<&Value>, style| match value {
        None => styled(FAINT, "(none)"),
        Some(value) => styled(style, short(value)),
    };
    format!("{place}  {} → {}", side(old, RED), side(new, GREEN))
}

/// A value as JSON, or a text as it stands, cut where it becomes long.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) if !text.is_empty() && !text.contains(['\n', '"']) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= VALUE {
        return text;
    }
    let cut: String = text.chars().take(VALUE).collect();
    format!("{cut}… ({} characters)", text.chars().count())
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

    #[test]
    fn long_lists_end_with_how_many_more() {
        let many: Vec<String> = (0..20).map(|number| format!("c{number}")).collect();
        assert_eq!(names(&many, 9_812), "c0, c1, c2, c3, c4, c5, c6, c7 and 9804 more");
    }
}
