//! Shares allocations: a fleet names few components, but names each of them a hundred thousand times, overrides them in few ways, and
//! mostly has many clusters that refer to the same.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{ComponentOverrides, Fields, Reference};
use crate::ids::Id;
use crate::state::State;

/// Hands out one value for equal ones: the one the catalog has, or the one it gave out before.
pub(crate) struct Interner<'a> {
    state: Option<&'a State>,
    seen: FxHashSet<Id>,
    overrides: FxHashSet<Arc<ComponentOverrides>>,
    fields: FxHashSet<Arc<Fields>>,
    components: FxHashSet<Arc<[Reference<ComponentOverrides>]>>,
    references: FxHashSet<Arc<[Reference<Fields>]>>,
}

impl<'a> Interner<'a> {
    pub(crate) fn new(state: Option<&'a State>) -> Self {
        Self {
            state,
            seen: FxHashSet::default(),
            overrides: FxHashSet::default(),
            fields: FxHashSet::default(),
            components: FxHashSet::default(),
            references: FxHashSet::default(),
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

    pub(crate) fn share_components(
        &mut self,
        list: Vec<Reference<ComponentOverrides>>,
    ) -> Arc<[Reference<ComponentOverrides>]> {
        shared_list(&mut self.components, list)
    }

    pub(crate) fn share_references(&mut self, list: Vec<Reference<Fields>>) -> Arc<[Reference<Fields>]> {
        shared_list(&mut self.references, list)
    }
}

fn shared_list<T: Eq + Hash>(seen: &mut FxHashSet<Arc<[T]>>, list: Vec<T>) -> Arc<[T]> {
    if let Some(known) = seen.get(&*list) {
        return known.clone();
    }
    let shared: Arc<[T]> = list.into();
    seen.insert(shared.clone());
    shared
}

fn shared<T: Eq + Hash>(seen: &mut FxHashSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(known) = seen.get(&value) {
        return known.clone();
    }
    let shared = Arc::new(value);
    seen.insert(shared.clone());
    shared
}
