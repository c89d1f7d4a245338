//! `@seed`: a seed that is too large for one commit and is being loaded. While the entry is there, the fleet is not complete and no
//! process answers anything from it: whoever acts on the list of clusters would delete the machines that are not loaded yet.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::canonical::Canonical;
use crate::finding::Finding;
use crate::hash::Hash;
use crate::key::SystemKey;
use crate::pointer::Pointer;
use crate::space::{Space, SystemEntry};
use crate::state::State;

pub(super) const SPACE: &str = "@seed";

/// There is one at a time. Every poll looks it up.
static KEY: LazyLock<SystemKey> = LazyLock::new(|| SystemKey { space: Space::Seed, id: "file".into() });

/// A seed that is being loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seeding {
    /// The hash of the file, so that only the same file goes on with it.
    pub file: Hash,
}

impl State {
    /// The seed that is being loaded, if one is: until it is, the fleet is not complete.
    pub fn seeding(&self) -> Option<&Seeding> {
        match self.system(&KEY)? {
            SystemEntry::Seed(seeding) => Some(seeding),
            SystemEntry::Allowance(_) | SystemEntry::Opaque(_) => None,
        }
    }
}

impl Seeding {
    /// What a transaction does that begins with a seed, or is done with it.
    pub(crate) fn change(seeding: Option<&Self>) -> (SystemKey, Option<SystemEntry>) {
        (KEY.clone(), seeding.cloned().map(SystemEntry::Seed))
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
