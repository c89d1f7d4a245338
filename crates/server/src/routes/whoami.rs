//! Who is asking: for everybody with a credential, in both modes, and whether or not the fleet can be served.

use api::Whoami;

use super::answer::json_of;
use super::call::Call;
use super::{Answer, Payload, Route, Table, TargetFrom};
use crate::identity::Action;
use crate::problem::Answered;

static WHOAMI: Route =
    Route::get("/whoami", "Whom your credential stands for.", Action::Whoami, TargetFrom::Service)
        .in_both_modes()
        .answers(&[Answer(200, Payload::Whoami)]);

pub(super) fn routes(table: &mut Table<'_>) {
    table.add(&WHOAMI, whoami);
}

async fn whoami(call: Call) -> Answered {
    let principal = call.principal()?;
    json_of(&Whoami { actor: principal.actor.to_string(), role: principal.role.as_str().to_owned() })
}
