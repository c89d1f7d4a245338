//! Ports for programs that have to be told theirs. Nothing holds a port between the choosing and the listening, so they are chosen
//! where nobody comes by chance: below those that the kernel gives to connections, and in each run from another one on.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, ensure};

/// Where runs begin to look, and how many ports they have before those of the kernel (32768 on).
const FIRST: u16 = 10_000;
const RANGE: u16 = 20_000;

/// As many free ports as asked for of the loopback, all different, and none that this process was given before.
pub fn free<const COUNT: usize>() -> Result<[u16; COUNT]> {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(process::id() % u32::from(RANGE))?;
    let mut ports = [0; COUNT];
    for port in &mut ports {
        *port = loop {
            let tried = TRIED.fetch_add(1, Ordering::Relaxed);
            ensure!(tried < RANGE, "no port from {FIRST} on is free");
            let candidate = FIRST + (start + tried) % RANGE;
            if TcpListener::bind(("127.0.0.1", candidate)).is_ok() {
                break candidate;
            }
        };
    }
    Ok(ports)
}
