//! How each value is read. A problem continues the sentence that begins with the variable's name.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::{LogFormat, Mode, Store};

pub(super) fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "read-only" => Ok(Mode::ReadOnly),
        "crud" => Ok(Mode::Crud),
        _ => Err(format!("is `{text}`; it must be `read-only` or `crud`")),
    }
}

/// The URL may hold a password, so it is never repeated.
pub(super) fn database_url(text: &str) -> Result<Store, String> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Err("names a PostgreSQL database; PostgreSQL is not in this version yet: use `sqlite://path/to/file.db`".to_owned());
    }
    let Some(rest) = text.strip_prefix("sqlite:") else {
        return Err("must be a URL like `sqlite://path/to/file.db`".to_owned());
    };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    if path.is_empty() || path == ":memory:" {
        return Err("names no file; for a store in memory set STORE_BACKEND=memory".to_owned());
    }
    match query {
        None | Some("" | "mode=rwc" | "mode=rw") => Ok(Store::Sqlite(PathBuf::from(path))),
        Some(_) => {
            Err("has parameters after `?`; only `?mode=rwc` is accepted, and means nothing".to_owned())
        }
    }
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("is `{text}`; it must be an address and a port, as `127.0.0.1:8080`, `0.0.0.0:8080` or `[::]:8080`")
    })
}

pub(super) fn staleness(text: &str) -> Result<Option<Duration>, String> {
    if text == "unlimited" {
        return Ok(None);
    }
    let wrong =
        || format!("is `{text}`; it must be a time like `60s`, `2500ms`, `5m` or `1h`, or `unlimited`");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let duration = number.checked_mul(millis).map(Duration::from_millis).ok_or_else(wrong)?;
    if duration < Duration::from_secs(2) {
        return Err(format!("is `{text}`; it must be at least `2s`"));
    }
    Ok(Some(duration))
}

pub(super) fn guard(text: &str) -> Result<u32, String> {
    let wrong =
        |_| format!("is `{text}`; it must be a whole number: the guard can be raised, not switched off");
    text.parse().map_err(wrong)
}

pub(super) fn changed_clusters(text: &str) -> Result<Option<u32>, String> {
    let wrong = |_| format!("is `{text}`; it must be a whole number, or unset for any number of clusters");
    text.parse().map(Some).map_err(wrong)
}

pub(super) fn usual_log_format() -> LogFormat {
    if std::io::stderr().is_terminal() { LogFormat::Text } else { LogFormat::Json }
}

pub(super) fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("is `{text}`; it must be `text` or `json`")),
    }
}

pub(super) fn log_filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text)
        .map(|_| text.to_owned())
        .map_err(|error| format!("is `{text}`: {error}; it must be like `info` or `server=debug`"))
}
