//! A very small HTTP/1.1 server for what the loop needs beside it: a chart repository, a Git repository, a webhook,
//! and a service that only ever fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use anyhow::Result;

/// What somebody asked.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub body: Vec<u8>,
}

/// What it is told.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub media_type: &'static str,
    pub body: Vec<u8>,
}

impl Response {
    /// A status and nothing else.
    pub fn status(status: u16) -> Self {
        Self { status, media_type: "text/plain", body: Vec::new() }
    }
}

type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// Answers on a port of its own for as long as this process lives: one request a connection.
pub fn serve(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Result<SocketAddr> {
    let handler: Box<Handler> = Box::new(handler);
    accept(move |socket| answer(socket, handler.as_ref()))
}

/// Accepts connections on a port of its own for as long as this process lives, each on a thread of its own.
pub(crate) fn accept(
    handler: impl Fn(TcpStream) -> Result<()> + Send + Sync + 'static,
) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let handler = Arc::new(handler);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let handler = handler.clone();
            std::thread::spawn(move || handler(socket));
        }
    });
    Ok(address)
}

fn answer(mut socket: TcpStream, handler: &Handler) -> Result<()> {
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let Response { status, media_type, body } = handler(&Request { path, body });
    write!(
        socket,
        "HTTP/1.1 {status} -\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n",
        body.len()
    )?;
    write!(socket, "Connection: close\r\n\r\n")?;
    Ok(socket.write_all(&body)?)
}
