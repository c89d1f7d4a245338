//! JSON Schema, and its complaints as sentences. The only module that knows the `jsonschema` crate.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::finding::Finding;
use crate::grammar::FORMATS;
use crate::pointer::Pointer;

/// How many errors of one document are put into words.
const MOST_ERRORS: usize = 200;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    source: Value,
}

impl Schema {
    /// Compiles a schema. References are only followed within it, and patterns do not backtrack.
    pub(crate) fn compile(source: Value) -> Result<Self, String> {
        let mut options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .with_pattern_options(PatternOptions::regex());
        for format in FORMATS {
            options = options.with_format(format.name, format.test);
        }
        let validator = options.build(&source).map_err(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            at => format!("{error} (at {at})"),
        })?;
        Ok(Self { validator, source })
    }

    /// Everything that is wrong with a document.
    pub(crate) fn check(&self, document: &Value, findings: &mut Vec<Finding>) {
        if self.validator.is_valid(document) {
            return;
        }
        for error in self.validator.iter_errors(document).take(MOST_ERRORS) {
            self.explain(&error, findings);
        }
    }

    fn explain(&self, error: &ValidationError<'_>, findings: &mut Vec<Finding>) {
        let at = Pointer::parsed(error.instance_path().as_str());
        let seen = error.instance();
        let mut say = |pointer: Pointer, message: String| findings.push(Finding::new(pointer, message));
        if let Some(message) = self.message_beside(error.schema_path().as_str()) {
            return say(at, format!("{message} (this is {})", shown(seen)));
        }
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known = self.known_properties(error.schema_path().as_str());
                for name in unexpected {
                    say(at.join(name), format!("unknown field `{name}`; {known}"));
                }
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                say(at.join(name), format!("`{name}` is required and missing"));
            }
            ValidationErrorKind::Type { kind } => {
                say(at, format!("must be {}, not {}", wanted(kind), shown(seen)))
            }
            ValidationErrorKind::Enum { options } => {
                let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                let options: Vec<String> = options.iter().map(shown).collect();
                say(at, format!("must be one of {}, not {}", options.join(", "), shown(seen)));
            }
            ValidationErrorKind::Constant { expected_value } => {
                say(at, format!("must be {}, not {}", shown(expected_value), shown(seen)));
            }
            ValidationErrorKind::Format { format } => {
                say(at, format!("{} is not {}", shown(seen), wants(format)))
            }
            ValidationErrorKind::Pattern { pattern } => {
                say(at, format!("{} does not match the pattern `{pattern}`", shown(seen)));
            }
            ValidationErrorKind::MaxLength { limit } => {
                let length = seen.as_str().map_or(0, |text| text.chars().count());
                say(at, format!("has {length} characters; {limit} are the most"));
            }
            ValidationErrorKind::MinLength { limit } => {
                say(at, format!("must have at least {}", count(*limit, "character")))
            }
            ValidationErrorKind::MinItems { limit } => {
                say(at, format!("must have at least {}", count(*limit, "item")))
            }
            ValidationErrorKind::MaxItems { limit } => {
                say(at, format!("must have at most {}", count(*limit, "item")))
            }
            ValidationErrorKind::Minimum { limit } => {
                say(at, format!("must be at least {limit}, not {}", shown(seen)))
            }
            ValidationErrorKind::Maximum { limit } => {
                say(at, format!("must be at most {limit}, not {}", shown(seen)))
            }
            ValidationErrorKind::UniqueItems => say(at, "has the same item twice".to_owned()),
            ValidationErrorKind::FalseSchema => say(at, "must be absent".to_owned()),
            ValidationErrorKind::PropertyNames { error } => {
                let name = error.instance().as_str().unwrap_or_default();
                let message = match error.kind() {
                    ValidationErrorKind::Format { format } => {
                        format!("the name `{name}` is not {}", wants(format))
                    }
                    _ => format!("the name `{name}` is not allowed here: {error}"),
                };
                say(at.join(name), message);
            }
            _ => say(at, error.to_string()),
        }
    }

    /// A kind's author may put a sentence of their own, `x-message`, beside the keywords it speaks for.
    fn message_beside(&self, schema_path: &str) -> Option<&str> {
        let mut at = schema_path;
        let mut nearest = None;
        while let Some((parent, _)) = at.rsplit_once('/') {
            at = parent;
            nearest = nearest.or_else(|| self.source.pointer(at)?.get("x-message")?.as_str());
        }
        nearest
    }

    fn known_properties(&self, schema_path: &str) -> String {
        let parent = schema_path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let known = self.source.pointer(parent).and_then(|schema| schema.get("properties")?.as_object());
        match known {
            Some(known) => format!("known are {}", known.keys().cloned().collect::<Vec<_>>().join(", ")),
            None => "none is expected here".to_owned(),
        }
    }
}

fn wants(format: &str) -> &str {
    FORMATS.iter().find(|known| known.name == format).map_or(format, |known| known.wants)
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => article(&one.to_string()),
        TypeKind::Multiple(many) => {
            many.iter().map(|one| article(&one.to_string())).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn count(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

fn article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// A value as an error message shows it: short, and quoted so that nothing in it can be mistaken for the message.
pub(crate) fn shown(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaints(schema: Value, document: &Value) -> Vec<String> {
        let mut findings = Vec::new();
        Schema::compile(schema).expect("a good schema").check(document, &mut findings);
        findings.into_iter().map(|f| format!("{}: {}", f.pointer, f.message)).collect()
    }

    #[test]
    fn every_complaint_says_where_what_and_what_would_be_right() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "format": "dns-label"},
                "n": {"type": "integer", "minimum": 0},
                "tier": {"enum": ["dev", "prod"]},
                "tags": {"type": "array", "uniqueItems": true, "minItems": 1, "items": {"type": "string", "maxLength": 3}},
                "labels": {"type": "object", "propertyNames": {"format": "label-key"}},
            },
            "required": ["id", "who"],
            "additionalProperties": false,
        });
        let document = json!({"id": "A", "n": -1, "tier": "stage", "tags": ["abcd", 7, 7], "labels": {"a b": 1}, "extra": 1});
        let mut found = complaints(schema, &document);
        found.sort();
        assert_eq!(
            found,
            [
                "/extra: unknown field `extra`; known are id, labels, n, tags, tier",
                "/id: \"A\" is not at most 63 of a-z, 0-9 and `-`, beginning and ending with a letter or digit",
                "/labels/a b: the name `a b` is not a Kubernetes label key: `name` or `example.com/name`, the name at most 63 of A-Z, a-z, 0-9, `-`, `_`, `.`",
                "/n: must be at least 0, not -1",
                "/tags/0: has 4 characters; 3 are the most",
                "/tags/1: must be a string, not 7",
                "/tags/2: must be a string, not 7",
                "/tags: has the same item twice",
                "/tier: must be one of \"dev\", \"prod\", not \"stage\"",
                "/who: `who` is required and missing",
            ]
        );
    }

    #[test]
    fn the_sentence_of_a_kinds_author_is_used() {
        let schema = json!({"then": {"properties": {"a": {"const": 1}}, "x-message": "`a` is 1 when `b` is set"}, "if": {"required": ["b"]}});
        assert_eq!(
            complaints(schema, &json!({"a": 2, "b": 1})),
            ["/a: `a` is 1 when `b` is set (this is 2)"]
        );
    }

    #[test]
    fn a_wrong_schema_or_an_unknown_format_does_not_compile() {
        assert!(Schema::compile(json!({"type": "strnig"})).is_err());
        assert!(Schema::compile(json!({"type": "string", "format": "no-such-format"})).is_err());
        assert!(Schema::compile(json!({"$ref": "https://example.com/schema"})).is_err());
    }

    #[test]
    fn a_long_value_is_cut_at_a_character() {
        let long = shown(&json!("ü".repeat(100)));
        assert_eq!(long.chars().count(), 61);
        assert!(long.ends_with('…'));
    }
}
