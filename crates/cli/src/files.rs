//! Documents in files: YAML or JSON, one or many in each, each with its `kind` beside its fields. What `export` writes, `apply` reads.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use api::Strict;
use serde_json::{Map, Value};
use walkdir::WalkDir;

use crate::failure::Failure;
use crate::kinds::{Kind, Kinds, Shape};
use crate::output;

/// A document from a file.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The name of its kind.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// The document itself, as the service has it.
    pub document: Value,
    /// Where it was found.
    pub source: String,
}

/// All documents of files, folders and stdin (`-`), each once.
pub(crate) fn read(paths: &[PathBuf], kinds: &Kinds) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        for file in files(path)? {
            let (source, text) = text(&file)?;
            found.extend(documents(&source, &text, kinds)?);
        }
    }
    let mut seen: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for one in &found {
        if let Some(first) = seen.insert((&one.kind, &one.id), &one.source) {
            return Err(Failure::failed(format!(
                "{}/{} is there twice: in {first} and in {}",
                one.kind, one.id, one.source
            )));
        }
    }
    if found.is_empty() {
        return Err(Failure::with_next(
            "there is no document in the given files",
            "each document is YAML or JSON with a `kind`, an `id` and its fields; `frs export` shows how they look",
        ));
    }
    Ok(found)
}

/// Why a folder cannot be gone through.
fn unreadable(asked: &Path, error: &walkdir::Error) -> Failure {
    let path = error.path().unwrap_or(asked).display().to_string();
    Failure::failed(match (error.loop_ancestor(), error.io_error()) {
        (Some(above), _) => format!("{path} leads back to {}", above.display()),
        (None, Some(error)) => format!("{path} cannot be read: {error}"),
        (None, None) => error.to_string(),
    })
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// Whether it does not matter that something in a folder cannot be gone to: what is hidden, or a link to nowhere that is called like no file
/// of ours.
fn is_of_no_concern(error: &walkdir::Error, known: impl Fn(&Path) -> bool) -> bool {
    let leads_nowhere = error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    error.path().is_some_and(|path| is_hidden(path) || leads_nowhere && !known(path))
}

/// A file itself or stdin, or the YAML and JSON files in a folder and below, sorted. What begins with a dot is not looked at; a link that
/// leads back to a folder above it is an error.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if path.as_os_str() == "-" || path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let known = |path: &Path| {
        path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
    };
    let mut all = Vec::new();
    for entry in WalkDir::new(path)
        .follow_links(true)
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !is_hidden(entry.path()))
    {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() > 0 && is_of_no_concern(&error, known) => continue,
            Err(error) => return Err(unreadable(path, &error)),
        };
        // What is named on the command line is read, even if it is no plain file.
        if entry.depth() == 0 && !entry.file_type().is_dir()
            || entry.file_type().is_file() && known(entry.path())
        {
            all.push(entry.into_path());
        }
    }
    all.sort();
    Ok(all)
}

/// What is wrong with a file, without the library's advice to programmers.
pub(crate) fn mistake(error: &dyn Display) -> String {
    error.to_string().replace(", set DuplicateKeyPolicy in Options if acceptable", "")
}

/// The values in a text as they stand: JSON if it begins like JSON, else YAML.
fn parsed(source: &str, text: &str) -> Result<Vec<Value>, Failure> {
    let wrong = |error: &dyn Display| Failure::failed(format!("{source}: {}", mistake(error)));
    if text.trim_start().starts_with(['{', '[']) {
        // JSON by its own rules first: YAML has others for duplicate keys and control characters.
        let read = serde_json::Deserializer::from_str(text)
            .into_iter::<Strict>()
            .map(|one| one.map(|Strict(value)| value))
            .collect::<Result<_, _>>();
        return match read {
            Ok(all) => Ok(all),
            // `{a: b}` is YAML; `{"a"` is meant as JSON, and wrong as such.
            Err(json) if text.trim_start().trim_start_matches(['[', '{', ' ', '\n']).starts_with('"') => {
                Err(wrong(&json))
            }
            Err(json) => many(text).map_err(|_| wrong(&json)),
        };
    }
    many(text).map_err(|error| wrong(&error))
}

/// The documents of a YAML stream. A whole fleet may be in one; what only an attack needs stays forbidden.
fn many(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    // No text has more of these than bytes, unless aliases multiply them.
    let most = text.len() + 1_000;
    let budget = serde_saphyr::budget! {
        max_documents: most, max_nodes: most, max_events: 4 * most, max_total_scalar_bytes: 2 * most,
    };
    serde_saphyr::from_multiple_with_options(
        text,
        serde_saphyr::options! { budget: budget, with_snippet: false },
    )
}

/// The one value in a text.
pub(crate) fn value(source: &str, text: &str) -> Result<Value, Failure> {
    let mut all = parsed(source, text)?;
    match (all.len(), all.pop()) {
        (1, Some(value)) => Ok(value),
        _ => Err(Failure::failed(format!("{source}: exactly one value is expected"))),
    }
}

/// The values in a text; a list is as good as its items.
fn values(source: &str, text: &str) -> Result<Vec<Value>, Failure> {
    let all = parsed(source, text)?.into_iter().flat_map(|value| match value {
        Value::Array(items) => items,
        other => vec![other],
    });
    Ok(all.filter(|value| !value.is_null()).collect())
}

fn documents(source: &str, text: &str, kinds: &Kinds) -> Result<Vec<Found>, Failure> {
    let values = values(source, text)?;
    let several = values.len() > 1;
    let mut found = Vec::new();
    for (number, value) in values.into_iter().enumerate() {
        let source = if several { format!("{source}#{}", number + 1) } else { source.to_owned() };
        let wrong = |what: &str| Failure::failed(format!("{source}: {what}"));
        let Value::Object(mut fields) = value else {
            return Err(wrong("a document must be an object with a `kind`, an `id` and its fields"));
        };
        let kind = taken_kind(&mut fields, kinds, &source)?
            .ok_or_else(|| wrong("a document must say what it is: `kind: cluster`, for example"))?;
        let id = fields.get("id").and_then(Value::as_str).map(ToOwned::to_owned);
        let id = id.filter(|id| !matches!(id.as_str(), "" | "." | ".."));
        let id = id.ok_or_else(|| {
            wrong("a document must have an `id`, a text that begins with a letter or a digit")
        })?;
        found.push(Found { kind: kind.name.clone(), id, document: fields.into(), source });
    }
    Ok(found)
}

/// Takes what says the kind out of a document.
fn taken_kind<'a>(
    fields: &mut Map<String, Value>,
    kinds: &'a Kinds,
    source: &str,
) -> Result<Option<&'a Kind>, Failure> {
    let Some(said) = fields.remove("$kind").or_else(|| fields.remove("kind")) else { return Ok(None) };
    let said = said.as_str().ok_or_else(|| Failure::failed(format!("{source}: `kind` must be a text")))?;
    match kinds.find(said) {
        Ok(kind) => Ok(Some(kind)),
        Err(Failure::Usage(what)) => Err(Failure::failed(format!("{source}: {what}"))),
        Err(other) => Err(other),
    }
}

/// The text of a file, or of stdin for `-`, and what to call it.
pub(crate) fn text(path: &Path) -> Result<(String, String), Failure> {
    let (source, text) = if path.as_os_str() == "-" {
        ("stdin".to_owned(), std::io::read_to_string(std::io::stdin()))
    } else {
        (path.display().to_string(), fs::read_to_string(path))
    };
    let text = text.map_err(|error| Failure::failed(format!("{source} cannot be read: {error}")))?;
    Ok((source, text))
}

/// One document of a known kind from a file.
pub(crate) fn read_one(path: &Path, kind: &Kind, kinds: &Kinds) -> Result<Value, Failure> {
    let (source, text) = text(path)?;
    one_of(&source, &text, kind, kinds)
}

/// The one document in a text, of a known kind; it may say its kind, if it is that.
pub(crate) fn one_of(source: &str, text: &str, kind: &Kind, kinds: &Kinds) -> Result<Value, Failure> {
    let Value::Object(mut fields) = value(source, text)? else {
        return Err(Failure::failed(format!("{source}: a document is expected: an object with fields")));
    };
    if kind.property("kind").is_none() || fields.contains_key("$kind") {
        let said = taken_kind(&mut fields, kinds, source)?;
        if let Some(other) = said.filter(|said| said.name != kind.name) {
            return Err(Failure::failed(format!(
                "{source}: this is a {}, not a {}",
                other.singular, kind.singular
            )));
        }
    }
    Ok(fields.into())
}

/// A document with its kind, as it is in a file.
pub(crate) fn with_kind(kind: &Kind, document: &Value) -> Value {
    let mut fields = document.as_object().cloned().unwrap_or_default();
    fields.insert(kind.kind_key().to_owned(), kind.singular.as_str().into());
    fields.into()
}

/// A document as YAML: its kind and its id first, the rest in order.
pub(crate) fn yaml(kind: &Kind, document: &Value) -> Result<String, Failure> {
    let first = [kind.kind_key(), "id"];
    let whole = with_kind(kind, document);
    let mut text = String::new();
    for name in first {
        if let Some(value) = whole.get(name) {
            text.push_str(&output::yaml(&Map::from_iter([(name.to_owned(), value.clone())]))?);
        }
    }
    let rest: Map<String, Value> = whole
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !first.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !rest.is_empty() {
        text.push_str(&output::yaml(&rest)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{documents, values, yaml};
    use crate::failure::Failure;
    use crate::kinds::tests::kinds;

    fn read(text: &str) -> Result<Vec<(String, String, Value)>, String> {
        match documents("f.yaml", text, &kinds()) {
            Ok(found) => Ok(found.into_iter().map(|one| (one.kind, one.source, one.document)).collect()),
            Err(Failure::Failed { what, .. }) => Err(what),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn yaml_and_json_with_one_or_many_documents_are_read() {
        let two = "kind: namespace\nid: a\nlabels: {team: '007'}\n---\nkind: clusters\nid: b\n---\n";
        let expected = [
            ("namespaces".to_owned(), "f.yaml#1".to_owned(), json!({"id": "a", "labels": {"team": "007"}})),
            ("clusters".to_owned(), "f.yaml#2".to_owned(), json!({"id": "b"})),
        ];
        assert_eq!(read(two).expect("two"), expected);
        let list =
            r#"[{"kind": "ns", "id": "a", "labels": {"team": "007"}}, {"kind": "cluster", "id": "b"}]"#;
        assert_eq!(read(list).expect("two"), expected);
        let lines = "{\"kind\": \"ns\", \"id\": \"a\", \"labels\": {\"team\": \"007\"}}\n{\"kind\": \"cluster\", \"id\": \"b\"}\n";
        assert_eq!(read(lines).expect("two"), expected);
    }

    #[test]
    fn a_whole_fleet_may_be_in_one_file_but_not_a_bomb() {
        let one = |number: u32| format!("kind: ns\nid: n{number}\nlabels: {{a: b}}\n");
        let fleet = (0..5_000).map(one).collect::<Vec<_>>().join("---\n");
        assert_eq!(read(&fleet).expect("a fleet").len(), 5_000);
        let level = |level: u32| {
            format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "))
        };
        let bomb = format!("a0: &a0 [x]\n{}", (1..10).map(level).collect::<Vec<_>>().concat());
        assert!(read(&bomb).is_err());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        assert_eq!(
            read("id: a\n"),
            Err("f.yaml: a document must say what it is: `kind: cluster`, for example".to_owned())
        );
        assert_eq!(
            read("kind: namespace\n"),
            Err("f.yaml: a document must have an `id`, a text that begins with a letter or a digit"
                .to_owned())
        );
        assert_eq!(
            read("kind: ns\nid: a\n---\n7\n"),
            Err("f.yaml#2: a document must be an object with a `kind`, an `id` and its fields".to_owned())
        );
        assert!(
            read("kind: pod\nid: a\n")
                .expect_err("unknown")
                .starts_with("f.yaml: there is no kind `pod`; this service has clusters")
        );
        assert!(read("kind: ns\nid: [\n").expect_err("broken").starts_with("f.yaml: "));
        let twice = read(r#"{"kind": "ns", "id": "q", "id": "r"}"#).expect_err("twice");
        assert_eq!(twice, "f.yaml: the key `id` is given twice at line 1 column 30");
    }

    #[test]
    fn a_kind_with_a_field_called_kind_says_its_kind_otherwise() {
        let found = read("$kind: network_policy\nid: a\nkind: Ingress\n").expect("one");
        assert_eq!(found[0].2, json!({"id": "a", "kind": "Ingress"}));
        let kinds = kinds();
        let policy = kinds.find("network_policy").expect("a kind");
        assert_eq!(yaml(policy, &found[0].2).expect("yaml"), "$kind: network_policy\nid: a\nkind: Ingress\n");
    }

    #[test]
    fn what_is_written_is_read_back_as_it_was() {
        let kinds = kinds();
        let kind = kinds.find("ns").expect("a kind");
        for nasty in [
            "yes",
            "no",
            "~",
            "null",
            "0x1f",
            "1e3",
            "007",
            "1_000",
            "12:30:00",
            "",
            " ",
            "a: b",
            "# c",
            "- d",
            "é\u{2028}",
            "two\nlines\n",
            "\ttab",
            "'\"",
            "{{ x }}",
            "*a",
            "&a",
            "!b",
            "|",
            ">",
            "%",
            "@",
            "`",
            "=",
            "<<",
            "true",
            "2026-11-16",
            ".inf",
            "...",
        ] {
            let document = json!({"id": "a", "labels": {"v": nasty, nasty: "k"}});
            let text = yaml(kind, &document).expect("yaml");
            let back =
                documents("x", &text, &kinds).unwrap_or_else(|error| panic!("{nasty:?}: {error:?}\n{text}"));
            assert_eq!(back[0].document, document, "{text}");
        }
        assert_eq!(
            values("x", "a: 9007199254740991\n").expect("values"),
            [json!({"a": 9_007_199_254_740_991_i64})]
        );
    }
}
