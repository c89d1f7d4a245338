//! Bodies of writes, read as the route's description says.

use api::ProblemName;
use fleet::Patch;
use http::{StatusCode, header};
use serde_json::Value;

use super::call::{Call, Content};
use super::description::RequestBody;
use crate::give_way::{LARGE, handing_over};
use crate::json;
use crate::problem::{Answered, Refusal};

impl Content {
    /// The body as JSON.
    pub(super) fn json(&self, call: &Call) -> Answered<Value> {
        match call.route().body {
            RequestBody::Json(_) => self.read(call),
            _ => Err(not_described()),
        }
    }

    /// The body as JSON, or `null` if there is none.
    pub(super) fn optional_json(&self, call: &Call) -> Answered<Value> {
        match call.route().body {
            RequestBody::OptionalJson(_) if self.0.is_empty() => Ok(Value::Null),
            RequestBody::OptionalJson(_) => self.read(call),
            _ => Err(not_described()),
        }
    }

    fn read(&self, call: &Call) -> Answered<Value> {
        match &*content_type(call)? {
            "application/json" => self.parsed(),
            other => Err(unsupported("`application/json`", other)),
        }
    }

    /// The body as a patch, by its content type.
    pub(super) fn patch(&self, call: &Call) -> Answered<Patch> {
        let RequestBody::Patch(_) = call.route().body else { return Err(not_described()) };
        let make: fn(Value) -> Patch = match &*content_type(call)? {
            "application/json" | "application/strategic-merge-patch+json" => Patch::Strategic,
            "application/merge-patch+json" => Patch::Merge,
            "application/json-patch+json" => Patch::Json,
            other => {
                let accepted = "`application/json` or `application/strategic-merge-patch+json` (references merge by id), `application/merge-patch+json` (RFC 7396) or `application/json-patch+json` (RFC 6902)";
                return Err(unsupported(accepted, other));
            }
        };
        self.parsed().map(make)
    }

    fn parsed(&self) -> Answered<Value> {
        handing_over(self.0.len() > LARGE, || json::read(&self.0)).map_err(Refusal::bad_request)
    }
}

fn not_described() -> Refusal {
    Refusal::internal("a handler reads a body that its route does not describe")
}

fn content_type(call: &Call) -> Answered<String> {
    let coding = call.header_of_body(header::CONTENT_ENCODING.as_str())?;
    if let Some(coding) = coding.filter(|coding| *coding != "identity") {
        let detail = format!("`Content-Encoding` is `{coding}`; bodies are taken as they are");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ProblemName::Invalid, detail));
    }
    let text = call.header_of_body(header::CONTENT_TYPE.as_str())?.unwrap_or_default();
    Ok(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

fn unsupported(accepted: &str, got: &str) -> Refusal {
    let got = if got.is_empty() {
        "there is no `Content-Type`".to_owned()
    } else {
        format!("`Content-Type` is `{got}`")
    };
    Refusal::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ProblemName::Invalid,
        format!("{got}; this route takes {accepted}"),
    )
}
