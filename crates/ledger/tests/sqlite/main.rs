//! SQLite on one host, with a writer and readers that are other processes and other users: what was measured once, held here.

mod created;
mod damaged;
mod foreign;
mod killed;
mod marked;
mod place;
mod process;
mod replaced;
mod settled;
mod tampered;
mod users;
mod writer;
