//! Reads a cluster from whatever serde reads from: the text that a store holds, or the object that a change has made. Nothing is built in
//! between, because a start reads a hundred thousand of them.
//!
//! As from an object, the last of two members of one name counts, and the order of members does not.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::cluster::{ComponentOverrides, Labels, Reference, References};
use super::patches::{Patches, PatchesWriter};
use super::{Fields, Interner};
use crate::finding::Finding;
use crate::fragment;
use crate::ids::{Id, PATCHES, PLATFORM_COMPONENTS};
use crate::kind::{Kinds, Shape};
use crate::pointer::Pointer;

/// The members of a cluster's document as they were found.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) id: Option<Box<str>>,
    pub(super) dns: Option<Box<str>>,
    pub(super) name: Option<Box<str>>,
    pub(super) environment: Option<Id>,
    pub(super) protected: Option<bool>,
    pub(super) labels: Option<Labels>,
    pub(super) components: Option<Arc<[Reference<ComponentOverrides>]>>,
    /// Sorted by kind.
    pub(super) references: Vec<References>,
    pub(super) patches: Option<Patches>,
    pub(super) rest: Map<String, Value>,
}

/// Reads the members of a cluster's document.
pub(super) fn parts<'de, D: Deserializer<'de>>(
    source: D,
    kinds: &Kinds,
    names: &mut Interner<'_>,
) -> Result<Parts, Finding> {
    let mut finding = None;
    let read = source.deserialize_map(ReadParts { kinds, names, finding: &mut finding });
    read.map_err(|error| finding.unwrap_or_else(|| Finding::new(Pointer::root(), error.to_string())))
}

struct ReadParts<'a, 'n> {
    kinds: &'a Kinds,
    names: &'a mut Interner<'n>,
    /// Which member is of the wrong type: an error of serde says that in words of its own.
    finding: &'a mut Option<Finding>,
}

impl ReadParts<'_, '_> {
    /// The value of a member.
    fn value<'de, A: MapAccess<'de>, S: DeserializeSeed<'de>>(
        finding: &mut Option<Finding>,
        map: &mut A,
        (name, wanted): (&str, &str),
        seed: S,
    ) -> Result<S::Value, A::Error> {
        map.next_value_seed(seed).inspect_err(|_| {
            *finding = Some(Finding::new(Pointer::to(name), format!("must be {wanted}")));
        })
    }
}

impl<'de> Visitor<'de> for ReadParts<'_, '_> {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
        let Self { kinds, names, finding } = self;
        let mut parts = Parts::default();
        while let Some(Text(name)) = map.next_key()? {
            let name = &*name;
            let mut text = |map: &mut A| -> Result<Text<'de>, A::Error> {
                ReadParts::value(finding, map, (name, "a string"), TextSeed)
            };
            match name {
                "id" => parts.id = Some(text(&mut map)?.into()),
                "cluster_dns" => parts.dns = Some(text(&mut map)?.into()),
                "cluster_name" => parts.name = Some(text(&mut map)?.into()),
                "environment" => parts.environment = Some(names.share("", &text(&mut map)?.0)),
                "protected" => {
                    let flag = std::marker::PhantomData::<bool>;
                    parts.protected =
                        Some(ReadParts::value(finding, &mut map, (name, "true or false"), flag)?);
                }
                "labels" => {
                    let pairs = ReadParts::value(finding, &mut map, (name, "a map of strings"), PairsSeed)?;
                    let mut share = |text: &Text<'_>| names.share_text(&text.0);
                    parts.labels =
                        Some(pairs.iter().map(|(key, value)| (share(key), share(value))).collect());
                }
                PLATFORM_COMPONENTS => {
                    let seed = ReferencesSeed::<ComponentOverrides>::new(name, names);
                    let read = ReadParts::value(finding, &mut map, (name, "a list of references"), seed)?;
                    parts.components = Some(read);
                }
                PATCHES => {
                    let seed = PatchesSeed { names };
                    parts.patches =
                        Some(ReadParts::value(finding, &mut map, (name, "a map of maps of strings"), seed)?);
                }
                _ => match kinds.get(name).filter(|kind| kind.shape() == Shape::Definition) {
                    Some(kind) => {
                        let seed = ReferencesSeed::<Fields>::new(name, names);
                        let read = ReadParts::value(finding, &mut map, (name, "a list of references"), seed)?;
                        parts.references.retain(|(other, _)| other != kind.name());
                        parts.references.push((kind.name().clone(), read));
                    }
                    None => {
                        parts.rest.insert(name.to_owned(), map.next_value()?);
                    }
                },
            }
        }
        parts.references.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(parts)
    }
}

/// A string, borrowed where the source has it as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Text<'de>(Cow<'de, str>);

impl From<Text<'_>> for Box<str> {
    fn from(text: Text<'_>) -> Self {
        text.0.into()
    }
}

struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Text<'de>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Text<'de>, D::Error> {
        Text::deserialize(source)
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_str(ReadText)
    }
}

struct ReadText;

impl<'de> Visitor<'de> for ReadText {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text)))
    }
}

/// Brings pairs into the order of their keys, of which each is there once. Mostly they are so already.
fn in_order<K: Ord, V>(pairs: &mut Vec<(K, V)>) {
    if pairs.windows(2).all(|two| two[0].0 < two[1].0) {
        return;
    }
    // The last one counts.
    pairs.reverse();
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    pairs.dedup_by(|later, kept| later.0 == kept.0);
}

/// A map of strings, sorted by key.
struct PairsSeed;

type Pairs<'de> = Vec<(Text<'de>, Text<'de>)>;

impl<'de> DeserializeSeed<'de> for PairsSeed {
    type Value = Pairs<'de>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Pairs<'de>, D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PairsSeed {
    type Value = Pairs<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        in_order(&mut pairs);
        Ok(pairs)
    }
}

struct PatchesSeed<'a, 'n> {
    names: &'a mut Interner<'n>,
}

impl<'de> DeserializeSeed<'de> for PatchesSeed<'_, '_> {
    type Value = Patches;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Patches, D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PatchesSeed<'_, '_> {
    type Value = Patches;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of maps of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Patches, A::Error> {
        let mut all: Vec<(Text<'de>, Pairs<'de>)> = Vec::new();
        while let Some(component) = map.next_key()? {
            all.push((component, map.next_value_seed(PairsSeed)?));
        }
        in_order(&mut all);
        let mut writer = PatchesWriter::for_components(all.len());
        for (Text(component), pairs) in all {
            let component = self.names.share(PLATFORM_COMPONENTS, &component);
            writer.add(component, || pairs.iter().map(|(key, value)| (&*key.0, &*value.0)));
        }
        Ok(writer.finish())
    }
}

/// What a reference can override.
trait Overrides: Sized {
    /// Reads a member that is no `id`.
    fn member<'de, A: MapAccess<'de>>(
        read: &mut ReadOverrides,
        name: &str,
        map: &mut A,
        names: &mut Interner<'_>,
    ) -> Result<(), A::Error>;

    fn finish(read: ReadOverrides, names: &mut Interner<'_>) -> Arc<Self>;

    /// One list for all clusters that have the same.
    fn share(list: Vec<Reference<Self>>, names: &mut Interner<'_>) -> Arc<[Reference<Self>]>;
}

/// What was found of the overrides of a reference.
#[derive(Default)]
struct ReadOverrides {
    component: ComponentOverrides,
    rest: Map<String, Value>,
}

impl Overrides for Fields {
    fn member<'de, A: MapAccess<'de>>(
        read: &mut ReadOverrides,
        name: &str,
        map: &mut A,
        _: &mut Interner<'_>,
    ) -> Result<(), A::Error> {
        read.rest.insert(name.to_owned(), map.next_value()?);
        Ok(())
    }

    fn finish(read: ReadOverrides, names: &mut Interner<'_>) -> Arc<Self> {
        names.share_fields(Self::of(read.rest))
    }

    fn share(list: Vec<Reference<Self>>, names: &mut Interner<'_>) -> Arc<[Reference<Self>]> {
        names.share_references(list)
    }
}

impl Overrides for ComponentOverrides {
    fn member<'de, A: MapAccess<'de>>(
        read: &mut ReadOverrides,
        name: &str,
        map: &mut A,
        names: &mut Interner<'_>,
    ) -> Result<(), A::Error> {
        let overrides = &mut read.component;
        match name {
            "enabled" => overrides.enabled = Some(map.next_value()?),
            "oci_tag" => overrides.oci_tag = Some(map.next_value_seed(TextSeed)?.into()),
            "component_path" => overrides.component_path = Some(map.next_value_seed(TextSeed)?.into()),
            "depends_on" => {
                let ids: Vec<Text<'de>> = map.next_value()?;
                let share = |id: &Text<'_>| names.share(PLATFORM_COMPONENTS, &id.0);
                overrides.depends_on = Some(ids.iter().map(share).collect());
            }
            _ => {
                read.rest.insert(name.to_owned(), map.next_value()?);
            }
        }
        Ok(())
    }

    fn finish(read: ReadOverrides, names: &mut Interner<'_>) -> Arc<Self> {
        let mut overrides = Self { rest: Fields::of(read.rest), ..read.component };
        overrides.hash = fragment::hash_of_overrides(&overrides);
        names.share_overrides(overrides)
    }

    fn share(list: Vec<Reference<Self>>, names: &mut Interner<'_>) -> Arc<[Reference<Self>]> {
        names.share_components(list)
    }
}

struct ReferencesSeed<'a, 'n, O> {
    kind: &'a str,
    names: &'a mut Interner<'n>,
    overrides: std::marker::PhantomData<O>,
}

impl<'a, 'n, O> ReferencesSeed<'a, 'n, O> {
    fn new(kind: &'a str, names: &'a mut Interner<'n>) -> Self {
        Self { kind, names, overrides: std::marker::PhantomData }
    }
}

impl<'de, O: Overrides> DeserializeSeed<'de> for ReferencesSeed<'_, '_, O> {
    type Value = Arc<[Reference<O>]>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de, O: Overrides> Visitor<'de> for ReferencesSeed<'_, '_, O> {
    type Value = Arc<[Reference<O>]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of references")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut references = Vec::with_capacity(items.size_hint().unwrap_or(32));
        loop {
            let seed = ReferenceSeed(ReferencesSeed::<O>::new(self.kind, &mut *self.names));
            match items.next_element_seed(seed)? {
                Some(reference) => references.push(reference),
                None => return Ok(O::share(references, self.names)),
            }
        }
    }
}

struct ReferenceSeed<'a, 'n, O>(ReferencesSeed<'a, 'n, O>);

impl<'de, O: Overrides> DeserializeSeed<'de> for ReferenceSeed<'_, '_, O> {
    type Value = Reference<O>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Reference<O>, D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de, O: Overrides> Visitor<'de> for ReferenceSeed<'_, '_, O> {
    type Value = Reference<O>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reference")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Reference<O>, A::Error> {
        let ReferencesSeed { kind, names, .. } = self.0;
        let (mut id, mut read) = (None, None);
        while let Some(Text(name)) = map.next_key()? {
            if name == "id" {
                id = Some(names.share(kind, &map.next_value_seed(TextSeed)?.0));
            } else {
                O::member(read.get_or_insert_default(), &name, &mut map, names)?;
            }
        }
        let id = id.ok_or_else(|| A::Error::missing_field("id"))?;
        Ok(Reference { id, overrides: read.map(|read| O::finish(read, names)) })
    }
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn of_two_members_of_one_name_the_last_one_counts() {
        let mut pairs = vec![("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)];
        in_order(&mut pairs);
        assert_eq!(pairs, [("a", 5), ("b", 3), ("c", 4)]);
    }
}
