//! `flux-resourceset`, the service. See `--help`.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use server::accept::NotAccepted;
use server::config::{Args, Command, Config, Store};
use server::start::NotStarted;
use server::{accept, run, telemetry};

/// The configuration is wrong (`EX_USAGE`).
const BAD_CONFIG: u8 = 64;
/// The seed file is wrong (`EX_DATAERR`).
const BAD_SEED: u8 = 65;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(asked) if !asked.use_stderr() => {
            // `--help` and `--version`.
            let _ = asked.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(BAD_CONFIG);
        }
    };
    if let Some(Command::AcceptStore { expect }) = &args.command {
        return accept_store(&args, expect.as_deref());
    }
    let config = match Config::from_args(&args) {
        Ok(config) => config,
        Err(bad) => {
            say(&bad.to_string());
            return ExitCode::from(BAD_CONFIG);
        }
    };
    drop(args);
    let log = match telemetry::start(config.log_format, &config.log_filter) {
        Ok(log) => log,
        Err(error) => return failed(&error.into()),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let outcome = runtime.block_on(run::run(config));
    // What is still open belongs to clients that did not hurry.
    runtime.shutdown_background();
    log.flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn accept_store(args: &Args, expect: Option<&str>) -> ExitCode {
    let store = match Store::from_args(args) {
        Ok(store) => store,
        Err(bad) => {
            say(&bad.to_string());
            return ExitCode::from(BAD_CONFIG);
        }
    };
    match accept::accept_store(&store, expect) {
        Ok(text) => {
            // Nobody may be reading.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error @ NotAccepted::Expect(_)) => {
            say(&error.to_string());
            ExitCode::from(BAD_CONFIG)
        }
        Err(error) => failed(&error.into()),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    say(&format!("{error:#}"));
    match error.downcast_ref() {
        Some(NotStarted::Seed(_)) => ExitCode::from(BAD_SEED),
        _ => ExitCode::FAILURE,
    }
}

/// Not `eprintln`, which panics when nobody listens.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "flux-resourceset: {}", what.trim_end());
}
