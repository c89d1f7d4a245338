//! Ports that nobody has just now. Between the asking and the listening somebody may take one; then a process does not start, and says so.

use std::net::TcpListener;

use anyhow::Result;

/// So many free ports of the loopback, all different: they are held until all are known.
pub fn free<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
