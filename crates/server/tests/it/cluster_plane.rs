//! What must be so in `cluster/`, seen without a cluster. What it does on one is shown by `make e2e`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fleet::{Kind, Shape};
use serde_json::{Value, json};

fn cluster() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cluster")
}

/// Every manifest: its file below `cluster/`, its text, its documents.
fn manifests() -> Vec<(String, String, Vec<Value>)> {
    fn visit(folder: &Path, found: &mut Vec<(String, String, Vec<Value>)>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                visit(&path, found);
            } else {
                let text = std::fs::read_to_string(&path).expect("a file");
                let name = path.strip_prefix(cluster()).expect("below").display().to_string();
                let documents =
                    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
                found.push((name, text, documents));
            }
        }
    }
    let mut found = Vec::new();
    visit(&cluster(), &mut found);
    found
}

fn of_kind(kind: &str) -> Vec<(String, Value)> {
    let all = manifests()
        .into_iter()
        .flat_map(|(name, _, documents)| documents.into_iter().map(move |document| (name.clone(), document)));
    all.filter(|(_, document)| document["kind"] == kind).collect()
}

/// As the Flux routes spell the kinds that a cluster has.
fn flux_kinds() -> BTreeSet<String> {
    let kinds = Kind::shipped();
    let kinds = kinds.iter().filter(|kind| kind.shape() != Shape::Cluster);
    kinds.map(|kind| kind.name().as_str().replace('_', "-")).collect()
}

#[test]
fn every_shipped_kind_has_a_provider_and_a_set_of_its_name() {
    for (folder, kind) in [("providers/", "ResourceSetInputProvider"), ("resourcesets/", "ResourceSet")] {
        let found = of_kind(kind).into_iter().filter(|(file, _)| file.starts_with(folder));
        let names: BTreeSet<String> =
            found.filter_map(|(_, object)| Some(object["metadata"]["name"].as_str()?.to_owned())).collect();
        assert_eq!(names, flux_kinds(), "{folder}");
    }
}

#[test]
fn providers_ask_for_all_inputs_with_a_credential_over_tls() {
    let providers = of_kind("ResourceSetInputProvider");
    assert_eq!(providers.len(), flux_kinds().len() + 1);
    for (file, provider) in providers {
        let spec = &provider["spec"];
        assert_eq!(spec["type"], "ExternalService", "{file}");
        assert_eq!(spec["filter"]["limit"], fleet::MAX_INPUTS, "{file}");
        assert_eq!(spec["secretRef"]["name"], "flux-resourceset", "{file}");
        assert!(spec["insecure"].is_null(), "{file}");
        let url = spec["url"].as_str().expect("a URL");
        let name = provider["metadata"]["name"].as_str().expect("a name");
        let path = if name == "clusters" { String::new() } else { format!("/${{CLUSTER_DNS}}/{name}") };
        assert_eq!(url, format!("${{INTERNAL_API_URL}}/api/v2/flux/clusters{path}"), "{file}");
        assert_eq!(
            provider["metadata"]["annotations"]["fluxcd.controlplane.io/reconcileEvery"], "5m",
            "{file}"
        );
    }
}

#[test]
fn plain_http_is_for_the_demo_only() {
    let insecure = manifests().into_iter().filter(|(_, text, _)| text.contains("insecure"));
    assert_eq!(insecure.map(|(file, _, _)| file).collect::<Vec<_>>(), ["demo/kustomization.yaml"]);
}

#[test]
fn no_set_believes_a_provider_that_has_never_been_answered() {
    let sets = of_kind("ResourceSet");
    assert_eq!(sets.len(), flux_kinds().len() + 1);
    for (file, set) in sets {
        let name = &set["metadata"]["name"];
        let dependency = json!([{
            "apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSetInputProvider", "name": name, "namespace": "flux-system",
            "ready": true, "readyExpr": "has(status.lastExportedRevision)",
        }]);
        assert_eq!(set["spec"]["dependsOn"], dependency, "{file}");
        let inputs = json!([{"apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSetInputProvider", "name": name}]);
        assert_eq!(set["spec"]["inputsFrom"], inputs, "{file}");
    }
}

#[test]
fn an_artifact_that_lacks_a_set_or_a_provider_deletes_nothing() {
    for (file, object) in of_kind("ResourceSet").into_iter().chain(of_kind("ResourceSetInputProvider")) {
        assert_eq!(
            object["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"], "disabled",
            "{file}"
        );
    }
    let syncs =
        of_kind("Kustomization").into_iter().filter(|(_, object)| object["spec"]["sourceRef"].is_object());
    let mut files: Vec<String> = Vec::new();
    for (file, sync) in syncs {
        assert_eq!(sync["spec"]["deletionPolicy"], "Orphan", "{file}");
        files.push(file);
    }
    files.sort();
    assert_eq!(files, ["bootstrap/git/sync.yaml", "bootstrap/oci/sync.yaml"]);
}

#[test]
fn every_value_of_a_template_goes_through_json() {
    for (file, set) in of_kind("ResourceSet") {
        let template = set["spec"]["resourcesTemplate"].as_str().expect("a template");
        assert_eq!(
            set["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/substitute"], "disabled",
            "{file}"
        );
        let actions = template
            .split("<<")
            .skip(1)
            .map(|rest| rest.split(">>").next().unwrap_or_default().trim_matches(['-', ' ']));
        for action in actions {
            let control = ["if ", "else", "end", "range ", "$"].iter().any(|word| action.starts_with(word))
                && !action.contains('|');
            assert!(control || action.ends_with("| toJson"), "{file}: << {action} >>");
            assert!(!control || !action.starts_with('$') || action.contains(":="), "{file}: << {action} >>");
        }
    }
}

/// Templates run with `missingkey=error`: one field that an input lacks stops the whole set.
#[test]
fn templates_name_only_fields_that_inputs_have() {
    let answers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleet/tests/it/golden");
    for (file, set) in of_kind("ResourceSet") {
        let name = set["metadata"]["name"].as_str().expect("a name");
        let answer = if name == "clusters" { name.to_owned() } else { format!("uat-1.{name}") };
        let answer = std::fs::read_to_string(answers.join(format!("{answer}.json"))).expect("an answer");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let input = &answer["inputs"][0];
        let template = set["spec"]["resourcesTemplate"].as_str().expect("a template");
        let fields = template.split("inputs.").skip(1).map(|rest| {
            rest.split(|char: char| !char.is_ascii_alphanumeric() && !"_.".contains(char))
                .next()
                .unwrap_or_default()
        });
        for field in fields {
            let found = input.pointer(&format!("/{}", field.replace('.', "/")));
            assert!(found.is_some(), "{file}: inputs.{field}");
        }
    }
}

#[test]
fn every_source_has_the_credentials_and_the_verification_of_its_component() {
    let sets = of_kind("ResourceSet");
    let (_, set) =
        sets.iter().find(|(_, set)| set["metadata"]["name"] == "platform-components").expect("a set");
    let template = set["spec"]["resourcesTemplate"].as_str().expect("a template");
    let passed_on = |object: &str, field: &str| {
        let lines = [
            format!("<<- if inputs.source.{field} >>"),
            format!("{field}: << inputs.source.{field} | toJson >>"),
            "<<- end >>".to_owned(),
        ];
        let found: Vec<&str> = object.lines().map(str::trim).collect();
        found.windows(lines.len()).any(|window| window == lines)
    };
    let mut sources = Vec::new();
    for object in template.split("apiVersion: source.toolkit.fluxcd.io/v1").skip(1) {
        let kind = object.lines().find_map(|line| line.trim().strip_prefix("kind: ")).expect("a kind");
        let object = object.split("apiVersion: ").next().unwrap_or_default();
        assert!(passed_on(object, "secretRef"), "{kind}");
        assert_eq!(passed_on(object, "verify"), kind == "OCIRepository", "{kind}");
        sources.push(kind);
    }
    assert_eq!(sources, ["OCIRepository", "HelmRepository", "OCIRepository"]);
}

#[test]
fn only_the_identity_is_substituted() {
    for (file, text, _) in manifests() {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        for name in lines.flat_map(|line| {
            line.split("${").skip(1).map(|rest| rest.split('}').next().unwrap_or_default().to_owned())
        }) {
            assert!(
                ["CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT", "INTERNAL_API_URL"].contains(&name.as_str()),
                "{file}: ${{{name}}}"
            );
        }
    }
    let identity = of_kind("ConfigMap");
    let keys: BTreeSet<&str> =
        identity[0].1["data"].as_object().expect("an identity").keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(["CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT", "INTERNAL_API_URL"]));
}

#[test]
fn adoption_and_alerts_know_every_kind() {
    let manifests = manifests();
    let find = |file: &str| {
        let found = manifests.iter().find(|(name, _, _)| name == file).unwrap_or_else(|| panic!("no {file}"));
        (&found.1, &found.2[0])
    };
    let (_, all) = find("adoption/all/kustomization.yaml");
    let named = all["components"].as_array().expect("components").iter();
    let named: BTreeSet<String> =
        named.filter_map(|path| Some(path.as_str()?.trim_start_matches("../").to_owned())).collect();
    assert_eq!(named, flux_kinds());
    let (rules, _) = find("alerts/prometheus/rules.yaml");
    for kind in flux_kinds() {
        let absent =
            format!("absent(flux_resourceset_info{{exported_namespace=\"flux-system\", name=\"{kind}\"}})");
        assert!(rules.contains(&absent), "{kind}");
        let (_, component) = find(&format!("adoption/{kind}/kustomization.yaml"));
        assert_eq!(component["patches"][0]["target"], json!({"kind": "ResourceSet", "name": kind}));
    }
}

/// A plan says that no object changes because of them.
#[test]
fn fields_of_which_plans_say_that_no_template_uses_them_are_used_by_none() {
    for field in fleet::UNUSED_BY_TEMPLATES {
        let used = format!("inputs{}", field.replace('/', "."));
        for (name, text, _) in manifests() {
            assert!(!text.contains(&used), "{name} uses {used}");
        }
    }
    let uses = |used: &str| manifests().iter().any(|(_, text, _)| text.contains(used));
    assert!(
        uses("inputs.component_path") && uses("inputs.cluster.environment"),
        "this is how they are written"
    );
}
