//! What goes over the wire between the service and its clients, apart from documents themselves. Types and serde only: it must not
//! know how anything is decided, stored or sent.

mod batch;
mod decommissioned;
mod guard;
mod kind;
mod list;
mod plan;
mod problem;
mod revision;
mod standing;
mod strict;
mod whoami;

pub use batch::{BatchAnswer, ChangedDocument, MAX_BODY, MAX_OPERATIONS, Operation, PatchType};
pub use decommissioned::{DECOMMISSIONED, Decommissioned};
pub use guard::{Allowance, Grant, Guard, GuardLimits, NeededAllowance, Spent};
pub use kind::{CLUSTER, COMPONENT, EACH, KINDS, Kind};
pub use list::Revisioned;
pub use plan::{
    Asks, Change, Effect, Effects, EnvironmentTotals, FieldChange, Lacking, Plan, PlannedDocuments, Removal,
    RemovalGroup, Removals, Totals,
};
pub use problem::{NO_SUCH_PATH, Problem, ProblemName, Violation};
pub use revision::{Counts, DocumentChange, DocumentKey, DocumentVersion, Revision, RevisionDetail};
pub use standing::{CRUD, READY, Standing, WRITER_FAILED};
pub use strict::Strict;
pub use whoami::{ADMIN, Whoami};
