//! A small HTTP/1.1 client that keeps apart what a larger one hides: a refused connection, a broken one, half an answer, an answer.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything takes, so that a hang is an error and not a test that never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The revision that a write made.
    pub(crate) fn revision(&self) -> u64 {
        let text = self.header("x-revision").unwrap_or_else(|| panic!("no revision: {self:?}"));
        text.parse().expect("a number")
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    fn ends_connection(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: fleet.example.com\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    let body = body.map(ToString::to_string);
    if let Some(body) = &body {
        let length = body.len().to_string();
        head.extend(["content-type: application/json\r\ncontent-length: ", &length, "\r\n"]);
    }
    head.push_str("\r\n");
    head.push_str(body.as_deref().unwrap_or_default());
    head.into_bytes()
}

/// An open connection.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn patience(&mut self, patience: Duration) -> io::Result<()> {
        self.0.get_ref().set_read_timeout(Some(patience))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Sends as much as the other side takes now.
    pub(crate) fn send_without_waiting(&mut self, bytes: &[u8]) {
        let stream = self.0.get_mut();
        stream.set_write_timeout(Some(Duration::from_millis(100))).expect("set");
        let _ = stream.write_all(bytes);
    }

    /// Reads one answer, all of it; an end before that is an error.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| broken(&first))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| broken(&line))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = match answer.header("content-length") {
            Some(length) => length.parse().map_err(|_| broken(length))?,
            None if status == 204 => 0,
            None => return Err(broken("an answer of unknown length")),
        };
        answer.body = vec![0; length];
        self.0.read_exact(&mut answer.body)?;
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    pub(crate) fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.send(request)?;
        self.answer()
    }
}

/// A client that keeps its connection for as long as the service does.
pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, connection: None }
    }

    pub(crate) fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address)?,
        };
        let answer = connection.exchange(request)?;
        if !answer.ends_connection() {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}
