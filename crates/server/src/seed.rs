//! The seed: a file that fills a new store. A seed that fits is one commit, together with the kinds; a larger fleet is loaded in parts, the
//! catalog first, and until the last of them no process answers anything from it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::Strict;
use fleet::{
    Hash, Key, Kind, KindName, MAX_CHANGED_BYTES, MAX_CHANGES, Operation, Policy, Rejection, Seeding, Shape,
    State, Violation,
};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::json;
use crate::writer::{Decided, Request};

/// Room for the kinds and the record of the seed in the first part.
const SPARE_CHANGES: usize = 100;
/// The most bytes of text that a part has. What is stored may be a little longer.
const PART_BYTES: usize = MAX_CHANGED_BYTES / 2;

/// What a seed file asks for.
pub struct Seed {
    file: PathBuf,
    hash: Hash,
    /// One for each document, the catalog first.
    documents: Vec<Document>,
    /// What is wrong with the file's form. Nothing of it may be loaded then.
    problems: Vec<String>,
}

struct Document {
    /// Where in the file it is, as `clusters[0]`.
    place: String,
    kind: KindName,
    shape: Shape,
    id: Option<Box<str>>,
    /// As JSON: a fleet as a tree of values takes ten times as much.
    body: Box<str>,
}

/// A part of a seed: what one transaction does.
#[derive(Default)]
struct Part {
    kinds: Vec<Kind>,
    documents: Vec<Document>,
    /// What it says about the seed itself: that it begins, and that it ends.
    marks: Vec<Operation>,
}

/// A seed file that cannot be used, with everything that is wrong with it.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
#[error("the seed file `{file}` cannot be used, and nothing was loaded:\n{}", .problems.iter().map(|p| format!("  {p}")).collect::<Vec<_>>().join("\n"))]
pub struct BadSeed {
    pub file: String,
    pub problems: Vec<String>,
}

impl Seed {
    /// Reads a seed file. What is wrong with its form is kept, to be told together with what is wrong with its documents.
    pub fn read(file: &Path, kinds: &[Kind]) -> Result<Self, BadSeed> {
        let bad = |problem: String| BadSeed { file: file.display().to_string(), problems: vec![problem] };
        let bytes = std::fs::read(file).map_err(|error| bad(format!("it cannot be read: {error}")))?;
        let mut seed = Self {
            file: file.to_owned(),
            hash: Hash::of(&bytes),
            documents: Vec::new(),
            problems: Vec::new(),
        };
        let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let read = if is_object {
            json::read_by(&bytes, ReadSeed { kinds, seed: &mut seed })
        } else {
            json::read(&bytes).map(|_| ())
        };
        read.map_err(|problem| bad(problem.replace("the body", "it")))?;
        if !is_object {
            return Err(bad("it must be one JSON object: kind → array of documents".to_owned()));
        }
        // Components refer to each other, and clusters to all others.
        seed.documents.sort_by_key(|document| match document.shape {
            Shape::Component => 0,
            Shape::Definition => 1,
            Shape::Cluster => 2,
        });
        Ok(seed)
    }

    fn take(&mut self, kind: &Kind, n: usize, mut body: Value) {
        let place = format!("{}[{n}]", kind.name());
        if let Some(members) = body.as_object_mut()
            && let Some(id) = members.remove("_id")
            && members.insert("id".to_owned(), id).is_some()
        {
            self.problems.push(format!("{place}: it has both `_id` and `id`; they mean the same"));
        }
        let id = body.get("id").and_then(Value::as_str).map(Into::into);
        let (kind, shape) = (kind.name().clone(), kind.shape());
        self.documents.push(Document { place, kind, shape, id, body: body.to_string().into() });
    }

    /// The file's hash, by which an interrupted seed is told from another one.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The changes that load what is not there yet, in order, decided: a bad seed loads nothing. With the kinds if they are not in force.
    pub fn changes(self, state: &State, policy: &Policy, kinds: Vec<Kind>) -> Result<Vec<Decided>, BadSeed> {
        let (file, mut problems) = (self.file.clone(), self.problems.clone());
        let parts = self.parts(state, kinds);
        let (many, is_rest) = (parts.len(), state.seeding().is_some());
        let mut changes: Vec<Decided> = Vec::with_capacity(many);
        for (n, part) in parts.into_iter().enumerate() {
            let of = match (is_rest, many) {
                (true, _) => format!(", the rest, part {} of {many}", n + 1),
                (false, 1) => String::new(),
                (false, _) => format!(", part {} of {many}", n + 1),
            };
            let reason = format!("a new store, filled from {}{of}", file.display());
            let (operations, places) = part.operations();
            let request = Request::of_service(operations, &reason);
            match Decided::on(changes.last().map_or(state, Decided::next), policy, request) {
                Ok(decided) => changes.push(decided),
                Err(Rejection::Refused(violations)) => {
                    problems.extend(violations.iter().map(|violation| told(&places, violation)));
                }
                Err(stopped @ (Rejection::Confirm(_) | Rejection::Allowance(_))) => {
                    problems.push(stopped.to_string())
                }
            }
            if !problems.is_empty() {
                return Err(BadSeed { file: file.display().to_string(), problems });
            }
        }
        Ok(changes)
    }

    fn parts(self, state: &State, kinds: Vec<Kind>) -> Vec<Part> {
        let mut parts = vec![Part { kinds, ..Part::default() }];
        let mut bytes = 0;
        let mut cut = false;
        for document in self.documents {
            let id = document.id.as_deref();
            if id.is_some_and(|id| state.revision_of(&Key::document(&document.kind, id)).is_some()) {
                continue;
            }
            let part = parts.last_mut().expect("there is one");
            let size = document.body.len();
            let is_full = part.kinds.len() + part.documents.len() + SPARE_CHANGES >= MAX_CHANGES
                || bytes + size > PART_BYTES;
            // Components are not taken apart: each needs those that it depends on.
            if is_full && document.shape != Shape::Component {
                cut = true;
                bytes = 0;
                parts.push(Part::default());
            }
            bytes += size;
            parts.last_mut().expect("there is one").documents.push(document);
        }
        if cut && state.seeding().is_none() {
            parts[0].marks.push(Operation::Seed(Some(Seeding { file: self.hash })));
        }
        if cut || state.seeding().is_some() {
            parts.last_mut().expect("there is one").marks.push(Operation::Seed(None));
        }
        parts
    }
}

impl Part {
    /// Its operations, and where in the file each comes from; nowhere, if it comes from no file.
    fn operations(self) -> (Vec<Operation>, Vec<Option<String>>) {
        let kinds = self.kinds.into_iter().map(|kind| (Operation::Define(Arc::new(kind)), None));
        let documents = self.documents.into_iter().map(|document| {
            let body = serde_json::from_str(&document.body).expect("it was encoded from a value");
            let kind = document.kind.as_str().into();
            (Operation::Create { kind, body, replace_decommissioned: false }, Some(document.place))
        });
        let marks = self.marks.into_iter().map(|mark| (mark, None));
        kinds.chain(documents).chain(marks).unzip()
    }
}

/// Reads the file document by document.
struct ReadSeed<'a> {
    kinds: &'a [Kind],
    seed: &'a mut Seed,
}

impl<'de> DeserializeSeed<'de> for ReadSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ReadSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            match self.kinds.iter().find(|kind| kind.name().as_str() == name) {
                Some(kind) => map.next_value_seed(ReadDocuments { kind, seed: self.seed })?,
                None => {
                    let Strict(_) = map.next_value()?;
                    let known: Vec<String> =
                        self.kinds.iter().map(|kind| format!("`{}`", kind.name())).collect();
                    self.seed.problems.push(format!("`{name}` is no kind; there are {}", known.join(", ")));
                }
            }
            if let Some(twice) = seen.replace(name) {
                return Err(A::Error::custom(format_args!("the key `{twice}` is given twice")));
            }
        }
        Ok(())
    }
}

/// Reads the documents of one kind.
struct ReadDocuments<'a> {
    kind: &'a Kind,
    seed: &'a mut Seed,
}

impl ReadDocuments<'_> {
    fn no_array(self) {
        self.seed.problems.push(format!("`{}` must be an array of documents", self.kind.name()));
    }
}

impl<'de> DeserializeSeed<'de> for ReadDocuments<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ReadDocuments<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut n = 0;
        while let Some(Strict(body)) = items.next_element()? {
            self.seed.take(self.kind, n, body);
            n += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        Strict::deserialize(MapAccessDeserializer::new(map))?;
        self.no_array();
        Ok(())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.no_array();
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.visit_unit()
    }
}

fn told(places: &[Option<String>], violation: &Violation) -> String {
    let place = places.get(violation.operation).cloned().flatten().unwrap_or_else(|| "the kinds".to_owned());
    let id = violation.key.as_ref().map(|key| format!(" ({})", key.id())).unwrap_or_default();
    format!("{place}{id} {}: {}", violation.pointer.as_str(), violation.message)
}
