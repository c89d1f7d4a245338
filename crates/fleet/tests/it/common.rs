//! A fleet to try things on. Each test builds what it needs; this only spares the words around it.

use std::sync::Arc;

use fleet::{
    Answer, Applied, Commit, CommitId, ConfirmDigest, Kind, Operation, Origin, Patch, Plan, Policy,
    Rejection, State, Target, Timestamp, Transaction, apply, plan, render,
};
use serde_json::{Value, json};

/// A fleet, and a clock that stands still until it is told.
pub(crate) struct Fleet {
    pub(crate) state: State,
    pub(crate) policy: Policy,
    pub(crate) now: i64,
    /// Whether a program works out what is sent.
    pub(crate) derived: bool,
    /// Every commit so far.
    pub(crate) commits: Vec<Commit>,
    transactions: u128,
}

pub(crate) fn origin(commit: u128, time: i64) -> Origin {
    Origin { commit: CommitId(commit), time: Timestamp(time), actor: "tester".into(), ..Origin::default() }
}

impl Fleet {
    /// The shipped kinds and nothing else.
    pub(crate) fn empty() -> Self {
        let mut fleet = Self {
            state: State::empty(),
            policy: Policy::default(),
            now: 1_800_000_000_000,
            derived: false,
            commits: Vec::new(),
            transactions: 0,
        };
        fleet.accept(Kind::shipped().into_iter().map(|kind| Operation::Define(Arc::new(kind))).collect());
        fleet
    }

    /// Two clusters, six components, three namespaces, two rolebindings.
    pub(crate) fn small() -> Self {
        let mut fleet = Self::empty();
        let helm = |id: &str, depends_on: Value| {
            let url = "https://charts.example.com";
            json!({"id": id, "component_path": id, "oci_url": url, "oci_tag": "1.0.0", "depends_on": depends_on})
        };
        let kustomize = |id: &str, env: bool| {
            let path = format!("core/{id}/1.0.0");
            json!({"id": id, "component_path": path, "oci_url": "oci://registry.example.com/platform", "oci_tag": "v1.0.0", "cluster_env_enabled": env})
        };
        fleet.accept(vec![
            create("platform_components", helm("cert-manager", json!([]))),
            create("platform_components", helm("traefik", json!(["cert-manager"]))),
            create("platform_components", helm("podinfo", json!([]))),
            create("platform_components", helm("grafana", json!([]))),
            create("platform_components", kustomize("policies", true)),
            create("platform_components", kustomize("logging", false)),
            create("namespaces", json!({"id": "team-a", "labels": {"team": "a"}})),
            create("namespaces", json!({"id": "team-b"})),
            create("namespaces", json!({"id": "team-c", "annotations": {"example.com/owner": "c"}})),
            create("rolebindings", json!({"id": "viewers", "role": "view", "subjects": [{"kind": "Group", "name": "all"}]})),
            create("rolebindings", json!({"id": "deployer", "role": "edit", "subjects": [{"kind": "ServiceAccount", "name": "ci", "namespace": "team-a"}]})),
            create("clusters", json!({
                "id": "dev-1", "cluster_name": "dev one", "cluster_dns": "dev-1.k8s.example.com", "environment": "dev",
                "labels": {"region": "eu"},
                "platform_components": [{"id": "cert-manager"}, {"id": "grafana"}, {"id": "podinfo"}, {"id": "policies"}, {"id": "traefik"}],
                "namespaces": [{"id": "team-a"}, {"id": "team-b"}, {"id": "team-c"}],
                "rolebindings": [{"id": "viewers"}],
                "patches": {"podinfo": {"replicaCount": "2", "ui.message": "hello"}, "policies": {"LEVEL": "strict"}},
            })),
            create("clusters", json!({
                "id": "prod-1", "cluster_name": "prod-1", "cluster_dns": "prod-1.k8s.example.com", "environment": "prod",
                "labels": {"region": "us", "legacy": ""},
                "platform_components": [{"id": "cert-manager"}, {"id": "grafana", "oci_tag": "0.9.0"}, {"id": "policies"}],
                "namespaces": [{"id": "team-a", "labels": {"team": "a", "tier": "gold"}}],
            })),
        ]);
        fleet
    }

    fn transaction(&mut self, operations: Vec<Operation>, confirm: Option<ConfirmDigest>) -> Transaction {
        self.transactions += 1;
        let derived = self.derived;
        Transaction { operations, derived, confirm, origin: origin(self.transactions, self.now) }
    }

    pub(crate) fn try_apply(&mut self, operations: Vec<Operation>) -> Result<Applied, Rejection> {
        self.send(operations, None)
    }

    /// What would come of it.
    #[track_caller]
    pub(crate) fn plan(&mut self, operations: Vec<Operation>) -> Plan {
        self.try_plan(operations).expect("it keeps the rules")
    }

    /// The same, if it keeps the rules.
    pub(crate) fn try_plan(&mut self, operations: Vec<Operation>) -> Result<Plan, Rejection> {
        let transaction = self.transaction(operations, None);
        plan(&self.state, &self.policy, &transaction)
    }

    /// Applies it with or without a confirmation.
    pub(crate) fn send(
        &mut self,
        operations: Vec<Operation>,
        confirm: Option<ConfirmDigest>,
    ) -> Result<Applied, Rejection> {
        let transaction = self.transaction(operations, confirm);
        let result = apply(&self.state, &self.policy, &transaction);
        if let Ok(applied) = &result {
            self.commits.extend(applied.commit.clone());
            self.state = applied.next.clone();
        }
        result
    }

    /// Applies, with a reason, what must be accepted.
    #[track_caller]
    pub(crate) fn reasoned(&mut self, reason: &str, operations: Vec<Operation>) -> Applied {
        let mut transaction = self.transaction(operations, None);
        transaction.origin.reason = Some(reason.into());
        let applied = apply(&self.state, &self.policy, &transaction)
            .unwrap_or_else(|rejection| panic!("{rejection:#?}"));
        self.commits.extend(applied.commit.clone());
        self.state = applied.next.clone();
        applied
    }

    /// Applies what must be accepted.
    #[track_caller]
    pub(crate) fn accept(&mut self, operations: Vec<Operation>) -> Applied {
        self.try_apply(operations).unwrap_or_else(|rejection| panic!("rejected: {rejection:#?}"))
    }

    /// Applies what must be rejected, and shows that nothing happened.
    #[track_caller]
    pub(crate) fn reject(&mut self, operations: Vec<Operation>) -> Rejection {
        let before = self.state.clone();
        match self.try_apply(operations) {
            Ok(applied) => panic!("accepted: {:#?}", applied.commit),
            Err(rejection) => {
                assert_eq!(self.state, before, "a rejected transaction changes nothing");
                rejection
            }
        }
    }

    /// What is wrong with it: `pointer: message` of each violation.
    #[track_caller]
    pub(crate) fn complaints(&mut self, operations: Vec<Operation>) -> Vec<String> {
        let rejection = self.reject(operations);
        assert!(!rejection.violations().is_empty(), "{rejection:#?}");
        rejection.violations().iter().map(|v| format!("{}: {}", v.pointer, v.message)).collect()
    }

    /// Applies what the guard stops, confirmed.
    #[track_caller]
    pub(crate) fn confirm(&mut self, operations: Vec<Operation>) -> Applied {
        let Rejection::Confirm(confirmation) = self.reject(operations.clone()) else {
            panic!("no confirmation was asked for")
        };
        self.send(operations, Some(confirmation.digest)).unwrap_or_else(|rejection| panic!("{rejection:#?}"))
    }

    /// The answer to a poll, as JSON.
    #[track_caller]
    pub(crate) fn inputs(&self, cluster: &str, path: &str) -> Value {
        match render(&self.state, &format!("{cluster}.k8s.example.com"), path) {
            Answer::Inputs(inputs) => {
                serde_json::from_slice::<Value>(inputs.body()).expect("it is JSON")["inputs"].clone()
            }
            other => panic!("{other:?}"),
        }
    }

    /// One input of a cluster.
    #[track_caller]
    pub(crate) fn input(&self, cluster: &str, path: &str, id: &str) -> Value {
        let inputs = self.inputs(cluster, path);
        let found = inputs.as_array().expect("a list").iter().find(|input| input["id"] == id);
        found.unwrap_or_else(|| panic!("no {id} in {inputs:#}")).clone()
    }

    /// The ids of a cluster's inputs.
    pub(crate) fn ids(&self, cluster: &str, path: &str) -> Vec<String> {
        let inputs = self.inputs(cluster, path);
        inputs
            .as_array()
            .expect("a list")
            .iter()
            .map(|input| input["id"].as_str().expect("a string").to_owned())
            .collect()
    }

    pub(crate) fn document(&self, kind: &str, id: &str) -> Value {
        Value::Object(self.state.document(kind, id).unwrap_or_else(|| panic!("no {kind}/{id}")).0)
    }
}

/// Every document and decommission record with its text: what two states have in common that say the same.
pub(crate) fn contents(state: &State) -> Vec<(String, String)> {
    let mut contents = Vec::new();
    for kind in state.kinds().iter().map(|kind| kind.name().as_str()) {
        for id in state.ids(kind) {
            let (body, _) = state.body(kind, id.as_str()).expect("it is listed");
            contents.push((format!("{kind}/{id}"), body.as_str().to_owned()));
        }
    }
    contents.extend(
        state.tombstones().iter().map(|record| ("decommissioned".to_owned(), record.doc.dns.to_string())),
    );
    contents
}

pub(crate) fn create(kind: &str, body: Value) -> Operation {
    Operation::Create { kind: kind.into(), body, replace_decommissioned: false }
}

pub(crate) fn put(kind: &str, id: &str, body: Value) -> Operation {
    Operation::Put { kind: kind.into(), id: id.into(), body, expect: None }
}

pub(crate) fn strategic(kind: &str, id: &str, body: Value) -> Operation {
    Operation::Patch { kind: kind.into(), target: Target::one(id), patch: Patch::Strategic(body) }
}

/// A component that becomes a directory of an artifact.
pub(crate) fn by_kustomize(id: &str) -> Operation {
    let body = json!({"delivery": "kustomize", "oci_url": "oci://registry.example.com/platform"});
    strategic("platform_components", id, body)
}

pub(crate) fn merge(kind: &str, id: &str, body: Value) -> Operation {
    Operation::Patch { kind: kind.into(), target: Target::one(id), patch: Patch::Merge(body) }
}

pub(crate) fn json_patch(kind: &str, id: &str, body: Value) -> Operation {
    Operation::Patch { kind: kind.into(), target: Target::one(id), patch: Patch::Json(body) }
}

pub(crate) fn delete(kind: &str, id: &str) -> Operation {
    Operation::Delete { kind: kind.into(), target: Target::one(id) }
}

pub(crate) fn assign(cluster: &str, kind: &str, id: &str, overrides: Value) -> Operation {
    Operation::Assign { clusters: Target::one(cluster), kind: kind.into(), id: id.into(), overrides }
}

pub(crate) fn patch_reference(cluster: &str, kind: &str, id: &str, body: Value) -> Operation {
    Operation::PatchReference {
        clusters: Target::one(cluster),
        kind: kind.into(),
        id: id.into(),
        patch: Patch::Strategic(body),
    }
}

pub(crate) fn unassign(cluster: &str, kind: &str, id: &str) -> Operation {
    Operation::RemoveReference { clusters: Target::one(cluster), kind: kind.into(), id: id.into() }
}

pub(crate) fn selected(selector: &str) -> Target {
    Target::Selected(fleet::Selector::parse(selector).expect("a good selector"))
}

/// A kind of nothing but an id, to make many small inputs of.
pub(crate) fn tiny_kind(extra: &Value) -> Operation {
    let mut properties = json!({"id": {"type": "string", "format": "dns-label"}});
    properties.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
    let file = json!({
        "kind": "tinies", "apiVersion": "v1", "metadata": {"x-flux": {"shape": "definition", "singular": "tiny"}},
        "schema": {"type": "array", "key": {"name": "id", "schema": {"type": "string"}}, "items": {"type": "object", "properties": properties, "required": ["id"]}},
    });
    Operation::Define(Arc::new(
        Kind::parse(&file.to_string(), &fleet::Reserved::none()).expect("a good kind"),
    ))
}

pub(crate) fn cluster(id: &str) -> Value {
    json!({"id": id, "cluster_name": id, "cluster_dns": format!("{id}.k8s.example.com"), "environment": "dev"})
}

pub(crate) fn component(id: &str) -> Value {
    json!({"id": id, "component_path": id, "oci_url": "https://charts.example.com", "oci_tag": "1.0.0"})
}
