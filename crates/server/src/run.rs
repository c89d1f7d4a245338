//! A process from its start to its end.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ledger::Follow;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::commit_log;
use crate::config::{Config, Mode};
use crate::follower;
use crate::heavy::Heavy;
use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::replica::Replica;
use crate::routes::{self, App};
use crate::serve::{self, Server};
use crate::start;
use crate::writer::Writer;

/// How often token files are looked at.
const RELOAD: Duration = Duration::from_secs(2);
/// How long the writer and the follower may take to end once every connection is closed.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Runs until the process is told to stop.
pub async fn run(config: Config) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    tokio::spawn(Signals::listen()?.told_to_stop(stop.clone()));
    let places = serve::raise_descriptor_limit();
    let listener = bind("LISTEN_ADDR", config.listen).await?;
    let metrics_listener = match config.metrics {
        Some(address) => Some(bind("METRICS_ADDR", address).await?),
        None => None,
    };
    let (opened, first) = start::open(&config)?;
    let metrics = Metrics::new();
    let replica = Arc::new(Replica::new(config.max_staleness));
    let (writer, writing) = match opened.append {
        Some(append) => {
            let follow = opened.follow.clone();
            let (writer, thread) =
                Writer::start(append, follow, replica.clone(), config.policy, metrics.clone())?;
            (Some(Arc::new(writer)), Some(thread))
        }
        None => (None, None),
    };
    let (mode, identity) = (config.mode, config.identity.clone());
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let app = Arc::new(App {
        mode,
        replica: replica.clone(),
        heavy: Heavy::start(opened.history, cores, &metrics)?,
        writer: writer.clone().filter(|_| mode == Mode::Crud),
        identity: identity.clone(),
        policy: config.policy,
        metrics: metrics.clone(),
        serves_metrics: metrics_listener.is_none(),
    });
    let router = routes::router(&app);
    info!(address = %listener.local_addr()?, %mode, places, "listening");
    let mut servers = JoinSet::new();
    servers.spawn(Server::new(router, metrics.clone(), places).serve(listener, stop.clone()));
    if let Some(listener) = metrics_listener {
        info!(address = %listener.local_addr()?, "metrics");
        let router = routes::metrics_only(&app);
        servers.spawn(Server::new(router, metrics, 64).serve(listener, stop.clone()));
    }
    drop(app);
    commit_log::start(replica.clone(), stop.clone())?;
    if let Some(writer) = writer {
        let (follow, replica, told) = (opened.follow.clone(), replica.clone(), stop.clone());
        // Reading and checking a whole fleet takes a while: not on a thread that answers requests.
        let prepared = tokio::task::spawn_blocking(move || {
            let settings = (config.seed.as_deref(), &config.policy);
            start::prepare((&*follow, first), &replica, &writer, settings, &told)
        });
        tokio::select! {
            prepared = prepared => prepared??,
            // What it was about to append is appended whole, or not at all.
            () = stop.cancelled() => {}
        }
    }
    let following = follow_on_a_thread(opened.follow, replica, stop.clone())?;
    tokio::spawn(reload(identity, stop.clone()));
    // Neither of these ends by itself. A process that no longer follows its store, or no longer listens, is of no use to anybody: who
    // started it starts it again.
    let ended = tokio::select! {
        () = stop.cancelled() => None,
        () = following.cancelled() => Some("the follower has ended"),
        _ = servers.join_next() => Some("a listener has ended"),
    };
    if let Some(what) = ended.filter(|_| !stop.is_cancelled()) {
        anyhow::bail!("{what}, which it never should; see the log");
    }
    while let Some(server) = servers.join_next().await {
        server?;
    }
    // The last handle on the writer went with the routes: it ends when nobody waits any more. What waits for a store that does not
    // answer is not waited for.
    let last = async {
        if let Some(writing) = writing {
            let _ = tokio::task::spawn_blocking(move || writing.join()).await;
        }
        following.cancelled().await;
    };
    if tokio::time::timeout(LAST_WORDS, last).await.is_err() {
        warn!("stopped while the store did not answer");
    }
    info!("stopped");
    Ok(())
}

async fn bind(name: &str, address: std::net::SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{name}: cannot listen on {address}"))
}

/// Replaying a large commit takes a while, so the follower has a thread of its own. What is returned is cancelled when
/// that has ended, in whatever way.
fn follow_on_a_thread(
    store: Arc<dyn Follow>,
    replica: Arc<Replica>,
    stop: CancellationToken,
) -> std::io::Result<CancellationToken> {
    let ended = CancellationToken::new();
    let running = ended.clone().drop_guard();
    std::thread::Builder::new().name("follower".to_owned()).spawn(move || {
        let _running = running;
        follower::follow(&*store, &replica, &stop);
    })?;
    Ok(ended)
}

/// Reads token files again when they change. One that cannot be used changes nothing.
async fn reload(identity: Arc<Identity>, stop: CancellationToken) {
    let mut told = None;
    while identity.tokens().has_files() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RELOAD) => {}
        }
        let problems = match identity.tokens().reload() {
            Ok(true) => {
                info!("token files reloaded");
                None
            }
            Ok(false) => None,
            Err(problems) => Some(problems),
        };
        if problems != told {
            for problem in problems.iter().flatten() {
                warn!(problem, "token files not reloaded");
            }
            told = problems;
        }
    }
}

/// The signals that end the process. They are listened for before anything else: one that comes while the fleet is loaded would kill
/// the process without an answer to anybody, or, if it is the first of its container, be lost.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// A file that may not grow any more: with somebody listening, the write fails instead, and that is dealt with.
    _file_size: Signal,
}

/// SIGXFSZ.
const FILE_SIZE: SignalKind = SignalKind::from_raw(25);

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _file_size: signal(FILE_SIZE)?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    async fn told_to_stop(mut self, stop: CancellationToken) {
        self.next().await;
        info!("shutting down: requests in flight are answered first");
        stop.cancel();
        // Whoever asks a second time does not want to wait.
        self.next().await;
        std::process::exit(130);
    }
}
