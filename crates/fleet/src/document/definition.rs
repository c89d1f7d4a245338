//! A document of a kind that the core has no special rules for: an id and fields.

use serde_json::{Map, Value};

use super::{Fields, Interner, encode, require_text};
use crate::canonical::Canonical;
use crate::finding::Finding;
use crate::fragment::DefinitionFragment;
use crate::ids::Id;
use crate::kind::Kind;

/// An id and fields, with its input ready to be sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// Its id.
    pub id: Id,
    /// Its other fields.
    pub fields: Fields,
    pub(crate) fragment: DefinitionFragment,
}

impl Definition {
    pub(crate) fn decode(
        kind: &Kind,
        mut map: Map<String, Value>,
        names: &mut Interner<'_>,
    ) -> Result<Self, Finding> {
        let id = names.share(kind.name().as_str(), &require_text(&mut map, "id")?);
        let fields = Fields::of(map);
        let fragment = DefinitionFragment::of(kind, &id, &fields);
        Ok(Self { id, fields, fragment })
    }

    /// The same document under a kind whose file has changed: other properties or defaults make another input.
    pub(crate) fn under(&self, kind: &Kind) -> Self {
        let fragment = DefinitionFragment::of(kind, &self.id, &self.fields);
        Self { id: self.id.clone(), fields: self.fields.clone(), fragment }
    }

    pub(crate) fn canonical(&self) -> Canonical {
        Canonical::stored(encode::definition(&self.id, &self.fields))
    }
}
