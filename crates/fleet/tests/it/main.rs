//! The core as its users call it. One binary, so that it links once.

mod answers;
mod boundaries;
mod common;
mod confirming_client;
mod effects;
mod golden;
mod guard;
mod inverse;
mod list;
mod naive;
mod patches;
mod plans;
mod properties;
mod purity;
mod replay;
mod rules;
mod selectors;
mod work;
