//! Taking over what is on a cluster already, one kind at a time, without deleting any of it.

use anyhow::{Context, Result, ensure};
use e2e::kube::{Kind, Place, uid};
use e2e::world::World;
use reqwest::Method;
use serde_json::json;

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("existing_objects_and_releases_are_taken_over_as_they_are", taken_over),
    ("what_leaves_the_answer_stays_until_adoption_is_over", stays),
];

fn namespace() -> Place {
    Place::global(Kind::NAMESPACE, "legacy")
}

fn binding() -> Place {
    Place::global(Kind::CLUSTER_ROLE_BINDING, "legacy-viewers")
}

fn deployment() -> Place {
    Place::new(Kind::DEPLOYMENT, "legacy-app", "legacy-app")
}

fn release() -> Place {
    Place::flux(Kind::HELM_RELEASE, "legacy-app")
}

fn taken_over(world: &mut World) -> Result<()> {
    let (west, service) = (&world.west, &world.service);
    let existing = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "legacy", "labels": {"by-kubectl": "yes", "team": "old"}}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "legacy-viewers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "old"}],
        }),
        // As Helm would have installed it: a release of that name in a namespace of that name.
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": {"name": "by-hand", "namespace": "flux-system"},
            "spec": {
                "interval": "1h", "url": world.registry.url("charts/podinfo"), "ref": {"tag": "1.0.0"},
                "layerSelector": {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"},
            },
        }),
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "by-hand", "namespace": "flux-system"},
            "spec": {
                "interval": "1h", "releaseName": "legacy-app", "targetNamespace": "legacy-app", "storageNamespace": "legacy-app",
                "install": {"createNamespace": true}, "chartRef": {"kind": "OCIRepository", "name": "by-hand"}, "values": {"replicaCount": 2},
            },
        }),
    ];
    west.kube.apply_all(&existing)?;
    west.kube.patch(&namespace(), &json!({"metadata": {"labels": {"by-another": "yes"}}}))?;
    let by_hand = Place::flux(Kind::HELM_RELEASE, "by-hand");
    west.kube.ready(&by_hand)?;
    // Suspended, it leaves its release alone when it goes.
    west.kube.patch(&by_hand, &json!({"spec": {"suspend": true}}))?;
    west.kube.delete(&by_hand)?;
    west.kube.gone(&by_hand)?;
    let before = (west.kube.get(&namespace())?, west.kube.get(&binding())?, west.kube.get(&deployment())?);

    west.resync(&json!({"components": ["../adoption/all"]}))?;
    let operations = json!({"operations": [
        {"op": "create", "kind": "namespaces", "id": "legacy", "body": {"id": "legacy", "labels": {"team": "new"}}},
        {"op": "create", "kind": "rolebindings", "id": "legacy-viewers", "body": {"id": "legacy-viewers", "role": "view", "subjects": [{"kind": "Group", "name": "new"}]}},
        {"op": "create", "kind": "platform_components", "id": "legacy-app", "body": {"id": "legacy-app", "component_path": "podinfo", "delivery": "helm", "oci_url": world.registry.url("charts/podinfo"), "oci_tag": "1.1.0"}},
        {"op": "patch", "kind": "clusters", "id": "west", "body": {
            "namespaces": [{"id": "legacy"}], "rolebindings": [{"id": "legacy-viewers"}], "platform_components": [{"id": "legacy-app"}],
            "patches": {"legacy-app": {"replicaCount": "2"}},
        }},
    ]});
    service.post("/batch", &operations)?;
    west.follow_all()?;
    west.runs("legacy-app", "1.1.0", 2)?;
    let after = (west.kube.get(&namespace())?, west.kube.get(&binding())?, west.kube.get(&deployment())?);
    ensure!(
        uid(&before.0) == uid(&after.0) && uid(&before.1) == uid(&after.1) && uid(&before.2) == uid(&after.2),
        "made again"
    );
    let labels = &after.0["metadata"]["labels"];
    ensure!(labels["team"] == "new" && labels["by-another"] == "yes", "{labels}");
    // What kubectl once set is the set's from now on, and it does not have it.
    ensure!(labels["by-kubectl"].is_null(), "{labels}");
    ensure!(after.1["subjects"][0]["name"] == "new", "{}", after.1);
    // Helm counts on: the release was upgraded, not installed beside the old one.
    let history =
        west.kube.get(&release())?["status"]["history"][0]["version"].as_i64().context("a version")?;
    ensure!(history >= 2, "the release is at version {history}");
    Ok(())
}

fn stays(world: &mut World) -> Result<()> {
    let (west, service) = (&world.west, &world.service);
    let unassign = || -> Result<()> {
        let body = json!({
            "namespaces": [{"id": "legacy", "$patch": "delete"}],
            "rolebindings": [{"id": "legacy-viewers", "$patch": "delete"}],
            "platform_components": [{"id": "legacy-app", "$patch": "delete"}],
        });
        service.confirmed(&Method::PATCH, "/clusters/west", Some(&body))?;
        west.follow_all()
    };
    let uids = || -> Result<Vec<String>> {
        [namespace(), binding(), deployment(), release()]
            .iter()
            .map(|place| Ok(uid(&west.kube.get(place)?).to_owned()))
            .collect()
    };
    let before = uids()?;
    unassign()?;
    ensure!(uids()? == before, "something was deleted during adoption");

    // Assigned again, and adoption is over: from now on the answer counts.
    let body = json!({"namespaces": [{"id": "legacy"}], "rolebindings": [{"id": "legacy-viewers"}], "platform_components": [{"id": "legacy-app"}], "patches": {"legacy-app": {"replicaCount": "2"}}});
    service.patch("/clusters/west", &body)?;
    west.resync(&json!({"components": []}))?;
    west.follow_all()?;
    ensure!(uids()? == before, "something was deleted at the end of adoption");
    unassign()?;
    [namespace(), binding(), deployment(), release()].iter().try_for_each(|place| west.kube.gone(place))
}
