//! What is the same in every run of what is printed: ports, times, digests and folders are replaced by a word that stands for them.

use std::sync::LazyLock;

use regex::Regex;

/// What differs between runs, and what stands for it.
const REPLACED: [(&str, &str); 11] = [
    (r"127\.0\.0\.1:\d+", "SERVICE"),
    (r"/[^ `]*/\.tmp[A-Za-z0-9]{6}", "HOME"),
    // The draft of `edit`.
    (r"HOME/([a-z]+)-[A-Za-z0-9]{6}\.yaml", "HOME/$1-XXXXXX.yaml"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-11-16T10:00:00.000Z"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "00000000-0000-0000-0000-000000000000"),
    (r"\b[0-9a-f]{64}\b", "0000000000000000000000000000000000000000000000000000000000000000"),
    (r"\b[0-9a-f]{32}\b", "00000000000000000000000000000000"),
    (r"([Pp]lan|not|--expect) [0-9a-f]{12}\b", "$1 000000000000"),
    (r#""plan": "[0-9a-f]{12}""#, r#""plan": "000000000000""#),
    // The age of a change, in `describe`.
    (r"(?m)^(  \d+ +)\d+s( +)", "${1}0s$2"),
    (r"\d+ s behind,?", "0 s behind"),
];

/// A text with everything replaced that differs between runs.
pub(crate) fn stable(text: &str) -> String {
    static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let version = format!(r"\b(v?){}\b", regex::escape(env!("CARGO_PKG_VERSION")));
        let pattern = |(pattern, stands_for)| (Regex::new(pattern).expect("a pattern"), stands_for);
        REPLACED.into_iter().chain([(&*version, "${1}VERSION")]).map(pattern).collect()
    });
    let replaced = |text: String, (pattern, stands_for): &(Regex, &str)| {
        pattern.replace_all(&text, *stands_for).into_owned()
    };
    PATTERNS.iter().fold(text.to_owned(), replaced)
}

/// Compares a text with the file that is named like the test, or like it is said.
macro_rules! snapshot {
    ($text:expr) => {
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!($crate::snapshot::stable($text.as_ref()))
        })
    };
    ($name:expr, $text:expr) => {
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!($name, $crate::snapshot::stable($text.as_ref()))
        })
    };
}
pub(crate) use snapshot;
