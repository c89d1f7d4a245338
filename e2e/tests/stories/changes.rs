//! Every change of the documents, made through our API, until it has reached the cluster.

use anyhow::{Context, Result, ensure};
use e2e::cluster::Cluster;
use e2e::kube::{Kind, Place, uid};
use e2e::wait::until;
use e2e::world::World;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("a_patched_replica_count_reaches_the_deployment", patched_replica_count),
    ("patched_values_arrive_typed_nested_and_exact", exact_values),
    ("a_secret_on_the_cluster_adds_to_the_values_and_wins", secret_values),
    ("a_catalog_upgrade_reaches_every_cluster", catalog_upgrade),
    ("a_canary_reaches_one_cluster", canary),
    ("a_hotfix_tag_reaches_one_component_of_one_cluster", hotfix),
    ("a_chart_of_an_https_repository_is_upgraded_and_latest_is_the_newest", https_chart),
    ("a_chart_of_another_name_is_an_upgrade_and_no_new_release", other_chart),
    ("a_disabled_component_is_uninstalled_and_an_enabled_one_comes_back", disable_and_enable),
    ("namespaces_are_assigned_changed_and_unassigned", namespaces),
    ("rolebindings_are_assigned_unassigned_and_change_their_role", rolebindings),
    ("the_environment_chooses_the_overlay", environment),
    ("a_changed_substitution_reaches_the_manifests", substitution),
    ("a_component_waits_for_what_it_depends_on", dependency),
    ("drift_is_corrected", drift),
];

/// The values that a release was really rendered with.
fn values(cluster: &Cluster, component: &str) -> Result<Value> {
    let seen = cluster.kube.get(&Place::new(Kind::CONFIG_MAP, component, &format!("{component}-seen")))?;
    Ok(serde_json::from_str(seen["data"]["values"].as_str().context("values")?)?)
}

fn patched_replica_count(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let began = std::time::Instant::now();
    service.patch("/clusters/east", &json!({"patches": {"podinfo": {"replicaCount": "3"}}}))?;
    east.kube.reconcile(&Place::flux(Kind::PROVIDER, "platform-components"))?;
    until("the Deployment has 3 replicas", || {
        let deployment = east.kube.get(&Place::new(Kind::DEPLOYMENT, "podinfo", "podinfo"))?;
        ensure!(deployment["spec"]["replicas"] == 3, "it has {}", deployment["spec"]["replicas"]);
        Ok(())
    })?;
    crate::figure(format!(
        "from PATCH (polled at once) to the changed Deployment: {:.1} s",
        began.elapsed().as_secs_f32()
    ));
    east.runs("podinfo", "1.0.0", 3)?;
    world.west.follow_all()?;
    world.west.runs("podinfo", "1.0.0", 2)
}

fn exact_values(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let patches = json!({"podinfo": {
        "replicaCount": "3",
        "ui.message": "a,b={c} \\ \"quoted\" 'single'\nnext: << inputs.id >> ${CLUSTER_DNS} {{ .Values }} --- # ü \u{1F600}",
        "ui.enabled": "true",
        "ui.text": "\"true\"",
        "list[0].name": "x",
        "list[1].name": "1000650000",
        "ingress.annotations.nginx\\.io/rewrite": "/",
        "zero": "007",
    }});
    service.patch("/clusters/east", &json!({"patches": patches}))?;
    east.follow("platform-components")?;
    let expected = json!({
        "replicaCount": 3,
        "ui": {
            "message": patches["podinfo"]["ui.message"],
            "enabled": true,
            "text": "true",
        },
        "list": [{"name": "x"}, {"name": 1_000_650_000}],
        "ingress": {"annotations": {"nginx.io/rewrite": "/"}},
        "zero": "007",
    });
    until("the values arrive", || {
        let seen = values(east, "podinfo")?;
        ensure!(seen == expected, "{seen}");
        Ok(())
    })
}

fn secret_values(world: &mut World) -> Result<()> {
    let east = &world.east;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "podinfo-secret-values", "namespace": "flux-system", "labels": {"reconcile.fluxcd.io/watch": "Enabled"}},
        "stringData": {"values.yaml": "password: from-the-vault\nzero: secret\n"},
    });
    east.kube.apply(&secret.to_string())?;
    until("the secret values arrive", || {
        let seen = values(east, "podinfo")?;
        ensure!(
            seen["password"] == "from-the-vault" && seen["zero"] == "secret" && seen["replicaCount"] == 3,
            "{seen}"
        );
        Ok(())
    })?;
    east.kube.delete(&Place::flux(Kind::SECRET, "podinfo-secret-values"))?;
    east.kube.reconciled(&Place::flux(Kind::HELM_RELEASE, "podinfo"))?;
    until("they are gone", || {
        let seen = values(east, "podinfo")?;
        ensure!(seen["password"].is_null() && seen["zero"] == "007", "{seen}");
        Ok(())
    })
}

fn catalog_upgrade(world: &mut World) -> Result<()> {
    world.service.patch("/platform_components/podinfo", &json!({"oci_tag": "1.1.0"}))?;
    for cluster in [&world.east, &world.west] {
        cluster.follow("platform-components")?;
    }
    world.east.runs("podinfo", "1.1.0", 3)?;
    world.west.runs("podinfo", "1.1.0", 2)
}

fn canary(world: &mut World) -> Result<()> {
    let service = &world.service;
    // As the documents send it: other components stay.
    service
        .patch("/clusters/east", &json!({"platform_components": [{"id": "podinfo", "oci_tag": "2.0.0"}]}))?;
    for cluster in [&world.east, &world.west] {
        cluster.follow("platform-components")?;
    }
    world.east.runs("podinfo", "2.0.0", 3)?;
    world.east.runs("agent", "1.0.0", 1)?;
    world.west.runs("podinfo", "1.1.0", 2)?;
    // Taken back: the catalog counts again.
    service.patch("/clusters/east", &json!({"platform_components": [{"id": "podinfo", "oci_tag": null}]}))?;
    world.east.follow("platform-components")?;
    world.east.runs("podinfo", "1.1.0", 3)
}

fn hotfix(world: &mut World) -> Result<()> {
    world.service.patch("/clusters/west/platform_components/baseline", &json!({"oci_tag": "v1.0.0-1"}))?;
    for cluster in [&world.east, &world.west] {
        cluster.follow("platform-components")?;
    }
    let release = |cluster: &Cluster| -> Result<Value> {
        Ok(cluster.kube.get(&Place::flux(Kind::CONFIG_MAP, "baseline"))?["data"]["release"].clone())
    };
    until("west has the hotfix", || {
        ensure!(release(&world.west)? == "v1.0.0-1", "{}", release(&world.west)?);
        Ok(())
    })?;
    ensure!(release(&world.east)? == "v1.0.0", "east has {}", release(&world.east)?);
    world.west.runs("podinfo", "1.1.0", 2)
}

fn https_chart(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    service.patch("/platform_components/exporter", &json!({"oci_tag": "1.1.0"}))?;
    east.follow("platform-components")?;
    east.runs("exporter", "1.1.0", 1)?;
    service.patch("/platform_components/exporter", &json!({"oci_tag": "1.0.0"}))?;
    east.follow("platform-components")?;
    east.runs("exporter", "1.0.0", 1)?;
    service.patch("/platform_components/exporter", &json!({"oci_tag": "latest"}))?;
    east.follow("platform-components")?;
    east.runs("exporter", "1.1.0", 1)
}

fn other_chart(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let deployment = Place::new(Kind::DEPLOYMENT, "agent", "agent");
    let before = east.kube.get(&deployment)?;
    let own = service.get("/platform_components/agent")?;
    let other = json!({"oci_url": world.registry.url("charts/podinfo"), "oci_tag": "1.1.0"});
    service.patch("/platform_components/agent", &other)?;
    east.follow("platform-components")?;
    east.runs("agent", "1.1.0", 1)?;
    let after = east.kube.get(&deployment)?;
    ensure!(
        after["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/podinfo:1.1.0",
        "{after}"
    );
    ensure!(uid(&before) == uid(&after), "it was uninstalled in between");
    service.patch(
        "/platform_components/agent",
        &json!({"oci_url": own["oci_url"], "oci_tag": own["oci_tag"]}),
    )?;
    east.follow("platform-components")?;
    east.runs("agent", "1.0.0", 1)
}

fn disable_and_enable(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let release = Place::flux(Kind::HELM_RELEASE, "agent");
    let podinfo = east.kube.get(&Place::new(Kind::DEPLOYMENT, "podinfo", "podinfo"))?;
    service.patch("/clusters/east/platform_components/agent", &json!({"enabled": false}))?;
    east.poll("platform-components")?;
    east.kube.gone(&release)?;
    for place in [
        Place::flux(Kind::OCI_REPOSITORY, "agent"),
        Place::flux(Kind::CONFIG_MAP, "agent-values"),
        Place::new(Kind::DEPLOYMENT, "agent", "agent"),
    ] {
        east.kube.gone(&place)?;
    }
    let still = east.kube.get(&Place::new(Kind::DEPLOYMENT, "podinfo", "podinfo"))?;
    ensure!(uid(&still) == uid(&podinfo), "podinfo was made again");
    service.patch("/clusters/east/platform_components/agent", &json!({"enabled": true}))?;
    east.follow("platform-components")?;
    east.runs("agent", "1.0.0", 1)
}

fn namespaces(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let place = Place::global(Kind::NAMESPACE, "team-b");
    service.request(Method::PUT, "/clusters/east/namespaces/team-b", None, &[])?.accepted()?;
    east.follow("namespaces")?;
    let before = east.kube.get(&place)?;
    ensure!(before["metadata"]["labels"]["team"] == "b", "{before}");

    service.patch(
        "/namespaces/team-b",
        &json!({"labels": {"team": "bee"}, "annotations": {"note": "x: y\n# <<z>>"}}),
    )?;
    east.follow("namespaces")?;
    let after = east.kube.get(&place)?;
    ensure!(
        after["metadata"]["labels"]["team"] == "bee"
            && after["metadata"]["annotations"]["note"] == "x: y\n# <<z>>",
        "{after}"
    );
    ensure!(uid(&after) == uid(&before), "it was made again");

    service.delete("/clusters/east/namespaces/team-b")?;
    east.follow("namespaces")?;
    east.kube.gone(&place)?;
    east.kube.get(&Place::global(Kind::NAMESPACE, "team-a"))?;
    world.west.follow("namespaces")?;
    world.west.kube.get(&place).map(drop)
}

fn rolebindings(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let place = Place::global(Kind::CLUSTER_ROLE_BINDING, "operators");
    service.request(Method::PUT, "/clusters/east/rolebindings/operators", None, &[])?.accepted()?;
    east.follow("rolebindings")?;
    let binding = east.kube.get(&place)?;
    ensure!(binding["roleRef"]["name"] == "edit", "{binding}");
    ensure!(
        binding["subjects"][1]
            == json!({"kind": "ServiceAccount", "name": "deployer", "namespace": "team-a"}),
        "{binding}"
    );

    // Kubernetes refuses to change a role: the binding has to be made again.
    service.patch("/clusters/east/rolebindings/operators", &json!({"role": "admin"}))?;
    east.follow("rolebindings")?;
    until("the role is changed", || {
        let binding = east.kube.get(&place)?;
        ensure!(binding["roleRef"]["name"] == "admin", "{binding}");
        Ok(())
    })?;
    world.west.follow("rolebindings")?;
    ensure!(world.west.kube.get(&place)?["roleRef"]["name"] == "edit", "the override of east reached west");

    service.delete("/clusters/east/rolebindings/operators")?;
    east.follow("rolebindings")?;
    east.kube.gone(&place)?;
    east.kube.get(&Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers")).map(drop)
}

fn environment(world: &mut World) -> Result<()> {
    let (west, service) = (&world.west, &world.service);
    let overlay = |expected: &str| {
        west.follow("platform-components")?;
        until(&format!("west has the overlay of {expected}"), || {
            let path = west.kube.get(&Place::flux(Kind::KUSTOMIZATION, "baseline"))?["spec"]["path"].clone();
            let seen = west.kube.get(&Place::flux(Kind::CONFIG_MAP, "baseline"))?["data"]["overlay"].clone();
            ensure!(
                path == format!("./core/baseline/1.0.0/{expected}") && seen == expected,
                "{path}, {seen}"
            );
            Ok(())
        })
    };
    overlay("prod")?;
    // Flux uninstalls what the other overlay had: the guard asks.
    let stopped =
        service.request(Method::PATCH, "/clusters/west", Some(&json!({"environment": "dev"})), &[])?;
    ensure!(stopped.status == 409, "{}: {}", stopped.status, stopped.body);
    service.confirmed(&Method::PATCH, "/clusters/west", Some(&json!({"environment": "dev"})))?;
    overlay("dev")?;
    service.confirmed(&Method::PATCH, "/clusters/west", Some(&json!({"environment": "prod"})))?;
    overlay("prod")
}

fn substitution(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    service.patch("/clusters/east", &json!({"patches": {"baseline": {"LOG_LEVEL": "trace"}}}))?;
    east.follow("platform-components")?;
    // Nobody asks the Kustomization to look: the label on its variables does.
    until("the manifests have the new value", || {
        let seen = east.kube.get(&Place::flux(Kind::CONFIG_MAP, "baseline"))?["data"]["log"].clone();
        ensure!(seen == "trace", "{seen}");
        Ok(())
    })
}

fn dependency(world: &mut World) -> Result<()> {
    let (east, service) = (&world.east, &world.service);
    let release = Place::flux(Kind::HELM_RELEASE, "agent");
    let replicas = || -> Result<Value> {
        Ok(east.kube.get(&Place::new(Kind::DEPLOYMENT, "agent", "agent"))?["spec"]["replicas"].clone())
    };
    // A version of podinfo that does not exist: it is not ready, so agent, which depends on it, is not upgraded.
    service.patch("/clusters/east/platform_components/podinfo", &json!({"oci_tag": "9.9.9"}))?;
    east.follow("platform-components")?;
    let podinfo = Place::flux(Kind::HELM_RELEASE, "podinfo");
    east.kube.fails(&podinfo, "OCIRepository 'flux-system/podinfo' is not ready")?;
    service.patch("/clusters/east", &json!({"patches": {"agent": {"replicaCount": "2"}}}))?;
    east.follow("platform-components")?;
    east.kube.fails(&release, "dependency 'flux-system/podinfo' is not ready")?;
    ensure!(replicas()? == 1, "agent was upgraded");
    service.patch("/clusters/east/platform_components/podinfo", &json!({"oci_tag": null}))?;
    east.follow("platform-components")?;
    east.kube.ready(&podinfo)?;
    until("agent is upgraded", || {
        ensure!(replicas()? == 2, "it has {}", replicas()?);
        Ok(())
    })
}

fn drift(world: &mut World) -> Result<()> {
    let east = &world.east;
    let team = Place::global(Kind::NAMESPACE, "team-a");
    east.kube.patch(&team, &json!({"metadata": {"labels": {"team": null}}}))?;
    east.kube.delete(&Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers"))?;
    for kind in ["namespaces", "rolebindings"] {
        east.applied(kind)?;
    }
    ensure!(east.kube.get(&team)?["metadata"]["labels"]["team"] == "a", "the label is still gone");
    east.kube.get(&Place::global(Kind::CLUSTER_ROLE_BINDING, "viewers"))?;

    // What a chart made, too.
    east.puts_replicas_back("podinfo")?;
    let replicas =
        east.kube.get(&Place::new(Kind::DEPLOYMENT, "podinfo", "podinfo"))?["spec"]["replicas"].clone();
    ensure!(replicas == 3, "{replicas}");
    Ok(())
}
