//! The list of clusters for the management plane.

use super::{ANSWER_FORMAT, MAX_INPUTS, MAX_SENT, MAX_STORED};
use crate::document::Cluster;
use crate::fragment::{Sink, Size};
use crate::ids::{Dns, Revision};
use crate::state::State;

/// The list of clusters for whoever provisions them. Another type than [`Inputs`](super::Inputs), with the same care: whoever acts on it
/// deletes machines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterList {
    body: Vec<u8>,
    count: usize,
    revision: Revision,
}

impl ClusterList {
    /// The bytes to send.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// How many clusters there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A weak entity tag, from the head's revision.
    pub fn etag(&self) -> String {
        format!("W/\"{ANSWER_FORMAT}.{}\"", self.revision)
    }
}

/// Why there is no list of clusters.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoClusterList {
    /// Nobody could be in that environment.
    #[error("there is no environment `{asked}`; there are {}", .known.join(", "))]
    UnknownEnvironment {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Nobody is, and an empty list was not asked for.
    #[error(
        "no cluster matches; whoever acts on an empty list deletes machines, so ask for `allow_empty=true` if you mean it"
    )]
    NoMatch,
    /// The Flux Operator would cut the list.
    #[error("{count} clusters match; the Flux Operator takes at most {MAX_INPUTS}: ask per environment")]
    TooMany {
        /// How many clusters match.
        count: usize,
    },
    /// The Flux Operator would refuse the list.
    #[error(
        "the list of {count} clusters has {bytes} bytes; the Flux Operator takes at most {MAX_SENT}: ask per environment"
    )]
    TooLarge {
        /// How many clusters match.
        count: usize,
        /// How many bytes the list would have.
        bytes: usize,
    },
}

/// Lists the live clusters, all or of one environment, sorted by id.
pub fn list_clusters(
    state: &State,
    environment: Option<&str>,
    allow_empty: bool,
) -> Result<ClusterList, NoClusterList> {
    if let Some(asked) = environment {
        let known = state.kinds().environments();
        if !known.contains(&asked) {
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(NoClusterList::UnknownEnvironment { asked: asked.to_owned(), known });
        }
    }
    let listed =
        || state.clusters().filter(|c| environment.is_none_or(|asked| c.doc.environment.as_str() == asked));
    let count = listed().count();
    // None is written that is too long anyway.
    if count > MAX_INPUTS {
        return Err(NoClusterList::TooMany { count });
    }
    let entries: Vec<String> = listed().map(|cluster| list_entry(&cluster.doc)).collect();
    let body = format!("{{\"inputs\":[{}]}}", entries.join(","));
    let mut size = Size::default();
    size.text(&body);
    match count {
        0 if !allow_empty => Err(NoClusterList::NoMatch),
        _ if size.sent > MAX_SENT || size.stored > MAX_STORED => {
            Err(NoClusterList::TooLarge { count, bytes: size.sent })
        }
        _ => Ok(ClusterList { body: body.into_bytes(), count, revision: state.head().revision }),
    }
}

fn list_entry(cluster: &Cluster) -> String {
    crate::canonical::encode(&serde_json::json!({
        "cluster_dns": Dns::as_str(&cluster.dns),
        "cluster_name": &*cluster.name,
        "environment": cluster.environment.as_str(),
        "id": cluster.id.as_str(),
    }))
}
