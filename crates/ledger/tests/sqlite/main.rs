//! SQLite on one host, with a writer and readers that are other processes and other users: what was measured once, held here.

mod created;
mod foreign;
mod killed;
mod place;
mod process;
mod replaced;
mod settled;
mod users;
mod writer;

#[path = "../fixture/mod.rs"]
mod fixture;
