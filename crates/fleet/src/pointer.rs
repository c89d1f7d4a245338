//! JSON pointers (RFC 6901), built while walking a document.

use std::fmt;

/// Where in a document something is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pointer {
    text: String,
    depth: usize,
}

impl Pointer {
    /// The whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// A member of the document itself.
    pub fn to(name: &str) -> Self {
        Self::root().join(name)
    }

    /// The pointer to a member of what this one points at.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        let mut pointer = self.clone();
        pointer.push(name);
        pointer
    }

    /// The pointer to an item of what this one points at.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.join(&index.to_string())
    }

    /// A pointer into what this one points at.
    #[must_use]
    pub fn then(&self, inner: &Self) -> Self {
        Self { text: format!("{}{}", self.text, inner.text), depth: self.depth + inner.depth }
    }

    /// The text as RFC 6901 has it; empty for the whole document.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn parsed(text: &str) -> Self {
        Self { text: text.to_owned(), depth: text.matches('/').count() }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Steps into a member for the length of `inside`.
    pub(crate) fn with<T>(&mut self, name: &str, inside: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.text.len();
        self.push(name);
        let result = inside(self);
        self.text.truncate(before);
        self.depth -= 1;
        result
    }

    fn push(&mut self, name: &str) {
        self.depth += 1;
        self.text.push('/');
        for character in name.chars() {
            match character {
                '~' => self.text.push_str("~0"),
                '/' => self.text.push_str("~1"),
                other => self.text.push(other),
            }
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}
