//! Basic authentication in front of something that lets everybody in: the registry, or a chart repository.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Result, ensure};
use data_encoding::BASE64;

use crate::listener;

/// A user name and a password.
#[derive(Clone, Copy, Debug)]
pub struct Login {
    pub username: &'static str,
    pub password: &'static str,
}

impl Login {
    /// User name and password as the `Authorization` header and Docker's configuration encode them.
    pub fn encoded(&self) -> String {
        BASE64.encode(format!("{}:{}", self.username, self.password).as_bytes())
    }

    /// Listens on a port of its own, for as long as this process lives, forwards requests that have this login, and answers 401 to
    /// all others. Returns the address. Requests with a body are not forwarded whole: it is for downloads.
    pub fn front(self, behind: SocketAddr) -> Result<SocketAddr> {
        let expected = format!("Basic {}", self.encoded());
        listener::accept(move |socket| forward(socket, behind, &expected))
    }
}

fn forward(mut socket: TcpStream, behind: SocketAddr, expected: &str) -> Result<()> {
    let mut reader = BufReader::new(socket.try_clone()?);
    // Clients of a registry try TLS too.
    ensure!(reader.fill_buf()?.first().is_some_and(u8::is_ascii_uppercase), "not HTTP");
    let mut head = String::new();
    reader.read_line(&mut head)?;
    let mut allowed = false;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        allowed |= name.eq_ignore_ascii_case("authorization") && value.trim() == expected;
        if !name.eq_ignore_ascii_case("connection") {
            head.push_str(&line);
        }
    }
    if !allowed {
        let answer = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"e2e\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return Ok(socket.write_all(answer.as_bytes())?);
    }
    // The login is checked once for each connection, so a connection carries one request.
    head.push_str("Connection: close\r\n\r\n");
    let mut inside = TcpStream::connect(behind)?;
    inside.write_all(head.as_bytes())?;
    std::io::copy(&mut inside, &mut socket)?;
    Ok(())
}
