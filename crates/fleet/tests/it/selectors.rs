//! Selectors: what they select, and where they are wrong.

use crate::common::*;
use fleet::Selector;
use serde_json::json;

#[test]
fn selectors_select_by_labels_and_fields() {
    let mut fleet = Fleet::empty();
    let make = |id: &str, environment: &str, labels: serde_json::Value| {
        let mut body = cluster(id);
        body["environment"] = json!(environment);
        body["labels"] = labels;
        create("clusters", body)
    };
    fleet.accept(vec![
        make("a", "prod", json!({"region": "eu"})),
        make("b", "prod", json!({"region": "us", "legacy": ""})),
        make("c", "dev", json!({"region": "ap", "example.com/team": "x"})),
        make("d", "dev", json!({})),
    ]);
    let cases = [
        ("environment=prod", "a b"),
        ("environment==prod,region in (eu,us),!legacy", "a"),
        ("environment = prod , region in ( eu , us )", "a b"),
        ("region notin (eu,us)", "c d"),
        ("region!=eu", "b c d"),
        ("region", "a b c"),
        ("!region", "d"),
        ("legacy=", "b"),
        ("legacy", "b"),
        ("id in (a,d)", "a d"),
        ("id", "a b c d"),
        ("cluster_dns=c.k8s.example.com", "c"),
        ("example.com/team=x", "c"),
        ("in=x", ""),
        ("environment=prod,environment=dev", ""),
        (" !region ", "d"),
    ];
    for (text, expected) in cases {
        let selector = Selector::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
        let selected: Vec<_> =
            fleet.state.clusters().filter(|c| selector.selects(&c.doc)).map(|c| c.doc.id.as_str()).collect();
        assert_eq!(selected.join(" "), expected, "{text}");
        assert_eq!(selector.to_string(), text);
    }
}

#[test]
fn an_error_points_at_the_character() {
    let cases = [
        ("", 1, "an empty selector would select every cluster; write `id` if that is meant"),
        ("   ", 4, "an empty selector"),
        (",a", 1, "expected a label or one of id, environment, cluster_dns"),
        ("a,", 3, "expected a label"),
        ("a=b c", 5, "`c` cannot be part of a value"),
        ("a=b,region on (eu)", 12, "not `on`"),
        ("region in eu", 11, "expected `(`"),
        ("region in (eu", 14, "expected `,` or `)`"),
        ("region in (e$)", 13, "`$` cannot be part of a value"),
        ("größe=1", 3, "expected `,` before the next requirement"),
        ("a=ü", 3, "`ü` cannot be part of a value"),
        ("!a=b", 3, "expected `,` before the next requirement"),
        ("a>1", 2, "expected `,` before the next requirement"),
        ("-x-=1", 1, "`-x-` cannot be the key of a label"),
        ("a//b", 1, "`a//b` cannot be the key of a label"),
        ("tier!=pro/d/", 7, "`pro/d/` cannot be a value"),
        ("environment notin (prod,pro/d)", 25, "`pro/d` cannot be a value"),
        ("a=b)", 4, "expected `,` before the next requirement"),
    ];
    for (text, at, message) in cases {
        let bad = Selector::parse(text).expect_err(text);
        assert_eq!(bad.at, at, "{text}: {bad}");
        assert!(bad.message.contains(message), "{text}: {bad}");
    }
}
