//! The kinds of documents, as the service tells them, and the names that people use for them.

use serde_json::Value;

use crate::failure::Failure;

pub(crate) use api::Kind;

/// What people who live in kubectl type.
const SHORT: [(&str, &str); 4] =
    [("cl", "clusters"), ("ns", "namespaces"), ("pc", "platform_components"), ("rb", "rolebindings")];

/// All kinds of a service.
#[derive(Debug)]
pub(crate) struct Kinds(Vec<Kind>);

impl Kinds {
    /// What the service told.
    pub(crate) fn new(kinds: Vec<Kind>) -> Self {
        Self(kinds)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter()
    }

    /// The kind of clusters.
    pub(crate) fn clusters(&self) -> Result<&Kind, Failure> {
        self.of_shape(api::CLUSTER)
    }

    /// The kind of components.
    pub(crate) fn components(&self) -> Result<&Kind, Failure> {
        self.of_shape(api::COMPONENT)
    }

    /// The kinds that clusters refer to.
    pub(crate) fn referable(&self) -> impl Iterator<Item = &Kind> {
        self.0.iter().filter(|kind| !kind.is_cluster())
    }

    /// What it is called when a document of this kind goes.
    pub(crate) fn deletion(&self, kind: &str) -> &'static str {
        match self.0.iter().find(|known| known.name == kind) {
            None if is_record(kind) => "forgotten",
            Some(kind) if kind.is_cluster() => "decommissioned",
            _ => "deleted",
        }
    }

    fn of_shape(&self, shape: &str) -> Result<&Kind, Failure> {
        let found = self.0.iter().find(|kind| kind.shape == shape);
        found.ok_or_else(|| Failure::failed(format!("the service has no kind of shape `{shape}`")))
    }

    /// The kind that somebody means: its plural or singular, with hyphens or underscores, its last word, a short name, or the beginning of
    /// exactly one.
    pub(crate) fn find(&self, typed: &str) -> Result<&Kind, Failure> {
        let wanted = typed.to_lowercase().replace('-', "_");
        let is_name = self.0.iter().any(|kind| kind.name == wanted || kind.singular == wanted);
        let short = SHORT.iter().find(|(short, _)| *short == wanted && !is_name);
        let wanted = short.map_or(&*wanted, |(_, name)| name);
        let names = |kind: &Kind| [kind.name.clone(), kind.singular.replace('-', "_")];
        let ways: [&dyn Fn(&str) -> bool; 3] =
            [&|name| name == wanted, &|name| name.rsplit('_').next() == Some(wanted), &|name| {
                wanted.len() > 1
                    && (name.starts_with(wanted)
                        || name.rsplit('_').next().is_some_and(|word| word.starts_with(wanted)))
            }];
        for way in ways {
            let found: Vec<&Kind> =
                self.0.iter().filter(|kind| names(kind).iter().any(|name| way(name))).collect();
            match &*found {
                [] => {}
                [kind] => return Ok(kind),
                several => {
                    return Err(Failure::usage(format!(
                        "`{typed}` could be {}: say more of it",
                        listed(several)
                    )));
                }
            }
        }
        Err(Failure::usage(format!(
            "there is no kind `{typed}`; this service has {}",
            listed(&self.0.iter().collect::<Vec<_>>())
        )))
    }
}

/// Whether these are the records of decommissioned clusters, which are documents of no kind.
pub(crate) fn is_record(kind: &str) -> bool {
    kind == api::DECOMMISSIONED
}

/// Whether somebody means these records, who means no kind: their name or the beginning of it.
pub(crate) fn means_records(typed: &str) -> bool {
    typed.len() > 2 && api::DECOMMISSIONED.starts_with(&typed.to_lowercase())
}

fn listed(kinds: &[&Kind]) -> String {
    kinds.iter().map(|kind| &*kind.name).collect::<Vec<_>>().join(", ")
}

/// What the command line wants to know of a kind.
pub(crate) trait Shape {
    /// Whether its documents are clusters.
    fn is_cluster(&self) -> bool;
    /// Whether its documents are components.
    fn is_component(&self) -> bool;
    /// The schema of a property.
    fn property(&self, name: &str) -> Option<&Value>;
    /// The names of its properties, required ones first, without `id`.
    fn properties(&self) -> Vec<&str>;
    /// The name that a document has in files: `kind`, unless documents have a field of that name themselves.
    fn kind_key(&self) -> &'static str;
}

impl Shape for Kind {
    fn is_cluster(&self) -> bool {
        self.shape == api::CLUSTER
    }

    fn is_component(&self) -> bool {
        self.shape == api::COMPONENT
    }

    fn property(&self, name: &str) -> Option<&Value> {
        self.schema["properties"].get(name)
    }

    fn properties(&self) -> Vec<&str> {
        let required: Vec<&str> =
            self.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let all = self.schema["properties"].as_object().into_iter().flat_map(serde_json::Map::keys);
        let rest = all.map(String::as_str).filter(|name| !required.contains(name));
        required.iter().copied().chain(rest).filter(|name| *name != "id").collect()
    }

    fn kind_key(&self) -> &'static str {
        if self.property("kind").is_some() { "$kind" } else { "kind" }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::{Kind, Kinds};
    use crate::failure::Failure;

    /// The four kinds of the mission, and one of somebody's own.
    pub(crate) fn kinds() -> Kinds {
        let kind = |name: &str, singular: &str, shape: &str, properties: serde_json::Value| Kind {
            name: name.to_owned(),
            path: name.replace('_', "-"),
            singular: singular.to_owned(),
            shape: shape.to_owned(),
            guard: "ordinary".to_owned(),
            description: None,
            query_parameters: Vec::new(),
            schema: json!({"properties": properties, "required": ["id"]}),
        };
        let references = json!({"type": "array", "items": {"type": "object", "properties": {
            "id": {"type": "string"}, "enabled": {"type": "boolean"}, "oci_tag": {"type": "string"},
            "depends_on": {"type": "array", "items": {"type": "string"}},
        }}});
        let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
        Kinds::new(vec![
            kind(
                "clusters",
                "cluster",
                "cluster",
                json!({
                    "id": {"type": "string"}, "labels": strings, "node_count": {"type": "integer"}, "protected": {"type": "boolean"},
                    "patches": {"type": "object", "additionalProperties": strings}, "platform_components": references,
                }),
            ),
            kind(
                "platform_components",
                "platform_component",
                "component",
                json!({
                    "id": {"type": "string"}, "depends_on": {"type": "array", "items": {"type": "string"}},
                }),
            ),
            kind(
                "namespaces",
                "namespace",
                "definition",
                json!({"id": {"type": "string"}, "labels": strings}),
            ),
            kind(
                "network_policies",
                "network_policy",
                "definition",
                json!({"id": {"type": "string"}, "kind": {"type": "string"}}),
            ),
            kind(
                "rolebindings",
                "rolebinding",
                "definition",
                json!({
                    "id": {"type": "string"}, "subjects": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                }),
            ),
        ])
    }

    #[test]
    fn a_kind_has_the_names_that_people_type() {
        let kinds = kinds();
        for (typed, expected) in [
            ("clusters", "clusters"),
            ("Cluster", "clusters"),
            ("cl", "clusters"),
            ("platform-components", "platform_components"),
            ("platform_component", "platform_components"),
            ("component", "platform_components"),
            ("comp", "platform_components"),
            ("pc", "platform_components"),
            ("ns", "namespaces"),
            ("policies", "network_policies"),
            ("network-policy", "network_policies"),
            ("role", "rolebindings"),
        ] {
            assert_eq!(kinds.find(typed).expect(typed).name, expected, "{typed}");
        }
    }

    #[test]
    fn what_could_be_two_kinds_is_refused_and_so_is_what_is_none() {
        let kinds = kinds();
        let refused = |typed: &str| match kinds.find(typed) {
            Err(Failure::Usage(what)) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused("pods"),
            "there is no kind `pods`; this service has clusters, platform_components, namespaces, network_policies, rolebindings"
        );
        // A single letter is a slip, not a name.
        assert!(refused("n").starts_with("there is no kind `n`"));
        let named =
            |name: &str| Kind { name: name.to_owned(), singular: name.to_owned(), ..kinds.0[0].clone() };
        let alike = Kinds(vec![named("teams"), named("tenants")]);
        let Err(Failure::Usage(what)) = alike.find("te") else { panic!("it was found") };
        assert_eq!(what, "`te` could be teams, tenants: say more of it");
    }
}
