//! What goes over the wire between the service and its clients, apart from documents themselves. Types and serde only: it must not
//! know how anything is decided, stored or sent.

mod batch;
mod plan;
mod problem;
mod revision;

pub use batch::{BatchAnswer, ChangedDocument, Operation, PatchType};
pub use plan::{Change, Effect, Effects, FieldChange, Plan, Removal, Removals, Totals};
pub use problem::{Problem, ProblemName, Violation};
pub use revision::{Counts, DocumentChange, DocumentKey, DocumentVersion, Revision, RevisionDetail};
