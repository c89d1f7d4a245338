//! How responses end when the process is told to stop: on a socket, with a router of the tests' own.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use futures_util::stream::{self, StreamExt};
use server::metrics::Metrics;
use server::serve::Server;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

type Chunk = Result<Bytes, Infallible>;

/// A tick every 50 milliseconds, for ever.
fn ticks() -> Body {
    let tick = |n: u64| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Chunk::Ok(Bytes::from(format!("tick {n}\n")))
    };
    Body::from_stream(stream::iter(0..).then(tick))
}

/// A second's silence, and then an answer whose length is known.
async fn slow() -> String {
    tokio::time::sleep(Duration::from_secs(1)).await;
    "x".repeat(200_000)
}

async fn start(router: Router) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let server = Server::new(router, Metrics::new(), 16).serve(listener, stop.clone());
    (address, stop, tokio::spawn(server))
}

/// Sends a request, and reads the whole answer on a thread of its own. Says when its last byte came.
fn ask(address: SocketAddr) -> JoinHandle<(String, Instant)> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    tokio::task::spawn_blocking(move || {
        let (mut text, mut bytes, mut last) = (Vec::new(), [0; 8_192], Instant::now());
        loop {
            match stream.read(&mut bytes).expect("an answer") {
                0 => return (String::from_utf8(text).expect("text"), last),
                count => {
                    text.extend_from_slice(&bytes[..count]);
                    last = Instant::now();
                }
            }
        }
    })
}

#[tokio::test]
async fn a_stream_without_an_end_does_not_hold_up_a_stop() {
    let endless = Body::from_stream(stream::repeat_with(|| Chunk::Ok(Bytes::from_static(b"more\n"))));
    let silent = Body::from_stream(stream::pending::<Chunk>());
    for body in [ticks(), endless, silent] {
        let body = std::sync::Mutex::new(Some(body));
        let body = std::sync::Arc::new(body);
        let router = Router::new()
            .route("/", get(async move || body.lock().expect("not poisoned").take().unwrap_or_default()));
        let (address, stop, server) = start(router).await;
        let client = ask(address);
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.cancel();
        let stopped = Instant::now();
        let (answer, last) = client.await.expect("it ends");
        assert!(answer.starts_with("HTTP/1.1 200"), "{}", &answer[..20]);
        assert!(!answer.ends_with("0\r\n\r\n"), "it must not look complete");
        assert!(last - stopped < Duration::from_secs(1), "{:?}", last - stopped);
        server.await.expect("it stops");
        assert!(stopped.elapsed() < Duration::from_secs(4), "{:?}", stopped.elapsed());
    }
}

/// Its body is not even asked for the next frame, and so did not learn of the stop: 37 seconds.
#[tokio::test]
async fn a_stream_that_its_client_does_not_read_does_not_hold_up_a_stop() {
    let endless = || Body::from_stream(stream::repeat_with(|| Chunk::Ok(Bytes::from(vec![b'x'; 200_000]))));
    let (address, stop, server) = start(Router::new().route("/", get(async move || endless()))).await;
    let mut client = TcpStream::connect(address).expect("a connection");
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.cancel();
    let stopped = Instant::now();
    server.await.expect("it stops");
    assert!(stopped.elapsed() < Duration::from_secs(4), "{:?}", stopped.elapsed());
}

#[tokio::test]
async fn a_stream_goes_on_until_the_stop() {
    let (address, stop, _server) = start(Router::new().route("/", get(async || ticks()))).await;
    let client = ask(address);
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.cancel();
    let (answer, _) = client.await.expect("it ends");
    assert!(answer.contains("tick 0\n") && answer.contains("tick 1\n"), "{answer}");
}

#[tokio::test]
async fn an_ordinary_answer_is_delivered_whole_though_the_stop_came_first() {
    let (address, stop, server) = start(Router::new().route("/", get(slow))).await;
    let client = ask(address);
    tokio::time::sleep(Duration::from_millis(200)).await;
    stop.cancel();
    let (answer, _) = client.await.expect("it ends");
    assert!(answer.contains("content-length: 200000\r\n"), "{}", &answer[..200]);
    assert!(answer.contains("connection: close\r\n"), "{}", &answer[..200]);
    assert_eq!(answer.split("\r\n\r\n").nth(1).map(str::len), Some(200_000));
    server.await.expect("it stops");
}

#[tokio::test]
async fn a_short_answer_of_unknown_length_is_completed() {
    let parts = || Body::from_stream(stream::iter(["one,", "two"]).map(|part| Chunk::Ok(part.into())));
    let slow = async move || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        parts()
    };
    let (address, stop, server) = start(Router::new().route("/", get(slow))).await;
    let client = ask(address);
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.cancel();
    let (answer, _) = client.await.expect("it ends");
    assert!(answer.contains("one,") && answer.contains("two") && answer.ends_with("0\r\n\r\n"), "{answer}");
    server.await.expect("it stops");
}
