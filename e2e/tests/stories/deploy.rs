//! What `deploy/` holds: the service as Kubernetes runs it. Nothing here can build an image or run a container; but a Kubernetes API server
//! looks at the manifests, and the service takes their settings.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use e2e::checkout::{our_binary, repository};
use e2e::kube::{Kind, Place};
use e2e::ports;
use e2e::process::Program;
use e2e::wait::until;
use e2e::world::World;
use serde_json::{Value, json};

use crate::Story;

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("kubernetes_accepts_all_of_it_and_finds_it_restricted", accepted),
    ("one_pod_on_one_volume_has_polls_and_management_apart", one_pod),
    ("both_containers_start_with_the_settings_they_are_given", settings),
];

const NAMESPACE: &str = "flux-resourceset";

/// What kustomize makes of a folder of `deploy/`.
fn built(world: &World, overlay: &str) -> Result<Vec<Value>> {
    let folder = repository().join("deploy").join(overlay);
    let manifests = world.west.kube.run(&["kustomize", &folder.display().to_string()])?;
    Ok(serde_saphyr::from_multiple(&manifests)?)
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Result<&'a Value> {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.with_context(|| format!("there is no {kind} {name}"))
}

fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn container<'a>(set: &'a Value, name: &str) -> Result<&'a Value> {
    let containers = items(set, "/spec/template/spec/containers");
    containers
        .iter()
        .find(|container| container["name"] == name)
        .with_context(|| format!("no container {name}"))
}

fn accepted(world: &mut World) -> Result<()> {
    let kube = &world.west.kube;
    let base = built(world, "base")?;
    // A dry run makes no namespace for what comes after it.
    kube.apply(&find(&base, "Namespace", NAMESPACE)?.to_string())?;
    let demo = built(world, "demo")?;
    // What the demo gives its kind cluster: the overlay, its tokens and its seed, Flux, and the plane with the identity in it.
    let kubectl = world.parts.binary("kubectl");
    let path = format!(
        "{}:{}",
        kubectl.parent().unwrap_or(Path::new("/")).display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output =
        Command::new(repository().join("scripts/demo")).arg("manifests").env("PATH", path).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kind: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(output.stdout)?)?;
    let kind: Vec<Value> = kind.into_iter().filter(|object| !object.is_null()).collect();
    let provider = find(&kind, "ResourceSetInputProvider", "namespaces")?;
    let url = "http://flux-resourceset.flux-resourceset.svc/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces";
    ensure!(provider["spec"]["url"] == url, "{provider}");
    for objects in [&base, &demo, &kind] {
        let manifests: Vec<String> = objects.iter().map(Value::to_string).collect();
        let arguments =
            ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--warnings-as-errors"];
        kube.run_with(&[&arguments[..], &["-f", "-"]].concat(), &manifests.join("\n---\n"))?;
    }

    // The set is accepted whatever its pod is. The pod itself has to pass what the namespace enforces.
    for objects in [&base, &demo] {
        let set = find(objects, "StatefulSet", NAMESPACE)?;
        let mut pod = set["spec"]["template"].clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!("flux-resourceset-0");
        pod["metadata"]["namespace"] = json!(NAMESPACE);
        let claim =
            json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-flux-resourceset-0"}});
        pod["spec"]["volumes"].as_array_mut().context("volumes")?.push(claim);
        kube.run_with(&["create", "--dry-run=server", "-f", "-"], &pod.to_string())?;
        // It would be refused otherwise.
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
        let refused = kube.run_with(&["create", "--dry-run=server", "-f", "-"], &pod.to_string());
        let Err(refused) = refused else { bail!("a pod that may escalate is accepted") };
        ensure!(format!("{refused:#}").contains("violates PodSecurity \"restricted"), "{refused:#}");
    }
    kube.delete(&Place::global(Kind::NAMESPACE, NAMESPACE))?;
    kube.gone(&Place::global(Kind::NAMESPACE, NAMESPACE))
}

fn one_pod(world: &mut World) -> Result<()> {
    for overlay in ["base", "demo"] {
        let objects = built(world, overlay)?;
        let sets: Vec<&Value> =
            objects.iter().filter(|object| !object["spec"]["template"].is_null()).collect();
        let [set] = sets[..] else { bail!("{overlay} has {} sets of pods", sets.len()) };
        ensure!(set["kind"] == "StatefulSet" && set["spec"]["replicas"] == 1, "{overlay}: {set}");
        let kept = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
        ensure!(set["spec"]["persistentVolumeClaimRetentionPolicy"] == kept, "{overlay}: {set}");
        ensure!(set["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "data", "{overlay}: {set}");

        let pod = &set["spec"]["template"]["spec"];
        ensure!(pod["securityContext"]["runAsNonRoot"] == true, "{overlay}: {pod}");
        ensure!(pod["securityContext"]["runAsUser"] == 65532, "{overlay}: {pod}");
        ensure!(pod["automountServiceAccountToken"] == false, "{overlay}: {pod}");
        ensure!(items(pod, "/containers").len() == 2, "{overlay}: {pod}");
        for (name, port, mode) in [("manage", 8080, "crud"), ("poll", 8081, "read-only")] {
            let container = container(set, name)?;
            ensure!(container["ports"] == json!([{"name": name, "containerPort": port}]), "{container}");
            let mode = json!({"name": "API_MODE", "value": mode});
            ensure!(items(container, "/env").contains(&mode), "{container}");
            let data = json!({"name": "data", "mountPath": "/data"});
            ensure!(items(container, "/volumeMounts").contains(&data), "{container}");
            ensure!(container["securityContext"]["readOnlyRootFilesystem"] == true, "{container}");
            for (probe, path) in
                [("startupProbe", "/health"), ("livenessProbe", "/health"), ("readinessProbe", "/ready")]
            {
                let asks = &container[probe]["httpGet"];
                ensure!(asks == &json!({"path": path, "port": name}), "{overlay}: {probe} of {name}: {asks}");
            }
        }
        let reader = container(set, "poll")?.to_string();
        ensure!(
            !reader.contains("manage"),
            "the process that clusters ask can see a token to write with: {reader}"
        );
        // Only a demo fills a new store from a seed that stays set.
        let seeded = set.to_string().contains("SEED_FILE");
        ensure!(seeded == (overlay == "demo"), "{overlay} has a seed: {seeded}");

        let services: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Service").collect();
        ensure!(services.len() == 2, "{overlay}: {services:?}");
        for (name, port) in [("flux-resourceset", "poll"), ("flux-resourceset-manage", "manage")] {
            let service = &find(&objects, "Service", name)?["spec"];
            ensure!(service["selector"] == set["spec"]["selector"]["matchLabels"], "{name}: {service}");
            ensure!(
                service["selector"] == set["spec"]["template"]["metadata"]["labels"],
                "{name}: {service}"
            );
            let ports: Vec<&Value> =
                items(service, "/ports").iter().map(|port| &port["targetPort"]).collect();
            ensure!(ports == [&json!(port)], "{name} leads to {ports:?}");
            ensure!(service["publishNotReadyAddresses"] == true, "{name}: {service}");
        }
        ensure!(!objects.iter().any(|object| object["kind"] == "Secret"), "{overlay} holds a Secret");
    }
    Ok(())
}

/// The two processes, with the environment of the two containers, in folders in place of their mounts.
fn settings(world: &mut World) -> Result<()> {
    let objects = built(world, "demo")?;
    let set = find(&objects, "StatefulSet", NAMESPACE)?;
    let folder = world.folder().join("deploy");
    for mount in ["data", "tokens/poll", "tokens/manage", "seed"] {
        std::fs::create_dir_all(folder.join(mount))?;
    }
    std::fs::write(folder.join("tokens/poll/tokens"), "clusters=a-token-of-clusters\n")?;
    std::fs::write(folder.join("tokens/manage/tokens"), "demo=a-token-of-the-demo\n")?;
    std::fs::copy(repository().join("data/seed.json"), folder.join("seed/seed.json"))?;

    let mut running = Vec::new();
    for name in ["manage", "poll"] {
        let [port] = ports::free()?;
        let mut program = Program::new(name, &our_binary()?, &folder);
        let address = format!("127.0.0.1:{port}");
        for variable in items(container(set, name)?, "/env") {
            let (variable, value) = (&variable["name"], variable["value"].as_str().context("a value")?);
            let value = match value {
                "0.0.0.0:8080" | "0.0.0.0:8081" => address.clone(),
                path if path.starts_with('/') => format!("{}{path}", folder.display()),
                url => url.replace("sqlite://", &format!("sqlite://{}", folder.display())),
            };
            program = program.with(variable.as_str().context("a name")?, value);
        }
        let mut process = program.start()?;
        // The image's own health check, too.
        until(&format!("{name} is ready"), || {
            process.alive()?;
            healthy(&address, "/ready")
        })?;
        healthy(&address, "/health")?;
        running.push((process, address));
    }
    let status = |address: &str, path: &str, token: &str| -> Result<u16> {
        let url = format!("http://{address}{path}");
        Ok(reqwest::blocking::Client::new().get(url).bearer_auth(token).send()?.status().as_u16())
    };
    let (manage, poll) = (running[0].1.as_str(), running[1].1.as_str());
    let polled = "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces";
    let expected: BTreeMap<(&str, &str, &str), u16> = BTreeMap::from([
        ((manage, "/clusters/demo-cluster-01", "a-token-of-the-demo"), 200),
        ((manage, "/clusters/demo-cluster-01", "a-token-of-clusters"), 403),
        ((poll, polled, "a-token-of-clusters"), 200),
        ((poll, polled, "a-token-of-the-demo"), 401),
        ((poll, "/clusters/demo-cluster-01", "a-token-of-the-demo"), 404),
    ]);
    for ((address, path, token), expected) in expected {
        let found = status(address, path, token)?;
        ensure!(found == expected, "{path} with {token} is answered {found}, not {expected}");
    }
    drop(running);
    // Nobody listens there.
    let nobody = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    ensure!(healthy(&nobody, "/health").is_err(), "it finds something healthy that is not there");
    Ok(())
}

fn healthy(address: &str, path: &str) -> Result<()> {
    let check = repository().join("deploy/healthcheck");
    let output = Command::new(check).arg(path).env("LISTEN_ADDR", address).output()?;
    ensure!(output.status.success(), "{path} of {address}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
