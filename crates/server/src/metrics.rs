//! Figures for Prometheus. Labels are route templates, never a raw path, a DNS name or an actor.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Which requests.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct Answered {
    /// The method.
    pub method: &'static str,
    /// The route's template.
    pub route: &'static str,
    /// The status of the answer.
    pub status: u16,
}

/// What was refused because there is too much of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct Refused {
    /// `plan`, `read` or `body`.
    pub task: &'static str,
}

/// Everything that is counted. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// Requests by what became of them.
    pub requests: Family<Answered, Counter>,
    /// How long requests took.
    pub duration: Histogram,
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections that found all places taken.
    pub connections_full: Counter,
    /// Idle connections that had to make room for others.
    pub connections_closed: Counter,
    refused: Family<Refused, Counter>,
    /// Groups of commits that lost a race against another process.
    pub conflicts: Counter,
    /// Changes that the guard stopped.
    pub stopped_by_guard: Counter,
    commits: Counter,
    groups: Counter,
    revision: Gauge,
    behind: Gauge<f64, AtomicU64>,
    serving: Gauge,
    writer_failed: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("flux_resourceset");
        let requests = Family::<Answered, Counter>::default();
        registry.register("http_requests", "Requests by route and status", requests.clone());
        let seconds = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];
        let duration = Histogram::new(seconds);
        registry.register_with_unit(
            "http_request_duration",
            "Time from the request's head to the answer's head",
            Unit::Seconds,
            duration.clone(),
        );
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let connections_full = Counter::default();
        registry.register(
            "connections_full",
            "Times that a connection had to wait for a place",
            connections_full.clone(),
        );
        let connections_closed = Counter::default();
        registry.register(
            "idle_connections_closed",
            "Idle connections that were closed to make room for others",
            connections_closed.clone(),
        );
        let refused = Family::<Refused, Counter>::default();
        registry.register(
            "busy_refusals",
            "Requests that were refused with 503 because too many of their sort were waiting",
            refused.clone(),
        );
        let conflicts = Counter::default();
        registry.register(
            "append_conflicts",
            "Groups that lost a race against another process",
            conflicts.clone(),
        );
        let stopped_by_guard = Counter::default();
        registry.register("guard_stops", "Changes that the guard stopped", stopped_by_guard.clone());
        let commits = Counter::default();
        registry.register("commits", "Commits that this process appended", commits.clone());
        let groups = Counter::default();
        registry.register("commit_groups", "Appends of one or more commits to the store", groups.clone());
        let revision = Gauge::default();
        registry.register("revision", "The revision that is served", revision.clone());
        let behind = Gauge::<f64, AtomicU64>::default();
        registry.register_with_unit(
            "confirmed_age",
            "Time since the store's head was confirmed",
            Unit::Seconds,
            behind.clone(),
        );
        let serving = Gauge::default();
        registry.register("serving", "Whether polls are answered", serving.clone());
        let writer_failed = Gauge::default();
        registry.register(
            "writer_failed",
            "Whether the writer of this process has ended",
            writer_failed.clone(),
        );
        Self {
            registry: Arc::new(registry),
            requests,
            duration,
            connections,
            connections_full,
            connections_closed,
            refused,
            conflicts,
            stopped_by_guard,
            commits,
            groups,
            revision,
            behind,
            serving,
            writer_failed,
        }
    }

    /// How many tasks of a sort were refused.
    pub fn refused(&self, task: &'static str) -> Counter {
        self.refused.get_or_create_owned(&Refused { task })
    }

    /// Notes a group that was appended.
    pub fn group(&self, commits: usize) {
        self.groups.inc();
        self.commits.inc_by(commits as u64);
    }

    /// Notes how this process stands, before it is told.
    pub fn standing(&self, revision: u64, behind: Option<Duration>, serving: bool, writer_failed: bool) {
        self.revision.set(i64::try_from(revision).unwrap_or(i64::MAX));
        self.behind.set(behind.map_or(f64::NAN, |behind| behind.as_secs_f64()));
        self.serving.set(i64::from(serving));
        self.writer_failed.set(i64::from(writer_failed));
    }

    /// All of it, in the text format of `OpenMetrics`.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
