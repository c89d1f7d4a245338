//! `set patch` and `unset patch`: values of a component that one cluster has different.

use clap::Args;
use serde_json::{Map, Value};

use super::targets::Targets;
use crate::change::ChangeFlags;
use crate::complete;
use crate::document::pair;
use crate::failure::Failure;
use crate::session::Session;

/// Set values of a component on these clusters: Helm values by their path, or substitutions of a kustomization
///
/// Of the clusters that a selector selects, those without the component are passed over.
#[derive(Debug, Args)]
pub(crate) struct SetPatch {
    /// The component
    #[arg(add = complete::components())]
    pub component: String,
    #[command(flatten)]
    pub targets: Targets,
    /// `replicaCount=3`, `ui.message=hello`; `3`, `true` and `null` keep their type, `"3"` is a string
    #[arg(value_name = "KEY=VALUE", required = true)]
    pub values: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

/// Take values of a component away from these clusters
#[derive(Debug, Args)]
pub(crate) struct UnsetPatch {
    /// The component
    #[arg(add = complete::components())]
    pub component: String,
    #[command(flatten)]
    pub targets: Targets,
    /// Which; all of them if none is named
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl SetPatch {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let mut values = Map::new();
        for value in &self.values {
            let (key, value) = pair(value)?;
            if let Some(instead) = instead_of(key, value) {
                return Err(Failure::usage(format!(
                    "`{key}` would be a text, not a list or an object: {instead}; or quote the text, {key}='\"…\"'"
                )));
            }
            values.insert(key.to_owned(), value.into());
        }
        self.targets.patch_values(session, &self.component, &values.into(), &self.change)
    }
}

impl UnsetPatch {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let values = if self.keys.is_empty() {
            Value::Null
        } else {
            self.keys.iter().map(|key| (key.clone(), Value::Null)).collect::<Map<_, _>>().into()
        };
        self.targets.patch_values(session, &self.component, &values, &self.change)
    }
}

/// If a value is a list or an object in JSON: how to say it. Each value that it is made of has a place of its own, `a[0].key=x`.
fn instead_of(key: &str, value: &str) -> Option<String> {
    let value: Value =
        serde_json::from_str(value).ok().filter(|value: &Value| value.is_array() || value.is_object())?;
    let mut places = Vec::new();
    collect(key, &value, &mut places);
    Some(match &*places {
        [] => format!("it cannot be empty; `{key}=null` takes the chart's own away"),
        places => {
            let more = if places.len() > SHOWN_PLACES { " …" } else { "" };
            let first: Vec<&str> = places.iter().take(SHOWN_PLACES).map(String::as_str).collect();
            format!("set each place of it, as in `{}{more}`", first.join(" "))
        }
    })
}

/// At most this many places are shown.
const SHOWN_PLACES: usize = 3;

fn collect(place: &str, value: &Value, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('\\', "\\\\").replace('.', "\\.");
                collect(&format!("{place}.{name}"), member, places);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                collect(&format!("{place}[{n}]"), item, places);
            }
        }
        Value::String(text) => places.push(format!("{place}={text}")),
        other => places.push(format!("{place}={other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::instead_of;

    #[test]
    fn a_list_or_an_object_is_taken_apart_and_a_text_is_not() {
        let of = |value: &str| instead_of("tolerations", value);
        assert_eq!(
            of(r#"[{"key":"a","operator":"Exists"}]"#).as_deref(),
            Some("set each place of it, as in `tolerations[0].key=a tolerations[0].operator=Exists`")
        );
        assert_eq!(
            of(r#"{"a.b":[true,3]}"#).as_deref(),
            Some(r"set each place of it, as in `tolerations.a\.b[0]=true tolerations.a\.b[1]=3`")
        );
        assert_eq!(
            of("[]").as_deref(),
            Some("it cannot be empty; `tolerations=null` takes the chart's own away")
        );
        for text in ["", "hello", "3", "true", "[not json", "\"[]\"", "{{ .Values.a }}"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
