//! The renderer once more, as naively as can be: build a `Value` from the documents by the tables of the book, serialise it. It
//! shares no code with the real one, and tests compare the two.

use fleet::{Answer, Kind, Shape, State, render};
use serde_json::{Map, Value, json};

/// Patch keys that generated fleets use, and the path that each means.
pub(crate) const PATCH_KEYS: [(&str, &[&str]); 4] = [
    ("replicaCount", &["replicaCount"]),
    ("ui.message", &["ui", "message"]),
    ("ui.x\\.io/y", &["ui", "x.io/y"]),
    ("LEVEL", &["LEVEL"]),
];

/// What the installation of an input hangs on: if it is another one, Flux uninstalls what was there.
pub(crate) fn hangs_on(input: &Value) -> Value {
    let is_kustomize = input["delivery"] == "kustomize";
    let follows = is_kustomize && input["cluster_env_enabled"] == true;
    json!([
        input["delivery"],
        is_kustomize.then(|| &input["source"]["oci_url"]),
        follows.then(|| &input["cluster"]["environment"]),
    ])
}

fn typed(text: &str) -> Value {
    let canonical_integer =
        text.parse::<i64>().is_ok_and(|number| number.to_string() == text && number.abs() <= 1 << 53);
    match text {
        "true" | "false" | "null" => serde_json::from_str(text).expect("a word of JSON"),
        _ if canonical_integer => serde_json::from_str(text).expect("a number"),
        _ if text.len() >= 2 && text.starts_with('"') && text.ends_with('"') => {
            json!(text[1..text.len() - 1])
        }
        _ => json!(text),
    }
}

fn values(patches: &Value) -> Value {
    let mut tree = json!({});
    for (key, value) in patches.as_object().expect("a map") {
        let path = PATCH_KEYS.iter().find(|(known, _)| known == key).expect("a key of the table").1;
        let mut at = &mut tree;
        for step in path {
            at = &mut at[*step];
        }
        *at = typed(value.as_str().expect("a string"));
    }
    tree
}

fn or(value: &Value, otherwise: Value) -> Value {
    if value.is_null() { otherwise } else { value.clone() }
}

fn component_input(cluster: &Value, about: &Value, reference: &Value, component: &Value) -> Value {
    let url = component["oci_url"].as_str().expect("a URL");
    let delivery =
        or(&component["delivery"], json!(if url.starts_with("oci://") { "kustomize" } else { "helm" }));
    let patches = or(&cluster["patches"][reference["id"].as_str().expect("an id")], json!({}));
    json!({
        "id": reference["id"],
        "enabled": or(&reference["enabled"], json!(true)),
        "component_path": or(&reference["component_path"], component["component_path"].clone()),
        "component_version": or(&component["component_version"], json!("")),
        "cluster_env_enabled": or(&component["cluster_env_enabled"], json!(false)),
        "depends_on": or(&reference["depends_on"], or(&component["depends_on"], json!([]))),
        "source": {
            "oci_url": url,
            "oci_tag": or(&reference["oci_tag"], component["oci_tag"].clone()),
            "secretRef": or(&component["secretRef"], json!({})),
            "verify": or(&component["verify"], json!({})),
        },
        "values": if delivery == "helm" { values(&patches) } else { json!({}) },
        "patches": patches,
        "delivery": delivery,
        "cluster": about,
    })
}

fn definition_input(kind: &Kind, about: &Value, reference: &Value, definition: &Value) -> Value {
    let mut input = Map::new();
    for (name, property) in kind.document_schema()["properties"].as_object().expect("properties") {
        let empty = match property["type"].as_str().expect("a type") {
            "string" => json!(""),
            "boolean" => json!(false),
            "array" => json!([]),
            "object" => json!({}),
            _ => json!(0),
        };
        let otherwise = or(&property["default"], empty);
        input.insert(name.clone(), or(&reference[name], or(&definition[name], otherwise)));
    }
    input.insert("cluster".to_owned(), about.clone());
    input.into()
}

/// The hash of an input: the sum, modulo 2^64, of 64 bits of BLAKE3 for each field. The members of `source` count one by one.
fn hash(input: &Value) -> String {
    let mut sum = 0_u64;
    let mut add = |name: &str, value: &Value| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"field");
        for part in [name, &value.to_string()] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let bytes: [u8; 8] = hasher.finalize().as_bytes()[..8].try_into().expect("eight bytes");
        sum = sum.wrapping_add(u64::from_be_bytes(bytes));
    };
    for (name, value) in input.as_object().expect("an object") {
        match (name.as_str(), value.as_object().filter(|_| input.get("delivery").is_some())) {
            ("source", Some(source)) => {
                source.iter().for_each(|(member, value)| add(&format!("source/{member}"), value));
            }
            _ => add(name, value),
        }
    }
    format!("{sum:016x}")
}

/// The inputs that a cluster should get, as a list.
pub(crate) fn inputs(state: &State, cluster: &str, kind: &Kind) -> Vec<Value> {
    let cluster = Value::Object(state.document("clusters", cluster).expect("a live cluster").0);
    let about = json!({"name": cluster["cluster_name"], "dns": cluster["cluster_dns"], "environment": cluster["environment"]});
    let name = kind.name().as_str();
    let references = cluster[name].as_array().cloned().unwrap_or_default();
    let input = |reference: &Value| {
        let id = reference["id"].as_str().expect("an id");
        let document = Value::Object(state.document(name, id).expect("it is referred to").0);
        let mut input = match kind.shape() {
            Shape::Component => component_input(&cluster, &about, reference, &document),
            _ => definition_input(kind, &about, reference, &document),
        };
        input["hash"] = json!(hash(&input));
        input
    };
    let mut inputs: Vec<Value> = references.iter().map(input).collect();
    inputs.sort_by_key(|input| input["id"].as_str().expect("an id").to_owned());
    inputs
}

/// Compares the real renderer with this one, on everything.
pub(crate) fn agree(state: &State) {
    for cluster in state.clusters() {
        for kind in state.kinds().referable() {
            let expected = json!({"inputs": inputs(state, cluster.doc.id.as_str(), kind)}).to_string();
            let Answer::Inputs(real) = render(state, cluster.doc.dns.as_str(), kind.path()) else {
                panic!("it is live")
            };
            assert_eq!(std::str::from_utf8(real.body()).expect("text"), expected);
        }
    }
}
