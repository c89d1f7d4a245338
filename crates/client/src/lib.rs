//! A typed client of the service: one method for each thing that can be asked. It blocks, because a command line does one thing at a
//! time.
//!
//! It must not know what an answer means or how it is shown; and it never gives a token to anybody but the address it was made for, so
//! it follows no redirect.

mod endpoint;
mod error;
mod reads;
mod standing;
mod writes;

pub use endpoint::{Credentials, Endpoint, Token};
pub use error::Error;
pub use reads::{Asked, AuditQuery, Progress};
pub use standing::Heard;
pub use writes::{Commitment, Committed};

use std::time::Duration;

use reqwest::Method;
use reqwest::blocking::{RequestBuilder, Response};
use reqwest::header::{ACCEPT, HeaderMap};
use serde::de::DeserializeOwned;

const CONNECT: Duration = Duration::from_secs(5);
/// The service gives a write 30 seconds, and says so itself.
const WHOLE: Duration = Duration::from_mins(1);

/// Talks to one service.
#[derive(Debug)]
pub struct Client {
    http: reqwest::blocking::Client,
    endpoint: Endpoint,
}

/// A success, before its body is looked at.
struct Answer {
    headers: HeaderMap,
    body: Vec<u8>,
    url: String,
}

impl Client {
    /// A client of the service at an address. Nothing is sent yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, Error> {
        Self::with_patience(endpoint, WHOLE)
    }

    /// A client that waits so long for an answer, and no longer.
    pub fn with_patience(endpoint: Endpoint, patience: Duration) -> Result<Self, Error> {
        let mut builder = reqwest::blocking::Client::builder()
            .user_agent(concat!("flux-resourceset-cli/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT.min(patience))
            .timeout(patience);
        if endpoint.is_here() {
            builder = builder.no_proxy();
        }
        if !endpoint.is_tls() {
            // Without TLS nobody needs the system's certificates, which a small machine does not have.
            builder = builder.tls_certs_only([]);
        }
        if let Some(pem) = &endpoint.ca {
            let certificates = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|error| Error::Settings(format!("the CA file cannot be read: {error}")))?;
            if certificates.is_empty() {
                return Err(Error::Settings("the CA file has no certificate in PEM in it".to_owned()));
            }
            builder = builder.tls_certs_merge(certificates);
        }
        let http = builder
            .build()
            .map_err(|error| Error::Settings(format!("TLS cannot be used: {}", root_cause(&error))))?;
        Ok(Self { http, endpoint })
    }

    /// Whether nobody on the way reads what is sent: it is encrypted, or stays on this machine.
    pub fn is_private(&self) -> bool {
        self.endpoint.is_tls() || self.endpoint.is_here()
    }

    fn request(&self, method: Method, path: &str) -> (RequestBuilder, String) {
        let url = format!("{}{path}", self.endpoint.url);
        let mut request = self.http.request(method, &url).header(ACCEPT, "application/json");
        if let Some(token) = self.endpoint.credentials.of_path(path) {
            request = request.bearer_auth(token.reveal());
        }
        (request, url)
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, Error> {
        let (request, url) = self.request(Method::GET, path);
        // Without parameters there is no `?`.
        let request = if query.is_empty() { request } else { request.query(query) };
        answered(request.send(), url)
    }
}

/// Sorts an answer into a success, a problem that the service tells, and anything else.
fn answered(response: reqwest::Result<Response>, url: String) -> Result<Answer, Error> {
    let unreachable =
        |error: &reqwest::Error| Error::Unreachable { url: url.clone(), because: root_cause(error) };
    let response = response.map_err(|error| {
        if error.is_builder() {
            // A token with a line end in it, for example: nothing was sent.
            let what = "the request cannot be made; is there a line end or a control character in the token?";
            return Error::Settings(format!("{what} ({})", root_cause(&error)));
        }
        unreachable(&error)
    })?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().map_err(|error| unreachable(&error))?.to_vec();
    if status.is_success() {
        return Ok(Answer { headers, body, url });
    }
    match serde_json::from_slice::<api::Problem>(&body) {
        Ok(problem) => Err(Error::Problem(Box::new(problem))),
        Err(_) => Err(Error::Foreign { url, because: foreign(status.as_u16(), &body) }),
    }
}

fn foreign(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let first: String = text.trim().lines().next().unwrap_or_default().chars().take(120).collect();
    if first.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {first}") }
}

/// The innermost cause of an error: reqwest's own message only repeats the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}

impl Answer {
    fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Foreign {
            url: self.url.clone(),
            because: format!("its answer is not what this version expects: {error}"),
        })
    }

    fn text(self) -> Result<String, Error> {
        let url = self.url;
        String::from_utf8(self.body)
            .map_err(|_| Error::Foreign { url, because: "its answer is not UTF-8".to_owned() })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
