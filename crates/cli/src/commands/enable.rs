//! `enable` and `disable`: a component that stays assigned, but may be off.

use clap::Args;
use serde_json::json;

use super::targets::Targets;
use crate::change::ChangeFlags;
use crate::complete;
use crate::failure::Failure;
use crate::session::Session;

/// Turn an assigned component on
#[derive(Debug, Args)]
pub(crate) struct Enable {
    #[command(flatten)]
    pub switch: Switch,
}

/// Turn an assigned component off: Flux uninstalls it, its overrides and patches stay
#[derive(Debug, Args)]
pub(crate) struct Disable {
    #[command(flatten)]
    pub switch: Switch,
}

/// What is turned on or off.
#[derive(Debug, Args)]
pub(crate) struct Switch {
    /// The component
    #[arg(add = complete::components())]
    pub component: String,
    #[command(flatten)]
    pub targets: Targets,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl Switch {
    fn turn(self, session: &Session, enabled: bool) -> Result<(), Failure> {
        self.targets.patch_component(session, &self.component, &json!({ "enabled": enabled }), &self.change)
    }
}

impl Enable {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        self.switch.turn(session, true)
    }
}

impl Disable {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        self.switch.turn(session, false)
    }
}
