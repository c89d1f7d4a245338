//! What Kubernetes or Flux would refuse, or would do harm with: names and subjects.

use super::assert_contains;
use crate::common::*;
use serde_json::{Value, json};

#[test]
fn names_that_belong_to_flux_or_the_cluster_are_refused() {
    let mut fleet = Fleet::empty();
    for id in ["default", "kube-system", "kube-public", "flux-system"] {
        assert_contains(&fleet.complaints(vec![create("namespaces", json!({"id": id}))]), &["is reserved"]);
    }
    for id in ["cluster-admin", "flux-viewers", "cluster-reconciler-flux-system", "crd-controller"] {
        let body = json!({"id": id, "role": "view", "subjects": [{"kind": "Group", "name": "g"}]});
        assert_contains(&fleet.complaints(vec![create("rolebindings", body)]), &["is reserved"]);
    }
    for id in ["flux-operator", "cluster-plane"] {
        assert_contains(
            &fleet.complaints(vec![create("platform_components", component(id))]),
            &["is reserved"],
        );
    }
    fleet.accept(vec![
        create("namespaces", json!({"id": "kubernetes"})),
        create("platform_components", component("fluxless")),
    ]);
}

#[test]
fn ids_are_as_long_as_helm_and_kubernetes_allow() {
    let mut fleet = Fleet::empty();
    let id = |length: usize| "a".repeat(length);
    fleet.accept(vec![
        create("platform_components", component(&id(53))),
        create("namespaces", json!({"id": id(63)})),
    ]);
    assert_contains(
        &fleet.complaints(vec![create("platform_components", component(&id(54)))]),
        &["/id: has 54 characters; 53 are the most"],
    );
    let complaints = fleet.complaints(vec![create("namespaces", json!({"id": id(64)}))]);
    assert!(complaints.iter().any(|c| c == "/id: has 64 characters; 63 are the most"), "{complaints:#?}");
}

#[test]
fn subjects_are_what_kubernetes_accepts() {
    let mut fleet = Fleet::empty();
    let mut complaints = |subjects: Value| {
        fleet.complaints(vec![create(
            "rolebindings",
            json!({"id": "x", "role": "view", "subjects": subjects}),
        )])
    };
    assert_contains(&complaints(json!([])), &["/subjects: must have at least 1 item"]);
    assert_contains(
        &complaints(json!([{"kind": "Robot", "name": "r"}])),
        &["/subjects/0/kind: must be one of \"User\", \"Group\", \"ServiceAccount\", not \"Robot\""],
    );
    assert_contains(
        &complaints(json!([{"kind": "ServiceAccount", "name": "ci"}])),
        &["/subjects/0: a ServiceAccount needs the `namespace`"],
    );
    assert_contains(
        &complaints(json!([{"kind": "User", "name": "u", "namespace": "n"}])),
        &["/subjects/0/namespace: a User or a Group has no `namespace`"],
    );
    assert_contains(
        &complaints(json!([{"kind": "Group", "name": "g", "apiGroup": "apps"}])),
        &["/subjects/0/apiGroup: a User or a Group has no `namespace`, and no `apiGroup` but"],
    );
    assert_contains(
        &complaints(json!([{"kind": "Group", "name": "<<g>>"}])),
        &["/subjects/0/name: \"<<g>>\" is not a name"],
    );
    assert_contains(
        &complaints(json!([{"kind": "User", "name": "u", "apiGroup": ""}])),
        &["/subjects/0/apiGroup: a User or a Group has no `namespace`, and no `apiGroup` but"],
    );
    for (field, wrong) in
        [("name", "CI"), ("name", "ci_bot"), ("namespace", "a.b"), ("namespace", ""), ("apiGroup", "x")]
    {
        let mut account = json!({"kind": "ServiceAccount", "name": "ci", "namespace": "tools"});
        account[field] = json!(wrong);
        let told = format!("/subjects/0/{field}: a ServiceAccount needs the `namespace` it lives in");
        assert_contains(&complaints(json!([account])), &[&told]);
    }
    // No name at all is two things at once: too little for any subject, and no name of a ServiceAccount.
    assert_eq!(complaints(json!([{"kind": "ServiceAccount", "name": "", "namespace": "tools"}])).len(), 2);
    assert_contains(
        &complaints(json!([{"kind": "User", "name": ""}])),
        &["/subjects/0/name: \"\" is not a name"],
    );
    assert_contains(
        &complaints(json!([{"name": "u"}])),
        &["/subjects/0/kind: `kind` is required", "/subjects/0: a ServiceAccount needs"],
    );
}

#[test]
fn a_role_is_a_name_that_kubernetes_takes() {
    let mut fleet = Fleet::small();
    for role in ["", ".", "..", "a/b", "a%b", "a b"] {
        let told = format!("/role: \"{role}\" is not the name of a ClusterRole");
        let body = json!({"id": "x", "role": role, "subjects": [{"kind": "Group", "name": "g"}]});
        assert_contains(&fleet.complaints(vec![create("rolebindings", body)]), &[&told]);
        let own = assign("dev-1", "rolebindings", "viewers", json!({"role": role}));
        assert_contains(&fleet.complaints(vec![own]), &[&format!("/rolebindings/0{told}")]);
    }
    fleet.accept(vec![assign(
        "dev-1",
        "rolebindings",
        "viewers",
        json!({"role": "system:aggregate-to-view"}),
    )]);
}

/// A Helm release and its namespace are called like the component.
#[test]
fn a_component_cannot_be_called_like_a_namespace_of_the_cluster_itself() {
    let mut fleet = Fleet::empty();
    for id in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        assert_contains(
            &fleet.complaints(vec![create("platform_components", component(id))]),
            &["is reserved"],
        );
    }
    fleet.accept(vec![create("platform_components", component("kube-prometheus-stack"))]);
}

/// `${CLUSTER_NAME}` is substituted as text: a newline or `: ` broke the alerts of the cluster.
#[test]
fn the_name_of_a_cluster_stays_one_text_wherever_it_is_substituted() {
    let mut fleet = Fleet::empty();
    for name in ["a\nb", "a: b", "007", "true", "- a"] {
        let mut body = cluster("a");
        body["cluster_name"] = json!(name);
        assert_contains(&fleet.complaints(vec![create("clusters", body)]), &["/cluster_name: "]);
    }
    let mut body = cluster("a");
    body["cluster_name"] = json!("Zürich one");
    fleet.accept(vec![create("clusters", body)]);
}
