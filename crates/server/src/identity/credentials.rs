//! What a request says about who sent it, before anybody has checked it.

use http::{HeaderMap, HeaderValue, header};

use super::Unauthenticated;

/// The credentials of a request. There is no `Debug`: they are secrets.
pub struct Credentials {
    /// A bearer token, or the password of basic authentication.
    pub token: Option<Vec<u8>>,
}

impl Credentials {
    /// Reads the headers. A header that cannot be read is an error, not an absent one.
    pub fn of(headers: &HeaderMap) -> Result<Self, Unauthenticated> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Ok(Self { token: None }) };
        if values.next().is_some() {
            return Err(Unauthenticated::Twice);
        }
        let token = token(value).ok_or(Unauthenticated::Unreadable)?;
        Ok(Self { token: Some(token) })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.token.is_none()
    }
}

fn token(header: &HeaderValue) -> Option<Vec<u8>> {
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
