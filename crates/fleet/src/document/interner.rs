//! Shares the allocations of names: a fleet names few components, but names each of them a hundred thousand times.

use rustc_hash::FxHashSet;

use crate::ids::Id;
use crate::state::State;

/// Hands out one `Id` for equal texts: the one the catalog has, or the one it gave out before.
pub(crate) struct Interner<'a> {
    state: Option<&'a State>,
    seen: FxHashSet<Id>,
}

impl<'a> Interner<'a> {
    pub(crate) fn new(state: Option<&'a State>) -> Self {
        Self { state, seen: FxHashSet::default() }
    }

    pub(crate) fn share(&mut self, kind: &str, text: &str) -> Id {
        if let Some(known) = self.state.and_then(|state| state.id_of(kind, text)) {
            return known.clone();
        }
        if let Some(known) = self.seen.get(text) {
            return known.clone();
        }
        let id = Id::from(text);
        self.seen.insert(id.clone());
        id
    }
}
