//! The parameters of a path.

use axum::extract::{FromRequestParts, RawPathParams};
use http::request::Parts;

use crate::problem::{Answered, Refusal};

/// The values that stand in a path where its template has `{names}`, decoded.
pub(super) struct Params(Option<RawPathParams>);

impl Params {
    /// Reads them.
    pub(super) async fn read(parts: &mut Parts, template: &str) -> Answered<Self> {
        if !template.contains('{') {
            return Ok(Self(None));
        }
        match RawPathParams::from_request_parts(parts, &()).await {
            Ok(params) => Ok(Self(Some(params))),
            Err(rejection) => {
                Err(Refusal::bad_request(format!("the path cannot be read: {}", rejection.body_text())))
            }
        }
    }

    /// One of them.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.as_ref()?.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}
