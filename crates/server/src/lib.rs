//! The service. It puts the core behind HTTP and a store; what is right, what is rendered and what needs a confirmation is decided in
//! `fleet` and nowhere here.

pub mod accept;
mod clock;
pub mod commit_log;
pub mod config;
pub mod connections;
pub mod follower;
mod give_way;
pub mod gzip;
pub mod heavy;
pub mod identity;
pub mod json;
pub mod metrics;
pub mod paging;
mod plan_page;
pub mod problem;
pub mod query;
pub mod replica;
pub mod requests;
pub mod routes;
pub mod run;
pub mod seed;
pub mod serve;
pub mod start;
pub mod telemetry;
mod wire;
pub mod writer;
