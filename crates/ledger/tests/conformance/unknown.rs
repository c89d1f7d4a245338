//! An append whose outcome is unknown, as when a connection is lost during COMMIT: the commit's id tells what happened.

use std::sync::Arc;

use fleet::{Commit, CommitId, Position};
use ledger::{AppendError, Ledger};

use crate::Store;
use crate::fixture::{ALL, filled};

/// Appends through a connection that is lost before the answer, or before the question.
struct Lossy {
    inner: Arc<dyn Ledger>,
    arrives: bool,
}

impl Lossy {
    async fn append(&self, at: Position, group: Vec<Commit>) -> Result<(), AppendError> {
        let last = group.last().map_or(CommitId::default(), |commit| commit.origin.commit);
        if self.arrives {
            self.inner.append(at, group).await?;
        }
        Err(AppendError::Unknown { last, why: "the connection was lost".to_owned() })
    }
}

async fn outcome(store: &Store, arrives: bool) -> (Commit, Option<Position>) {
    let inner = store.handle();
    let mut fleet = filled(&*inner, &["a"]).await;
    let at = fleet.state.head();
    let group = vec![fleet.namespace("b"), fleet.namespace("c")];
    let last = group[1].clone();
    let Err(AppendError::Unknown { last: id, .. }) = (Lossy { inner, arrives }).append(at, group).await
    else {
        panic!("the outcome is known")
    };
    assert_eq!(id, last.origin.commit);
    (last, store.handle().find(id).await.expect("an answer"))
}

pub(crate) async fn an_unknown_outcome_is_found_to_have_happened(store: Store) {
    let (last, found) = outcome(&store, true).await;
    assert_eq!(found, Some(last.at));
    assert_eq!(store.handle().read(last.at, ALL).await, Ok(vec![]));
}

pub(crate) async fn an_unknown_outcome_is_found_not_to_have_happened(store: Store) {
    let (_, found) = outcome(&store, false).await;
    assert_eq!(found, None);
}
