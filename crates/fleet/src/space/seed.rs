//! `@seed`: a seed that is too large for one commit and is being loaded. While the entry is there, the fleet is not complete and no
//! process answers anything from it: whoever acts on the list of clusters would delete the machines that are not loaded yet.

use serde_json::{Map, Value, json};

use crate::canonical::Canonical;
use crate::finding::Finding;
use crate::hash::Hash;
use crate::key::SystemKey;
use crate::pointer::Pointer;
use crate::space::Space;

pub(super) const SPACE: &str = "@seed";

/// A seed that is being loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seeding {
    /// The hash of the file, so that only the same file goes on with it.
    pub file: Hash,
}

impl Seeding {
    /// There is one at a time.
    pub(crate) fn key() -> SystemKey {
        SystemKey { space: Space::Seed, id: "file".into() }
    }

    pub(super) fn decode(mut map: Map<String, Value>) -> Result<Self, Finding> {
        let file = map.remove("file").and_then(|file| Hash::parse(file.as_str()?));
        let file = file.ok_or_else(|| Finding::new(Pointer::to("file"), "must be 64 hexadecimal digits"))?;
        Ok(Self { file })
    }

    pub(super) fn canonical(&self) -> Canonical {
        let value = json!({"file": self.file.to_string()});
        Canonical::of(value.as_object().expect("it is one"))
    }
}
