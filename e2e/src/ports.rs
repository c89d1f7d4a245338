//! Ports that nobody else has.

use std::net::TcpListener;

use anyhow::Result;

/// So many free ports of the loopback, all different. They are held together until all are known, so none is given twice.
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
