//! The ledger: append-only commits with a gapless revision, and the documents at their head, so that a start does not replay
//! history. The audit log *is* this ledger.
//!
//! Everything here deals in commits, keys and canonical bodies. It must not know what a cluster or a component is, what HTTP is, or
//! whether a change is a good one: that was decided before it came here. Backends do not see each other.

mod chain;
mod error;
mod feed;
mod history;
mod memory;
mod sqlite;

pub use error::{AppendError, FeedError};
pub use feed::{Append, Budget, Follow, Held, History, Opened};
pub use history::{Edit, Most, Paged, Query, Record, Version};
pub use memory::Memory;
pub use sqlite::{Access, Head, Inspection, Sqlite};
