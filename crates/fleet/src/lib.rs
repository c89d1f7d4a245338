//! The fleet as a value, and everything that decides anything about it.
//!
//! * [`State`] is the whole fleet at one position of the ledger.
//! * [`apply`] decides whether a [`Transaction`] may happen, and what comes of it.
//! * [`State::replay`] follows a [`Commit`] that somebody decided, without deciding again.
//! * [`render`] makes the answer to a cluster's poll.
//! * [`Effects`] tells what a change does to which clusters.
//!
//! **Invariant:** this crate is pure. It knows no clock, no randomness, no file, no socket, no thread, no HTTP and no database,
//! and nothing of the other crates. A test holds its dependencies to a list.

#![forbid(unsafe_code)]

mod apply;
mod canonical;
mod commit;
mod document;
mod effects;
mod finding;
mod fragment;
mod grammar;
mod guard;
mod hash;
mod ids;
mod inverse;
mod kind;
mod list;
mod load;
mod patch;
mod pointer;
mod rejection;
mod render;
mod schema;
mod selector;
mod shelf;
mod state;
mod transaction;
mod values;

pub use apply::{Applied, MAX_CLUSTER, MAX_DOCUMENT, Planned, apply, plan};
pub use canonical::Canonical;
pub use commit::{Change, Commit, Diverged, Origin};
pub use document::{
    Cluster, Component, ComponentOverrides, Definition, Delivery, Fields, Labels, Reference, References,
    Stored, Tombstone,
};
pub use effects::{Effect, Effects, FieldChange, InputChange, Totals};
pub use fragment::Size;
pub use guard::{Cause, GUARD_WINDOW, Policy, Removal, Removals, RemovalsDigest, Tally};
pub use hash::{Hash, Position, StateDigest};
pub use ids::{
    CLUSTERS, CommitId, DECOMMISSIONED, Dns, Id, KINDS, Key, KindName, PLATFORM_COMPONENTS, Revision,
    Timestamp, Uid,
};
pub use inverse::{Irreversible, inverse};
pub use kind::{BadKind, GuardClass, Kind, Kinds, ParameterType, QueryParameter, Shape};
pub use list::{Listing, Page};
pub use load::{Loader, Row};
pub use patch::Patch;
pub use pointer::Pointer;
pub use rejection::{Confirmation, REPORTED, Reason, Rejection, Sample, Violation};
pub use render::{
    ANSWER_FORMAT, Answer, ClusterList, Fault, Inputs, MAX_INPUTS, MAX_SENT, MAX_STORED, NoClusterList,
    list_clusters, render,
};
pub use selector::{BadSelector, Selector};
pub use state::{Served, State};
pub use transaction::{Operation, Target, Transaction};
