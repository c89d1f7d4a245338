//! Fields that the core does not read, kept as ready JSON text, sorted by name.

use serde_json::{Map, Value};

use crate::canonical;

/// Name and JSON text of each field.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Fields(Box<[(Box<str>, Box<str>)]>);

impl Fields {
    pub(crate) fn of(map: Map<String, Value>) -> Self {
        // A `serde_json::Map` is sorted already.
        let fields = map
            .into_iter()
            .map(|(name, value)| (name.into_boxed_str(), canonical::encode(&value).into_boxed_str()));
        Self(fields.collect())
    }

    pub(crate) fn put_into(&self, map: &mut Map<String, Value>) {
        for (name, text) in &self.0 {
            let value = serde_json::from_str(text).expect("it was encoded from a value");
            map.insert(name.to_string(), value);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (&**name, &**text))
    }

    /// The JSON text of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// How many bytes names and values are.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|(name, text)| name.len() + text.len()).sum()
    }
}
