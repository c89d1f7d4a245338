//! `cluster bootstrap`: what a new cluster is given.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use client::{Credentials, Endpoint, Token};

use crate::bootstrap::{self, PLACEHOLDER, Particulars, Plane};
use crate::complete;
use crate::connection::{environment, token_of_file};
use crate::failure::Failure;
use crate::session::Session;

/// What stands where the address of the plane should be.
const PLANE: &str = "oci://registry.example.com/platform/cluster-plane";

/// Connect a cluster to the service
#[derive(Debug, Args)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    pub what: What,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    Bootstrap(Bootstrap),
}

/// Print what makes a cluster follow the service, for `kubectl apply -f -` on that cluster
///
/// Its identity and its token, and the sync that keeps the manifests of `cluster/` applied. The Flux Operator must be there already.
///
/// The token is what this cluster will show: it comes from --token-file or FLUX_CLUSTER_TOKEN, and is never the one that you manage
/// the fleet with.
#[derive(Debug, Args)]
pub(crate) struct Bootstrap {
    /// The cluster
    #[arg(add = complete::clusters())]
    pub cluster: String,
    /// Where `cluster/` is published: an OCI artifact (oci://…) or a Git repository (https://…, ssh://…)
    #[arg(long, value_name = "URL")]
    pub plane: Option<String>,
    /// Where clusters ask: the service in read-only mode. If it is not given: the context's `poll-url`, else the address that is used here
    #[arg(long, value_name = "URL")]
    pub service_url: Option<String>,
    /// The file with the token that the cluster shows (environment: FLUX_CLUSTER_TOKEN)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The tag of the artifact, or the branch of the repository
    #[arg(long, value_name = "NAME")]
    pub tag: Option<String>,
    /// The folder of the plane to apply: ./plane, or ./cluster/plane in a Git repository
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// An option of the plane, such as ../tls or ../adoption/all; may be given several times
    #[arg(long = "component", value_name = "PATH")]
    pub components: Vec<String>,
    /// Let the Flux Operator install Flux as well
    #[arg(long)]
    pub flux_instance: bool,
}

impl Cluster {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        match self.what {
            What::Bootstrap(bootstrap) => bootstrap.run(session),
        }
    }
}

impl Bootstrap {
    fn run(self, session: &Session) -> Result<(), Failure> {
        let plane = Plane::new(self.plane.as_deref().unwrap_or(PLANE), self.flux_instance)?;
        let token = match &self.token_file {
            Some(file) => Some(token_of_file(file)?),
            None => environment("FLUX_CLUSTER_TOKEN").map(|token| Token::new(&token)),
        };
        let warn = |what: &str| session.output.warn(what);
        if self.plane.is_none() {
            warn(&format!(
                "the sync points to `{PLANE}`, which is nowhere: say where `cluster/` is published with --plane"
            ));
        }
        let connection = &session.connection;
        let service = self.service_url.as_ref().or(connection.poll_url.as_ref()).unwrap_or(&connection.url);
        let service =
            Endpoint::new(service, Credentials::default(), None).map_err(Failure::Usage)?.url().to_owned();
        if !service.starts_with("https://") {
            warn("clusters poll over TLS only; plain HTTP is for `--path ./demo` on one machine");
        }
        let document = session.client.document(&session.kinds()?.clusters()?.name, &self.cluster)?.document;
        let text = |field: &str| document[field].as_str().unwrap_or_default().to_owned();
        if let Some(token) = &token {
            // Whether it is one of ours or not, the service knows what it may do.
            match connection.owner_of(token)? {
                Some(owner) if owner.is_admin() => {
                    return Err(Failure::with_next(
                        "that token may change the whole fleet; a cluster must not have it",
                        "give the cluster a token that may only read: AUTH_TOKEN of the service",
                    ));
                }
                Some(_) => {}
                None => warn("the service does not know the cluster's token: it would be answered 401"),
            }
        } else {
            warn(&format!(
                "the Secret holds `{PLACEHOLDER}`: set FLUX_CLUSTER_TOKEN, or use --token-file, to put the cluster's token in"
            ));
        }
        let manifests = bootstrap::manifests(&Particulars {
            name: text("cluster_name"),
            dns: text("cluster_dns"),
            environment: text("environment"),
            service,
            token,
            plane,
            version: self.tag,
            path: self.path,
            components: self.components,
        })?;
        session.output.data(&manifests)
    }
}
