//! Our own service as an operator runs it: a crud process and a read-only one beside it, on one SQLite database.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use reqwest::blocking::{Client, Response};
use serde_json::Value;

use crate::checkout::our_binary;
use crate::ports;
use crate::process::{Process, Program};
use crate::wait::until;

/// What clusters show.
pub const CLUSTER_TOKEN: &str = "e2e-cluster-token";
/// What operators show.
pub const ADMIN_TOKEN: &str = "e2e-admin-token";

/// Both processes, and how to talk to them.
#[derive(Debug)]
pub struct Service {
    folder: PathBuf,
    crud: Option<Process>,
    reader: Option<Process>,
    crud_program: Program,
    reader_program: Program,
    crud_address: String,
    reader_address: String,
    client: Client,
}

/// An answer of the API.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    /// The body of a 2xx, or an error that shows the answer.
    pub fn accepted(self) -> Result<Value> {
        ensure!((200..300).contains(&self.status), "{}: {}", self.status, self.body);
        Ok(self.body)
    }
}

impl Service {
    /// Starts both, on a new store that holds the seed.
    pub fn start(folder: &Path, logs: &Path, seed: &Value) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let [crud_port, reader_port] = ports::free()?;
        let (crud_address, reader_address) =
            (format!("127.0.0.1:{crud_port}"), format!("127.0.0.1:{reader_port}"));
        let seed_file = folder.join("seed.json");
        std::fs::write(&seed_file, seed.to_string())?;
        let binary = our_binary()?;
        let program = |name: &str, address: &str| {
            Program::new(name, &binary, logs)
                .with("DATABASE_URL", format!("sqlite://{}", folder.join("fleet.db").display()))
                .with("AUTH_TOKEN", CLUSTER_TOKEN)
                .with("LISTEN_ADDR", address)
                .with("LOG_FORMAT", "text")
                // So that a store that is gone shows within seconds.
                .with("MAX_STALENESS", "5s")
        };
        let crud_program = program("crud", &crud_address)
            .with("API_MODE", "crud")
            .with("CRUD_AUTH_TOKEN", ADMIN_TOKEN)
            // All stories change this one fleet within an hour; what the guard asks about, each confirms.
            .with("GUARD_DELETIONS_PER_HOUR", "1000".to_owned())
            .with("GUARD_REMOVALS_PER_HOUR", "10000".to_owned())
            .with("GUARD_CONFIRMATIONS_PER_HOUR", "1000".to_owned())
            .with("SEED_FILE", seed_file.display().to_string());
        let reader_program = program("read-only", &reader_address).with("API_MODE", "read-only");
        let mut service = Self {
            folder: folder.to_owned(),
            crud: None,
            reader: None,
            crud_program,
            reader_program,
            crud_address,
            reader_address,
            client: Client::new(),
        };
        service.start_crud()?;
        service.start_reader()?;
        Ok(service)
    }

    /// Where clusters ask.
    pub fn poll_url(&self) -> String {
        format!("http://{}", self.reader_address)
    }

    /// Where clusters ask: host and port.
    pub fn poll_address(&self) -> &str {
        &self.reader_address
    }

    /// Where operators ask.
    pub fn manage_url(&self) -> String {
        format!("http://{}", self.crud_address)
    }

    /// Where operators ask: host and port.
    pub fn manage_address(&self) -> &str {
        &self.crud_address
    }

    fn start_crud(&mut self) -> Result<()> {
        self.crud = Some(self.crud_program.start()?);
        let url = self.manage_url();
        self.wait_until_ready(&url)
    }

    fn start_reader(&mut self) -> Result<()> {
        self.reader = Some(self.reader_program.start()?);
        let url = self.poll_url();
        self.wait_until_ready(&url)
    }

    /// An error if a process has ended that should run.
    pub fn alive(&mut self) -> Result<()> {
        self.crud.iter_mut().chain(&mut self.reader).try_for_each(Process::alive)
    }

    fn wait_until_ready(&mut self, url: &str) -> Result<()> {
        self.alive()?;
        until(&format!("the service at {url} is ready"), || {
            self.client.get(format!("{url}/ready")).send()?.error_for_status()?;
            Ok(())
        })
    }

    /// The reader follows within a moment; a story that polls at once would get there first.
    fn wait_until_read(&self, revision: u64) -> Result<()> {
        until("the reader follows", || {
            let standing: Value = self.client.get(format!("{}/ready", self.poll_url())).send()?.json()?;
            ensure!(standing["revision"].as_u64() >= Some(revision), "{standing}");
            Ok(())
        })
    }

    /// Starts the reader anew, and does not wait until it is ready.
    pub fn restart_reader(&mut self) -> Result<()> {
        if let Some(reader) = self.reader.take() {
            reader.stop()?;
        }
        self.reader = Some(self.reader_program.start()?);
        Ok(())
    }

    /// Ends both, as a deployment does.
    pub fn stop(&mut self) -> Result<()> {
        self.reader.take().into_iter().chain(self.crud.take()).try_for_each(Process::stop)
    }

    /// Ends both, as a power cut does.
    pub fn kill(&mut self) -> Result<()> {
        self.reader.take().into_iter().chain(self.crud.take()).try_for_each(Process::kill)
    }

    /// Starts what does not run.
    pub fn resume(&mut self) -> Result<()> {
        if self.crud.is_none() {
            self.start_crud()?;
        }
        if self.reader.is_none() {
            self.start_reader()?;
        }
        Ok(())
    }

    /// Ends both, and puts one process in the reader's place that holds these documents in memory.
    pub fn serve_from_memory(&mut self, seed: &Value) -> Result<()> {
        self.stop()?;
        let file = self.folder.join("memory.json");
        std::fs::write(&file, seed.to_string())?;
        let program = self
            .reader_program
            .clone()
            .with("STORE_BACKEND", "memory")
            .with("SEED_FILE", file.display().to_string());
        self.reader = Some(program.without("DATABASE_URL").start()?);
        let url = self.poll_url();
        self.wait_until_ready(&url)
    }

    /// The files of the database.
    pub fn database(&self) -> Vec<PathBuf> {
        ["fleet.db", "fleet.db-wal", "fleet.db-shm", "fleet.db-mark"]
            .iter()
            .map(|name| self.folder.join(name))
            .filter(|path| path.exists())
            .collect()
    }

    /// A request of an operator.
    pub fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        let mut request =
            self.client.request(method, format!("{}{path}", self.manage_url())).bearer_auth(ADMIN_TOKEN);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body.to_string());
        }
        let answer = request.send()?;
        let status = answer.status().as_u16();
        let revision =
            answer.headers().get("X-Revision").and_then(|revision| revision.to_str().ok()?.parse().ok());
        let text = answer.text()?;
        if let (Some(revision), true) = (revision, self.reader.is_some()) {
            self.wait_until_read(revision)?;
        }
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).with_context(|| text.clone())?
        };
        Ok(Answer { status, body })
    }

    pub fn get(&self, path: &str) -> Result<Value> {
        self.request(Method::GET, path, None, &[])?.accepted()
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.request(Method::POST, path, Some(body), &[])?.accepted()
    }

    pub fn patch(&self, path: &str, body: &Value) -> Result<Value> {
        self.request(Method::PATCH, path, Some(body), &[])?.accepted()
    }

    pub fn delete(&self, path: &str) -> Result<()> {
        self.request(Method::DELETE, path, None, &[])?.accepted().map(drop)
    }

    /// A change, confirmed if the guard asks.
    pub fn confirmed(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let stopped = self.request(method.clone(), path, body, &[])?;
        if stopped.status < 300 {
            return Ok(stopped.body);
        }
        let Some(confirm) = stopped.body["confirm"].as_str().filter(|_| stopped.status == 409) else {
            bail!("{}: {}", stopped.status, stopped.body);
        };
        self.request(method.clone(), path, body, &[("X-Confirm", confirm)])?.accepted()
    }

    fn polled(&self, dns: &str, kind: &str) -> Result<Response> {
        let url = format!("{}/api/v2/flux/clusters/{dns}/{kind}", self.poll_url());
        Ok(self.client.get(url).bearer_auth(CLUSTER_TOKEN).send()?)
    }

    /// The status of a poll.
    pub fn poll_status(&self, dns: &str, kind: &str) -> Result<u16> {
        Ok(self.polled(dns, kind)?.status().as_u16())
    }

    /// What a cluster would be told now, byte for byte.
    pub fn poll_text(&self, dns: &str, kind: &str) -> Result<String> {
        Ok(self.polled(dns, kind)?.error_for_status()?.text()?)
    }

    /// What the reader tells Prometheus: the sum of a metric's samples whose labels contain this.
    pub fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        let text =
            self.client.get(format!("{}/metrics", self.poll_url())).send()?.error_for_status()?.text()?;
        let samples = text.lines().filter_map(|line| line.rsplit_once(' '));
        let samples =
            samples.filter(|(series, _)| series.split('{').next() == Some(name) && series.contains(labels));
        Ok(samples.filter_map(|(_, value)| value.parse::<f64>().ok()).sum())
    }

    /// The fleet as a seed: every document of every kind.
    pub fn export(&self) -> Result<Value> {
        let mut seed = serde_json::Map::new();
        for kind in ["clusters", "platform_components", "namespaces", "rolebindings"] {
            let mut all = Vec::new();
            loop {
                let page = self.get(&format!("/{kind}?limit=1000&offset={}", all.len()))?;
                let page = page.as_array().context("a list")?;
                all.extend(page.iter().cloned());
                if page.len() < 1000 {
                    break;
                }
            }
            seed.insert(kind.to_owned(), all.into());
        }
        Ok(seed.into())
    }
}
