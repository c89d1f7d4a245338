//! What a new cluster is given: its identity, its token, and the sync of the cluster plane. The manifests are those of `cluster/bootstrap`;
//! only what is particular to a cluster is put in.

use client::Token;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output;

const IDENTITY: &str = include_str!("../../../cluster/bootstrap/identity/cluster-identity.yaml");
const TOKEN: &str = include_str!("../../../cluster/bootstrap/identity/api-token.yaml");
const OCI: &str = include_str!("../../../cluster/bootstrap/oci/sync.yaml");
const GIT: &str = include_str!("../../../cluster/bootstrap/git/sync.yaml");
const FLUX_INSTANCE: &str = include_str!("../../../cluster/bootstrap/flux-instance/flux-instance.yaml");

/// What stands where a token should be.
pub(crate) const PLACEHOLDER: &str = "replace-me";

/// Everything that is particular to a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Particulars {
    /// `CLUSTER_NAME`, `CLUSTER_DNS`, `ENVIRONMENT`.
    pub name: String,
    pub dns: String,
    pub environment: String,
    /// Where it asks.
    pub service: String,
    /// What it shows there.
    pub token: Option<Token>,
    /// Where `cluster/` is published.
    pub plane: Plane,
    /// The tag or branch; what the manifests say if it is not given.
    pub version: Option<String>,
    /// The folder of the plane that is applied.
    pub path: Option<String>,
    /// Options: `../tls`, `../adoption/all`.
    pub components: Vec<String>,
}

/// Where the manifests of `cluster/` come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Plane {
    /// An OCI artifact, with Flux already there.
    Oci(String),
    /// A Git repository, with Flux already there.
    Git(String),
    /// An OCI artifact, and the Flux Operator installs Flux too.
    FluxInstance(String),
}

impl Plane {
    /// What an address means.
    pub(crate) fn new(url: &str, flux_instance: bool) -> Result<Self, Failure> {
        let oci = url.starts_with("oci://");
        match (oci, flux_instance) {
            (true, false) => Ok(Self::Oci(url.to_owned())),
            (true, true) => Ok(Self::FluxInstance(url.to_owned())),
            (false, true) => Err(Failure::usage(
                "`--flux-instance` takes the plane from an OCI artifact: `--plane oci://…`",
            )),
            (false, false)
                if ["https://", "ssh://", "http://"].iter().any(|scheme| url.starts_with(scheme)) =>
            {
                Ok(Self::Git(url.to_owned()))
            }
            (false, false) => Err(Failure::usage(
                "`--plane` is an OCI artifact (oci://…) or a Git repository (https://… or ssh://…)",
            )),
        }
    }
}

/// The manifests, ready for `kubectl apply -f -`.
pub(crate) fn manifests(of: &Particulars) -> Result<String, Failure> {
    let mut all = vec![namespace()];
    let mut identity = one(IDENTITY)?;
    identity["data"] = json!({
        "CLUSTER_NAME": of.name,
        "CLUSTER_DNS": of.dns,
        "ENVIRONMENT": of.environment,
        "INTERNAL_API_URL": of.service,
    });
    all.push(identity);
    let mut token = one(TOKEN)?;
    token["stringData"]["token"] = of.token.as_ref().map_or(PLACEHOLDER, Token::reveal).into();
    all.push(token);
    all.extend(sync(of)?);
    let texts = all.iter().map(output::yaml).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join("---\n"))
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}})
}

fn sync(of: &Particulars) -> Result<Vec<Value>, Failure> {
    let (text, url) = match &of.plane {
        Plane::Oci(url) => (OCI, url),
        Plane::Git(url) => (GIT, url),
        Plane::FluxInstance(url) => return Ok(vec![flux_instance(of, url)?]),
    };
    let mut objects = many(text)?;
    let [source, kustomization] = objects.as_mut_slice() else {
        return Err(Failure::failed("the manifests of the sync are not a source and a Kustomization"));
    };
    source["spec"]["url"] = url.as_str().into();
    if let Some(version) = &of.version {
        let field = if matches!(of.plane, Plane::Git(_)) { "branch" } else { "tag" };
        source["spec"]["ref"] = json!({ field: version });
    }
    if let Some(path) = &of.path {
        kustomization["spec"]["path"] = path.as_str().into();
    }
    if !of.components.is_empty() {
        kustomization["spec"]["components"] = json!(of.components);
    }
    Ok(objects)
}

fn flux_instance(of: &Particulars, url: &str) -> Result<Value, Failure> {
    let mut instance = one(FLUX_INSTANCE)?;
    let sync = &mut instance["spec"]["sync"];
    sync["url"] = url.into();
    if let Some(version) = &of.version {
        sync["ref"] = version.as_str().into();
    }
    if let Some(path) = &of.path {
        sync["path"] = path.as_str().into();
    }
    if !of.components.is_empty() {
        let patch = &mut instance["spec"]["kustomize"]["patches"][0]["patch"];
        let mut kustomization = one(patch.as_str().unwrap_or_default())?;
        kustomization["spec"]["components"] = json!(of.components);
        *patch = output::yaml(&kustomization)?.into();
    }
    Ok(instance)
}

fn many(text: &str) -> Result<Vec<Value>, Failure> {
    serde_saphyr::from_multiple(text)
        .map_err(|error| Failure::failed(format!("a manifest of this program is broken: {error}")))
}

fn one(text: &str) -> Result<Value, Failure> {
    let mut all = many(text)?;
    all.pop().ok_or_else(|| Failure::failed("a manifest of this program is empty"))
}

#[cfg(test)]
mod tests {
    use client::Token;
    use serde_json::{Value, json};

    use super::{Particulars, Plane, manifests};

    fn of(plane: Plane) -> Particulars {
        Particulars {
            name: "eu-1".to_owned(),
            dns: "eu-1.k8s.example.com".to_owned(),
            environment: "prod".to_owned(),
            service: "https://fleet.example.com".to_owned(),
            token: Some(Token::new("yes: 007")),
            plane,
            version: Some("v2".to_owned()),
            path: Some("./demo".to_owned()),
            components: vec!["../tls".to_owned()],
        }
    }

    fn made(plane: Plane) -> Vec<Value> {
        serde_saphyr::from_multiple(&manifests(&of(plane)).expect("manifests")).expect("yaml")
    }

    #[test]
    fn identity_and_token_are_the_clusters_own() {
        let all = made(Plane::Oci("oci://r.example.com/plane".to_owned()));
        let kinds: Vec<&str> = all.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["Namespace", "ConfigMap", "Secret", "OCIRepository", "Kustomization"]);
        assert_eq!(
            all[1]["data"],
            json!({
                "CLUSTER_NAME": "eu-1", "CLUSTER_DNS": "eu-1.k8s.example.com", "ENVIRONMENT": "prod",
                "INTERNAL_API_URL": "https://fleet.example.com",
            })
        );
        assert_eq!(all[1]["metadata"]["labels"]["reconcile.fluxcd.io/watch"], "Enabled");
        assert_eq!(all[2]["stringData"], json!({"token": "yes: 007"}));
    }

    #[test]
    fn the_sync_is_that_of_the_repository_with_the_address_put_in() {
        let all = made(Plane::Oci("oci://r.example.com/plane".to_owned()));
        assert_eq!(
            (&all[3]["spec"]["url"], &all[3]["spec"]["ref"]),
            (&json!("oci://r.example.com/plane"), &json!({"tag": "v2"}))
        );
        let spec = &all[4]["spec"];
        assert_eq!(
            (&spec["path"], &spec["components"], &spec["deletionPolicy"]),
            (&json!("./demo"), &json!(["../tls"]), &json!("Orphan"))
        );
        assert_eq!(spec["postBuild"]["substituteFrom"][0]["name"], "cluster-identity");
        let git = made(Plane::Git("https://git.example.com/x.git".to_owned()));
        assert_eq!(
            (&git[3]["kind"], &git[3]["spec"]["ref"]),
            (&json!("GitRepository"), &json!({"branch": "v2"}))
        );
    }

    #[test]
    fn a_flux_instance_has_the_options_in_its_patch() {
        let all = made(Plane::FluxInstance("oci://r.example.com/plane".to_owned()));
        let instance = &all[3];
        assert_eq!(
            (&instance["kind"], &instance["spec"]["sync"]["ref"]),
            (&json!("FluxInstance"), &json!("v2"))
        );
        let patch = instance["spec"]["kustomize"]["patches"][0]["patch"].as_str().expect("a patch");
        let patch: Value = serde_saphyr::from_str(patch).expect("yaml");
        assert_eq!(patch["spec"]["components"], json!(["../tls"]));
        assert_eq!(patch["spec"]["deletionPolicy"], "Orphan");
    }

    #[test]
    fn a_plane_is_an_artifact_or_a_repository() {
        assert_eq!(Plane::new("oci://x/y", false).expect("oci"), Plane::Oci("oci://x/y".to_owned()));
        assert_eq!(
            Plane::new("https://x/y.git", false).expect("git"),
            Plane::Git("https://x/y.git".to_owned())
        );
        assert!(Plane::new("https://x/y.git", true).is_err());
        assert!(Plane::new("x/y", false).is_err());
    }
}
