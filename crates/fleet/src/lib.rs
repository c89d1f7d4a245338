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
mod difference;
mod document;
mod effects;
mod finding;
mod fragment;
mod grammar;
mod guard;
mod hash;
mod ids;
mod inverse;
mod key;
mod kind;
mod list;
mod load;
mod patch;
mod plan;
mod pointer;
mod rejection;
mod render;
mod sample;
mod schema;
mod selector;
mod shelf;
mod space;
mod state;
mod transaction;
mod values;
mod work;

pub use apply::{Applied, Lacking, MAX_CHANGED_BYTES, MAX_CHANGES, MAX_CLUSTER, MAX_DOCUMENT, apply};
pub use canonical::Canonical;
pub use commit::{Change, ChangesDigest, Commit, Diverged, Epoch, Header, Idempotency, NeedsNewer, Origin};
pub use difference::FieldChange;
pub use document::{
    Cluster, Component, ComponentOverrides, Definition, Delivery, Fields, Labels, Reference, References,
    Stored, Tombstone,
};
pub use effects::{Effect, Effects, InputChange, Totals};
pub use fragment::Size;
pub use guard::{
    Cause, ConfirmDigest, GUARD_WINDOW, Passed, Policy, Questions, Removal, RemovalGroup, Removals, Spent,
    Tally,
};
pub use hash::{Hash, Position, StateDigest};
pub use ids::{CLUSTERS, CommitId, Dns, Id, KindName, PLATFORM_COMPONENTS, Revision, Timestamp, Uid};
pub use inverse::{Irreversible, inverse};
pub use key::{DocumentKey, Key, SystemKey};
pub use kind::{BadKind, GuardClass, Kind, Kinds, ParameterType, QueryParameter, Reserved, Shape};
pub use list::{Listing, Page};
pub use load::{Catalog, Loader, ReadRows, Row, RowReader};
pub use patch::Patch;
pub use plan::{
    DocumentChange, DocumentGroup, EnvironmentTotals, Plan, PlanDigest, UNUSED_BY_TEMPLATES, plan,
};
pub use pointer::Pointer;
pub use rejection::{Confirmation, NeedsAllowance, Reason, Rejection, Violation};
pub use render::{
    ANSWER_FORMAT, Answer, ClusterList, Fault, Inputs, MAX_INPUTS, MAX_SENT, MAX_STORED, NoClusterList,
    list_clusters, render,
};
pub use sample::{REPORTED, Sample};
pub use selector::{BadSelector, Selector};
pub use space::{Allowance, Grant, Seeding, Space, UnknownSpace};
pub use state::{Served, State};
pub use transaction::{Operation, Target, Transaction};
