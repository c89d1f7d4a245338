//! The options of the plane: TLS with a CA of one's own, Basic authentication, alerts.

use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use e2e::checkout::repository;
use e2e::kube::{Kind, Place};
use e2e::listener::{self, Response};
use e2e::service::CLUSTER_TOKEN;
use e2e::wait::until;
use e2e::world::World;
use serde_json::{Value, json};

use crate::{Offline, Story};

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("the_plain_plane_polls_over_tls_with_a_ca_of_its_own", tls),
    ("basic_authentication_is_as_good_as_a_token", basic),
    ("an_alert_names_the_cluster_and_the_provider_that_fails", alert),
    ("the_rules_for_prometheus_are_about_what_the_operator_measures", measured),
];

/// Without a world: Prometheus' own tool tries the rules.
pub(crate) const OFFLINE: &[(&str, Offline)] = &[("the_rules_for_prometheus_fire_when_they_should", firing)];

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
    west.unchanged_since(&before)?;
    let object = west.kube.get(&provider)?;
    ensure!(
        object["spec"]["insecure"].is_null()
            && object["spec"]["url"]
                == format!("https://{front}/api/v2/flux/clusters/west.k8s.example.com/namespaces"),
        "{object}"
    );
    ensure!(object["metadata"]["annotations"]["fluxcd.controlplane.io/reconcileEvery"] == "5m", "{object}");

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
            "metadata": {"name": "flux-resourceset-alerts", "namespace": "flux-system"},
            "spec": {
                "interval": "10m", "prune": true, "path": "./alerts/flux", "sourceRef": {"kind": "OCIRepository", "name": "cluster-plane"},
                "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-identity"}]},
            },
        }),
    ];
    west.kube.apply_all(&objects)?;
    west.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "flux-resourceset-alerts"))?;

    west.show_token("not-this-one")?;
    west.kube.fails(&Place::flux(Kind::PROVIDER, "rolebindings"), "401")?;
    until("the alert arrives", || {
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = |event: &&Value| {
            let object = &event["involvedObject"];
            object["kind"] == "ResourceSetInputProvider" && object["name"] == "rolebindings"
        };
        let event = heard.iter().find(of_it);
        let event = event.with_context(|| format!("{heard:?}"))?;
        ensure!(event["severity"] == "error", "{event}");
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
    west.show_token(CLUSTER_TOKEN)?;
    west.poll_all()?;
    west.kube.delete(&Place::flux(Kind::KUSTOMIZATION, "flux-resourceset-alerts"))
}

/// What Prometheus would be given.
fn rules() -> Result<Value> {
    let file = repository().join("cluster/alerts/prometheus/rules.yaml");
    let mut rules: Value = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    Ok(rules["spec"].take())
}

fn firing() -> Result<()> {
    let (providers, sets) = ("flux_resourcesetinputprovider_info", "flux_resourceset_info");
    let series = |metric: &str, name: &str, ready: &str| {
        let labels =
            format!(r#"exported_namespace="flux-system",name="{name}",ready="{ready}",suspended="False""#);
        json!({"series": format!("{metric}{{{labels}}}"), "values": "1x60"})
    };
    let expected = |alert: &str, time: &str, names: &[&str]| -> Result<Value> {
        let rules = rules()?;
        let rules = rules["groups"][0]["rules"].as_array().context("rules")?;
        let rule = rules.iter().find(|rule| rule["alert"] == alert).context("a rule")?;
        let alerts = names.iter().map(|name| {
            let text = |field: &str| {
                rule["annotations"][field].as_str().map(|text| text.replace("{{ $labels.name }}", name))
            };
            json!({
                "exp_labels": {"severity": "warning", "exported_namespace": "flux-system", "name": name},
                "exp_annotations": {"summary": text("summary"), "description": text("description")},
            })
        });
        Ok(json!({"alertname": alert, "eval_time": time, "exp_alerts": alerts.collect::<Vec<_>>()}))
    };
    let test = json!({
        "rule_files": ["rules.yaml"],
        "tests": [{
            "interval": "1m",
            "input_series": [
                series(providers, "namespaces", "False"),
                series(providers, "rolebindings", "True"),
                series(sets, "namespaces", "True"),
                series(sets, "platform-components", "Unknown"),
            ],
            "alert_rule_test": [
                expected("FleetProviderNotReady", "10m", &[])?,
                expected("FleetProviderNotReady", "30m", &["namespaces"])?,
                expected("FleetResourceSetNotReady", "30m", &["platform-components"])?,
                expected("FleetResourceSetMissing", "30m", &["rolebindings"])?,
            ],
        }],
    });
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("rules.yaml"), rules()?.to_string())?;
    let file = folder.path().join("test.yaml");
    std::fs::write(&file, test.to_string())?;
    let tool = repository().join("scripts/tool");
    let output = Command::new(tool).args(["promtool", "test", "rules"]).arg(file).output()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

fn measured(world: &mut World) -> Result<()> {
    let metrics = world.west.flux.operator_metrics()?;
    let rules = rules()?;
    let rules = rules["groups"][0]["rules"].as_array().context("rules")?;
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
