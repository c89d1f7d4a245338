//! The routes as a client sees them, without a socket: the real handlers on a store in memory. (Only `serve` has one.) One binary, so
//! that it links once.

mod access;
mod api;
mod boundaries;
mod cluster_plane;
mod deploy;
mod documents;
mod flux;
mod guard;
mod heavy;
mod history;
mod plans;
mod refusals;
mod seeds;
mod serve;
mod store_trouble;
mod writes;
