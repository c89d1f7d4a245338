//! The command line. Every value is taken as text, so that all wrong ones can be reported at once; see [`super::Config`].

use clap::{Parser, Subcommand};

/// Says to each Kubernetes cluster of a fleet what it should run.
///
/// Each cluster's Flux Operator asks this service (`ResourceSetInputProvider`, type `ExternalService`) for its inputs. In `crud` mode the
/// service also has the REST API that the fleet is managed with. Every flag can be given as the environment variable beside it.
#[derive(Parser, Default)]
#[command(name = "flux-resourceset", version)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,

    /// `read-only` answers polls; `crud` also has the REST API and writes to the store
    #[arg(long, env = "API_MODE", value_name = "MODE")]
    pub api_mode: Option<String>,

    /// `sqlite`, or `memory` for trying things out: a new store at every start
    #[arg(long, env = "STORE_BACKEND", value_name = "BACKEND", global = true)]
    pub store_backend: Option<String>,

    /// Where the store is [default: `sqlite://data/flux-resourceset.db`]
    #[arg(long, env = "DATABASE_URL", value_name = "URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,

    /// The token that clusters poll with, or `off`
    #[arg(long, env = "AUTH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub auth_token: Option<String>,

    /// A file with such tokens, one a line, `name=token` to name who it is; reloaded when it changes
    #[arg(long, env = "AUTH_TOKEN_FILE", value_name = "FILE")]
    pub auth_token_file: Option<String>,

    /// The token for the REST API; needed in `crud` mode
    #[arg(long, env = "CRUD_AUTH_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub crud_auth_token: Option<String>,

    /// A file with such tokens, one a line, `name=token` to name the actor in the audit log; reloaded when it changes
    #[arg(long, env = "CRUD_AUTH_TOKEN_FILE", value_name = "FILE")]
    pub crud_auth_token_file: Option<String>,

    /// A JSON file that fills a new store [default for `memory`: data/seed.json]
    #[arg(long, env = "SEED_FILE", value_name = "FILE")]
    pub seed_file: Option<String>,

    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, env = "LISTEN_ADDR", value_name = "ADDR:PORT")]
    pub listen_addr: Option<String>,

    /// Serve `/metrics` on this address instead of the main one
    #[arg(long, env = "METRICS_ADDR", value_name = "ADDR:PORT")]
    pub metrics_addr: Option<String>,

    /// How old the answers may get when the store cannot be reached, or `unlimited` [default: 60s]
    #[arg(long, env = "MAX_STALENESS", value_name = "DURATION")]
    pub max_staleness: Option<String>,

    /// On how many clusters one change may remove something without a confirmation [default: 3]
    #[arg(long, env = "GUARD_CLUSTERS", value_name = "NUMBER")]
    pub guard_clusters: Option<String>,

    /// How many decommissions, clusters that leave an environment, and deletions of namespaces an hour need no allowance [default: 10]
    #[arg(long, env = "GUARD_DELETIONS_PER_HOUR", value_name = "NUMBER")]
    pub guard_deletions_per_hour: Option<String>,

    /// How many other removals an hour need no allowance [default: 50]
    #[arg(long, env = "GUARD_REMOVALS_PER_HOUR", value_name = "NUMBER")]
    pub guard_removals_per_hour: Option<String>,

    /// How many changes an hour somebody may confirm without an allowance [default: 5]
    #[arg(long, env = "GUARD_CONFIRMATIONS_PER_HOUR", value_name = "NUMBER")]
    pub guard_confirmations_per_hour: Option<String>,

    /// How many clusters one change may reach without a confirmation, removals or not [default: any number]
    #[arg(long, env = "GUARD_CHANGED_CLUSTERS", value_name = "NUMBER")]
    pub guard_changed_clusters: Option<String>,

    /// `text` or `json` [default: text on a terminal, else json]
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<String>,

    /// What to log, as `info` or `server=debug,ledger=info` [default: info]
    #[arg(long, env = "RUST_LOG", value_name = "FILTER")]
    pub rust_log: Option<String>,

    /// Not in this version
    #[arg(long, env = "RESOURCES_DIR", value_name = "DIR", hide = true)]
    pub resources_dir: Option<String>,

    /// Not in this version
    #[arg(long, env = "TLS_CERT_FILE", value_name = "FILE", hide = true)]
    pub tls_cert_file: Option<String>,

    /// Not in this version
    #[arg(long, env = "TLS_KEY_FILE", value_name = "FILE", hide = true)]
    pub tls_key_file: Option<String>,

    /// Not in this version
    #[arg(long, env = "TLS_CLIENT_CA_FILE", value_name = "FILE", hide = true)]
    pub tls_client_ca_file: Option<String>,
}

/// What else the program does, instead of serving.
#[derive(Subcommand)]
pub enum Command {
    /// Accept a store that was refused because it may have gone back
    ///
    /// Each store has a head mark beside it, which says how far it was written. A store that ends before its mark is refused: a part of it
    /// was lost, or an older backup was put in its place. Stop all processes that use the store, then run this without `--expect`: it says
    /// what the store holds and what the mark says. With `--expect` the store becomes the one to go on with.
    AcceptStore {
        /// Where the store ends, as this command prints it without `--expect`
        #[arg(long, value_name = "REVISION:HASH")]
        expect: Option<String>,
    },
}
