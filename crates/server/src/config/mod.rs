//! The configuration: read once, wholly, before anything is opened or bound. All wrong values are reported at once, each with the name
//! of its variable; the value of a secret is never repeated.

mod args;
mod values;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use args::{Args, Command};
use fleet::Policy;

use crate::identity::{ConfiguredTokens, Identity, Role, Token};

/// What this process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Answers polls.
    ReadOnly,
    /// Answers polls, and has the REST API.
    Crud,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::Crud => api::CRUD,
        })
    }
}

/// Where the fleet is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Store {
    /// In this process only.
    Memory,
    /// In a file.
    Sqlite(PathBuf),
}

/// How the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Everything that can be set.
#[derive(Debug)]
pub struct Config {
    /// What this process does.
    pub mode: Mode,
    /// Where the fleet is kept.
    pub store: Store,
    /// Who may do what.
    pub identity: Arc<Identity>,
    /// What fills a new store.
    pub seed: Option<PathBuf>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where to serve the metrics, if not there.
    pub metrics: Option<SocketAddr>,
    /// How old answers may get; none means any age.
    pub max_staleness: Option<Duration>,
    /// The guard's numbers.
    pub policy: Policy,
    /// How the log looks.
    pub log_format: LogFormat,
    /// What is logged.
    pub log_filter: String,
}

/// Everything that is wrong with the configuration.
#[derive(PartialEq, Eq, Debug)]
pub struct BadConfig(pub Vec<String>);

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = self.0.len() > 1;
        writeln!(f, "the configuration has {} mistake{}:", self.0.len(), if many { "s" } else { "" })?;
        self.0.iter().try_for_each(|problem| writeln!(f, "  {problem}"))
    }
}

impl std::error::Error for BadConfig {}

/// Settings of which the name is known, and which do nothing yet.
const LATER: &str = "is not in this version yet: unset it";

impl Store {
    /// Reads where the fleet is kept, and nothing else.
    pub fn from_args(args: &Args) -> Result<Self, BadConfig> {
        let mut problems = Vec::new();
        let store = store(args, &mut problems);
        if problems.is_empty() { Ok(store) } else { Err(BadConfig(problems)) }
    }
}

impl Config {
    /// Reads all of it, or says everything that is wrong.
    pub fn from_args(args: &Args) -> Result<Self, BadConfig> {
        let mut problems = Vec::new();
        let mode = read(&mut problems, "API_MODE", args.api_mode.as_deref(), Mode::ReadOnly, values::mode);
        let store = store(args, &mut problems);
        let Policy { guard_clusters, deletions_per_hour, removals_per_hour, confirmations_per_hour, .. } =
            Policy::default();
        let mut limit =
            |name, text: &Option<String>, usual| guard(&mut problems, name, text.as_deref(), usual);
        let policy = Policy {
            guard_clusters: limit("GUARD_CLUSTERS", &args.guard_clusters, guard_clusters),
            deletions_per_hour: limit(
                "GUARD_DELETIONS_PER_HOUR",
                &args.guard_deletions_per_hour,
                deletions_per_hour,
            ),
            removals_per_hour: limit(
                "GUARD_REMOVALS_PER_HOUR",
                &args.guard_removals_per_hour,
                removals_per_hour,
            ),
            confirmations_per_hour: limit(
                "GUARD_CONFIRMATIONS_PER_HOUR",
                &args.guard_confirmations_per_hour,
                confirmations_per_hour,
            ),
            changed_clusters: read(
                &mut problems,
                "GUARD_CHANGED_CLUSTERS",
                args.guard_changed_clusters.as_deref(),
                None,
                values::changed_clusters,
            ),
        };
        let usual = SocketAddr::from(([127, 0, 0, 1], 8080));
        let listen = read(&mut problems, "LISTEN_ADDR", args.listen_addr.as_deref(), usual, values::address);
        let metrics = read(&mut problems, "METRICS_ADDR", args.metrics_addr.as_deref(), None, |text| {
            values::address(text).map(Some)
        });
        if metrics == Some(listen) && listen.port() != 0 {
            problems.push("METRICS_ADDR is the same as LISTEN_ADDR: unset it to have both there".to_owned());
        }
        let minute = Some(Duration::from_mins(1));
        let max_staleness =
            read(&mut problems, "MAX_STALENESS", args.max_staleness.as_deref(), minute, values::staleness);
        let log_format = read(
            &mut problems,
            "LOG_FORMAT",
            args.log_format.as_deref(),
            values::usual_log_format(),
            values::log_format,
        );
        let log_filter =
            read(&mut problems, "RUST_LOG", args.rust_log.as_deref(), "info".to_owned(), values::log_filter);
        for (name, value) in [
            ("RESOURCES_DIR", &args.resources_dir),
            ("TLS_CERT_FILE", &args.tls_cert_file),
            ("TLS_KEY_FILE", &args.tls_key_file),
            ("TLS_CLIENT_CA_FILE", &args.tls_client_ca_file),
        ] {
            if set(value.as_deref()).is_some() {
                problems.push(format!("{name} {LATER}"));
            }
        }
        let identity = Arc::new(identity(args, mode, &mut problems));
        let seed = set(args.seed_file.as_deref())
            .map(PathBuf::from)
            .or_else(|| (store == Store::Memory).then(|| PathBuf::from("data/seed.json")));
        if !problems.is_empty() {
            return Err(BadConfig(problems));
        }
        Ok(Self {
            mode,
            store,
            identity,
            seed,
            listen,
            metrics,
            max_staleness,
            policy,
            log_format,
            log_filter,
        })
    }
}

/// An empty variable counts as unset: that is how compose files and Helm charts leave one out.
fn set(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.is_empty())
}

fn read<T>(
    problems: &mut Vec<String>,
    name: &str,
    value: Option<&str>,
    otherwise: T,
    parse: impl Fn(&str) -> Result<T, String>,
) -> T {
    match set(value).map(parse) {
        None => otherwise,
        Some(Ok(value)) => value,
        Some(Err(problem)) => {
            problems.push(format!("{name} {problem}"));
            otherwise
        }
    }
}

fn guard(problems: &mut Vec<String>, name: &str, value: Option<&str>, otherwise: u32) -> u32 {
    read(problems, name, value, otherwise, values::guard)
}

fn store(args: &Args, problems: &mut Vec<String>) -> Store {
    let usual = Store::Sqlite(PathBuf::from("data/flux-resourceset.db"));
    let url = read(problems, "DATABASE_URL", args.database_url.as_deref(), usual, values::database_url);
    match set(args.store_backend.as_deref()) {
        None | Some("sqlite") => url,
        Some("memory") => Store::Memory,
        Some("postgres") => {
            problems.push(
                "STORE_BACKEND `postgres` is not in this version yet: use `sqlite` or `memory`".to_owned(),
            );
            url
        }
        Some(other) => {
            problems.push(format!("STORE_BACKEND is `{other}`; it must be `sqlite` or `memory`"));
            url
        }
    }
}

fn identity(args: &Args, mode: Mode, problems: &mut Vec<String>) -> Identity {
    let poller = set(args.auth_token.as_deref());
    let admin = set(args.crud_auth_token.as_deref());
    let mut fixed = Vec::new();
    let mut files = Vec::new();
    for (name, role, token, file) in [
        ("AUTH_TOKEN", Role::Poller, poller, set(args.auth_token_file.as_deref())),
        ("CRUD_AUTH_TOKEN", Role::Admin, admin, set(args.crud_auth_token_file.as_deref())),
    ] {
        match (token, file) {
            (Some(_), Some(_)) => {
                problems.push(format!("{name} and {name}_FILE are both set; set one of them"))
            }
            (Some("off"), None) if role == Role::Poller => {}
            (Some("off"), None) => problems.push(format!(
                "{name} is `off`; only AUTH_TOKEN can be switched off: a `crud` process without a token of its own could not be used"
            )),
            (Some(token), None) => match Token::new(None, role, token) {
                Ok(token) => fixed.push(token),
                Err(problem) => problems.push(format!("{name} {problem}")),
            },
            (None, Some(file)) => files.push((PathBuf::from(file), role)),
            (None, None) if role == Role::Admin && mode == Mode::ReadOnly => {}
            (None, None) => problems.push(format!(
                "{name} is not set: set it, or {name}_FILE, to a secret of your own{}",
                if role == Role::Poller {
                    ", or AUTH_TOKEN=off to let nobody poll with a token"
                } else {
                    ""
                }
            )),
        }
    }
    let tokens = ConfiguredTokens::new(fixed, files).unwrap_or_else(|found| {
        problems.extend(found);
        ConfiguredTokens::default()
    });
    Identity::new(tokens)
}

#[cfg(test)]
mod tests;
