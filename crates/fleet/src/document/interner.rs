//! Shares allocations: a fleet names few components, but names each of them a hundred thousand times, and overrides them in few ways.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{ComponentOverrides, Fields};
use crate::ids::Id;
use crate::state::State;

/// Hands out one value for equal ones: the one the catalog has, or the one it gave out before.
pub(crate) struct Interner<'a> {
    state: Option<&'a State>,
    seen: FxHashSet<Id>,
    overrides: FxHashSet<Arc<ComponentOverrides>>,
    fields: FxHashSet<Arc<Fields>>,
}

impl<'a> Interner<'a> {
    pub(crate) fn new(state: Option<&'a State>) -> Self {
        Self {
            state,
            seen: FxHashSet::default(),
            overrides: FxHashSet::default(),
            fields: FxHashSet::default(),
        }
    }

    pub(crate) fn share(&mut self, kind: &str, text: &str) -> Id {
        if let Some(known) = self.seen.get(text) {
            return known.clone();
        }
        let known = self.state.and_then(|state| state.id_of(kind, text)).cloned();
        let id = known.unwrap_or_else(|| Id::from(text));
        self.seen.insert(id.clone());
        id
    }

    /// A text that names no document.
    pub(crate) fn share_text(&mut self, text: &str) -> Id {
        self.share("", text)
    }

    pub(crate) fn share_overrides(&mut self, overrides: ComponentOverrides) -> Arc<ComponentOverrides> {
        shared(&mut self.overrides, overrides)
    }

    pub(crate) fn share_fields(&mut self, fields: Fields) -> Arc<Fields> {
        shared(&mut self.fields, fields)
    }
}

fn shared<T: Eq + Hash>(seen: &mut FxHashSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(known) = seen.get(&value) {
        return known.clone();
    }
    let shared = Arc::new(value);
    seen.insert(shared.clone());
    shared
}
