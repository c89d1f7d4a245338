//! Who is asking, and what they may do.
//!
//! A request goes through two questions. *Who is it?* is answered by the authenticators, in a fixed order: each is one file here and
//! turns one sort of credential into a [`Principal`]. *May they?* is answered by [`authorise`], the only place that decides, once it is
//! known what the request is about. Nothing here knows routes or documents.

mod actor;
mod authorise;
mod credentials;
mod tokens;

use http::HeaderMap;

pub use actor::Actor;
pub use authorise::{Action, Forbidden, Target, authorise};
pub use credentials::Credentials;
pub use tokens::{ConfiguredTokens, Token};

/// What a principal may do, as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Polls for any cluster, and reads the list of clusters as Flux gets it.
    Poller,
    /// May do everything.
    Admin,
}

impl Role {
    /// As `/whoami` and messages spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Poller => "poller",
            Self::Admin => api::ADMIN,
        }
    }
}

/// Somebody whose credential is valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    /// Who it is, for the audit log.
    pub actor: Actor,
    /// What they may do.
    pub role: Role,
}

/// Why a request has no principal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unauthenticated {
    /// The request has no credential.
    NoCredential,
    /// The `Authorization` header is in no form that the service understands.
    Unreadable,
    /// There are two `Authorization` headers.
    Twice,
    /// No authenticator knows the credential.
    Unknown,
}

/// One sort of credential.
pub trait Authenticator {
    /// The principal of a request with these credentials. `None` if none of them is of this sort, or none is known: then the next
    /// authenticator is asked. An error ends it: nobody else is asked.
    fn authenticate(&self, credentials: &Credentials) -> Result<Option<Principal>, Unauthenticated>;
}

/// Everybody who has access.
#[derive(Debug)]
pub struct Identity {
    tokens: ConfiguredTokens,
}

impl Identity {
    /// Those who have a token of the configuration.
    pub fn new(tokens: ConfiguredTokens) -> Self {
        Self { tokens }
    }

    /// The authenticators, in the order in which they are asked.
    fn authenticators(&self) -> [&dyn Authenticator; 1] {
        [&self.tokens]
    }

    /// The principal of a request with these headers.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Unauthenticated> {
        let credentials = Credentials::of(headers)?;
        for authenticator in self.authenticators() {
            if let Some(principal) = authenticator.authenticate(&credentials)? {
                return Ok(principal);
            }
        }
        Err(if credentials.is_empty() { Unauthenticated::NoCredential } else { Unauthenticated::Unknown })
    }

    /// The tokens of the configuration, which are reloaded from their files.
    pub fn tokens(&self) -> &ConfiguredTokens {
        &self.tokens
    }
}

#[cfg(test)]
mod tests;
