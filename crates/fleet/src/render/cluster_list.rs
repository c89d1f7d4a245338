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
    /// The Flux Operator would cut or refuse the list.
    #[error(
        "the list has {count} clusters and {bytes} bytes; the Flux Operator takes at most {MAX_INPUTS} and {MAX_SENT}: ask per environment"
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
    let mut body = "{\"inputs\":[".to_owned();
    let mut count = 0;
    for cluster in
        state.clusters().filter(|c| environment.is_none_or(|asked| c.doc.environment.as_str() == asked))
    {
        if count > 0 {
            body.push(',');
        }
        count += 1;
        body.push_str(&list_entry(&cluster.doc));
    }
    body.push_str("]}");
    let mut size = Size::default();
    size.text(&body);
    match count {
        0 if !allow_empty => Err(NoClusterList::NoMatch),
        _ if count > MAX_INPUTS || size.sent > MAX_SENT || size.stored > MAX_STORED => {
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
