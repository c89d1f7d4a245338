//! The query parameters of a kind's list: each is a filter by the property of its name.

use serde_json::{Map, Value, json};

use super::Reserved;
use super::file::complaints;

/// A filter that lists of a kind have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryParameter {
    /// Its name, which is that of the property it compares.
    pub name: Box<str>,
    /// What its value is to be.
    pub of_type: ParameterType,
    /// The only values that the property can have, if its schema lists them.
    choices: Box<[Box<str>]>,
}

impl QueryParameter {
    /// Refuses a value that no document can have, which would look like an empty fleet; says what would be right.
    pub fn check(&self, value: &str) -> Result<(), String> {
        match self.of_type {
            ParameterType::Boolean if !["true", "false"].contains(&value) => {
                return Err("`true` or `false`".to_owned());
            }
            ParameterType::Integer if value.parse::<i64>().is_err() => {
                return Err("a whole number".to_owned());
            }
            _ => {}
        }
        if !self.choices.is_empty() && self.choices.iter().all(|choice| **choice != *value) {
            return Err(format!("one of `{}`", self.choices.join("`, `")));
        }
        Ok(())
    }
}

/// What can be compared with the text in a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterType {
    /// Any text.
    String,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
}

impl ParameterType {
    /// The word for it in schemas.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
        }
    }

    fn read(schema: &Value) -> Option<Self> {
        let of_type = schema.get("type")?.as_str()?;
        [Self::String, Self::Boolean, Self::Integer].into_iter().find(|known| known.as_str() == of_type)
    }
}

/// Reads the parameters of `get`. Those of other methods are Firestone's business, not ours.
pub(super) fn read(
    schema: &Value,
    declared: &Map<String, Value>,
    taken: &Reserved,
    problems: &mut Vec<String>,
) -> Box<[QueryParameter]> {
    let Some(list) = schema.get("query_params") else { return Box::default() };
    let malformed = complaints("schema.query_params", form(), list);
    if !malformed.is_empty() {
        problems.extend(malformed);
        return Box::default();
    }
    let mut parameters: Vec<QueryParameter> = Vec::new();
    for parameter in list.as_array().into_iter().flatten().filter(|parameter| applies_to_get(parameter)) {
        let name = parameter["name"].as_str().unwrap_or_default();
        if parameters.iter().any(|other| *other.name == *name) {
            problems.push(format!("`schema.query_params` has `{name}` twice"));
            continue;
        }
        match filter(name, parameter, declared, taken) {
            Ok(of_type) => {
                parameters.push(QueryParameter {
                    name: name.into(),
                    of_type,
                    choices: choices(&declared[name]),
                });
            }
            Err(problem) => problems.push(format!("the query parameter `{name}` {problem}")),
        }
    }
    parameters.into()
}

fn choices(property: &Value) -> Box<[Box<str>]> {
    let choices = property.get("enum").and_then(Value::as_array).into_iter().flatten();
    choices.filter_map(|choice| Some(choice.as_str()?.into())).collect()
}

fn form() -> Value {
    let method = json!({"enum": ["delete", "get", "head", "options", "patch", "post", "put"]});
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "description": {"type": "string"},
                "required": {"const": false},
                "schema": {"type": "object"},
                "methods": {"type": "array", "items": method},
            },
            "required": ["name"],
            "additionalProperties": false,
        },
    })
}

/// A parameter that names no method is one of all of them, as Firestone has it.
fn applies_to_get(parameter: &Value) -> bool {
    let methods = parameter.get("methods").and_then(Value::as_array).filter(|methods| !methods.is_empty());
    methods.is_none_or(|methods| methods.contains(&json!("get")))
}

fn filter(
    name: &str,
    parameter: &Value,
    declared: &Map<String, Value>,
    taken: &Reserved,
) -> Result<ParameterType, String> {
    if taken.query_parameters.contains(&name) {
        return Err("is one that every list has already".to_owned());
    }
    let Some(property) = declared.get(name) else {
        return Err("is no property of the document, so there is nothing to compare it with".to_owned());
    };
    let Some(of_type) = ParameterType::read(property) else {
        return Err("must be of a property of type string, boolean or integer: others cannot be compared with the text in a query".to_owned());
    };
    // Without a schema it is a string, as Firestone has it.
    let own = parameter.get("schema").map_or(Some(ParameterType::String), ParameterType::read);
    if own != Some(of_type) {
        return Err(format!("must have `schema.type` {}, as the property has", of_type.as_str()));
    }
    Ok(of_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::kind::file::tests::definition;

    fn kind(query_params: &Value) -> Result<Kind, Vec<String>> {
        let properties = json!({
            "zone": {"type": "string"}, "mtu": {"type": "integer"}, "open": {"type": "boolean"},
            "limit": {"type": "integer"}, "ratio": {"type": "number"}, "tags": {"type": "array"},
        });
        let schema = json!({"query_params": query_params, "items": {"properties": properties}});
        let taken = Reserved { query_parameters: vec!["limit", "revisions", "selector"], ..Reserved::none() };
        Kind::parse(&definition(&json!({"schema": schema})).to_string(), &taken).map_err(|bad| bad.problems)
    }

    #[track_caller]
    fn problems(query_params: &Value) -> Vec<String> {
        kind(query_params).expect_err("a bad list of parameters")
    }

    #[test]
    fn the_parameters_of_get_are_read_with_their_types() {
        let kind = kind(&json!([
            {"name": "zone"},
            {"name": "mtu", "schema": {"type": "integer"}, "methods": ["get", "head"]},
            {"name": "open", "schema": {"type": "boolean"}, "methods": []},
            {"name": "force", "schema": {"type": "boolean"}, "methods": ["post"]},
        ]))
        .expect("good");
        let read: Vec<_> = kind.query_parameters().iter().map(|p| (&*p.name, p.of_type.as_str())).collect();
        assert_eq!(read, [("zone", "string"), ("mtu", "integer"), ("open", "boolean")]);
    }

    #[test]
    fn the_shipped_kinds_filter_by_what_their_files_say() {
        let told: Vec<_> = Kind::shipped()
            .iter()
            .map(|kind| {
                let names: Vec<String> = kind.query_parameters().iter().map(|p| p.name.to_string()).collect();
                format!("{}: {}", kind.name(), names.join(" "))
            })
            .collect();
        assert_eq!(
            told,
            [
                "clusters: environment cluster_dns",
                "namespaces: id",
                "platform_components: delivery oci_tag",
                "rolebindings: role",
            ]
        );
    }

    #[test]
    fn a_value_that_no_document_can_have_is_refused() {
        let shipped = Kind::shipped();
        let parameter = |kind: &str, name: &str| {
            let kind = shipped.iter().find(|shipped| shipped.name().as_str() == kind).expect("shipped");
            kind.query_parameters()
                .iter()
                .find(|parameter| *parameter.name == *name)
                .expect("a filter")
                .clone()
        };
        let environment = parameter("clusters", "environment");
        assert_eq!(environment.check("prod"), Ok(()));
        assert_eq!(environment.check("production"), Err("one of `dev`, `qa`, `uat`, `prod`".to_owned()));
        assert_eq!(parameter("platform_components", "oci_tag").check("anything"), Ok(()));
        let kind = kind(&json!([
            {"name": "mtu", "schema": {"type": "integer"}}, {"name": "open", "schema": {"type": "boolean"}},
        ]))
        .expect("good");
        let [mtu, open] = kind.query_parameters() else { panic!("two filters") };
        assert_eq!((mtu.check("-7"), mtu.check("many")), (Ok(()), Err("a whole number".to_owned())));
        assert_eq!((open.check("true"), open.check("yes")), (Ok(()), Err("`true` or `false`".to_owned())));
    }

    #[test]
    fn a_list_of_parameters_that_is_malformed_is_told() {
        assert_eq!(problems(&json!({})), ["`schema.query_params`: must be an array, not {}"]);
        assert_eq!(
            problems(&json!(["zone", {"nmae": "zone"}, {"name": "zone", "methods": ["fetch"]}])),
            [
                "`schema.query_params.0`: must be an object, not \"zone\"",
                "`schema.query_params.1.nmae`: unknown field `nmae`; known are description, methods, name, required, schema",
                "`schema.query_params.1.name`: `name` is required and missing",
                "`schema.query_params.2.methods.0`: must be one of \"delete\", \"get\", \"head\", \"options\", \"patch\", \"post\", \"put\", not \"fetch\"",
            ]
        );
    }

    #[test]
    fn a_parameter_that_could_not_filter_is_told() {
        assert_eq!(
            problems(&json!([
                {"name": "colour"}, {"name": "limit", "schema": {"type": "integer"}}, {"name": "selector"},
                {"name": "revisions", "schema": {"type": "boolean"}}, {"name": "tags"},
                {"name": "ratio", "schema": {"type": "number"}}, {"name": "mtu"}, {"name": "zone"}, {"name": "zone"},
            ])),
            [
                "the query parameter `colour` is no property of the document, so there is nothing to compare it with",
                "the query parameter `limit` is one that every list has already",
                "the query parameter `selector` is one that every list has already",
                "the query parameter `revisions` is one that every list has already",
                "the query parameter `tags` must be of a property of type string, boolean or integer: others cannot be compared with the text in a query",
                "the query parameter `ratio` must be of a property of type string, boolean or integer: others cannot be compared with the text in a query",
                "the query parameter `mtu` must have `schema.type` integer, as the property has",
                "`schema.query_params` has `zone` twice",
            ]
        );
    }

    #[test]
    fn a_recorded_kind_keeps_the_parameters_that_work() {
        let schema = json!({"query_params": [{"name": "id"}, {"name": "gone"}]});
        let Value::Object(file) = definition(&json!({"schema": schema})) else { unreachable!("an object") };
        let kind = Kind::stored(file).expect("usable");
        let read: Vec<_> = kind.query_parameters().iter().map(|p| (&*p.name, p.of_type)).collect();
        assert_eq!(read, [("id", ParameterType::String)]);
    }
}
