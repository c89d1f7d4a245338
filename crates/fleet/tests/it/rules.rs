//! Bad input: what each is told, and that nothing happens.

use crate::common::*;
use fleet::{Reason, Rejection};
use serde_json::{Value, json};

#[track_caller]
fn assert_contains(complaints: &[String], expected: &[&str]) {
    for part in expected {
        assert!(
            complaints.iter().any(|complaint| complaint.contains(part)),
            "{part:?} is not in {complaints:#?}"
        );
    }
    assert_eq!(complaints.len(), expected.len(), "{complaints:#?}");
}

#[test]
fn three_errors_in_one_document_are_all_reported() {
    let mut fleet = Fleet::small();
    let mut body = cluster("new");
    body["environment"] = json!("staging");
    body["colour"] = json!("red");
    body["namespaces"] = json!([{"id": "nowhere"}]);
    let complaints = fleet.complaints(vec![create("clusters", body)]);
    assert_contains(
        &complaints,
        &[
            "/colour: unknown field `colour`; known are cluster_dns, cluster_name, environment, id,",
            "/environment: must be one of \"dev\", \"qa\", \"uat\", \"prod\", not \"staging\"",
            "/namespaces/0: there is no namespace `nowhere`; create it first",
        ],
    );
}

#[test]
fn violations_say_which_operation_of_a_batch_they_are_of() {
    let mut fleet = Fleet::small();
    let rejection = fleet.reject(vec![
        create("namespaces", json!({"id": "fine"})),
        create("namespaces", json!({"id": "Bad"})),
        strategic("clusters", "dev-1", json!({"node_count": "three"})),
    ]);
    let told: Vec<_> = rejection.violations().iter().map(|v| (v.operation, v.pointer.to_string())).collect();
    assert_eq!(told, [(1, "/id".to_owned()), (2, "/node_count".to_owned())]);
    assert_eq!(rejection.reason(), Some(&Reason::Invalid));
}

#[test]
fn wrong_types_and_missing_fields() {
    let mut fleet = Fleet::small();
    assert_contains(
        &fleet.complaints(vec![create(
            "platform_components",
            json!({"id": "x", "component_path": 7, "oci_tag": "v1", "depends_on": "y"}),
        )]),
        &[
            "/component_path: must be a string, not 7",
            "/depends_on: must be an array, not \"y\"",
            "/oci_url: `oci_url` is required and missing",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![create("namespaces", json!("team"))]),
        &[": must be an object, not \"team\""],
    );
    assert_contains(
        &fleet.complaints(vec![create("namespaces", json!({"labels": {}}))]),
        &["/id: `id` is required"],
    );
    assert_contains(
        &fleet.complaints(vec![create("nonsense", json!({"id": "x"}))]),
        &["there is no kind `nonsense`; there are clusters, namespaces,"],
    );
}

#[test]
fn duplicate_and_dangling_references() {
    let mut fleet = Fleet::small();
    let mut body = cluster("new");
    body["namespaces"] = json!([{"id": "team-b"}, {"id": "team-a"}, {"id": "team-b"}]);
    body["platform_components"] = json!([{"id": "ghost"}]);
    assert_contains(
        &fleet.complaints(vec![create("clusters", body)]),
        &[
            "/namespaces/2: `team-b` is there twice; list each namespace once",
            "/platform_components/0: there is no platform_component `ghost`",
        ],
    );
    let both =
        vec![strategic("clusters", "dev-1", json!({"namespaces": [{"id": "team-a"}, {"id": "team-a"}]}))];
    assert_contains(&fleet.complaints(both), &["/namespaces/1: the patch names `team-a` twice"]);
}

#[test]
fn what_refers_to_a_document_that_cannot_be_read_is_not_wrong_on_top_of_that() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![
        create("namespaces", json!({"id": "odd", "labels": {"a": 1}})),
        create(
            "platform_components",
            json!({"id": "odd", "component_path": 1, "oci_url": "https://x.io", "oci_tag": "1"}),
        ),
        assign("dev-1", "namespaces", "odd", json!(null)),
        assign("dev-1", "platform_components", "odd", json!(null)),
    ]);
    assert_contains(
        &complaints,
        &["/labels/a: must be a string, not 1", "/component_path: must be a string, not 1"],
    );
}

#[test]
fn a_dependency_cycle_over_five_components() {
    let mut fleet = Fleet::empty();
    let link = |id: &str, next: &str| {
        let mut body = component(id);
        body["depends_on"] = json!([next]);
        create("platform_components", body)
    };
    let ring = vec![link("a", "b"), link("b", "c"), link("c", "d"), link("d", "e"), link("e", "a")];
    let complaints = fleet.complaints(ring.clone());
    assert_eq!(complaints.len(), 5, "{complaints:#?}");
    assert_eq!(
        complaints[0],
        "/depends_on: the dependencies go round in a circle: `a` → `b` → `c` → `d` → `e` → `a`"
    );

    fleet.accept([ring[..4].to_vec(), vec![create("platform_components", component("e"))]].concat());
    let closed = fleet.complaints(vec![strategic("platform_components", "e", json!({"depends_on": ["a"]}))]);
    assert_contains(&closed, &["`e` → `a` → `b` → `c` → `d` → `e`"]);
    let alone = fleet.complaints(vec![strategic("platform_components", "e", json!({"depends_on": ["e"]}))]);
    assert_contains(&alone, &["/depends_on/0: a component cannot depend on itself"]);
}

#[test]
fn a_cluster_cannot_close_a_circle_with_its_own_dependencies() {
    let mut fleet = Fleet::small();
    let own = assign("dev-1", "platform_components", "cert-manager", json!({"depends_on": ["traefik"]}));
    assert_contains(
        &fleet.complaints(vec![own]),
        &[
            "/platform_components: the dependencies go round in a circle: `cert-manager` → `traefik` → `cert-manager`",
        ],
    );
}

#[test]
fn helm_cannot_depend_on_kustomize() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![strategic(
        "platform_components",
        "podinfo",
        json!({"depends_on": ["logging"]}),
    )]);
    assert_contains(
        &complaints,
        &[
            "/depends_on/0: `podinfo` is delivered by helm and depends on `logging`, which is delivered by kustomize: Flux would wait for ever",
            ": on the cluster `dev-1`: `podinfo` depends on `logging`, which is not assigned to this cluster",
        ],
    );
    let own = assign("dev-1", "platform_components", "podinfo", json!({"depends_on": ["policies"]}));
    assert_contains(
        &fleet.complaints(vec![own]),
        &["/platform_components/2/depends_on/0: `podinfo` is delivered by helm and depends on `policies`"],
    );
    let redelivered = strategic("platform_components", "cert-manager", json!({"delivery": "kustomize"}));
    assert_contains(
        &fleet.complaints(vec![redelivered]),
        &[
            "/delivery: `traefik` is delivered by helm and depends on `cert-manager`, which is delivered by kustomize",
        ],
    );
}

#[test]
fn dependencies_are_assigned_and_enabled_or_overridden() {
    let mut fleet = Fleet::small();
    let without = strategic(
        "clusters",
        "dev-1",
        json!({"platform_components": [{"id": "cert-manager", "$patch": "delete"}]}),
    );
    assert_contains(
        &fleet.complaints(vec![without.clone()]),
        &[
            "/platform_components/3: `traefik` depends on `cert-manager`, which is not assigned to this cluster",
        ],
    );
    let disabled = patch_reference("dev-1", "platform_components", "cert-manager", json!({"enabled": false}));
    assert_contains(
        &fleet.complaints(vec![disabled]),
        &["/platform_components/4: `traefik` depends on `cert-manager`, which is disabled here"],
    );
    fleet.accept(vec![assign("dev-1", "platform_components", "traefik", json!({"depends_on": []})), without]);
    assert_eq!(fleet.input("dev-1", "platform-components", "traefik")["depends_on"], json!([]));
    let disabled_needs_nothing =
        vec![assign("prod-1", "platform_components", "traefik", json!({"enabled": false}))];
    fleet.accept(disabled_needs_nothing);
}

#[test]
fn a_dns_name_is_taken_by_the_living_and_by_the_dead() {
    let mut fleet = Fleet::small();
    let mut body = cluster("other");
    body["cluster_dns"] = json!("dev-1.k8s.example.com");
    let taken = fleet.reject(vec![create("clusters", body.clone())]);
    assert_eq!(taken.reason(), Some(&Reason::Exists));
    assert_eq!(
        taken.violations()[0].message,
        "`dev-1.k8s.example.com` is already the DNS name of the cluster `dev-1`"
    );

    let mut twin = body.clone();
    twin["id"] = json!("twin");
    fleet.accept(vec![delete("clusters", "dev-1")]);
    let buried = fleet.reject(vec![create("clusters", body.clone())]);
    assert_eq!(buried.reason(), Some(&Reason::Exists));
    assert!(buried.violations()[0].message.contains("belongs to a decommissioned cluster"), "{buried:#?}");

    let replacing = |body: &Value| fleet::Operation::Create {
        kind: "clusters".into(),
        body: body.clone(),
        replace_decommissioned: true,
    };
    let twins = fleet.reject(vec![replacing(&body), replacing(&twin)]);
    assert_eq!(twins.reason(), Some(&Reason::Exists));
    fleet.accept(vec![replacing(&body)]);
    assert!(fleet.state.tombstones().is_empty());
}

#[test]
fn identity_never_changes() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![strategic(
        "clusters",
        "dev-1",
        json!({"id": "dev-2", "cluster_dns": "dev-2.k8s.example.com"}),
    )]);
    assert_contains(
        &complaints,
        &[
            "/cluster_dns: `cluster_dns` cannot be changed: it is `dev-1.k8s.example.com`",
            "/id: `id` cannot be changed: it is `dev-1`",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![put("namespaces", "team-a", json!({"id": "team-z"}))]),
        &["/id: `id` cannot be changed"],
    );
}

#[test]
fn what_is_in_use_is_not_deleted() {
    let mut fleet = Fleet::small();
    let rejection = fleet.reject(vec![delete("namespaces", "team-a")]);
    let Some(Reason::InUse { by }) = rejection.reason() else { panic!("{rejection:#?}") };
    assert_eq!(
        (by.total, by.first.iter().map(fleet::Id::as_str).collect::<Vec<_>>()),
        (2, vec!["dev-1", "prod-1"])
    );
    let needed = fleet.complaints(vec![delete("platform_components", "cert-manager")]);
    assert_contains(
        &needed,
        &[
            "still referred to by the clusters `dev-1`, `prod-1`",
            "the components `traefik` still depend on `cert-manager`",
        ],
    );

    fleet.accept(vec![unassign("dev-1", "namespaces", "team-c"), delete("namespaces", "team-c")]);
    fleet.accept(vec![assign(
        "prod-1",
        "platform_components",
        "grafana",
        json!({"enabled": false, "depends_on": ["podinfo"]}),
    )]);
    assert_contains(
        &fleet.complaints(vec![
            unassign("dev-1", "platform_components", "podinfo"),
            delete("platform_components", "podinfo"),
        ]),
        &["`platform_components/podinfo` is still referred to by the clusters `prod-1`"],
    );
}

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
fn a_document_is_at_most_64_kib_and_a_cluster_1_mib() {
    let mut fleet = Fleet::empty();
    let namespace = |note: usize| json!({"id": "big", "annotations": {"note": "x".repeat(note)}});
    let frame = namespace(0).to_string().len();
    let too_large = fleet.reject(vec![create("namespaces", namespace(64 * 1024 - frame + 1))]);
    assert_eq!(too_large.reason(), Some(&Reason::TooLarge));
    assert_eq!(too_large.violations()[0].message, "the document has 65537 bytes; 65536 are the most");
    fleet.accept(vec![create("namespaces", namespace(64 * 1024 - frame))]);

    let body = |note: usize| {
        let mut body = cluster("big");
        body["patches"] = json!({"podinfo": {"note": "x".repeat(note)}});
        body["platform_components"] = json!([{"id": "podinfo"}]);
        body
    };
    fleet.accept(vec![create("platform_components", component("podinfo"))]);
    let frame = body(0).to_string().len();
    let rejection = fleet.reject(vec![create("clusters", body(1024 * 1024 - frame + 1))]);
    assert!(
        rejection
            .violations()
            .iter()
            .any(|v| v.message == "the document has 1048577 bytes; 1048576 are the most")
    );
}

#[test]
fn numbers_beyond_two_to_the_53_and_control_characters_are_refused() {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![tiny_kind(&json!({"size": {"type": "integer"}, "note": {"type": "string"}}))]);
    fleet.accept(vec![create(
        "tinies",
        json!({"id": "fits", "size": 9_007_199_254_740_992_u64, "note": "tab\t"}),
    )]);
    let complaints = fleet.complaints(vec![create(
        "tinies",
        json!({"id": "x", "size": 9_007_199_254_740_993_u64, "note": "nul\u{0}"}),
    )]);
    assert_contains(
        &complaints,
        &["/note: the text has the character U+0000", "/size: 9007199254740993 is beyond ±2^53"],
    );
}

#[test]
fn patches_name_assigned_components_and_fit_their_delivery() {
    let mut fleet = Fleet::small();
    let patches = |of: Value| vec![strategic("clusters", "dev-1", json!({"patches": of}))];
    assert_contains(
        &fleet.complaints(patches(json!({"logging": {"A": "b"}}))),
        &["/patches/logging: `logging` is not among the cluster's platform_components"],
    );
    assert_contains(
        &fleet.complaints(patches(
            json!({"policies": {"a.b": "x", "CLUSTER_DNS": "x", "OK": "a: b", "LAST": "x:"}}),
        )),
        &[
            "/patches/policies/CLUSTER_DNS: `CLUSTER_DNS` is given by the cluster's identity",
            "/patches/policies/LAST: the value is put into YAML",
            "/patches/policies/OK: the value is put into YAML",
            "/patches/policies/a.b: `a.b` cannot be a substitution variable",
        ],
    );
    assert_contains(
        &fleet.complaints(patches(json!({"podinfo": {"a": "1", "a.b": "2", "l[1]": "x"}}))),
        &["/patches/podinfo/a.b: contradicts", "/patches/podinfo: the list `l` has a gap"],
    );
    assert_contains(
        &fleet.complaints(patches(json!({"podinfo": {"replicaCount": 3}}))),
        &["/patches/podinfo/replicaCount: must be a string, not 3"],
    );
    let token = format!("glpat-{}", "a1B2".repeat(6));
    assert_contains(
        &fleet.complaints(patches(json!({"podinfo": {"token": token}}))),
        &["/patches/podinfo/token: this looks like a GitLab token; keep secrets in a secret store"],
    );
}

#[test]
fn patches_that_stop_fitting_because_the_catalog_changes_are_refused() {
    let mut fleet = Fleet::small();
    let change = vec![strategic("platform_components", "podinfo", json!({"delivery": "kustomize"}))];
    assert_contains(
        &fleet.complaints(change),
        &[": on the cluster `dev-1`: `ui.message` cannot be a substitution variable"],
    );
}

#[test]
fn a_plus_in_a_tag_is_for_chart_repositories_only() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![strategic("platform_components", "podinfo", json!({"oci_tag": "1.0.0+up2"}))]);
    assert_contains(
        &fleet.complaints(vec![strategic("platform_components", "logging", json!({"oci_tag": "1.0.0+up2"}))]),
        &["/oci_tag: a tag in an OCI registry cannot have a `+`"],
    );
    assert_contains(
        &fleet.complaints(vec![assign(
            "dev-1",
            "platform_components",
            "policies",
            json!({"oci_tag": "1+2"}),
        )]),
        &["/platform_components/3/oci_tag: a tag in an OCI registry cannot have a `+`"],
    );
    fleet.accept(vec![assign("dev-1", "platform_components", "podinfo", json!({"oci_tag": "2.0.0+x"}))]);
    let moved = vec![strategic(
        "platform_components",
        "podinfo",
        json!({"oci_url": "oci://registry.example.com/podinfo", "delivery": "helm", "oci_tag": "1.0.0"}),
    )];
    assert_contains(
        &fleet.complaints(moved),
        &[": on the cluster `dev-1`: a tag in an OCI registry cannot have a `+`"],
    );
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
}

#[test]
fn overrides_are_checked_by_the_schema_of_their_kind() {
    let mut fleet = Fleet::small();
    assert_contains(
        &fleet.complaints(vec![assign(
            "dev-1",
            "namespaces",
            "team-b",
            json!({"labels": {"team": 7}, "role": "x"}),
        )]),
        &[
            "/namespaces/1/labels/team: must be a string, not 7",
            "/namespaces/1/role: unknown field `role`; known are annotations, id, labels",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![assign(
            "dev-1",
            "platform_components",
            "podinfo",
            json!({"oci_url": "https://x.io"}),
        )]),
        &[
            "/platform_components/2/oci_url: unknown field `oci_url`; known are component_path, depends_on, enabled, id, oci_tag",
        ],
    );
    assert_contains(
        &fleet.complaints(vec![assign("dev-1", "rolebindings", "viewers", json!({"subjects": []}))]),
        &["/rolebindings/0/subjects: must have at least 1 item"],
    );
    assert_contains(
        &fleet.complaints(vec![assign("dev-1", "namespaces", "team-b", json!({"id": "team-c"}))]),
        &["/id: must be `team-b`, the reference that the operation is about, or absent"],
    );
}

#[test]
fn what_is_not_there_and_what_is_there_already() {
    let mut fleet = Fleet::small();
    let mut reason = |operation| fleet.reject(vec![operation]).reason().cloned();
    assert_eq!(reason(put("clusters", "nobody", cluster("nobody"))), Some(Reason::Missing));
    assert_eq!(reason(strategic("clusters", "nobody", json!({}))), Some(Reason::Missing));
    assert_eq!(reason(delete("namespaces", "nobody")), Some(Reason::Missing));
    assert_eq!(reason(unassign("dev-1", "namespaces", "nobody")), Some(Reason::Missing));
    assert_eq!(
        reason(patch_reference("dev-1", "platform_components", "logging", json!({}))),
        Some(Reason::Missing)
    );
    assert_eq!(reason(assign("nobody", "namespaces", "team-a", json!(null))), Some(Reason::Missing));
    assert_eq!(
        reason(fleet::Operation::Forget { dns: "dev-1.k8s.example.com".into() }),
        Some(Reason::Missing)
    );
    assert_eq!(reason(create("clusters", cluster("dev-1"))), Some(Reason::Exists));
    assert_eq!(reason(assign("dev-1", "clusters", "prod-1", json!(null))), Some(Reason::Invalid));
}

#[test]
fn a_stale_write_is_refused_with_the_revision_there_is() {
    let mut fleet = Fleet::small();
    let revision = fleet.state.cluster("dev-1").expect("there").revision;
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"node_count": 3}))]);
    let stale = fleet::Operation::Put {
        kind: "clusters".into(),
        id: "dev-1".into(),
        body: cluster("dev-1"),
        expect: Some(revision),
    };
    assert_eq!(fleet.reject(vec![stale]).reason(), Some(&Reason::Stale { now: revision.next() }));
    let target = fleet::Target::One { id: "dev-1".into(), expect: Some(revision.next()) };
    let fresh = fleet::Operation::Patch {
        kind: "clusters".into(),
        target,
        patch: fleet::Patch::Merge(json!({"node_count": 4})),
    };
    fleet.accept(vec![fresh]);
    assert_eq!(fleet.document("clusters", "dev-1")["node_count"], 4);
}

#[test]
fn violations_on_many_clusters_are_sampled_and_counted() {
    let mut fleet = Fleet::empty();
    let make = |n: usize| {
        let mut body = cluster(&format!("c{n:02}"));
        body["platform_components"] = json!([{"id": "web"}]);
        create("clusters", body)
    };
    fleet.accept(
        [
            vec![
                create("platform_components", component("web")),
                create("platform_components", component("db")),
            ],
            (0..30).map(make).collect(),
        ]
        .concat(),
    );
    let complaints =
        fleet.complaints(vec![strategic("platform_components", "web", json!({"depends_on": ["db"]}))]);
    assert_eq!(complaints.len(), 21);
    assert!(complaints.contains(&": and on 10 more clusters".to_owned()), "{complaints:#?}");

    let selected = fleet::Operation::Patch {
        kind: "clusters".into(),
        target: selected("id"),
        patch: fleet::Patch::Merge(json!({"environment": "x"})),
    };
    let complaints = fleet.complaints(vec![selected]);
    assert_eq!(complaints.len(), 21);
    assert_eq!(complaints[20], ": and 10 more documents like these");
}

#[test]
fn rules_are_checked_on_what_all_operations_come_to() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        assign("dev-1", "namespaces", "later", json!(null)),
        strategic("clusters", "prod-1", json!({"environment": "nonsense"})),
        create("namespaces", json!({"id": "later"})),
        strategic("clusters", "prod-1", json!({"environment": "prod"})),
    ]);
    assert!(fleet.ids("dev-1", "namespaces").contains(&"later".to_owned()));
    let broken_then_mended = vec![
        strategic("clusters", "prod-1", json!({"cluster_name": 7})),
        strategic("clusters", "prod-1", json!({"cluster_name": "prod one"})),
    ];
    fleet.accept(broken_then_mended);
    assert_eq!(fleet.document("clusters", "prod-1")["platform_components"].as_array().map(Vec::len), Some(3));
    let patches = |of: Value| strategic("clusters", "dev-1", json!({"patches": of}));
    fleet.accept(vec![
        patches(json!({"podinfo": {"replicaCount": 7}})),
        patches(json!({"podinfo": {"replicaCount": "7"}})),
        patches(json!({"policies": null})),
        patches(json!({"grafana": {"x": "y"}})),
    ]);
    let expected = json!({"grafana": {"x": "y"}, "podinfo": {"replicaCount": "7", "ui.message": "hello"}});
    assert_eq!(fleet.document("clusters", "dev-1")["patches"], expected);
}

#[test]
fn a_protected_cluster_is_not_deleted() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"protected": true}))]);
    assert_eq!(fleet.reject(vec![delete("clusters", "dev-1")]).reason(), Some(&Reason::Protected));
    let in_one_go =
        vec![strategic("clusters", "dev-1", json!({"protected": false})), delete("clusters", "dev-1")];
    assert_eq!(fleet.reject(in_one_go).reason(), Some(&Reason::Protected));
    let by_selector = vec![fleet::Operation::Delete { kind: "clusters".into(), target: selected("id") }];
    assert_eq!(fleet.reject(by_selector).reason(), Some(&Reason::Protected));
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"protected": null}))]);
    fleet.accept(vec![delete("clusters", "dev-1")]);
}

#[test]
fn a_cluster_is_not_decommissioned_and_made_again_in_one_transaction() {
    let mut fleet = Fleet::small();
    let again = fleet::Operation::Create {
        kind: "clusters".into(),
        body: cluster("dev-1"),
        replace_decommissioned: true,
    };
    let complaints = fleet.complaints(vec![delete("clusters", "dev-1"), again.clone()]);
    assert_contains(&complaints, &["cannot be decommissioned and made again in one transaction"]);
    let old = fleet.state.cluster("dev-1").expect("there").uid;
    fleet.accept(vec![delete("clusters", "dev-1")]);
    assert_eq!(fleet.state.tombstone("dev-1.k8s.example.com").expect("buried").doc.uid, old);
    fleet.accept(vec![again]);
    assert_ne!(fleet.state.cluster("dev-1").expect("there").uid, old, "another life, another uid");
}

#[test]
fn selectors_select_clusters_only_and_at_least_one() {
    let mut fleet = Fleet::small();
    let of = |kind: &str, selector: &str| {
        vec![fleet::Operation::Patch {
            kind: kind.into(),
            target: selected(selector),
            patch: fleet::Patch::Merge(json!({})),
        }]
    };
    assert_contains(
        &fleet.complaints(of("namespaces", "id")),
        &["a selector selects clusters; name each namespace by its id"],
    );
    assert_eq!(fleet.reject(of("clusters", "region=mars")).reason(), Some(&Reason::Missing));
}

#[test]
fn a_write_that_changes_nothing_makes_no_commit() {
    let mut fleet = Fleet::small();
    let head = fleet.state.head();
    let document = fleet.document("clusters", "dev-1");
    let same = vec![
        put("clusters", "dev-1", document),
        strategic("clusters", "prod-1", json!({})),
        assign("dev-1", "namespaces", "team-a", json!({})),
    ];
    assert!(fleet.accept(same).commit.is_none());
    assert_eq!(fleet.state.head(), head);
}

#[test]
fn null_is_absent_references_are_sorted_and_empty_is_absent() {
    let mut fleet = Fleet::small();
    let mut body = cluster("new");
    body["namespaces"] = json!([{"id": "team-b", "labels": null}, {"id": "team-a"}]);
    body["rolebindings"] = json!([]);
    body["patches"] = json!({"podinfo": {}});
    body["vm_image"] = json!(null);
    body["node_count"] = json!(3);
    fleet.accept(vec![create("clusters", body)]);
    let mut expected = cluster("new");
    expected["namespaces"] = json!([{"id": "team-a"}, {"id": "team-b"}]);
    expected["node_count"] = json!(3);
    assert_eq!(fleet.document("clusters", "new"), expected);
}

#[test]
fn a_kind_changes_only_if_every_document_satisfies_it() {
    let mut fleet = Fleet::empty();
    fleet.accept(vec![
        tiny_kind(&json!({"size": {"type": "string"}})),
        create("tinies", json!({"id": "one", "size": "large"})),
    ]);
    let complaints = fleet.complaints(vec![tiny_kind(&json!({"size": {"type": "integer"}}))]);
    assert_contains(
        &complaints,
        &[
            "/size: the stored `tinies/one` does not satisfy the new schema: must be an integer, not \"large\"",
        ],
    );
    fleet.accept(vec![
        tiny_kind(&json!({"size": {"type": "integer"}})),
        put("tinies", "one", json!({"size": 3})),
    ]);

    let mut holder = cluster("holder");
    holder["tinies"] = json!([{"id": "one", "size": 5}]);
    fleet.accept(vec![create("clusters", holder)]);
    let complaints = fleet.complaints(vec![tiny_kind(&json!({"size": {"type": "integer", "maximum": 4}}))]);
    assert_contains(
        &complaints,
        &[
            "/tinies/0/size: the stored `clusters/holder` does not satisfy the new schema: must be at most 4, not 5",
        ],
    );
}

#[test]
fn a_changed_kind_changes_the_inputs_of_documents_that_did_not_change() {
    let mut fleet = Fleet::empty();
    let mut holder = cluster("holder");
    holder["tinies"] = json!([{"id": "one"}]);
    fleet.accept(vec![
        tiny_kind(&json!({})),
        create("tinies", json!({"id": "one"})),
        create("clusters", holder),
    ]);
    let before = fleet.input("holder", "tinies", "one");
    fleet.accept(vec![tiny_kind(&json!({"size": {"type": "integer", "default": 7}}))]);
    let after = fleet.input("holder", "tinies", "one");
    assert_eq!(before.get("size"), None);
    assert_eq!(after["size"], 7);
}

#[test]
fn a_confirmation_is_not_a_violation() {
    let mut fleet = Fleet::small();
    let rejection = fleet.reject(vec![strategic("clusters", "dev-1", json!({"namespaces": []}))]);
    assert!(matches!(rejection, Rejection::Confirm(_)));
    assert_eq!((rejection.reason(), rejection.violations().len()), (None, 0));
}

#[test]
fn a_delivery_that_begins_to_send_values_cannot_make_an_answer_too_large() {
    let mut fleet = Fleet::empty();
    let mut body = cluster("big");
    body["platform_components"] = json!([{"id": "web"}]);
    let patches: serde_json::Map<String, Value> =
        (0..12).map(|n| (format!("K{n}"), json!("x".repeat(50_000)))).collect();
    body["patches"] = json!({"web": patches});
    let mut web = component("web");
    web["delivery"] = json!("kustomize");
    fleet.accept(vec![create("platform_components", web), create("clusters", body)]);
    let rejection = fleet.reject(vec![strategic("platform_components", "web", json!({"delivery": "helm"}))]);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
}

#[test]
fn the_catalog_cannot_close_a_circle_that_a_cluster_began() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![assign("dev-1", "platform_components", "podinfo", json!({"depends_on": ["grafana"]}))]);
    let complaints = fleet.complaints(vec![strategic(
        "platform_components",
        "grafana",
        json!({"depends_on": ["podinfo"]}),
    )]);
    assert!(
        complaints.iter().any(|c| c.contains(
            "on the cluster `dev-1`: the dependencies go round in a circle: `podinfo` → `grafana` → `podinfo`"
        )),
        "{complaints:#?}"
    );
}

#[test]
fn the_catalog_cannot_change_a_delivery_under_a_cluster_that_depends_on_it_by_itself() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![assign("dev-1", "platform_components", "podinfo", json!({"depends_on": ["grafana"]}))]);
    let complaints =
        fleet.complaints(vec![strategic("platform_components", "grafana", json!({"delivery": "kustomize"}))]);
    assert_contains(
        &complaints,
        &[
            "on the cluster `dev-1`: `podinfo` is delivered by helm and depends on `grafana`, which is delivered by kustomize",
        ],
    );
}

/// The shipped file of a kind, changed.
fn changed_kind(name: &str, change: impl Fn(&mut Value)) -> fleet::Operation {
    let shipped =
        fleet::Kind::shipped().into_iter().find(|kind| kind.name().as_str() == name).expect("shipped");
    let mut file = Value::Object(shipped.file().clone());
    change(&mut file);
    fleet::Operation::Define(std::sync::Arc::new(fleet::Kind::parse(&file.to_string()).expect("a good kind")))
}

#[test]
fn a_new_kind_does_not_turn_stored_fields_of_clusters_into_references() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![changed_kind("clusters", |file| {
        file["schema"]["items"]["properties"]["tinies"] = json!({"type": "array"});
    })]);
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"tinies": [{"id": "one"}]}))]);
    let complaints = fleet.complaints(vec![tiny_kind(&json!({})), create("tinies", json!({"id": "one"}))]);
    assert_contains(
        &complaints,
        &[
            "/tinies: the stored `clusters/dev-1` has a field `tinies` already, which would become its references",
        ],
    );
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"tinies": null}))]);
    fleet.accept(vec![
        tiny_kind(&json!({})),
        create("tinies", json!({"id": "one"})),
        assign("dev-1", "tinies", "one", json!(null)),
    ]);
    assert_eq!(fleet.ids("dev-1", "tinies"), ["one"]);
}

#[test]
fn a_shipped_kind_may_be_extended_but_not_robbed_of_what_the_core_reads() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![
        changed_kind("clusters", |file| {
            file["schema"]["items"]["properties"]["owner"] = json!({"type": "string"});
        }),
        strategic("clusters", "dev-1", json!({"owner": "team-a"})),
    ]);
    assert_eq!(fleet.document("clusters", "dev-1")["owner"], "team-a");
    let shipped =
        fleet::Kind::shipped().into_iter().find(|kind| kind.name().as_str() == "clusters").expect("shipped");
    let mut file = Value::Object(shipped.file().clone());
    file["schema"]["items"]["properties"]["patches"] = json!({"type": "string"});
    let bad = fleet::Kind::parse(&file.to_string()).expect_err("retyped");
    assert_eq!(
        bad.problems,
        ["`schema.items.properties.patches` must be there, of type object: the service reads it"]
    );
}

#[test]
fn a_clusters_file_that_requires_references_is_satisfied_by_those_that_are_there() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![changed_kind("clusters", |file| {
        file["schema"]["items"]["required"] =
            json!(["id", "cluster_name", "cluster_dns", "environment", "namespaces"]);
    })]);
    fleet.accept(vec![strategic("clusters", "dev-1", json!({"node_count": 4}))]);
    assert_contains(
        &fleet.complaints(vec![create("clusters", cluster("bare"))]),
        &["/namespaces: `namespaces` is required and missing"],
    );
}

#[test]
fn overrides_need_nothing_by_themselves_but_must_fit_the_definition() {
    let mut fleet = Fleet::small();
    let entangled = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let fleet::Operation::Define(kind) = tiny_kind(&entangled) else { panic!("a kind") };
    let mut file = Value::Object(kind.file().clone());
    file["schema"]["items"]["dependentRequired"] = json!({"a": ["b"]});
    let kind =
        fleet::Operation::Define(std::sync::Arc::new(fleet::Kind::parse(&file.to_string()).expect("good")));
    fleet.accept(vec![
        kind,
        create("tinies", json!({"id": "with", "b": "x"})),
        create("tinies", json!({"id": "without"})),
    ]);
    fleet.accept(vec![assign("dev-1", "tinies", "with", json!({"a": "y"}))]);
    let complaints = fleet.complaints(vec![assign("dev-1", "tinies", "without", json!({"a": "y"}))]);
    assert_eq!(complaints.len(), 1, "{complaints:#?}");
    assert!(
        complaints[0].starts_with("/tinies/1") && complaints[0].contains("with the overrides of `without`: "),
        "{complaints:#?}"
    );
    let complaints = fleet.complaints(vec![put("tinies", "with", json!({}))]);
    assert!(
        complaints[0].contains("on the cluster `dev-1`: with the overrides of `with`: "),
        "{complaints:#?}"
    );
}

#[test]
fn ids_that_a_kind_reserves_later_are_found_among_the_stored() {
    let mut fleet = Fleet::small();
    let reserve =
        changed_kind("namespaces", |file| file["metadata"]["x-flux"]["reserved"] = json!(["team-*"]));
    let complaints = fleet.complaints(vec![reserve]);
    assert_eq!(complaints.len(), 3, "{complaints:#?}");
    assert!(
        complaints[0].starts_with(
            "/id: the stored `namespaces/team-a` does not satisfy the new schema: `team-a` is reserved"
        ),
        "{complaints:#?}"
    );
}

#[test]
fn a_default_must_be_of_its_own_type() {
    let file = json!({"kind": "tinies", "apiVersion": "v1", "schema": {"key": {}, "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "format": "dns-label"}, "n": {"type": "string", "default": 3}}}}});
    let bad = fleet::Kind::parse(&file.to_string()).expect_err("a wrong default");
    assert_eq!(bad.problems, ["`schema.items.properties.n.default` must be a string, not 3"]);
}

#[test]
fn warnings_about_many_clusters_are_sampled_and_counted() {
    let mut fleet = Fleet::empty();
    fleet.accept((0..30).map(|n| create("clusters", cluster(&format!("c{n}")))).collect());
    let patch = fleet::Patch::Strategic(json!({"namespaces": [{"id": "nowhere", "$patch": "delete"}]}));
    let applied = fleet.accept(vec![fleet::Operation::Patch {
        kind: "clusters".into(),
        target: selected("id"),
        patch,
    }]);
    assert_eq!(applied.warnings.len(), 21);
    assert_eq!(applied.warnings[20], "and 10 more warnings like these");
}

#[test]
fn a_summary_of_many_does_not_change_what_sort_of_refusal_it_is() {
    let mut fleet = Fleet::empty();
    let note = "x".repeat(46_000);
    let mut operations = vec![tiny_kind(&json!({"note": {"type": "string"}}))];
    operations.extend((0..20).map(|n| create("tinies", json!({"id": format!("t{n}"), "note": note}))));
    operations.extend((0..25).map(|n| {
        let mut body = cluster(&format!("c{n}"));
        body["tinies"] = (0..19).map(|n| json!({"id": format!("t{n}")})).collect::<Value>();
        create("clusters", body)
    }));
    fleet.accept(operations);
    let default = "y".repeat(3000);
    let rejection = fleet.reject(vec![tiny_kind(
        &json!({"note": {"type": "string"}, "more": {"type": "string", "default": default}}),
    )]);
    assert_eq!(rejection.reason(), Some(&Reason::TooLarge));
    assert_eq!(rejection.violations().len(), 21);
}

#[test]
fn a_revision_cannot_be_expected_of_what_the_same_transaction_makes() {
    let mut fleet = Fleet::small();
    let expected = fleet::Operation::Put {
        kind: "namespaces".into(),
        id: "new".into(),
        body: json!({}),
        expect: Some(fleet::Revision(7)),
    };
    let complaints = fleet.complaints(vec![create("namespaces", json!({"id": "new"})), expected]);
    assert_contains(
        &complaints,
        &["`namespaces/new` is made in this very transaction and has no revision yet; do not expect 7"],
    );
}

#[test]
fn a_refused_patch_of_a_reference_points_into_the_cluster() {
    let mut fleet = Fleet::small();
    let patch = fleet::Patch::Json(json!([{"op": "remove", "path": "/labels/x"}]));
    let one = fleet::Operation::PatchReference {
        clusters: fleet::Target::one("dev-1"),
        kind: "namespaces".into(),
        id: "team-b".into(),
        patch: patch.clone(),
    };
    let complaints = fleet.complaints(vec![one]);
    assert!(complaints[0].starts_with("/namespaces/1/labels/x: item 0 of the patch:"), "{complaints:?}");
    let none = fleet::Operation::PatchReference {
        clusters: selected("id"),
        kind: "rolebindings".into(),
        id: "deployer".into(),
        patch,
    };
    let rejection = fleet.reject(vec![none]);
    assert_eq!((rejection.reason(), &rejection.violations()[0].key), (Some(&Reason::Missing), &None));
}

fn told_bytes(rejection: &Rejection) -> usize {
    rejection.violations().iter().map(|v| v.message.len() + v.pointer.as_str().len()).sum()
}

#[test]
fn what_is_told_does_not_grow_with_the_square_of_what_was_sent() {
    let mut fleet = Fleet::small();
    let many: serde_json::Map<String, Value> = (0..2000).map(|n| (format!("k{n}"), json!(1))).collect();
    let mut body = cluster("new");
    body["patches"] = json!({"a".repeat(100_000): many});
    let rejection = fleet.reject(vec![create("clusters", body.clone())]);
    assert!(rejection.violations()[0].message.contains("has 100000 bytes; 1024 are the most"), "{rejection}");
    body["patches"] = json!({"a".repeat(1000): many});
    assert!(told_bytes(&fleet.reject(vec![create("clusters", body)])) < 400_000);

    let mut operations: Vec<_> = (0..300)
        .map(|n| {
            let mut body = component(&format!("c{n}"));
            body["delivery"] = json!("kustomize");
            create("platform_components", body)
        })
        .collect();
    let mut long = component(&"x".repeat(40_000));
    long["depends_on"] = (0..300).map(|n| json!(format!("c{n}"))).collect::<Value>();
    operations.push(create("platform_components", long));
    assert!(told_bytes(&fleet.reject(operations)) < 1_000);
}

#[test]
fn a_document_nested_without_end_is_refused_and_only_a_whole_new_one_mends_it() {
    let mut fleet = Fleet::small();
    let deep = (0..120).fold(json!("x"), |inner, _| json!({"a": inner}));
    let nested = || assign("dev-1", "namespaces", "team-a", json!({"labels": deep}));
    let touch = || {
        vec![
            nested(),
            strategic("clusters", "dev-1", json!({"node_count": 2})),
            unassign("dev-1", "namespaces", "team-b"),
        ]
    };
    assert_contains(&fleet.complaints(touch()), &[": nested too deeply: 32 levels are the most"]);
    let whole = fleet.document("clusters", "dev-1");
    assert!(fleet.accept(vec![nested(), put("clusters", "dev-1", whole)]).commit.is_none());
}

#[test]
fn a_long_chain_of_components_is_accepted_in_time_that_grows_with_its_length() {
    let mut fleet = Fleet::empty();
    let link = |n: usize| {
        let mut body = component(&format!("c{n:05}"));
        body["depends_on"] = if n == 0 { json!([]) } else { json!([format!("c{:05}", n - 1)]) };
        create("platform_components", body)
    };
    fleet.accept((0..3000).map(link).collect());
    let closed =
        fleet.complaints(vec![strategic("platform_components", "c00000", json!({"depends_on": ["c00002"]}))]);
    assert_contains(&closed, &["`c00000` → `c00002` → `c00001` → `c00000`"]);
}

#[test]
fn overrides_are_no_larger_than_a_document() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![assign(
        "dev-1",
        "namespaces",
        "team-a",
        json!({"annotations": {"a": "x".repeat(70_000)}}),
    )]);
    assert!(
        complaints[0].starts_with("/namespaces/0: the overrides of `team-a` have 700")
            && complaints[0].ends_with("65536 are the most"),
        "{complaints:?}"
    );
}

#[test]
fn a_substitution_variable_fits_a_key_of_a_config_map() {
    let mut fleet = Fleet::small();
    let patches = |length: usize| {
        vec![strategic("clusters", "dev-1", json!({"patches": {"policies": {"A".repeat(length): "x"}}}))]
    };
    fleet.accept(patches(253));
    assert!(fleet.complaints(patches(254))[0].contains("cannot be a substitution variable"));
}

#[test]
fn an_added_kind_has_ids_that_kubernetes_takes_and_no_references_into_other_schemas() {
    let parse = |properties: Value| {
        let file = json!({"kind": "tinies", "apiVersion": "v1", "schema": {"key": {}, "items": {"type": "object", "required": ["id"], "properties": properties}}});
        fleet::Kind::parse(&file.to_string()).map(|_| ()).map_err(|bad| bad.problems)
    };
    let problems = parse(json!({"id": {"type": "string"}})).expect_err("any id at all");
    assert!(
        problems[0].starts_with("`schema.items.properties.id.format` must be `dns-label`"),
        "{problems:?}"
    );
    let id = json!({"type": "string", "format": "dns-label"});
    let problems = parse(json!({"id": id, "x": {"type": "string", "$ref": "#/properties/id"}}))
        .expect_err("a reference");
    assert!(problems[0].starts_with("`schema.items` uses `$ref`"), "{problems:?}");
}

#[test]
fn a_kind_file_brings_no_poison_into_answers() {
    let mut fleet = Fleet::small();
    let complaints = fleet.complaints(vec![tiny_kind(&json!({"n": {"type": "integer", "default": 9_007_199_254_740_993_u64}, "t": {"type": "string", "default": "\u{1}"}}))]);
    assert_contains(
        &complaints,
        &[
            "/schema/items/properties/n/default: 9007199254740993 is beyond",
            "/schema/items/properties/t/default: the text has the character U+0001",
        ],
    );
}

#[test]
fn a_redefined_kind_is_checked_against_overrides_merged_with_definitions() {
    let mut fleet = Fleet::small();
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "integer"}});
    fleet.accept(vec![
        tiny_kind(&properties),
        create("tinies", json!({"id": "one", "a": 1})),
        assign("dev-1", "tinies", "one", json!({"b": 2})),
    ]);
    let fleet::Operation::Define(kind) = tiny_kind(&properties) else { panic!("a kind") };
    let mut file = Value::Object(kind.file().clone());
    file["schema"]["items"]["not"] = json!({"required": ["a", "b"]});
    let kind =
        fleet::Operation::Define(std::sync::Arc::new(fleet::Kind::parse(&file.to_string()).expect("good")));
    let complaints = fleet.complaints(vec![kind]);
    assert!(complaints[0].starts_with("/tinies/0: with the overrides of `one`: "), "{complaints:?}");
}

#[test]
fn every_problem_of_a_strategic_patch_is_told() {
    let mut fleet = Fleet::small();
    let body =
        json!({"namespaces": [{"labels": {}}, {"id": "team-a", "$patch": "merge"}], "environment": "moon"});
    let complaints = fleet.complaints(vec![strategic("clusters", "dev-1", body)]);
    assert_contains(
        &complaints,
        &[
            "/environment: must be one of",
            "/namespaces/0/id: each item",
            "/namespaces/1/$patch: the only directive",
        ],
    );
}

#[test]
fn a_json_patch_adds_to_a_list_that_is_not_there_yet() {
    let mut fleet = Fleet::small();
    fleet.accept(vec![json_patch(
        "clusters",
        "prod-1",
        json!([{"op": "add", "path": "/rolebindings/-", "value": {"id": "viewers"}}]),
    )]);
    assert_eq!(fleet.ids("prod-1", "rolebindings"), ["viewers"]);
}
