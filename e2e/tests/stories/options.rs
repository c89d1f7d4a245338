//! The options of the plane: TLS with a CA of one's own, Basic authentication, alerts.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use e2e::kube::{Kind, Place};
use e2e::listener::{self, Response};
use e2e::service::CLUSTER_TOKEN;
use e2e::wait::until;
use e2e::world::World;
use serde_json::{Value, json};

use crate::{Story, difference};

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("options::the_plain_plane_polls_over_tls_with_a_ca_of_its_own", tls),
    ("options::basic_authentication_is_as_good_as_a_token", basic),
    ("options::an_alert_names_the_cluster_and_the_provider_that_fails", alert),
    ("options::the_rules_for_prometheus_are_about_what_the_operator_measures", measured),
];

fn tls(world: &mut World) -> Result<()> {
    let west = &world.west;
    let before = west.everything()?;
    let front = world.authority.front(world.service.poll_address().parse()?)?;
    let provider = Place::flux(Kind::PROVIDER, "namespaces");
    let url = |url: &str| {
        west.kube.patch(
            &Place::flux(Kind::CONFIG_MAP, "cluster-identity"),
            &json!({"data": {"INTERNAL_API_URL": url}}),
        )
    };

    // Without the CA nothing is believed, and nothing is deleted.
    url(&format!("https://{front}"))?;
    west.resync(&json!({"path": "./plane", "components": []}))?;
    west.kube.fails(&provider, "certificate")?;

    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "flux-resourceset-tls", "namespace": "flux-system"},
        "stringData": {"ca.crt": world.authority.certificate()},
    });
    west.kube.apply(&secret.to_string())?;
    west.resync(&json!({"components": ["../tls"]}))?;
    west.poll_all()?;
    let object = west.kube.get(&provider)?;
    ensure!(
        object["spec"]["insecure"].is_null()
            && object["spec"]["url"]
                == format!("https://{front}/api/v2/flux/clusters/west.k8s.example.com/namespaces"),
        "{object}"
    );
    ensure!(object["metadata"]["annotations"]["fluxcd.controlplane.io/reconcileEvery"] == "5m", "{object}");
    let after = west.everything()?;
    ensure!(before == after, "{:?}", difference(&before, &after));

    url(&world.service.poll_url())?;
    west.resync(&json!({"path": "./demo", "components": []}))?;
    west.poll_all().map(drop)
}

fn basic(world: &mut World) -> Result<()> {
    let west = &world.west;
    let secret = Place::flux(Kind::SECRET, "flux-resourceset");
    west.kube.patch(
        &secret,
        &json!({"data": {"token": null}, "stringData": {"username": "west", "password": CLUSTER_TOKEN}}),
    )?;
    west.poll_all()?;
    west.kube.patch(
        &secret,
        &json!({"data": {"username": null, "password": null}, "stringData": {"token": CLUSTER_TOKEN}}),
    )?;
    west.poll_all().map(drop)
}

fn alert(world: &mut World) -> Result<()> {
    let west = &world.west;
    let heard: Arc<Mutex<Vec<Value>>> = Arc::default();
    let ears = heard.clone();
    let address = listener::serve(move |request| {
        if let Ok(event) = serde_json::from_slice(&request.body) {
            ears.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }
        Response::status(200)
    })?;
    let objects = [
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fleet-alerts", "namespace": "flux-system"},
            "stringData": {"address": format!("http://{address}/")},
        }),
        json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "alerts", "namespace": "flux-system"},
            "spec": {
                "interval": "10m", "prune": true, "path": "./alerts/flux", "sourceRef": {"kind": "OCIRepository", "name": "cluster-plane"},
                "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-identity"}]},
            },
        }),
    ];
    west.kube.apply_all(&objects)?;
    west.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "alerts"))?;

    let secret = Place::flux(Kind::SECRET, "flux-resourceset");
    west.kube.patch(&secret, &json!({"stringData": {"token": "not-this-one"}}))?;
    west.kube.fails(&Place::flux(Kind::PROVIDER, "rolebindings"), "401")?;
    until("the alert arrives", || {
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let event = heard.iter().find(|event| event["involvedObject"]["kind"] == "ResourceSetInputProvider");
        let event = event.with_context(|| format!("{heard:?}"))?;
        ensure!(event["involvedObject"]["name"] == "rolebindings" && event["severity"] == "error", "{event}");
        ensure!(
            event["metadata"]["cluster"] == "west" && event["metadata"]["environment"] == "prod",
            "{event}"
        );
        ensure!(event["message"].as_str().is_some_and(|message| message.contains("401")), "{event}");
        Ok(())
    })?;
    let metrics = west.flux.operator_metrics()?;
    let line = metrics.lines().find(|line| {
        line.starts_with("flux_resourcesetinputprovider_info{") && line.contains("name=\"rolebindings\"")
    });
    let line = line.context("no metric of the provider")?;
    ensure!(
        line.contains("ready=\"False\"")
            && line.contains("exported_namespace=\"flux-system\"")
            && line.ends_with(" 1"),
        "{line}"
    );
    west.kube.patch(&secret, &json!({"stringData": {"token": CLUSTER_TOKEN}}))?;
    west.poll_all()?;
    west.kube.delete(&Place::flux(Kind::KUSTOMIZATION, "alerts"))
}

fn measured(world: &mut World) -> Result<()> {
    let metrics = world.west.flux.operator_metrics()?;
    let rules: Value = serde_saphyr::from_str(&std::fs::read_to_string(
        e2e::parts::repository().join("cluster/alerts/prometheus/rules.yaml"),
    )?)?;
    let rules = rules["spec"]["groups"][0]["rules"].as_array().context("rules")?;
    ensure!(rules.len() == 3, "{rules:?}");
    for rule in rules {
        let expression = rule["expr"].as_str().context("an expression")?;
        // Each selector of the rule: a metric, and the labels that it asks for.
        for selector in expression.split(['(', ')']).filter(|part| part.contains('{')) {
            let (metric, labels) = selector.trim().split_once('{').context("a selector")?;
            let sample = metrics.lines().find(|line| line.starts_with(&format!("{metric}{{")));
            let sample = sample.with_context(|| format!("the operator does not measure {metric}"))?;
            for label in labels.trim_end_matches('}').split(',') {
                let name = label.split(['=', '!']).next().unwrap_or_default().trim();
                ensure!(sample.contains(&format!("{name}=\"")), "{metric} has no label {name}: {sample}");
            }
        }
    }
    Ok(())
}
