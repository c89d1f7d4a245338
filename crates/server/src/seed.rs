//! The seed: a file that fills a new store, in its first commit, together with the kinds.

use std::path::Path;

use fleet::{Kind, Operation, Violation};
use serde_json::Value;

use crate::json;

/// What a seed file asks for: operations, and where in the file each comes from.
#[derive(Debug, Default)]
pub struct Seed {
    /// One for each document.
    pub operations: Vec<Operation>,
    /// The place of each, as `clusters[0]`.
    places: Vec<String>,
    /// What is wrong with the file's form. Nothing of it may be loaded then.
    problems: Vec<String>,
}

/// A seed file that cannot be used, with everything that is wrong with it.
#[derive(PartialEq, Eq, Debug, thiserror::Error)]
#[error("the seed file `{file}` cannot be used, and nothing was loaded:\n{}", .problems.iter().map(|p| format!("  {p}")).collect::<Vec<_>>().join("\n"))]
pub struct BadSeed {
    /// The file.
    pub file: String,
    /// Everything that is wrong.
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
        let mut seed = Self::default();
        for (name, documents) in members {
            let Some(kind) = kinds.iter().find(|kind| kind.name().as_str() == name) else {
                let known: Vec<String> = kinds.iter().map(|kind| format!("`{}`", kind.name())).collect();
                seed.problems.push(format!("`{name}` is no kind; there are {}", known.join(", ")));
                continue;
            };
            match documents {
                Value::Array(documents) => seed.documents(kind, documents),
                _ => seed.problems.push(format!("`{name}` must be an array of documents")),
            }
        }
        Ok(seed)
    }

    fn documents(&mut self, kind: &Kind, documents: Vec<Value>) {
        for (n, mut document) in documents.into_iter().enumerate() {
            let place = format!("{}[{n}]", kind.name());
            if let Some(members) = document.as_object_mut()
                && let Some(id) = members.remove("_id")
                && members.insert("id".to_owned(), id).is_some()
            {
                self.problems.push(format!("{place}: it has both `_id` and `id`; they mean the same"));
            }
            self.operations.push(Operation::Create {
                kind: kind.name().as_str().into(),
                body: document,
                replace_decommissioned: false,
            });
            self.places.push(place);
        }
    }

    /// Everything that is wrong, given what `apply` says about the documents. `before` operations came before the first of them.
    pub fn verdict(&self, file: &Path, violations: &[Violation], before: usize) -> Result<(), BadSeed> {
        let place = |violation: &Violation| match violation.operation.checked_sub(before) {
            Some(n) => self.places.get(n).cloned().unwrap_or_default(),
            None => "the kinds".to_owned(),
        };
        let told = violations.iter().map(|violation| {
            let id = violation.key.as_ref().map(|key| format!(" ({})", key.id)).unwrap_or_default();
            format!("{}{id} {}: {}", place(violation), violation.pointer.as_str(), violation.message)
        });
        let problems: Vec<String> = self.problems.iter().cloned().chain(told).collect();
        if problems.is_empty() { Ok(()) } else { Err(BadSeed { file: file.display().to_string(), problems }) }
    }
}
