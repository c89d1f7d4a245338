//! What our API accepts never stalls a ResourceSet, and arrives as it was written.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::kube::{Kind, Place};
use e2e::parts::Parts;
use e2e::world::World;
use serde_json::{Value, json};

use crate::nasty::Nasty;
use crate::{Offline, Story, catalog};

pub(crate) const STORIES: &[(&str, Story)] =
    &[("nasty_documents_are_applied_by_the_real_api_server_as_written", applied)];

/// Without a world: the operator's own command renders our sets.
pub(crate) const OFFLINE: &[(&str, Offline)] =
    &[("what_apply_accepts_is_rendered_exactly", rendered_exactly)];

/// What kubectl marks an object with, and what nobody else would.
const READ: &str = "e2e.example.com/read=";

/// Renders a kind's set with these inputs by the operator's command: objects by kind and name.
fn build(
    parts: &Parts,
    folder: &std::path::Path,
    kind: &str,
    inputs: &[Value],
) -> Result<BTreeMap<(String, String), Value>> {
    let file = folder.join(format!("{kind}.json"));
    // The command reads its file as YAML, where U+2028 ends a line. (The operator itself reads our answer as JSON.)
    let text: String = serde_json::to_string(inputs)?.chars().fold(String::new(), |mut text, char| {
        match char {
            '\u{2028}' | '\u{2029}' => write!(text, "\\u{:04x}", char as u32).unwrap_or_default(),
            other => text.push(other),
        }
        text
    });
    std::fs::write(&file, text)?;
    // Its YAML has line breaks that only Go's own reader takes for such (U+2028): so kubectl reads it, and marks what it has read.
    let yaml = folder.join(format!("{kind}.yaml"));
    std::fs::write(&yaml, parts.rendered(kind, &file)?)?;
    let read = Command::new(parts.binary("kubectl"))
        .args(["annotate", "--local", "-o", "json", READ, "-f"])
        .arg(&yaml)
        .output()?;
    ensure!(read.status.success(), "{kind}: {}", String::from_utf8_lossy(&read.stderr));
    let mut objects = serde_json::Deserializer::from_slice(&read.stdout)
        .into_iter::<Value>()
        .collect::<Result<Vec<_>, _>>()?;
    for object in &mut objects {
        let annotations = object["metadata"]["annotations"].as_object_mut().context("annotations")?;
        annotations.remove(READ.trim_end_matches('=')).context("it was not marked")?;
    }
    let name = |object: &Value, field: &str| {
        object.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Ok(objects
        .into_iter()
        .map(|object| ((name(&object, "/kind"), name(&object, "/metadata/name")), object))
        .collect())
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<()> {
    ensure!(found == expected, "{what}:\n found    {found:?}\n expected {expected:?}");
    Ok(())
}

/// An absent map and an empty one are the same to Kubernetes.
fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!({}) } else { value.clone() }
}

/// The objects of a component wait for those of the components that it depends on.
fn check_dependencies(input: &Value, object: &Value) -> Result<()> {
    let expected: Vec<Value> =
        input["depends_on"].as_array().into_iter().flatten().map(|id| json!({"name": id})).collect();
    let found = object["spec"]["dependsOn"].as_array().cloned().unwrap_or_default();
    ensure!(found == expected, "{}: {found:?} is not {expected:?}", input["id"]);
    Ok(())
}

fn check_component(input: &Value, made: &BTreeMap<(String, String), Value>) -> Result<()> {
    let id = input["id"].as_str().context("an id")?;
    let get = |kind: &str, name: &str| {
        made.get(&(kind.to_owned(), name.to_owned())).with_context(|| format!("no {kind} {name}"))
    };
    let helm = input["delivery"] == "helm";
    let https = input["source"]["oci_url"].as_str().is_some_and(|url| url.starts_with("https://"));
    let source = get(if helm && https { "HelmRepository" } else { "OCIRepository" }, id)?;
    same(id, &source["spec"]["url"], &input["source"]["oci_url"])?;
    if !https {
        same(id, &source["spec"]["ref"]["tag"], &input["source"]["oci_tag"])?;
    }
    for field in ["secretRef", "verify"] {
        let expected = &input["source"][field];
        ensure!(expected.is_object(), "{id}: {field} is {expected}");
        let unset = *expected == json!({});
        same(&format!("{id}: {field}"), &source["spec"][field], if unset { &Value::Null } else { expected })?;
    }
    if !helm {
        let kustomization = get("Kustomization", id)?;
        check_dependencies(input, kustomization)?;
        let mut path = format!("./{}", input["component_path"].as_str().context("a path")?);
        if input["cluster_env_enabled"] == true {
            path = format!("{path}/{}", input["cluster"]["environment"].as_str().context("an environment")?);
        }
        same(id, &kustomization["spec"]["path"], &path.into())?;
        let variables = get("ConfigMap", &format!("{id}-variables"))?;
        return same(id, &or_empty(&variables["data"]), &input["patches"]);
    }
    let release = get("HelmRelease", id)?;
    check_dependencies(input, release)?;
    for field in ["releaseName", "targetNamespace", "storageNamespace"] {
        same(id, &release["spec"][field], &input["id"])?;
    }
    if https {
        let version = if input["source"]["oci_tag"] == "latest" {
            json!("*")
        } else {
            input["source"]["oci_tag"].clone()
        };
        same(id, &release["spec"]["chart"]["spec"]["version"], &version)?;
        same(id, &release["spec"]["chart"]["spec"]["chart"], &input["component_path"])?;
    }
    let values = get("ConfigMap", &format!("{id}-values"))?["data"]["values.yaml"]
        .as_str()
        .context("values")?
        .to_owned();
    same(id, &serde_json::from_str(&values)?, &input["values"])?;
    // As Helm reads it, which is YAML.
    same(&format!("{id}, read as YAML"), &serde_saphyr::from_str::<Value>(&values)?, &input["values"])
}

fn rendered_exactly() -> Result<()> {
    let parts = Parts::build()?;
    let folder = tempfile::tempdir()?;
    let mut documents = 0;
    let began = std::time::Instant::now();
    let mut nasty = Nasty::new();
    nasty.draw_fleet(250);
    let refused = nasty.refused;

    let inputs = nasty.inputs("namespaces");
    let made = build(&parts, folder.path(), "namespaces", &inputs)?;
    ensure!(made.len() == inputs.len(), "{} namespaces of {}", made.len(), inputs.len());
    for input in &inputs {
        let id = input["id"].as_str().context("an id")?;
        let object = made
            .get(&("Namespace".to_owned(), id.to_owned()))
            .with_context(|| format!("no namespace {id}"))?;
        let labels = object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        // The operator adds labels of its own.
        let labels: Value = labels
            .into_iter()
            .filter(|(key, _)| !key.contains("fluxcd.controlplane.io/"))
            .collect::<serde_json::Map<_, _>>()
            .into();
        same(id, &labels, &input["labels"])?;
        same(id, &or_empty(&object["metadata"]["annotations"]), &input["annotations"])?;
    }
    documents += inputs.len();

    let inputs = nasty.inputs("rolebindings");
    let made = build(&parts, folder.path(), "rolebindings", &inputs)?;
    for input in &inputs {
        let id = input["id"].as_str().context("an id")?;
        let object = made
            .get(&("ClusterRoleBinding".to_owned(), id.to_owned()))
            .with_context(|| format!("no binding {id}"))?;
        same(id, &object["roleRef"]["name"], &input["role"])?;
        same(id, &object["subjects"], &input["subjects"])?;
    }
    documents += inputs.len();

    let inputs = nasty.inputs("platform-components");
    let made = build(&parts, folder.path(), "platform-components", &inputs)?;
    inputs.iter().try_for_each(|input| check_component(input, &made))?;
    documents += inputs.len();

    let patches: usize = inputs.iter().filter_map(|input| Some(input["patches"].as_object()?.len())).sum();
    crate::figure(format!(
        "{documents} documents with {patches} patches rendered exactly in {:.1} s; {refused} draws were refused by our rules",
        began.elapsed().as_secs_f32()
    ));
    let dependent = inputs.iter().filter(|input| input["depends_on"] != json!([])).count();
    let set = |field: &str| inputs.iter().filter(|input| input["source"][field] != json!({})).count();
    let (logins, verified) = (set("secretRef"), set("verify"));
    ensure!(logins > 20 && verified > 20, "only {logins} secretRefs and {verified} verifies got through");
    let largest = nasty.inputs("namespaces").iter().map(|input| input["annotations"].to_string().len()).max();
    ensure!(
        patches > 100 && dependent > 20,
        "only {patches} patches and {dependent} dependencies got through"
    );
    ensure!(largest >= Some(60_000), "the largest annotations have {largest:?} bytes");
    Ok(())
}

fn applied(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let mut nasty = Nasty::new();
    nasty.draw_fleet(40);
    // Components are not installed here, for their sources do not exist; but the API server looks at every object of theirs.
    let folder = tempfile::tempdir()?;
    build(&world.parts, folder.path(), "platform-components", &nasty.inputs("platform-components"))?;
    let file = folder.path().join("platform-components.yaml").display().to_string();
    east.kube.run(&["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", &file])?;
    let kinds = [("namespaces", Kind::NAMESPACE), ("rolebindings", Kind::CLUSTER_ROLE_BINDING)];
    // East has names of its own.
    let renamed = |kind: &str| -> Vec<Value> {
        let mut documents = nasty.documents(kind);
        for document in &mut documents {
            document["id"] = format!("nasty-{}", document["id"].as_str().unwrap_or_default()).into();
        }
        documents
    };
    let documents = kinds.map(|(kind, _)| renamed(kind));
    let added = [(kinds[0].0, documents[0].as_slice()), (kinds[1].0, documents[1].as_slice())];
    catalog::assign(service, &added)?;
    for ((kind, object_kind), documents) in kinds.iter().zip(&documents) {
        east.follow(kind)?;
        for document in documents {
            let id = document["id"].as_str().context("an id")?;
            let object = east.kube.get(&Place::global(*object_kind, id))?;
            for field in ["labels", "annotations"] {
                for (key, value) in document[field].as_object().into_iter().flatten() {
                    same(&format!("{id}: {key}"), &object["metadata"][field][key], value)?;
                }
            }
            if *kind == "rolebindings" {
                same(id, &object["roleRef"]["name"], &document["role"])?;
                let names = |subjects: &Value| {
                    subjects
                        .as_array()
                        .map(|all| all.iter().map(|one| one["name"].clone()).collect::<Value>())
                };
                ensure!(names(&object["subjects"]) == names(&document["subjects"]), "{id}: {object}");
            }
        }
    }

    // Gone again, for the stories after this one.
    catalog::unassign(service, &added)?;
    kinds.iter().try_for_each(|(kind, _)| east.follow(kind))
}
