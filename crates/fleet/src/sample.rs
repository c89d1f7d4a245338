//! The first few of many, and how many there are.

use std::fmt;

/// How many of many are named before the rest is only counted.
pub const REPORTED: usize = 20;

/// The first few of many, and how many there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample<T> {
    /// The first of them, at most [`REPORTED`].
    pub first: Vec<T>,
    /// How many there are in all.
    pub total: usize,
}

impl<T> Default for Sample<T> {
    fn default() -> Self {
        Self { first: Vec::new(), total: 0 }
    }
}

impl<T> Sample<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.total += 1;
        if self.first.len() < REPORTED {
            self.first.push(item);
        }
    }

    /// How many are not among the first.
    pub fn more(&self) -> usize {
        self.total - self.first.len()
    }
}

impl<T> FromIterator<T> for Sample<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut sample = Self::default();
        all.into_iter().for_each(|item| sample.push(item));
        sample
    }
}

impl<T: fmt::Display> fmt::Display for Sample<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, item) in self.first.iter().enumerate() {
            write!(f, "{}`{item}`", if n == 0 { "" } else { ", " })?;
        }
        match self.more() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
