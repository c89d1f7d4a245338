//! The command line as its users run it: the real `frs` against the real service, each a process of its own, each test with a fleet of its
//! own. What is printed is in `snapshots/`, one file for each test; `cargo insta review` or `INSTA_UPDATE=always` writes them anew.

mod apply;
mod assign;
mod audit;
mod bootstrap;
mod colours;
mod complete;
mod config;
mod connection;
mod covered;
mod create;
mod decommission;
mod delete;
mod demo;
mod describe;
mod diff;
mod doctor;
mod edit;
mod export;
mod fleet;
mod frs;
mod get;
mod guard;
mod help;
mod history;
mod http;
mod inputs;
mod manual;
mod moved;
mod overrides;
mod parts;
mod patch;
mod plan;
mod proxy;
mod questions;
mod service;
mod set_patch;
mod snapshot;
mod terminal;
mod trouble;

mod watch;
