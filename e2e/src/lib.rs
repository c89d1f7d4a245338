//! The real loop on one machine, without containers: a Kubernetes control plane, the unmodified Flux Operator and Flux's controllers, an
//! OCI registry, and our own service, each a process. The stories in `tests/` follow the promises of the documents through it, and
//! the demo (`scripts/demo`) leaves one running to play with.
//!
//! It knows the service by its HTTP contract alone, and a cluster by `cluster/` and the Kubernetes API: what a user has.

#![allow(
    missing_docs,
    reason = "a library for the stories beside it; what a name does not say is documented"
)]

pub mod artifacts;
pub mod checkout;
pub mod cluster;
pub mod control_plane;
pub mod demo;
pub mod flux;
pub mod git;
pub mod kube;
pub mod listener;
pub mod login;
pub mod parts;
pub mod ports;
pub mod process;
pub mod registry;
pub mod service;
pub mod tls;
pub mod wait;
pub mod world;
