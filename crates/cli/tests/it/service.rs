//! A process of the service, with a store in memory that ends with it.

use std::net::SocketAddr;
use std::process::Command;

use harness::Process;
use serde_json::Value;
use tempfile::TempDir;

use crate::fleet::{ADMIN, ALICE, READER, fleet};
use crate::http::{Message, request};

/// A process that answers. It is killed when it is dropped.
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    _process: Process,
    // What it is filled from, and its tokens.
    _folder: TempDir,
}

impl Service {
    /// One in crud mode, with the fleet of [`fleet`].
    pub(crate) fn start() -> Self {
        Self::with(&fleet(), &[])
    }

    /// One with another fleet, or other settings.
    pub(crate) fn with(fleet: &Value, settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("written");
        write("seed.json", fleet.to_string());
        write("tokens", format!("admin={ADMIN}\nalice={ALICE}\n"));
        let mut command = Command::new(harness::programs().join("flux-resourceset"));
        command
            .env_clear()
            .envs([("API_MODE", "crud"), ("STORE_BACKEND", "memory"), ("LOG_FORMAT", "json")])
            .envs([("AUTH_TOKEN", READER), ("LISTEN_ADDR", "127.0.0.1:0")])
            .current_dir(folder.path())
            .env("SEED_FILE", "seed.json")
            .env("CRUD_AUTH_TOKEN_FILE", "tokens")
            .envs(settings.iter().copied());
        let (process, address) = Process::ready(command);
        Self { address, _process: process, _folder: folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks it as the admin, without the command line.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Message {
        request(method, path, body).exchange(self.address).expect("an answer")
    }

    /// What it answers.
    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.ask("GET", path, None).body).expect("JSON")
    }

    /// The newest revision.
    pub(crate) fn head(&self) -> u64 {
        self.json("/ready")["revision"].as_u64().expect("a revision")
    }
}
