//! Somebody between the command line and the service, who sees each request and decides what becomes of it.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::http::Message;

/// What becomes of a request.
pub(crate) enum Fate {
    /// The service gets it, the command line its answer.
    Forward,
    /// The service gets it, and its answer is lost.
    Lose,
    /// The service never hears of it. This is the answer: its status and perhaps headers, and its body.
    Answer(&'static str, &'static str),
}

/// Listens until the tests end, and returns where.
pub(crate) fn between(
    service: SocketAddr,
    decide: impl Fn(&Message) -> Fate + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let decide = Arc::new(decide);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let decide = Arc::clone(&decide);
            thread::spawn(move || pass_on(stream, service, &*decide));
        }
    });
    url
}

/// One request and its answer; then the connection ends. Whoever does not read his answer need not.
fn pass_on(mut stream: TcpStream, service: SocketAddr, decide: &(impl Fn(&Message) -> Fate + ?Sized)) {
    let Ok(request) = Message::read(&mut BufReader::new(&stream)) else { return };
    let answer = match decide(&request) {
        Fate::Answer(head, body) => {
            let length = body.len();
            format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
                .into_bytes()
        }
        fate => {
            let answer = request.exchange(service).expect("an answer of the service");
            if matches!(fate, Fate::Lose) {
                return;
            }
            answer.bytes()
        }
    };
    let _ = stream.write_all(&answer);
}

/// Whether a request changes the fleet, and does not only ask what would happen.
pub(crate) fn is_commit(request: &Message) -> bool {
    request.word(0) == "POST" && request.word(1) == "/batch"
}

/// Where something else answers, always the same.
pub(crate) fn foreign(head: &'static str, body: &'static str) -> String {
    between(([127, 0, 0, 1], 1).into(), move |_: &Message| Fate::Answer(head, body))
}
