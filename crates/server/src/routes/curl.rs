//! A request as a line for the shell.

use bytes::Bytes;
use http::{HeaderName, header};

use super::RequestHeader;
use super::call::Call;

/// A body that would not fit on a command line is left to the reader.
const MAX_CURL_BODY: usize = 4 * 1024;

/// The same request with a confirmation, ready to paste into a shell. The token is not in it.
pub(super) fn curl(call: &Call, digest: &str, body: &Bytes) -> String {
    let host = call.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost:8080");
    let path = call.uri.path_and_query().map_or("/", |path| path.as_str());
    // A proxy in front that speaks TLS says so.
    let is_https = call.headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    let scheme = if is_https { "https" } else { "http" };
    let mut line = format!(
        "curl -X {} {} -H \"Authorization: Bearer $CRUD_AUTH_TOKEN\" -H {}",
        call.method,
        quoted(&format!("{scheme}://{host}{path}")),
        quoted(&format!("X-Confirm: {digest}")),
    );
    let own = [RequestHeader::PlanRevision, RequestHeader::ChangeReason]
        .map(|header| HeaderName::from_static(header.name()));
    for name in [header::CONTENT_TYPE, header::IF_MATCH].into_iter().chain(own) {
        if let Some(value) =
            call.headers.get(&name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
        {
            line.push_str(" -H ");
            line.push_str(&quoted(&format!("{name}: {value}")));
        }
    }
    match std::str::from_utf8(body) {
        Ok("") => {}
        Ok(text) if text.len() <= MAX_CURL_BODY => {
            line.push_str(" --data-raw ");
            line.push_str(&quoted(text));
        }
        _ => line.push_str(" --data-binary @the-same-body"),
    }
    line
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_quote_does_not_end_the_word_in_a_shell() {
        assert_eq!(quoted(r#"{"it's": 1}"#), r#"'{"it'\''s": 1}'"#);
    }
}
