//! The real program as a process: killed, stopped, starved, lied to by its disk, and asked all the while. One binary, so that it links
//! once. Every wait has an end, and every process that a test starts ends with it.

mod crash;
mod disk_faults;
mod fleet;
mod freshness;
mod gone_back;
mod http;
mod pollers;
mod polling;
mod seeding;
mod service;
mod settings;
mod shutdown;
mod sockets;
mod starvation;
mod store_faults;
mod writers;
