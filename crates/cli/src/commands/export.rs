//! `export`: the whole fleet as files, to keep in Git.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use api::Revisioned;
use clap::Args;
use client::Asked;

use crate::complete;
use crate::failure::Failure;
use crate::files;
use crate::kinds::Kind;
use crate::session::Session;
use crate::words::count;

/// At most this often it is begun again if the fleet changes meanwhile.
const ATTEMPTS: usize = 5;

/// Write documents as YAML: all to stdout, or each to a file of its own
///
/// `frs apply -f` of what was written changes nothing. Decommission records and tokens are not part of it.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Only these kinds
    #[arg(value_name = "KIND", add = complete::kinds())]
    pub kinds: Vec<String>,
    /// Write FOLDER/KIND/ID.yaml
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Remove files of documents that are gone
    #[arg(long, requires = "output")]
    pub prune: bool,
}

impl Export {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kinds = if self.kinds.is_empty() {
            session.kinds()?.iter().collect()
        } else {
            self.kinds.iter().map(|name| session.kind(name)).collect::<Result<Vec<_>, _>>()?
        };
        let (revision, all) = snapshot(session, &kinds)?;
        let Some(folder) = &self.output else {
            let documents =
                all.iter().flat_map(|(kind, found)| found.iter().map(|one| files::yaml(kind, &one.document)));
            return session.output.data(&documents.collect::<Result<Vec<_>, _>>()?.join("---\n"));
        };
        let mut number = 0;
        for (kind, found) in &all {
            number += found.len();
            self.write(session, &folder.join(&kind.name), kind, found)?;
        }
        session.output.note(&format!(
            "{} of revision {revision} in {}",
            count(number, "document"),
            folder.display()
        ));
        Ok(())
    }

    fn write(
        &self,
        session: &Session,
        folder: &Path,
        kind: &Kind,
        found: &[Revisioned],
    ) -> Result<(), Failure> {
        let failed = |path: &Path, error: std::io::Error| {
            Failure::failed(format!("{} cannot be written: {error}", path.display()))
        };
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let mut written = BTreeSet::new();
        for one in found {
            let id = one.id();
            if Path::new(id).file_name().is_none_or(|name| name != id) {
                return Err(Failure::failed(format!("`{id}` cannot be the name of a file")));
            }
            let name = format!("{id}.yaml");
            let path = folder.join(&name);
            fs::write(&path, files::yaml(kind, &one.document)?).map_err(|error| failed(&path, error))?;
            written.insert(name);
        }
        let mut stale = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !written.contains(&name) && is_document(session, &entry.path(), kind)? {
                stale.push(entry.path());
            }
        }
        stale.sort();
        for path in stale {
            if self.prune {
                fs::remove_file(&path).map_err(|error| failed(&path, error))?;
                session.output.note(&format!("removed {}", path.display()));
            } else {
                session.output.warn(&format!(
                    "{} is not a document any more; `apply` would create it again. `--prune` removes such files",
                    path.display()
                ));
            }
        }
        Ok(())
    }
}

/// Whether a file is one that an export would write: a document of the kind, under its id. Others are somebody else's.
fn is_document(session: &Session, path: &Path, kind: &Kind) -> Result<bool, Failure> {
    if path.extension().is_none_or(|extension| extension != "yaml") {
        return Ok(false);
    }
    let found = files::read(&[path.to_owned()], session.kinds()?).unwrap_or_default();
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    Ok(matches!(&*found, [only] if only.kind == kind.name && stem.as_deref() == Some(&*only.id)))
}

/// The documents of each kind.
type Shelves<'a> = Vec<(&'a Kind, Vec<Revisioned>)>;

/// All documents of these kinds, of one revision.
fn snapshot<'a>(session: &Session, kinds: &[&'a Kind]) -> Result<(u64, Shelves<'a>), Failure> {
    let head =
        || -> Result<u64, Failure> { Ok(session.client.standing()?.standing.revision.unwrap_or_default()) };
    let mut before = head()?;
    for _ in 0..ATTEMPTS {
        let mut all = Vec::new();
        for kind in kinds {
            all.push((*kind, session.list(&kind.name, &Asked::default())?));
        }
        let after = head()?;
        if after == before {
            return Ok((before, all));
        }
        before = after;
    }
    Err(Failure::with_next(
        "the fleet changes all the time, so no export of one revision could be made",
        "try again",
    ))
}
