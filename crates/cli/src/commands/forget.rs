//! `forget`: the record of a decommissioned cluster.

use api::Operation;
use clap::Args;

use crate::change::{ChangeFlags, carry_out};
use crate::failure::Failure;
use crate::session::Session;

/// Forget a decommissioned cluster: its DNS name is unknown from then on, and free again
///
/// Do it when the cluster is gone. One that still polls is answered 404 after that, and keeps what it has.
#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// Its DNS name, as `frs get decommissioned` shows it
    pub dns: String,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl Forget {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        carry_out(session, &vec![Operation::Forget { dns: self.dns }].into(), &self.change).map(drop)
    }
}
