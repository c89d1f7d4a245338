//! Who is asking, and what they may do. Denied unless allowed: every route says which [`Access`] it needs, and [`Role::may`] is the
//! only place that decides.

mod tokens;

use std::sync::Arc;

use http::HeaderValue;

pub use tokens::{Credential, Identity};

/// What a credential stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Polls, for any cluster.
    FleetReader,
    /// Everything.
    Admin,
}

impl Role {
    /// Its name, which is also the name of a credential that has no other.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FleetReader => "fleet-reader",
            Self::Admin => api::ADMIN,
        }
    }

    /// Whether it may use a route.
    pub fn may(self, access: Access) -> bool {
        match (self, access) {
            (_, Access::Open | Access::Whoami | Access::Inputs | Access::ClusterList) | (Self::Admin, _) => {
                true
            }
            (Self::FleetReader, Access::Read | Access::Write) => false,
        }
    }
}

/// What a route gives to whom it lets in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing that needs a credential.
    Open,
    /// Who they are.
    Whoami,
    /// The inputs of one cluster.
    Inputs,
    /// The list of all clusters, as Flux gets it.
    ClusterList,
    /// Documents, kinds and the audit log.
    Read,
    /// Changes.
    Write,
}

/// Somebody whose credential was right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    /// The actor in the audit log.
    pub name: Arc<str>,
    /// What they may do.
    pub role: Role,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// There is no credential in the request.
    NoCredential,
    /// There is one, in a form that is not understood.
    Unreadable,
    /// There are two.
    Twice,
    /// There is one, and it is nobody's.
    Unknown,
}

/// The token in an `Authorization` header: a bearer token, or the password of basic authentication.
fn presented(header: &HeaderValue) -> Option<Vec<u8>> {
    let text = header.to_str().ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    let rest = rest.trim_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.as_bytes().to_vec());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = data_encoding::BASE64.decode(rest.as_bytes()).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        return Some(decoded[colon + 1..].to_vec());
    }
    None
}

#[cfg(test)]
mod tests;
