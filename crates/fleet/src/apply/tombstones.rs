//! What decommissioning and creating clusters does to the records of decommissioned ones: a cluster that goes leaves a record under its
//! DNS name, and a record stands in the way of a new cluster of that name unless the request says otherwise.

use std::collections::BTreeMap;

use crate::document::{Cluster, Stored, Tombstone};
use crate::finding::Finding;
use crate::ids::{Dns, Id};
use crate::pointer::Pointer;
use crate::state::{Served, State};

/// A cluster as a transaction leaves it.
pub(super) enum ClusterAfter<'a> {
    /// It is decommissioned.
    Gone { operation: usize, gone: &'a Stored<Cluster> },
    /// It is created or changed. `replaces`: it may take the DNS name of a decommissioned cluster.
    Written { operation: usize, cluster: &'a Cluster, replaces: bool },
}

/// What becomes of decommission records, each with the operation that causes it.
#[derive(Default)]
pub(super) struct Outcome {
    /// Records that are made, and those that go.
    pub(super) records: BTreeMap<Dns, (usize, Option<Tombstone>)>,
    /// Clusters whose DNS name is taken.
    pub(super) conflicts: Vec<(usize, Id, Finding)>,
}

/// Works out the records, given the clusters of a transaction and the records that it forgets.
pub(super) fn tombstones(
    before: &State,
    clusters: &[ClusterAfter<'_>],
    forgotten: &BTreeMap<Dns, usize>,
) -> Outcome {
    let forgotten = forgotten.iter().map(|(dns, operation)| (dns.clone(), (*operation, None)));
    let mut outcome = Outcome { records: forgotten.collect(), conflicts: Vec::new() };
    for after in clusters {
        if let ClusterAfter::Gone { operation, gone } = after {
            let Cluster { dns, id, .. } = &gone.doc;
            let record = Tombstone { dns: dns.clone(), id: id.clone(), uid: gone.uid };
            outcome.records.insert(dns.clone(), (*operation, Some(record)));
        }
    }
    let mut holders: BTreeMap<&Dns, &Id> = BTreeMap::new();
    for after in clusters {
        let ClusterAfter::Written { operation, cluster, replaces } = after else { continue };
        let Cluster { dns, id, .. } = cluster;
        let mut conflict = |message: String| {
            let finding = Finding::new(Pointer::to("cluster_dns"), message);
            outcome.conflicts.push((*operation, id.clone(), finding));
        };
        let in_transaction = |id: &Id| {
            clusters.iter().any(|other| match other {
                ClusterAfter::Gone { gone, .. } => gone.doc.id == *id,
                ClusterAfter::Written { cluster, .. } => cluster.id == *id,
            })
        };
        let live = match before.served(dns.as_str()) {
            Some(Served::Live(live)) if live.doc.id != *id && !in_transaction(&live.doc.id) => {
                Some(&live.doc.id)
            }
            _ => None,
        };
        if let Some(holder) = holders.insert(dns, id).or(live) {
            conflict(format!("`{dns}` is already the DNS name of the cluster `{holder}`"));
        }
        let stood = before.tombstone(dns.as_str()).is_some();
        let stands = outcome.records.get(dns).map_or(stood, |(_, record)| record.is_some());
        if stands && *replaces {
            if stood {
                outcome.records.insert(dns.clone(), (*operation, None));
            } else {
                outcome.records.remove(dns);
            }
        } else if stands {
            conflict(format!(
                "`{dns}` belongs to a decommissioned cluster, whose Flux is still to clean up; forget it, or set `replace_decommissioned` to take its place"
            ));
        }
    }
    outcome
}
