//! Query strings, strictly: a parameter that a route does not have is an error, so that `?dryrun=true` does not write.

use std::borrow::Cow;

use fleet::{Revision, Timestamp};
use percent_encoding::percent_decode_str;

use crate::problem::{Answered, Refusal};

/// A whole number, spelt in the one way that there is.
pub fn digits(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The parameters of a request, each known to the route and given once.
#[derive(Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query string of a route that has these parameters.
    pub fn read(query: Option<&str>, known: &[&str]) -> Answered<Self> {
        let mut read: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if !known.contains(&name.as_str()) {
                let known = if known.is_empty() {
                    "this route has none".to_owned()
                } else {
                    format!("this route has {}", list(known))
                };
                return Err(Refusal::bad_request(format!("there is no query parameter `{name}`; {known}")));
            }
            if read.iter().any(|(other, _)| *other == name) {
                return Err(Refusal::bad_request(format!("the query parameter `{name}` is given twice")));
            }
            read.push((name, value));
        }
        Ok(Self(read))
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is `true` or `false`.
    pub fn switch(&self, name: &str) -> Answered<bool> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => {
                Err(Refusal::bad_request(format!("`{name}` is `{other}`; it must be `true` or `false`")))
            }
        }
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Answered<Option<u64>> {
        let read = |text: &str| {
            digits(text).ok_or_else(|| {
                Refusal::bad_request(format!("`{name}` is `{text}`; it must be a whole number, not negative"))
            })
        };
        self.get(name).map(read).transpose()
    }

    /// How many items a page has.
    pub fn limit(&self) -> Answered<usize> {
        match self.number("limit")? {
            None => Ok(100),
            Some(limit @ 1..=1_000) => Ok(usize::try_from(limit).unwrap_or(100)),
            Some(other) => {
                Err(Refusal::bad_request(format!("`limit` is {other}; it must be from 1 to 1000")))
            }
        }
    }

    /// An index.
    pub fn offset(&self, name: &str) -> Answered<usize> {
        Ok(self.number(name)?.map_or(0, |offset| usize::try_from(offset).unwrap_or(usize::MAX)))
    }

    /// A revision.
    pub fn revision(&self, name: &str) -> Answered<Option<Revision>> {
        Ok(self.number(name)?.map(Revision))
    }

    /// A time, in RFC 3339.
    pub fn time(&self, name: &str) -> Answered<Option<Timestamp>> {
        let read = |text: &str| match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Timestamp(time.as_millisecond())),
            Err(_) => Err(Refusal::bad_request(format!(
                "`{name}` is `{text}`; it must be a time like `2026-11-15T08:00:00Z` (a `+` is written `%2B`)"
            ))),
        };
        self.get(name).map(read).transpose()
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn decode(text: &str) -> Answered<String> {
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode_str(&spaced)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| Refusal::bad_request("the query string is not UTF-8 when its percent signs are decoded"))
}
