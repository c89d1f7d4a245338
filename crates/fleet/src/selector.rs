//! Selectors in the syntax of Kubernetes: `environment=prod,region in (eu,us),!legacy`. They read a cluster's labels and, before
//! those, its fields `id`, `environment` and `cluster_dns`.

use std::fmt;

use crate::document::Cluster;
use crate::grammar;

/// What a cluster must be like; all requirements hold at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    text: Box<str>,
    requirements: Vec<Requirement>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Requirement {
    key: Box<str>,
    test: Test,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Test {
    Exists,
    Absent,
    /// Sorted, as those of the next.
    In(Vec<Box<str>>),
    NotIn(Vec<Box<str>>),
}

/// A selector that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}, at character {at} of the selector")]
pub struct BadSelector {
    /// Which character, counted from 1.
    pub at: usize,
    /// What is wrong there.
    pub message: String,
}

impl Selector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, BadSelector> {
        let mut parser = Parser { text, at: 0 };
        let mut requirements = Vec::new();
        parser.skip_blanks();
        if parser.rest().is_empty() {
            return Err(
                parser.error("an empty selector would select every cluster; write `id` if that is meant")
            );
        }
        loop {
            requirements.push(parser.requirement()?);
            parser.skip_blanks();
            if parser.rest().is_empty() {
                return Ok(Self { text: text.into(), requirements });
            }
            if !parser.take(",") {
                return Err(parser.error("expected `,` before the next requirement"));
            }
        }
    }

    /// How many comparisons it takes to look at one cluster, at most.
    pub(crate) fn comparisons(&self) -> usize {
        let of_values = |values: &Vec<Box<str>>| 1 + values.len().ilog2() as usize;
        let of = |requirement: &Requirement| match &requirement.test {
            Test::Exists | Test::Absent => 1,
            Test::In(values) | Test::NotIn(values) => of_values(values),
        };
        self.requirements.iter().map(of).sum()
    }

    /// Whether a cluster is selected.
    pub fn selects(&self, cluster: &Cluster) -> bool {
        self.holds(|key| match key {
            "id" => Some(cluster.id.as_str()),
            "environment" => Some(cluster.environment.as_str()),
            "cluster_dns" => Some(cluster.dns.as_str()),
            label => cluster.label(label),
        })
    }

    /// Whether every requirement holds of something, given the value that it has for a key.
    pub(crate) fn holds<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|Requirement { key, test }| {
            let value = value_of(key);
            match test {
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::In(values) => value.is_some_and(|value| is_among(value, values)),
                Test::NotIn(values) => value.is_none_or(|value| !is_among(value, values)),
            }
        })
    }
}

fn is_among(value: &str, sorted: &[Box<str>]) -> bool {
    sorted.binary_search_by(|one| (**one).cmp(value)).is_ok()
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, message: impl Into<String>) -> BadSelector {
        BadSelector { at: self.text[..self.at].chars().count() + 1, message: message.into() }
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// The longest run of what keys and values are made of.
    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c))).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn requirement(&mut self) -> Result<Requirement, BadSelector> {
        let absent = self.take("!");
        self.skip_blanks();
        let start = self.at;
        let key = self.word();
        if key.is_empty() {
            return Err(self.error("expected a label or one of id, environment, cluster_dns"));
        }
        if !grammar::label_key(key) {
            self.at = start;
            return Err(self.error(format!("`{key}` cannot be the key of a label")));
        }
        // Fields have values of their own: ids and DNS names.
        let is_label = !matches!(key, "id" | "environment" | "cluster_dns");
        let key: Box<str> = key.into();
        if absent {
            return Ok(Requirement { key, test: Test::Absent });
        }
        let test = if self.take("!=") {
            Test::NotIn(vec![self.value(is_label)?])
        } else if self.take("==") || self.take("=") {
            Test::In(vec![self.value(is_label)?])
        } else {
            let before = self.at;
            match self.word() {
                "" => Test::Exists,
                "in" => Test::In(self.values(is_label)?),
                "notin" => Test::NotIn(self.values(is_label)?),
                other => {
                    self.at = before;
                    self.skip_blanks();
                    return Err(self.error(format!(
                        "expected `=`, `==`, `!=`, `in`, `notin`, `,` or the end, not `{other}`"
                    )));
                }
            }
        };
        Ok(Requirement { key, test })
    }

    /// A value after `=` may be empty, as in Kubernetes: the label is there and says nothing.
    fn value(&mut self, of_label: bool) -> Result<Box<str>, BadSelector> {
        self.skip_blanks();
        let start = self.at;
        let value = self.word();
        let fits =
            value.is_empty() || if of_label { grammar::label_value(value) } else { grammar::dns_name(value) };
        if !fits {
            self.at = start;
            return Err(self.error(format!("`{value}` cannot be a value: no cluster can have it")));
        }
        self.skip_blanks();
        match self.rest().chars().next() {
            None | Some(',' | ')') => Ok(value.into()),
            Some(other) => Err(self.error(format!("`{other}` cannot be part of a value"))),
        }
    }

    fn values(&mut self, of_label: bool) -> Result<Vec<Box<str>>, BadSelector> {
        if !self.take("(") {
            return Err(self.error("expected `(` and a list of values"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value(of_label)?);
            if self.take(")") {
                values.sort_unstable();
                return Ok(values);
            }
            if !self.take(",") {
                return Err(self.error("expected `,` or `)`"));
            }
        }
    }
}
