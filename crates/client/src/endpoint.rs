//! Where to ask, and with what.

use std::fmt;

/// An address, and what is shown there.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) url: String,
    pub(crate) credentials: Credentials,
    pub(crate) ca: Option<Vec<u8>>,
}

impl Endpoint {
    /// The service at this address; `ca` are certificates in PEM that are trusted beside the system's.
    pub fn new(url: &str, credentials: Credentials, ca: Option<Vec<u8>>) -> Result<Self, String> {
        let parsed = reqwest::Url::parse(url).map_err(|error| format!("`{url}` is not a URL: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(format!("`{url}` must begin with http:// or https://"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(
                "an address must not have a user or a password in it; give a token instead".to_owned()
            );
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(format!("`{url}` must be scheme, host, port and perhaps a path, nothing else"));
        }
        Ok(Self { url: parsed.as_str().trim_end_matches('/').to_owned(), credentials, ca })
    }

    /// The address, as it is used.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether it is on this machine, where no proxy has to be asked.
    pub(crate) fn is_here(&self) -> bool {
        let host = reqwest::Url::parse(&self.url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
        host.is_some_and(|host| {
            let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.url.starts_with("https://")
    }
}

/// What is shown: one token is enough; a second one may be for everything but polls.
#[derive(Clone, Default, Debug)]
pub struct Credentials {
    /// For polls, and for the rest if there is no other.
    pub token: Option<Token>,
    /// For everything but polls.
    pub write_token: Option<Token>,
}

impl Credentials {
    pub(crate) fn of_path(&self, path: &str) -> Option<&Token> {
        if path.starts_with("/api/v2/flux") {
            return self.token.as_ref();
        }
        self.write_token.as_ref().or(self.token.as_ref())
    }
}

/// A secret. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A token, without the blanks and line ends around it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{Credentials, Endpoint, Token};

    #[test]
    fn the_write_token_is_for_everything_but_polls() {
        let both = Credentials { token: Some(Token::new("read\n")), write_token: Some(Token::new("write")) };
        let one = Credentials { token: Some(Token::new("read")), write_token: None };
        let shown =
            |credentials: &Credentials, path| credentials.of_path(path).map(|t| t.reveal().to_owned());
        assert_eq!(shown(&both, "/api/v2/flux/clusters").as_deref(), Some("read"));
        assert_eq!(shown(&both, "/clusters").as_deref(), Some("write"));
        assert_eq!(shown(&both, "/whoami").as_deref(), Some("write"));
        assert_eq!(shown(&one, "/clusters").as_deref(), Some("read"));
        let debug = format!("{both:?}");
        assert!(!debug.contains("\"read") && !debug.contains("\"write\""), "{debug}");
    }

    #[test]
    fn an_address_is_scheme_host_port_and_path() {
        let url = |text| Endpoint::new(text, Credentials::default(), None).map(|endpoint| endpoint.url);
        assert_eq!(url("http://127.0.0.1:8080/").as_deref(), Ok("http://127.0.0.1:8080"));
        assert_eq!(url("https://fleet.example.com/api/").as_deref(), Ok("https://fleet.example.com/api"));
        let refused = |text| url(text).expect_err(text);
        assert!(refused("localhost:8080").contains("http://"));
        assert!(refused("ftp://x").contains("http://"));
        assert!(refused("https://x/?a=b").contains("nothing else"));
        assert!(!refused("https://me:secret@x/").contains("secret"));
        assert!(!refused("https://:secret@x/").contains("secret"));
    }

    #[test]
    fn this_machine_is_asked_without_a_proxy() {
        let here =
            |text| Endpoint::new(text, Credentials::default(), None).is_ok_and(|endpoint| endpoint.is_here());
        assert!(here("http://127.0.0.1:8080") && here("http://localhost") && here("http://[::1]:80"));
        assert!(!here("http://fleet.example.com") && !here("http://10.0.0.1"));
    }
}
