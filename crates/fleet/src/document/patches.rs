//! The patches of a cluster, held once, as the very bytes that are sent: for each component `{"key":"value"}` and the same as a tree of
//! Helm values, one after the other in one text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::canonical;
use crate::hash::InputHash;
use crate::ids::{Id, PATCHES};
use crate::values;

/// Patches of all components of one cluster, sorted by component. Versions of a cluster share them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Patches {
    text: Arc<str>,
    index: Arc<[PatchesOf]>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct PatchesOf {
    component: Id,
    patches_end: u32,
    values_end: u32,
    hashes: Hashes,
}

/// What the patches of a component add to the hash of its input: as they are, and as a tree of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hashes {
    pub(crate) patches: InputHash,
    pub(crate) values: InputHash,
}

impl Hashes {
    pub(crate) fn of(patches: &str, values: &str) -> Self {
        Self { patches: InputHash::of_field(PATCHES, patches), values: InputHash::of_field("values", values) }
    }
}

/// The patches of one component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ComponentPatches<'a> {
    pub(crate) component: &'a Id,
    pub(crate) patches: &'a str,
    pub(crate) values: &'a str,
    pub(crate) hashes: Hashes,
}

impl Patches {
    pub(crate) fn iter(&self) -> impl Iterator<Item = ComponentPatches<'_>> {
        (0..self.index.len()).map(|n| self.nth(n))
    }

    pub(crate) fn get(&self, component: &str) -> Option<ComponentPatches<'_>> {
        self.index.binary_search_by(|of| of.component.as_str().cmp(component)).ok().map(|n| self.nth(n))
    }

    fn nth(&self, n: usize) -> ComponentPatches<'_> {
        let start = n.checked_sub(1).map_or(0, |before| self.index[before].values_end as usize);
        let PatchesOf { component, patches_end, values_end, hashes } = &self.index[n];
        let (middle, end) = (*patches_end as usize, *values_end as usize);
        let (patches, values) = (&self.text[start..middle], &self.text[middle..end]);
        ComponentPatches { component, patches, values, hashes: *hashes }
    }

    /// These patches, but those of some components as they are in others.
    pub(super) fn with(&self, components: &BTreeSet<String>, others: &Self) -> Self {
        let mine = self.iter().filter(|of| !components.contains(of.component.as_str()));
        let mut all: Vec<_> = mine.chain(others.iter()).collect();
        all.sort_unstable_by_key(|of| of.component);
        let mut text = String::with_capacity(self.text.len() + others.text.len());
        let mut index = Vec::with_capacity(all.len());
        for ComponentPatches { component, patches, values, hashes } in all {
            text.push_str(patches);
            let patches_end = position(text.len());
            text.push_str(values);
            let (component, values_end) = (component.clone(), position(text.len()));
            index.push(PatchesOf { component, patches_end, values_end, hashes });
        }
        Self { text: text.into(), index: index.into() }
    }

    /// Whether another version of the cluster shares them; `false` may only mean that they are equal and not shared.
    pub(crate) fn are_shared(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) && Arc::ptr_eq(&self.index, &other.index)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// How many bytes all of it is.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }
}

/// Puts patches together, component by component, in the order of their ids.
pub(super) struct PatchesWriter {
    text: String,
    index: Vec<PatchesOf>,
}

impl PatchesWriter {
    pub(super) fn for_components(count: usize) -> Self {
        Self { text: String::with_capacity(96 * count), index: Vec::with_capacity(count) }
    }

    /// Adds the patches of a component, sorted by key.
    pub(super) fn add<'a, P: Iterator<Item = (&'a str, &'a str)>>(
        &mut self,
        component: Id,
        pairs: impl Fn() -> P,
    ) {
        let start = self.text.len();
        canonical::push_object(&mut self.text, pairs(), canonical::push_string);
        let patches_end = self.text.len();
        values::push_tree(&mut self.text, pairs);
        let hashes = Hashes::of(&self.text[start..patches_end], &self.text[patches_end..]);
        let (patches_end, values_end) = (position(patches_end), position(self.text.len()));
        self.index.push(PatchesOf { component, patches_end, values_end, hashes });
    }

    pub(super) fn finish(self) -> Patches {
        Patches { text: self.text.into(), index: self.index.into() }
    }
}

impl ComponentPatches<'_> {
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        let map: BTreeMap<String, String> =
            serde_json::from_str(self.patches).expect("it was encoded from a map of strings");
        map.into_iter().collect()
    }
}

/// A place in the text. A cluster is at most a mebibyte, and its values are little more than its patches.
fn position(at: usize) -> u32 {
    u32::try_from(at).expect("the patches of a cluster are far below 4 GiB")
}
