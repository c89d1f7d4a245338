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

/// A query parameter of a route, as its description has it. Handlers ask for a value with the same constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name in the query string.
    pub name: &'static str,
    /// What its value is.
    pub of_type: ValueType,
    /// One sentence about it.
    pub description: &'static str,
}

/// What the value of a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueType {
    /// Any text.
    Text,
    /// `true` or `false`.
    Switch,
    /// A whole number, not negative.
    Number,
    /// How many items a page has: 1 to 1000.
    Limit,
    /// A time in RFC 3339.
    Time,
}

impl Parameter {
    /// A parameter.
    pub const fn new(name: &'static str, of_type: ValueType, description: &'static str) -> Self {
        Self { name, of_type, description }
    }

    /// How many items a page has.
    pub const LIMIT: Self =
        Self::new("limit", ValueType::Limit, "How many items to answer: 1 to 1000, 100 by default.");
}

/// How many items a page has unless the request says so.
const USUAL_LIMIT: usize = 100;

/// The parameters of a request, as its route describes them, each given at most once.
#[derive(Debug, Default)]
pub struct Query {
    described: &'static [Parameter],
    given: Vec<(String, String)>,
}

impl Query {
    /// Reads a query string, whatever its parameters are called.
    pub fn parse(query: Option<&str>) -> Answered<Self> {
        let mut given: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if given.iter().any(|(other, _)| *other == name) {
                return Err(Refusal::bad_request(format!("the query parameter `{name}` is given twice")));
            }
            given.push((name, value));
        }
        Ok(Self { described: &[], given })
    }

    /// The query of a route with these parameters, and with filters of these names. Refuses any other parameter.
    pub fn described_by(mut self, parameters: &'static [Parameter], filters: &[&str]) -> Answered<Self> {
        let known = || filters.iter().copied().chain(parameters.iter().map(|parameter| parameter.name));
        if let Some((name, _)) = self.given.iter().find(|(name, _)| known().all(|known| known != name)) {
            let known: Vec<String> = known().map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() {
                "this route has none".to_owned()
            } else {
                format!("this route has {}", known.join(", "))
            };
            return Err(Refusal::bad_request(format!("there is no query parameter `{name}`; {known}")));
        }
        self.described = parameters;
        Ok(self)
    }

    /// A value by its name, for filters that only a kind's file knows.
    pub fn filter(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The text of a parameter.
    pub fn text(&self, parameter: &Parameter) -> Answered<Option<&str>> {
        self.value(parameter, ValueType::Text)
    }

    /// A handler that asks for what its route does not describe is a mistake of the service, not of the client.
    fn value(&self, parameter: &Parameter, of_type: ValueType) -> Answered<Option<&str>> {
        if !self.described.contains(parameter) || parameter.of_type != of_type {
            let name = parameter.name;
            return Err(Refusal::internal(format!("the route does not describe `{name}` as it is read")));
        }
        Ok(self.filter(parameter.name))
    }

    /// A parameter that is `true` or `false`.
    pub fn switch(&self, parameter: &Parameter) -> Answered<bool> {
        match self.value(parameter, ValueType::Switch)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Refusal::bad_request(format!(
                "`{}` is `{other}`; it must be `true` or `false`",
                parameter.name
            ))),
        }
    }

    /// A whole number.
    pub fn number(&self, parameter: &Parameter) -> Answered<Option<u64>> {
        self.digits(parameter, ValueType::Number)
    }

    fn digits(&self, parameter: &Parameter, of_type: ValueType) -> Answered<Option<u64>> {
        let read = |text: &str| {
            digits(text).ok_or_else(|| {
                Refusal::bad_request(format!(
                    "`{}` is `{text}`; it must be a whole number, not negative",
                    parameter.name
                ))
            })
        };
        self.value(parameter, of_type)?.map(read).transpose()
    }

    /// How many items a page has.
    pub fn limit(&self) -> Answered<usize> {
        match self.digits(&Parameter::LIMIT, ValueType::Limit)? {
            None => Ok(USUAL_LIMIT),
            Some(limit @ 1..=1_000) => Ok(usize::try_from(limit).unwrap_or(USUAL_LIMIT)),
            Some(other) => {
                Err(Refusal::bad_request(format!("`limit` is {other}; it must be from 1 to 1000")))
            }
        }
    }

    /// An index.
    pub fn offset(&self, parameter: &Parameter) -> Answered<usize> {
        Ok(self.number(parameter)?.map_or(0, |offset| usize::try_from(offset).unwrap_or(usize::MAX)))
    }

    /// A revision.
    pub fn revision(&self, parameter: &Parameter) -> Answered<Option<Revision>> {
        Ok(self.number(parameter)?.map(Revision))
    }

    /// A time, in RFC 3339.
    pub fn time(&self, parameter: &Parameter) -> Answered<Option<Timestamp>> {
        let read = |text: &str| match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Timestamp(time.as_millisecond())),
            Err(_) => Err(Refusal::bad_request(format!(
                "`{}` is `{text}`; it must be a time like `2026-11-15T08:00:00Z` (a `+` is written `%2B`)",
                parameter.name
            ))),
        };
        self.value(parameter, ValueType::Time)?.map(read).transpose()
    }
}

fn decode(text: &str) -> Answered<String> {
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode_str(&spaced)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| Refusal::bad_request("the query string is not UTF-8 when its percent signs are decoded"))
}
