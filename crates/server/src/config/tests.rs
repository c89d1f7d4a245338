use super::{Args, BadConfig, Config, Mode, Store};
use std::path::PathBuf;
use std::time::Duration;

fn args() -> Args {
    Args {
        auth_token: Some("reader-secret".into()),
        crud_auth_token: Some("writer-secret".into()),
        ..Args::default()
    }
}

fn problems(args: &Args) -> Vec<String> {
    let BadConfig(problems) = Config::from_args(args).expect_err("it is wrong");
    problems
}

#[test]
fn what_is_not_set_has_its_documented_default() {
    let config = Config::from_args(&args()).expect("it is right");
    assert_eq!(config.mode, Mode::ReadOnly);
    assert_eq!(config.store, Store::Sqlite(PathBuf::from("data/flux-resourceset.db")));
    assert_eq!(config.seed, None);
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.metrics, None);
    assert_eq!(config.max_staleness, Some(Duration::from_mins(1)));
    let policy = config.policy;
    assert_eq!((policy.guard_clusters, policy.deletions_per_hour, policy.removals_per_hour), (3, 10, 50));
    assert_eq!((policy.confirmations_per_hour, policy.changed_clusters), (5, None));
    assert_eq!(config.log_filter, "info");
}

#[test]
fn a_store_in_memory_takes_the_demo_seed() {
    let config =
        Config::from_args(&Args { store_backend: Some("memory".into()), ..args() }).expect("it is right");
    assert_eq!((config.store, config.seed), (Store::Memory, Some(PathBuf::from("data/seed.json"))));
}

#[test]
fn a_database_url_may_have_the_suffix_that_other_tools_want() {
    for (url, path) in [
        ("sqlite://data/x.db?mode=rwc", "data/x.db"),
        ("sqlite:///var/lib/x.db", "/var/lib/x.db"),
        ("sqlite:x.db", "x.db"),
    ] {
        let config =
            Config::from_args(&Args { database_url: Some(url.into()), ..args() }).expect("it is right");
        assert_eq!(config.store, Store::Sqlite(PathBuf::from(path)), "{url}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_variables() {
    let wrong = Args {
        api_mode: Some("rw".into()),
        store_backend: Some("mysql".into()),
        database_url: Some("mysql://root:hunter2@db".into()),
        listen_addr: Some("8080".into()),
        max_staleness: Some("soon".into()),
        guard_clusters: Some("-1".into()),
        guard_confirmations_per_hour: Some("many".into()),
        guard_changed_clusters: Some("off".into()),
        log_format: Some("xml".into()),
        ..Args::default()
    };
    assert_eq!(
        problems(&wrong),
        [
            "API_MODE is `rw`; it must be `read-only` or `crud`",
            "DATABASE_URL must be a URL like `sqlite://path/to/file.db`",
            "STORE_BACKEND is `mysql`; it must be `sqlite` or `memory`",
            "GUARD_CLUSTERS is `-1`; it must be a whole number: the guard can be raised, not switched off",
            "GUARD_CONFIRMATIONS_PER_HOUR is `many`; it must be a whole number: the guard can be raised, not switched off",
            "GUARD_CHANGED_CLUSTERS is `off`; it must be a whole number, or unset for any number of clusters",
            "LISTEN_ADDR is `8080`; it must be an address and a port, as `127.0.0.1:8080`, `0.0.0.0:8080` or `[::]:8080`",
            "MAX_STALENESS is `soon`; it must be a time like `60s`, `2500ms`, `5m` or `1h`, or `unlimited`",
            "LOG_FORMAT is `xml`; it must be `text` or `json`",
            "AUTH_TOKEN is not set: set it, or AUTH_TOKEN_FILE, to a secret of your own, or AUTH_TOKEN=off to let nobody poll with a token",
        ]
    );
}

#[test]
fn a_setting_of_a_later_version_is_a_mistake_and_not_ignored() {
    let wrong = Args {
        store_backend: Some("postgres".into()),
        database_url: Some("postgres://user:hunter2@db/fleet".into()),
        resources_dir: Some("/kinds".into()),
        tls_cert_file: Some("/tls.crt".into()),
        tls_key_file: Some("/tls.key".into()),
        tls_client_ca_file: Some("/ca.crt".into()),
        ..args()
    };
    let problems = problems(&wrong);
    let names: Vec<&str> = problems.iter().filter_map(|problem| problem.split(' ').next()).collect();
    assert_eq!(
        names,
        [
            "DATABASE_URL",
            "STORE_BACKEND",
            "RESOURCES_DIR",
            "TLS_CERT_FILE",
            "TLS_KEY_FILE",
            "TLS_CLIENT_CA_FILE"
        ]
    );
    assert!(problems.iter().all(|problem| problem.contains("not in this version yet")));
    assert!(!problems.concat().contains("hunter2"));
}

#[test]
fn crud_needs_a_token_of_its_own() {
    let crud = Args { api_mode: Some("crud".into()), ..args() };
    assert!(Config::from_args(&crud).is_ok());
    let without = Args { crud_auth_token: None, ..Args { api_mode: Some("crud".into()), ..args() } };
    assert_eq!(
        problems(&without),
        ["CRUD_AUTH_TOKEN is not set: set it, or CRUD_AUTH_TOKEN_FILE, to a secret of your own"]
    );
    let same = Args { crud_auth_token: Some("reader-secret".into()), ..args() };
    assert_eq!(
        problems(&same),
        ["AUTH_TOKEN and CRUD_AUTH_TOKEN are the same: every cluster could change the fleet; choose two"]
    );
    let both = Args { auth_token_file: Some("/tokens".into()), ..args() };
    assert_eq!(problems(&both), ["AUTH_TOKEN and AUTH_TOKEN_FILE are both set; set one of them"]);
}

#[test]
fn reading_can_be_switched_off_for_tokens_but_writing_cannot() {
    let off = Args { auth_token: Some("off".into()), ..args() };
    assert!(Config::from_args(&off).is_ok());
    let off = Args { crud_auth_token: Some("off".into()), ..args() };
    assert_eq!(
        problems(&off),
        [
            "CRUD_AUTH_TOKEN is `off`; only AUTH_TOKEN can be switched off: a `crud` process without a token of its own could not be used"
        ]
    );
}

#[test]
fn a_mistake_never_repeats_a_secret() {
    let wrong = Args {
        auth_token: Some("my secret with spaces".into()),
        crud_auth_token: Some("tökén".into()),
        ..Args::default()
    };
    let told = problems(&wrong).concat();
    assert!(
        told.contains("AUTH_TOKEN must be visible ASCII") && told.contains("CRUD_AUTH_TOKEN must be visible")
    );
    assert!(!told.contains("secret with") && !told.contains("tökén"));
}

#[test]
fn the_configuration_can_be_printed_without_its_secrets() {
    let printed = format!("{:?}", Config::from_args(&args()).expect("it is right"));
    assert!(!printed.contains("secret"), "{printed}");
}
