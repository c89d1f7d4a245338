//! Reading a kind from its file, and everything that can be wrong with one.

use serde_json::{Map, Value, json};

use super::{GuardClass, Kind, Property, Reserved, Shape, query};
use crate::canonical;
use crate::document::Field;
use crate::finding::Finding;
use crate::ids::KindName;
use crate::schema::Schema;

/// What the typed core reads of its two shapes, with the types it expects.
const CLUSTER_CORE: [(&str, &str); 10] = [
    ("id", "string"),
    ("cluster_name", "string"),
    ("cluster_dns", "string"),
    ("environment", "string"),
    ("platform_components", "array"),
    ("namespaces", "array"),
    ("rolebindings", "array"),
    ("patches", "object"),
    ("labels", "object"),
    ("protected", "boolean"),
];
const COMPONENT_CORE: [(&str, &str); 10] = [
    ("id", "string"),
    ("component_path", "string"),
    ("component_version", "string"),
    ("oci_url", "string"),
    ("oci_tag", "string"),
    ("cluster_env_enabled", "boolean"),
    ("depends_on", "array"),
    ("delivery", "string"),
    ("secretRef", "object"),
    ("verify", "object"),
];

/// Reads a kind as far as it can be read; what breaks a rule is told beside it.
pub(super) fn read(
    name: &str,
    file: Map<String, Value>,
    taken: &Reserved,
    problems: &mut Vec<String>,
) -> Option<Kind> {
    let path = name.replace('_', "-");
    let spelt_right = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && name.len() <= 63
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !spelt_right {
        problems.push(
            "`kind` must be a name of at most 63 of a-z, 0-9 and `_`, beginning with a letter".to_owned(),
        );
    }
    if taken.kinds.contains(&name) {
        problems.push(format!("`{name}` is taken by the service itself"));
    } else if taken.cluster_paths.contains(&path.as_str()) {
        problems.push(format!("`{name}` is taken by the service itself, in the paths that clusters poll"));
    }
    let flux = file.get("metadata").and_then(|metadata| metadata.get("x-flux"));
    problems.extend(flux.into_iter().flat_map(flux_problems));
    let text = |field: &str| flux.and_then(|flux| flux.get(field)?.as_str());
    let kind_name = KindName::from(name);
    let shape = kind_name.shape();
    if text("shape").unwrap_or("definition") != shape.as_str() {
        problems.push(format!("`metadata.x-flux.shape` of `{name}` must be {}", shape.as_str()));
    }
    let guard = if text("guard") == Some("each") { GuardClass::Each } else { GuardClass::Ordinary };
    let reserved =
        flux.and_then(|flux| flux.get("reserved")?.as_array()).map(Vec::as_slice).unwrap_or_default();
    let reserved = reserved.iter().filter_map(|pattern| Some(pattern.as_str()?.to_owned())).collect();
    let reserved_because = text("reserved_because").unwrap_or("the kind's file says so").to_owned();
    let singular = text("singular").map_or_else(|| singular(name), str::to_owned).into();

    let Some((schema, items)) = file
        .get("schema")
        .and_then(|schema| Some((schema, schema.get("items").filter(|items| items.is_object())?)))
    else {
        problems.push("`schema.items` must be the JSON Schema of one document".to_owned());
        return None;
    };
    let empty = Map::new();
    let declared = items.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let properties = read_properties(shape, declared, problems);
    let query_parameters = query::read(schema, declared, taken, problems);
    let required = items.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for name in core_required(shape).iter().filter(|name| !required.contains(&json!(name))) {
        problems
            .push(format!("`schema.items.required` must name `{name}`: the service cannot do without it"));
    }
    if let Some(keyword) = reference_in(items) {
        problems.push(format!("`schema.items` uses `{keyword}`; write out what it refers to: parts of the schema are used in other places, too"));
    }
    let mut closed = items.clone();
    closed["additionalProperties"] = json!(false);
    let schema = match Schema::compile(closed) {
        Ok(schema) => schema,
        Err(problem) => {
            problems.push(format!("`schema.items` is not a usable JSON Schema: {problem}"));
            return None;
        }
    };
    Some(Kind {
        name: kind_name,
        path: path.into(),
        singular,
        shape,
        guard,
        reserved,
        reserved_because,
        properties,
        query_parameters,
        file,
        schema,
    })
}

/// What is wrong with our own part of the file. A misspelt `guard` would silently protect nothing.
fn flux_problems(flux: &Value) -> Vec<String> {
    let form = json!({
        "type": "object",
        "properties": {
            "shape": {"enum": ["cluster", "component", "definition"]},
            "singular": {"type": "string", "minLength": 1},
            "guard": {"const": "each"},
            "reserved": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "reserved_because": {"type": "string"},
        },
        "additionalProperties": false,
    });
    complaints("metadata.x-flux", form, flux)
}

/// Where a part of the file does not have the form that it should.
pub(super) fn complaints(part: &str, form: Value, value: &Value) -> Vec<String> {
    let mut findings = Vec::new();
    Schema::compile(form).expect("it is a constant").check(value, &mut findings);
    let tell = |finding: Finding| {
        format!("`{part}{}`: {}", finding.pointer.as_str().replace('/', "."), finding.message)
    };
    findings.into_iter().map(tell).collect()
}

/// A keyword of a schema that refers to another place.
fn reference_in(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => map.iter().find_map(|(name, member)| match name.as_str() {
            "$ref" | "$dynamicRef" | "$id" | "$anchor" | "$defs" => Some(name.as_str()),
            _ => reference_in(member),
        }),
        Value::Array(items) => items.iter().find_map(reference_in),
        _ => None,
    }
}

/// What one document of a kind is called, if the file does not say.
fn singular(name: &str) -> String {
    match name.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => name.strip_suffix('s').unwrap_or(name).to_owned(),
    }
}

/// Fields without which the typed core cannot represent a document.
fn core_required(shape: Shape) -> &'static [&'static str] {
    match shape {
        Shape::Cluster => &["id", "cluster_name", "cluster_dns", "environment"],
        Shape::Component => &["id", "component_path", "oci_url", "oci_tag"],
        Shape::Definition => &["id"],
    }
}

fn read_properties(
    shape: Shape,
    declared: &Map<String, Value>,
    problems: &mut Vec<String>,
) -> Box<[Property]> {
    let core: &[(&str, &str)] = match shape {
        Shape::Cluster => &CLUSTER_CORE,
        Shape::Component => &COMPONENT_CORE,
        Shape::Definition => &[("id", "string")],
    };
    for (name, of_type) in core {
        if declared.get(*name).and_then(|property| property.get("type")) != Some(&json!(of_type)) {
            problems.push(format!(
                "`schema.items.properties.{name}` must be there, of type {of_type}: the service reads it"
            ));
        }
    }
    if declared.get("id").and_then(|id| id.get("format")) != Some(&json!("dns-label")) {
        problems.push("`schema.items.properties.id.format` must be `dns-label`: ids are names of Kubernetes objects and parts of URLs".to_owned());
    }
    let mut properties = Vec::new();
    for (name, property) in declared {
        let is_own = matches!(name.as_str(), "cluster" | "provider") && shape == Shape::Definition;
        if is_own || name == "hash" {
            problems.push(format!(
                "a property cannot be called `{name}`: every input has one of that name, or will have"
            ));
        }
        if name.starts_with('$') || canonical::encode(name).len() != name.len() + 2 {
            problems.push(format!("a property cannot be called {name:?}"));
        }
        let empty = match property.get("type").and_then(Value::as_str) {
            Some("string") => json!(""),
            Some("integer" | "number") => json!(0),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => {
                problems.push(format!(
                    "`schema.items.properties.{name}.type` must be one of string, integer, number, boolean, array, object: every input shows the property, if only empty"
                ));
                continue;
            }
        };
        if let Some(default) = property.get("default") {
            let mut findings = Vec::new();
            if let Ok(schema) = Schema::compile(property.clone()) {
                schema.check(default, &mut findings);
            }
            problems.extend(
                findings
                    .into_iter()
                    .map(|f| format!("`schema.items.properties.{name}.default` {}", f.message)),
            );
        }
        let otherwise = Field::new(name, canonical::encode(property.get("default").unwrap_or(&empty)));
        properties.push(Property { name: name.as_str().into(), otherwise });
    }
    properties.into()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::kind::GuardClass;

    pub(in crate::kind) fn definition(extra: &Value) -> Value {
        let mut file = json!({
            "kind": "network_policies", "apiVersion": "v1", "metadata": {"x-flux": {}},
            "schema": {
                "key": {"name": "id", "schema": {"type": "string"}},
                "items": {"type": "object", "properties": {"id": {"type": "string", "format": "dns-label"}}, "required": ["id"]},
            },
        });
        json_patch::merge(&mut file, extra);
        file
    }

    fn problems(extra: &Value) -> Vec<String> {
        let taken = Reserved {
            kinds: vec!["batch", "whoami"],
            cluster_paths: vec!["last-events"],
            query_parameters: Vec::new(),
        };
        Kind::parse(&definition(extra).to_string(), &taken).err().map(|bad| bad.problems).unwrap_or_default()
    }

    #[test]
    fn an_added_kind_is_read() {
        let file = definition(&json!({"metadata": {"x-flux": {"guard": "each"}}}));
        let kind = Kind::parse(&file.to_string(), &Reserved::none()).expect("good");
        assert_eq!(
            (kind.path(), kind.singular(), kind.guard()),
            ("network-policies", "network_policy", GuardClass::Each)
        );
    }

    #[test]
    fn every_problem_of_a_kind_file_is_told() {
        assert_eq!(problems(&json!({})), Vec::<String>::new());
        let found = problems(&json!({
            "kind": "batch",
            "metadata": {"x-flux": {"shape": "component", "guard": "all"}},
            "schema": {"items": {"properties": {"provider": {"type": "string"}, "x": {}}, "required": ["x"]}},
        }));
        let starts = [
            "`batch` is taken by the service itself",
            "`metadata.x-flux.shape` of `batch` must be definition",
            "`metadata.x-flux.guard`: must be \"each\", not \"all\"",
            "`schema.items.required` must name `id`",
        ];
        for start in starts {
            assert!(found.iter().any(|problem| problem.starts_with(start)), "{start} in {found:#?}");
        }
        assert!(found.iter().any(|problem| problem.contains("properties.x.type")), "{found:#?}");
        for name in ["cluster", "hash", "provider"] {
            assert_eq!(
                problems(&json!({"schema": {"items": {"properties": {name: {"type": "string"}}}}})),
                [format!(
                    "a property cannot be called `{name}`: every input has one of that name, or will have"
                )]
            );
        }
        assert!(
            problems(&json!({"schema": {"items": {"properties": {"id": {"type": "integer"}}}}}))[0]
                .contains("of type string")
        );
        assert!(problems(&json!({"kind": "Bad-Name"}))[0].contains("`kind` must be a name"));
        assert!(
            problems(
                &json!({"schema": {"items": {"properties": {"x": {"type": "string", "pattern": "("}}}}})
            )[0]
            .contains("not a usable JSON Schema")
        );
        assert!(Kind::parse("[]", &Reserved::none()).is_err());
        assert!(Kind::parse("{", &Reserved::none()).is_err());
    }

    #[test]
    fn a_name_that_the_service_uses_is_refused() {
        for name in ["batch", "whoami"] {
            assert_eq!(
                problems(&json!({"kind": name})),
                [format!("`{name}` is taken by the service itself")]
            );
        }
        assert_eq!(
            problems(&json!({"kind": "last_events"})),
            ["`last_events` is taken by the service itself, in the paths that clusters poll"]
        );
        let free = Kind::parse(&definition(&json!({"kind": "batch"})).to_string(), &Reserved::none());
        assert!(free.is_ok(), "the core itself has no such name");
    }

    #[test]
    fn a_misspelt_protection_is_not_silently_none() {
        let of = |flux: Value| problems(&json!({"metadata": {"x-flux": flux}}));
        for flux in [
            json!({"gaurd": "each"}),
            json!({"guard": true}),
            json!({"reserved": "kube-*"}),
            json!({"reserved": [7]}),
            json!({"shape": 7}),
        ] {
            assert!(!of(flux.clone()).is_empty(), "{flux}");
        }
        assert_eq!(
            of(json!({"gaurd": "each"})),
            [
                "`metadata.x-flux.gaurd`: unknown field `gaurd`; known are guard, reserved, reserved_because, shape, singular"
            ]
        );
    }

    #[test]
    fn what_the_core_cannot_do_without_stays_required() {
        let shipped =
            Kind::shipped().into_iter().find(|kind| kind.name().as_str() == "clusters").expect("shipped");
        let mut file = Value::Object(shipped.file().clone());
        file["schema"]["items"]["required"] = json!(["id"]);
        let bad = Kind::parse(&file.to_string(), &Reserved::none()).expect_err("too little is required");
        assert_eq!(bad.problems.len(), 3);
        assert_eq!(
            bad.problems[0],
            "`schema.items.required` must name `cluster_name`: the service cannot do without it"
        );
    }
}
