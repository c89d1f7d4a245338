//! Who is asking: for everybody with a credential, in both modes, and whether or not the fleet is there.

use api::Whoami;
use axum::routing::MethodFilter;

use super::Table;
use super::answer::json_of;
use super::call::Call;
use crate::identity::Access;
use crate::problem::{Answered, Refusal};

pub(super) fn routes(table: &mut Table) {
    table.add(MethodFilter::GET, "/whoami", Access::Whoami, whoami);
}

async fn whoami(call: Call) -> Answered {
    call.query(&[])?;
    let principal = call.principal.ok_or_else(|| Refusal::internal("nobody was let in"))?;
    json_of(&Whoami { actor: principal.name.to_string(), role: principal.role.as_str().to_owned() })
}
