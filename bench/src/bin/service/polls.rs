//! What a poll costs the server that answers it, in CPU time.

use crate::answers::poll_path;
use crate::counters::Counter;
use bench::Client;
use bench::Process;

/// How a client polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// One connection for all polls.
    Kept,
    /// A connection for each poll.
    New,
    /// A connection for each poll, and a compressed answer: as the Flux Operator does it.
    Operator,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Kept, Self::New, Self::Operator];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept connection",
            Self::New => "new connection",
            Self::Operator => "new connection and gzip",
        }
    }

    fn requests(self) -> usize {
        match self {
            Self::Kept => 16_000,
            Self::New | Self::Operator => 8_000,
        }
    }
}

/// So many clients at once: one alone would mostly measure how a thread is woken up.
const POLLERS: usize = 8;

/// What one poll took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) micros: f64,
    /// None where the machine does not count them.
    pub(crate) instructions: Option<f64>,
}

/// Polls a server, and says what one poll took.
pub(crate) fn poll(server: &Process, clusters: usize, way: Way) -> Cost {
    let requests = way.requests();
    let counter = Counter::start(server.id());
    let before = server.cpu_micros();
    at_once(requests, |numbers| match way {
        Way::Kept => {
            let mut client = Client::open(&server.address);
            for n in numbers {
                assert_eq!(client.poll(&poll_path(n, clusters), false, false).status, 200);
            }
        }
        Way::New | Way::Operator => {
            for n in numbers {
                let mut client = Client::open(&server.address);
                let gzip = way == Way::Operator;
                assert_eq!(client.poll(&poll_path(n, clusters), true, gzip).status, 200);
            }
        }
    });
    let per_poll = |total: f64| total / f64::from(u32::try_from(requests).unwrap_or(u32::MAX));
    let micros = per_poll(server.cpu_micros() - before);
    Cost { micros, instructions: counter.and_then(Counter::end).map(per_poll) }
}

/// Lets some clients run side by side, each with its share of the requests.
fn at_once(requests: usize, client: impl Fn(std::ops::Range<usize>) + Sync) {
    let share = requests / POLLERS;
    std::thread::scope(|scope| {
        for n in 0..POLLERS {
            let client = &client;
            scope.spawn(move || client(n * share..(n + 1) * share));
        }
    });
}
