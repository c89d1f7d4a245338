//! Services that are not there, not ours, or in trouble: each says what to do next.

use crate::frs::Desk;
use crate::proxy::foreign;
use crate::snapshot::snapshot;

#[test]
fn nobody_answers() {
    snapshot!(Desk::at("http://127.0.0.1:1").transcript(&["get clusters", "export", "demo --yes"]));
}

#[test]
fn something_else_answers() {
    let told = [
        ("200 OK\r\ncontent-type: text/html", "<html><h1>Welcome!</h1></html>"),
        ("502 Bad Gateway", "<html>bad gateway</html>"),
        ("404 Not Found", ""),
        ("302 Found\r\nlocation: https://login.example.com/", ""),
    ]
    .map(|(head, body)| Desk::at(&foreign(head, body)).transcript(&["get clusters"]));
    snapshot!(told.join("\n"));
}

#[test]
fn a_service_in_trouble_says_so() {
    let unavailable = r#"{"type": "urn:flux-resourceset:unavailable", "title": "The service cannot answer now", "status": 503,
        "detail": "the store cannot be read now", "request_id": "r-1"}"#;
    snapshot!(Desk::at(&foreign("503 Service Unavailable", unavailable)).transcript(&["get clusters"]));
}
