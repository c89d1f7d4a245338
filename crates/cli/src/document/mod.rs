//! Documents as people write and read them: on a command line, in a table, before and after.
//!
//! What a field is, the kind's schema says; what may be in it, the service decides.

mod assignment;
mod brief;
mod difference;
mod merged;

pub(crate) use assignment::{of_reference, pair, set, unset};
pub(crate) use brief::brief;
pub(crate) use difference::{Difference, differences, normalised};
pub(crate) use merged::merged;
