//! `accept-store`: what an operator runs about a store that was refused because it may have gone back. Without `--expect` it only says
//! what the store holds; with it, the store is the one to go on with. It works on a stopped store, and knows nothing of a running one.

use std::fmt::Write as _;
use std::path::Path;

use fleet::Position;
use ledger::{FeedError, Inspection, Sqlite};

use crate::config::Store;
use crate::wire;

/// Why a store was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum NotAccepted {
    #[error("--expect is `{0}`; it must be REVISION:HASH, as `accept-store` without it prints it")]
    Expect(String),
    #[error("a store in memory ends with its process: there is nothing to accept")]
    Memory,
    #[error(transparent)]
    Store(#[from] FeedError),
}

/// Says what a store holds; accepts it if that is what is expected.
pub fn accept_store(store: &Store, expect: Option<&str>) -> Result<String, NotAccepted> {
    let path = match store {
        Store::Sqlite(path) => path,
        Store::Memory => return Err(NotAccepted::Memory),
    };
    match expect {
        None => {
            let found = Sqlite::inspect(path)?;
            Ok(format!("{}{}", described(path, &found), next(&found)))
        }
        Some(text) => {
            let expect = Position::parse(text).ok_or_else(|| NotAccepted::Expect(text.to_owned()))?;
            let found = Sqlite::accept(path, expect)?;
            Ok(format!("{}The store is accepted. Start the service again.\n", described(path, &found)))
        }
    }
}

fn described(path: &Path, found: &Inspection) -> String {
    let mut text = format!("{}: store {}, {}\n", path.display(), found.store, found.role);
    let _ = match &found.head {
        None => writeln!(text, "  holds:      nothing"),
        Some(head) => writeln!(
            text,
            "  holds:      revision {}, made {} by {}",
            head.at.revision,
            wire::time(head.time),
            head.actor
        ),
    };
    let _ = match &found.mark {
        Ok(mark) => writeln!(text, "  head mark:  revision {}", mark.revision),
        Err(problem) => writeln!(text, "  head mark:  {problem}"),
    };
    if let Some(problem) = &found.wal_problem {
        let _ = writeln!(text, "  -wal:       {problem}");
    }
    let holds = found.position().revision;
    match &found.mark {
        Ok(mark) if found.is_behind && mark.revision > holds => {
            let missing = match holds.next() {
                only if only == mark.revision => format!("Revision {only} was acknowledged and is missing."),
                first => format!("Revisions {first} to {} were acknowledged and are missing.", mark.revision),
            };
            let _ = writeln!(text, "{missing} Look for a newer copy before you accept this one.");
        }
        Ok(_) if found.is_behind => {
            let _ = writeln!(
                text,
                "The store's history is not the one that its head mark was written for. Look for the other store before you accept this one."
            );
        }
        _ => {}
    }
    text
}

fn next(found: &Inspection) -> String {
    if !found.is_behind && found.wal_problem.is_none() {
        return "The store is not behind its head mark: there is nothing to accept.\n".to_owned();
    }
    format!(
        "Clusters will be served what this store holds, and Flux deletes what it lacks. To accept it:\n  flux-resourceset accept-store --expect {}\n",
        found.position()
    )
}
