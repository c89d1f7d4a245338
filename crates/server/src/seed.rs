//! The seed: a file that fills a new store. A seed that fits is one commit, together with the kinds; a larger fleet is loaded in parts, the
//! catalog first, and until the last of them no process answers anything from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet::{
    Hash, Key, Kind, MAX_CHANGED_BYTES, MAX_CHANGES, Operation, Policy, Rejection, Seeding, Shape, State,
    Violation, apply,
};
use serde_json::Value;

use crate::json;
use crate::writer::Request;

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
    kind: Box<str>,
    shape: Shape,
    body: Value,
    bytes: usize,
}

/// A part of a seed: what one transaction does.
struct Part {
    operations: Vec<Operation>,
    /// Where in the file each operation comes from; none for those that come from no file.
    places: Vec<Option<String>>,
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
        let value = json::read(&bytes).map_err(|problem| bad(problem.replace("the body", "it")))?;
        let Value::Object(members) = value else {
            return Err(bad("it must be one JSON object: kind → array of documents".to_owned()));
        };
        let hash = Hash::of(&bytes);
        let mut seed = Self { file: file.to_owned(), hash, documents: Vec::new(), problems: Vec::new() };
        for (name, documents) in members {
            let Some(kind) = kinds.iter().find(|kind| kind.name().as_str() == name) else {
                let known: Vec<String> = kinds.iter().map(|kind| format!("`{}`", kind.name())).collect();
                seed.problems.push(format!("`{name}` is no kind; there are {}", known.join(", ")));
                continue;
            };
            match documents {
                Value::Array(documents) => seed.take(kind, documents),
                _ => seed.problems.push(format!("`{name}` must be an array of documents")),
            }
        }
        // Components refer to each other, and clusters to all others.
        seed.documents.sort_by_key(|document| match document.shape {
            Shape::Component => 0,
            Shape::Definition => 1,
            Shape::Cluster => 2,
        });
        Ok(seed)
    }

    fn take(&mut self, kind: &Kind, documents: Vec<Value>) {
        for (n, mut body) in documents.into_iter().enumerate() {
            let place = format!("{}[{n}]", kind.name());
            if let Some(members) = body.as_object_mut()
                && let Some(id) = members.remove("_id")
                && members.insert("id".to_owned(), id).is_some()
            {
                self.problems.push(format!("{place}: it has both `_id` and `id`; they mean the same"));
            }
            let bytes = body.to_string().len();
            let (kind, shape) = (kind.name().as_str().into(), kind.shape());
            self.documents.push(Document { place, kind, shape, body, bytes });
        }
    }

    /// The file's hash, by which an interrupted seed is told from another one.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The requests that load what is not there yet, in order; with the kinds if they are not in force. Checks first that all of it would
    /// be accepted: a bad seed loads nothing.
    pub fn requests(self, state: &State, policy: &Policy, kinds: Vec<Kind>) -> Result<Vec<Request>, BadSeed> {
        let (file, mut problems) = (self.file.clone(), self.problems.clone());
        let parts = self.parts(state, kinds);
        let (many, is_rest) = (parts.len(), state.seeding().is_some());
        let mut requests = Vec::with_capacity(many);
        let mut state = state.clone();
        for (n, Part { operations, places }) in parts.into_iter().enumerate() {
            let of = match (is_rest, many) {
                (true, _) => format!(", the rest, part {} of {many}", n + 1),
                (false, 1) => String::new(),
                (false, _) => format!(", part {} of {many}", n + 1),
            };
            let reason = format!("a new store, filled from {}{of}", file.display());
            let request = Request::of_service(operations, &reason);
            let (request, outcome) = request.tried(|transaction| apply(&state, policy, transaction));
            requests.push(request);
            match outcome {
                Ok(applied) => state = applied.next,
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
        Ok(requests)
    }

    fn parts(self, state: &State, kinds: Vec<Kind>) -> Vec<Part> {
        let mut parts = vec![Part { operations: Vec::new(), places: Vec::new() }];
        let mut bytes = 0;
        for kind in kinds {
            parts[0].push(Operation::Define(Arc::new(kind)), None);
        }
        let mut cut = false;
        for Document { place, kind, shape, body, bytes: size } in self.documents {
            let id = body.get("id").and_then(Value::as_str);
            if id.is_some_and(|id| state.revision_of(&Key::document(&*kind, id)).is_some()) {
                continue;
            }
            let part = parts.last_mut().expect("there is one");
            let is_full = part.operations.len() + SPARE_CHANGES >= MAX_CHANGES || bytes + size > PART_BYTES;
            // Components are not taken apart: each needs those that it depends on.
            if is_full && shape != Shape::Component {
                cut = true;
                bytes = 0;
                parts.push(Part { operations: Vec::new(), places: Vec::new() });
            }
            bytes += size;
            let operation = Operation::Create { kind, body, replace_decommissioned: false };
            parts.last_mut().expect("there is one").push(operation, Some(place));
        }
        if cut && state.seeding().is_none() {
            parts[0].push(Operation::Seed(Some(Seeding { file: self.hash })), None);
        }
        if cut || state.seeding().is_some() {
            parts.last_mut().expect("there is one").push(Operation::Seed(None), None);
        }
        parts
    }
}

impl Part {
    fn push(&mut self, operation: Operation, place: Option<String>) {
        self.operations.push(operation);
        self.places.push(place);
    }
}

fn told(places: &[Option<String>], violation: &Violation) -> String {
    let place = places.get(violation.operation).cloned().flatten().unwrap_or_else(|| "the kinds".to_owned());
    let id = violation.key.as_ref().map(|key| format!(" ({})", key.id())).unwrap_or_default();
    format!("{place}{id} {}: {}", violation.pointer.as_str(), violation.message)
}
