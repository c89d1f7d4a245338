//! A client that does as little as a client can: what is measured is the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::process::READER;

/// A connection that is kept.
pub struct Client(BufReader<TcpStream>);

/// An answer.
pub struct Answer {
    pub status: u16,
    pub etag: String,
    pub retry_after: bool,
    pub body: Vec<u8>,
}

/// What the Flux Operator calls itself.
const OPERATOR: &str = "flux-operator/v0.58.0";

impl Client {
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Self(BufReader::with_capacity(32 * 1024, stream))
    }

    pub fn get(&mut self, path: &str, token: &str) -> Answer {
        self.send("GET", path, token, "User-Agent: bench\r\n", "")
    }

    /// A poll as the operator does it, or without gzip and on a connection that is kept.
    pub fn poll(&mut self, path: &str, operator: bool, gzip: bool) -> Answer {
        let agent = if operator { OPERATOR } else { "bench" };
        let encoding = if gzip { "Accept-Encoding: gzip\r\n" } else { "" };
        self.send("GET", path, READER, &format!("User-Agent: {agent}\r\n{encoding}"), "")
    }

    pub fn send(&mut self, method: &str, path: &str, token: &str, headers: &str, body: &str) -> Answer {
        let content = if body.is_empty() {
            String::new()
        } else {
            format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n{headers}{content}\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes()).expect("sent");
        let (mut status, mut length, mut etag, mut line) = (0, 0, String::new(), String::new());
        let mut retry_after = false;
        loop {
            line.clear();
            self.0.read_line(&mut line).expect("an answer");
            let head = line.trim_end();
            if head.is_empty() {
                break;
            }
            let (name, value) = head.split_once(": ").unwrap_or((head, ""));
            if let Some(rest) = head.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().expect("a status");
            } else if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().expect("a length");
            } else if name.eq_ignore_ascii_case("etag") {
                value.clone_into(&mut etag);
            }
            retry_after |= name.eq_ignore_ascii_case("retry-after");
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        Answer { status, etag, retry_after, body }
    }
}
