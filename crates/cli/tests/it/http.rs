//! As much HTTP/1.1 as it takes to ask the service behind the command line's back, and to stand between the two.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::fleet::ADMIN;

/// Longer than anything takes, so that a hang is an error and not a test that never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request or an answer: its first line, its headers, its body.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Reads one that says how long it is.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let first = line(from)?;
        let mut headers = Vec::new();
        loop {
            let line = line(from)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let mut message = Self { first, headers, body: Vec::new() };
        let length = message.header("content-length").and_then(|length| length.parse().ok());
        message.body = vec![0; length.unwrap_or_default()];
        from.read_exact(&mut message.body)?;
        Ok(message)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The word of the first line at this place: method, path; or the status of an answer.
    pub(crate) fn word(&self, place: usize) -> &str {
        self.first.split(' ').nth(place).unwrap_or_default()
    }

    /// Its bytes, as the last thing on a connection.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.first);
        for (name, value) in self.headers.iter().filter(|(name, _)| name != "connection") {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text.push_str("connection: close\r\n\r\n");
        [text.as_bytes(), &self.body].concat()
    }

    /// Sends it, and returns what is answered.
    pub(crate) fn exchange(&self, address: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&self.bytes())?;
        Self::read(&mut BufReader::new(stream))
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// A request of the admin.
pub(crate) fn request(method: &str, path: &str, body: Option<&Value>) -> Message {
    let body = body.map(ToString::to_string).unwrap_or_default();
    let headers = [
        ("host", "fleet.example.com"),
        ("authorization", &format!("Bearer {ADMIN}")),
        ("content-type", "application/json"),
        ("content-length", &body.len().to_string()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Message { first: format!("{method} {path} HTTP/1.1"), headers, body: body.into_bytes() }
}
