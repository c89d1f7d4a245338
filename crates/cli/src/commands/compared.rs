//! Documents from files beside what the service has: for `apply` and `diff`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use api::{Operation, Revisioned};
use client::Asked;

use crate::document::normalised;
use crate::failure::Failure;
use crate::files::{self, Found};
use crate::kinds::{Kinds, Shape};
use crate::parts::{self, Name, Piece, Stage};
use crate::session::Session;
use crate::words::names as names_of;

/// From this many documents of a kind on, the whole kind is fetched rather than each.
const WHOLE_KIND: usize = 20;

/// A document from a file beside what the service has.
pub(super) struct Compared {
    /// The document from the file.
    pub found: Found,
    /// What the service has.
    pub stored: Option<Revisioned>,
}

impl Compared {
    /// Whether the file says what the service had when it was read.
    pub(super) fn is_same(&self) -> bool {
        self.is_as(self.stored.as_ref())
    }

    /// Whether the file says this.
    fn is_as(&self, stored: Option<&Revisioned>) -> bool {
        stored.is_some_and(|stored| normalised(&stored.document) == normalised(&self.found.document))
    }

    /// Its kind and its id.
    pub(super) fn name(&self) -> (&str, &str) {
        (&self.found.kind, &self.found.id)
    }

    /// What makes the service have what the file says.
    fn operation(&self) -> Operation {
        let Found { kind, id, document, .. } = &self.found;
        match &self.stored {
            None => Operation::Create {
                kind: kind.clone(),
                id: Some(id.clone()),
                body: document.clone(),
                replace_decommissioned: false,
            },
            Some(stored) => Operation::Put {
                kind: kind.clone(),
                id: id.clone(),
                body: document.clone(),
                revision: Some(stored.revision),
            },
        }
    }
}

impl Compared {
    /// The same with what it has to do with other documents.
    fn piece(&self, kinds: &Kinds) -> Piece {
        let Found { kind, id, document, source } = &self.found;
        let known = kinds.iter().find(|known| known.name == *kind);
        let is_component = known.is_some_and(Shape::is_component);
        let is_cluster = known.is_some_and(Shape::is_cluster);
        let named = |kind: &str, id: &str| -> Name { (kind.to_owned(), id.to_owned()) };
        let depends_on: Vec<&str> = parts::ids(&document["depends_on"]).collect();
        let mut refers_to: Vec<Name> = Vec::new();
        if is_component {
            refers_to.extend(depends_on.iter().map(|id| named(kind, id)));
        }
        for kind in kinds.referable().filter(|_| is_cluster) {
            let references = document[&kind.name].as_array().into_iter().flatten();
            let own = references.flat_map(|reference| parts::ids(&reference["depends_on"]));
            refers_to.extend(parts::ids(&document[&kind.name]).chain(own).map(|id| named(&kind.name, id)));
        }
        let is_new = |id: &&&str| {
            let stored = self.stored.as_ref();
            stored
                .is_some_and(|stored| !parts::ids(&stored.document["depends_on"]).any(|known| known == **id))
        };
        let stage = if is_cluster {
            Stage::Clusters
        } else if is_component && depends_on.iter().any(|id| is_new(&id)) {
            Stage::NewDependencies
        } else {
            Stage::Catalog
        };
        Piece {
            operation: self.operation(),
            source: source.clone(),
            name: named(kind, id),
            stage,
            refers_to,
            is_component,
        }
    }
}

/// Reads files, and fetches what the service has of the same documents.
pub(super) fn read(session: &Session, paths: &[PathBuf]) -> Result<Vec<Compared>, Failure> {
    let found = files::read(paths, session.kinds()?)?;
    let names: Vec<(&str, &str)> = found.iter().map(|one| (&*one.kind, &*one.id)).collect();
    let mut stored = stored(session, &names)?;
    let beside = |found: Found| {
        let stored = stored.remove(&(found.kind.clone(), found.id.clone()));
        Compared { found, stored }
    };
    Ok(found.into_iter().map(beside).collect())
}

/// What the service has of these documents, by kind and id.
fn stored(
    session: &Session,
    names: &[(&str, &str)],
) -> Result<BTreeMap<(String, String), Revisioned>, Failure> {
    let mut ids: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (kind, id) in names {
        ids.entry(kind).or_default().push(id);
    }
    let mut stored = BTreeMap::new();
    for (kind, ids) in ids {
        let found = if ids.len() >= WHOLE_KIND {
            session.list(kind, &Asked::default())?
        } else {
            let each = ids.iter().map(|id| session.document(kind, id));
            each.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()
        };
        stored.extend(found.into_iter().map(|one| ((kind.to_owned(), one.id().to_owned()), one)));
    }
    Ok(stored)
}

/// An error if somebody else has changed one of these documents since they were read: they were the same as in the files, and so no part of
/// the change. `done` says what came of that.
pub(super) fn still_same<'a>(
    session: &Session,
    same: impl Iterator<Item = &'a Compared>,
    done: &str,
) -> Result<(), Failure> {
    let same: Vec<&Compared> = same.collect();
    let names: Vec<(&str, &str)> = same.iter().map(|one| (&*one.found.kind, &*one.found.id)).collect();
    let now = stored(session, &names).map_err(|failure| {
        let (because, _) = failure.in_words();
        Failure::failed(format!("{done}; whether the rest is still as the files say is not known: {because}"))
    })?;
    let moved =
        same.iter().filter(|one| !one.is_as(now.get(&(one.found.kind.clone(), one.found.id.clone()))));
    let moved: Vec<String> = moved.map(|one| format!("{}/{}", one.found.kind, one.found.id)).collect();
    if moved.is_empty() {
        return Ok(());
    }
    let others = names_of(&moved, moved.len());
    Err(Failure::with_next(
        format!("{done}, but {others} is no longer as the files say: somebody else has changed it meanwhile"),
        "`frs diff` shows what is different now",
    ))
}

/// What makes the service have what the files say.
pub(super) fn pieces<'a>(kinds: &Kinds, different: impl Iterator<Item = &'a Compared>) -> Vec<Piece> {
    different.map(|one| one.piece(kinds)).collect()
}
