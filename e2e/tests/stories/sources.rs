//! Sources that need credentials, and artifacts that must be signed.

use anyhow::{Context, Result, ensure};
use e2e::artifacts;
use e2e::kube::{Kind, Place, uid};
use e2e::login::Login;
use e2e::registry::Content;
use e2e::world::World;
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::{Story, catalog};

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("a_source_that_needs_a_login_is_fetched_with_its_secret_and_not_without", login),
    ("an_artifact_is_installed_only_if_its_signature_is_verified", signature),
];

const COMPONENTS: &str = "platform-components";

/// Sets a field of a component, or removes it with `null`, and has east follow.
fn set(world: &World, component: &str, field: &str, value: &Value) -> Result<()> {
    let place = format!("/platform_components/{component}");
    world.service.patch(&place, &json!({field: value}))?;
    world.east.follow(COMPONENTS)
}

fn login(world: &mut World) -> Result<()> {
    let east = &world.east;
    let login = Login { username: "flux", password: "only:for \"flux\"" };
    let registry = login.front(world.registry.address()?)?;
    let charts = world.authority.front(login.front(world.charts)?)?;
    let manifests = artifacts::overlays("locked-manifests", "1.0.0", "v1.0.0")?;
    world.registry.push("locked/manifests", "v1.0.0", Content::Folder, &manifests)?;

    // Each with its source and the Secret that it will get: one for each combination of delivery and source.
    let sources = [
        ("locked-chart", Kind::OCI_REPOSITORY, "registry-login"),
        ("locked-repository", Kind::HELM_REPOSITORY, "charts-login"),
        ("locked-manifests", Kind::OCI_REPOSITORY, "registry-login"),
    ];
    let components = [
        json!({"id": "locked-chart", "component_path": "podinfo", "delivery": "helm", "oci_url": format!("oci://{registry}/charts/podinfo"), "oci_tag": "1.0.0"}),
        json!({"id": "locked-repository", "component_path": "exporter", "oci_url": format!("https://{charts}"), "oci_tag": "1.0.0"}),
        json!({"id": "locked-manifests", "component_path": "core/locked-manifests/1.0.0/dev", "oci_url": format!("oci://{registry}/locked/manifests"), "oci_tag": "v1.0.0"}),
    ];
    let added = [("platform_components", components.as_slice())];
    catalog::assign(&world.service, &added)?;
    east.follow(COMPONENTS)?;
    for (component, kind, _) in sources {
        east.kube.fails(&Place::flux(kind, component), "401")?;
    }

    let docker = json!({"auths": {registry.to_string(): {"auth": login.encoded()}}}).to_string();
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "flux-system"}});
    let mut of_registry = secret("registry-login");
    of_registry["type"] = "kubernetes.io/dockerconfigjson".into();
    of_registry["stringData"] = json!({".dockerconfigjson": docker});
    let mut of_charts = secret("charts-login");
    of_charts["stringData"] = json!({"username": login.username, "password": login.password});
    east.kube.apply_all(&[of_registry, of_charts])?;
    // A Secret alone changes nothing: the component has to name it.
    east.kube.fails(&Place::flux(Kind::OCI_REPOSITORY, "locked-chart"), "401")?;
    for (component, kind, secret) in sources {
        set(world, component, "secretRef", &json!({"name": secret}))?;
        east.kube.ready(&Place::flux(kind, component))?;
    }
    east.runs("locked-chart", "1.0.0", 1)?;
    east.runs("locked-repository", "1.0.0", 1)?;
    east.kube.ready(&Place::flux(Kind::KUSTOMIZATION, "locked-manifests"))?;
    let made = east.kube.get(&Place::flux(Kind::CONFIG_MAP, "locked-manifests"))?;
    ensure!(made["data"]["overlay"] == "dev", "{made}");

    // Without it the source fails again, and what was installed stays.
    let deployment = Place::new(Kind::DEPLOYMENT, "locked-chart", "locked-chart");
    let before = east.kube.get(&deployment)?;
    set(world, "locked-chart", "secretRef", &Value::Null)?;
    east.kube.fails(&Place::flux(Kind::OCI_REPOSITORY, "locked-chart"), "401")?;
    ensure!(uid(&east.kube.get(&deployment)?) == uid(&before), "it was installed again");

    catalog::unassign(&world.service, &added)?;
    east.follow(COMPONENTS)?;
    east.kube.gone(&deployment)?;
    for name in ["registry-login", "charts-login"] {
        east.kube.delete(&Place::flux(Kind::SECRET, name))?;
    }
    Ok(())
}

fn signature(world: &mut World) -> Result<()> {
    let east = &world.east;
    let key = KeyPair::generate()?;
    let repository = "signed/chart";
    let push = |version: &str| {
        world.registry.push(repository, version, Content::Chart, &artifacts::chart("signed", version)?)
    };
    world.registry.sign(repository, &push("1.0.0")?, &key)?;
    let forged = push("1.1.0")?;
    world.registry.sign(repository, &forged, &KeyPair::generate()?)?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cosign-keys", "namespace": "flux-system"},
        "stringData": {"cosign.pub": key.public_key_pem()},
    });
    east.kube.apply(&secret.to_string())?;

    let verify = json!({"provider": "cosign", "secretRef": {"name": "cosign-keys"}});
    let component = json!({
        "id": "signed", "component_path": "signed", "delivery": "helm", "oci_url": world.registry.url(repository), "oci_tag": "1.0.0",
        "verify": verify,
    });
    let components = [component];
    let added = [("platform_components", components.as_slice())];
    catalog::assign(&world.service, &added)?;
    east.follow(COMPONENTS)?;
    let source = Place::flux(Kind::OCI_REPOSITORY, "signed");
    let deployment = Place::new(Kind::DEPLOYMENT, "signed", "signed");
    let verified = east.kube.ready(&source)?;
    let conditions = verified["status"]["conditions"].as_array().context("conditions")?;
    ensure!(
        conditions.iter().any(|one| one["type"] == "SourceVerified" && one["status"] == "True"),
        "{verified}"
    );
    east.runs("signed", "1.0.0", 1)?;

    // Signed by somebody else: the source fails, and the version that was verified stays.
    set(world, "signed", "oci_tag", &json!("1.1.0"))?;
    east.kube.fails(&source, "no matching signatures were found")?;
    let image = east.kube.get(&deployment)?["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    ensure!(image == "registry.example.com/signed:1.0.0", "{image}");
    // Without `verify`, Flux takes it.
    set(world, "signed", "verify", &Value::Null)?;
    east.runs("signed", "1.1.0", 1)?;

    catalog::unassign(&world.service, &added)?;
    east.follow(COMPONENTS)?;
    east.kube.gone(&deployment)?;
    east.kube.delete(&Place::flux(Kind::SECRET, "cosign-keys"))
}
