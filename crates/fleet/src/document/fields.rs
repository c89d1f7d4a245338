//! Fields that the core does not read, kept as ready JSON text, sorted by name.

use serde_json::{Map, Value};

use crate::canonical;
use crate::hash::InputHash;

/// Name and JSON text of each field.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Fields(Box<[Field]>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Field {
    name: Box<str>,
    pub(crate) json: Box<str>,
    /// What it adds to the hash of an input that shows it.
    pub(crate) hash: InputHash,
}

impl Field {
    pub(crate) fn new(name: &str, json: String) -> Self {
        let hash = InputHash::of_field(name, &json);
        Self { name: name.into(), json: json.into(), hash }
    }
}

impl Fields {
    pub(crate) fn of(map: Map<String, Value>) -> Self {
        // A `serde_json::Map` is sorted already.
        Self(map.into_iter().map(|(name, value)| Field::new(&name, canonical::encode(&value))).collect())
    }

    pub(crate) fn put_into(&self, map: &mut Map<String, Value>) {
        for Field { name, json, .. } in &self.0 {
            let value = serde_json::from_str(json).expect("it was encoded from a value");
            map.insert(name.to_string(), value);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|field| (&*field.name, &*field.json))
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let at = self.0.binary_search_by(|field| field.name.as_ref().cmp(name)).ok()?;
        Some(&self.0[at])
    }

    /// The JSON text of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.field(name).map(|field| &*field.json)
    }

    /// How many bytes names and values are.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|field| field.name.len() + field.json.len()).sum()
    }
}
