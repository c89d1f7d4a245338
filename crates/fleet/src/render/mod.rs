//! What a cluster is answered.
//!
//! An empty list makes Flux delete everything, so [`Inputs`], the only type that becomes such a body, is made in exactly two
//! ways, each called once, here: from a live cluster, with one input for each of its references, and from a decommission record.
//! There is no way from an error to it.

mod cluster_list;
mod inputs;

pub use cluster_list::{ClusterList, NoClusterList, list_clusters};
pub use inputs::Inputs;

use crate::document::{
    Cluster, Component, ComponentOverrides, ComponentPatches, Definition, Fields, Reference, Stored,
};
use crate::fragment::{ClusterPart, Sink, Size};
use crate::ids::{Id, Revision};
use crate::kind::{Kind, Shape};
use crate::state::{Served, State};

/// The version of the answer's form. It is part of every `ETag`: raise it when the bytes change for the same fleet.
pub const ANSWER_FORMAT: u32 = 2;
/// The Flux Operator cuts a longer list, silently, and deletes what it cut off.
pub const MAX_INPUTS: usize = 10_000;
/// The Flux Operator refuses a larger body.
pub const MAX_SENT: usize = 900 * 1024;
/// A provider that stores more than this hangs without a message.
pub const MAX_STORED: usize = 1024 * 1024;

/// What to answer to a poll.
#[derive(Debug)]
pub enum Answer {
    /// The inputs of a known or a decommissioned cluster.
    Inputs(Inputs),
    /// No cluster is or was known under that name: nothing is to be deleted.
    UnknownCluster,
    /// No such kind: nothing is to be deleted.
    UnknownKind,
    /// The answer cannot be given: nothing is to be deleted.
    Fault(Fault),
}

/// Why an answer that should exist cannot be given. Never an empty list.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// A reference leads nowhere.
    #[error("the cluster `{cluster}` refers to `{missing}`, which is not there")]
    Dangling {
        /// The cluster.
        cluster: Id,
        /// What it refers to.
        missing: Id,
    },
    /// There are not as many inputs as references.
    #[error("the answer for `{cluster}` has {count} inputs for {expected} references")]
    Miscounted {
        /// The cluster.
        cluster: Id,
        /// How many inputs there are.
        count: usize,
        /// How many there should be.
        expected: usize,
    },
    /// The Flux Operator would cut or refuse the answer.
    #[error("the answer for `{cluster}` is beyond what the Flux Operator takes: {count} inputs, {} bytes", .size.sent)]
    TooLarge {
        /// The cluster.
        cluster: Id,
        /// How many inputs there would be.
        count: usize,
        /// How large they would be.
        size: Size,
    },
}

/// Answers a poll: what the cluster of this DNS name gets of the kind with this path.
pub fn render(state: &State, dns: &str, path: &str) -> Answer {
    let Some(kind) = state.kinds().by_path(path) else { return Answer::UnknownKind };
    match state.served(dns) {
        None => Answer::UnknownCluster,
        Some(Served::Decommissioned(tombstone)) => Answer::Inputs(Inputs::of_tombstone(tombstone)),
        Some(Served::Live(cluster)) => match inputs(state, cluster, kind) {
            Ok(inputs) => Answer::Inputs(inputs),
            Err(fault) => Answer::Fault(fault),
        },
    }
}

/// The inputs of a live cluster.
pub(crate) fn inputs(state: &State, cluster: &Stored<Cluster>, kind: &Kind) -> Result<Inputs, Fault> {
    /// What an input has besides its fragment: the cluster, and now and then an override. A wrong guess costs one copy.
    const BESIDES: usize = 160;
    let doc = &cluster.doc;
    // The first stands for all.
    let (expected, first) = match kind.shape() {
        Shape::Component => {
            let first = doc.components.first().and_then(|reference| state.catalog().get(&reference.id));
            (doc.components.len(), first.map(|component| component.doc.fragment.size()))
        }
        Shape::Cluster | Shape::Definition => {
            let references = doc.references_to(kind.name().as_str());
            let catalog = state.definitions(kind.name().as_str());
            let first = references.first().and_then(|reference| catalog?.get(&reference.id));
            (references.len(), first.map(|definition| definition.doc.fragment.size()))
        }
    };
    let input = BESIDES + first.map_or(0, |size| size.sent);
    let mut body = Vec::with_capacity((16 + expected * input + doc.patches.len()).min(MAX_SENT));
    let made = write(state, cluster, kind, &mut body)?;
    if made.count != expected {
        return Err(Fault::Miscounted { cluster: cluster.doc.id.clone(), count: made.count, expected });
    }
    if body.len() > MAX_SENT || made.count > MAX_INPUTS {
        let size = Size { sent: body.len(), stored: body.len() };
        return Err(Fault::TooLarge { cluster: cluster.doc.id.clone(), count: made.count, size });
    }
    Ok(Inputs::of_references(body, made.count, made.revision))
}

/// What an answer would measure.
pub(crate) fn measure(state: &State, cluster: &Stored<Cluster>, kind: &Kind) -> Result<(usize, Size), Fault> {
    let mut size = Size::default();
    let made = write(state, cluster, kind, &mut size)?;
    Ok((made.count, size))
}

struct Made {
    count: usize,
    revision: Revision,
}

/// What one input is made from.
enum Source<'a> {
    Component(&'a Stored<Component>, &'a Reference<ComponentOverrides>, Option<ComponentPatches<'a>>),
    Definition(&'a Stored<Definition>, &'a Reference<Fields>),
}

impl Source<'_> {
    fn revision(&self) -> Revision {
        match self {
            Self::Component(component, ..) => component.revision,
            Self::Definition(definition, _) => definition.revision,
        }
    }

    /// The merge: the definition, what the reference overrides of it, the patches, and the cluster.
    fn write(&self, kind: &Kind, cluster: &ClusterPart, sink: &mut impl Sink) {
        match self {
            Self::Component(component, reference, patches) => {
                component.doc.fragment.write(cluster, reference.overrides.as_deref(), *patches, sink);
            }
            Self::Definition(definition, reference) => {
                let Definition { fragment, fields, .. } = &definition.doc;
                match &reference.overrides {
                    None => fragment.write(cluster, sink),
                    Some(overrides) => fragment.write_overridden(kind, fields, overrides, cluster, sink),
                }
            }
        }
    }
}

fn write(state: &State, cluster: &Stored<Cluster>, kind: &Kind, sink: &mut impl Sink) -> Result<Made, Fault> {
    let doc = &cluster.doc;
    let part = ClusterPart::of(doc);
    let mut made = Made { count: 0, revision: cluster.revision.max(state.revision_of_kind(kind.name())) };
    sink.counted("{\"inputs\":[", 0);
    let dangling = |missing: &Id| Fault::Dangling { cluster: doc.id.clone(), missing: missing.clone() };
    let mut next = |source: Source<'_>| {
        if made.count > 0 {
            sink.counted(",", 0);
        }
        made.count += 1;
        made.revision = made.revision.max(source.revision());
        source.write(kind, &part, sink);
    };
    match kind.shape() {
        Shape::Component => {
            // References and patches are both sorted by component, so they are walked side by side.
            let mut patches = doc.patches.iter().peekable();
            for reference in doc.components.iter() {
                let component = state.catalog().get(&reference.id).ok_or_else(|| dangling(&reference.id))?;
                while patches.next_if(|of| of.component < &reference.id).is_some() {}
                let patches = patches.next_if(|of| of.component == &reference.id);
                next(Source::Component(component, reference, patches));
            }
        }
        Shape::Cluster | Shape::Definition => {
            let catalog = state.definitions(kind.name().as_str());
            for reference in doc.references_to(kind.name().as_str()) {
                let definition = catalog.and_then(|catalog| catalog.get(&reference.id));
                next(Source::Definition(definition.ok_or_else(|| dangling(&reference.id))?, reference));
            }
        }
    }
    sink.counted("]}", 0);
    Ok(made)
}

/// One input of a live cluster as text, if the cluster has it.
pub(crate) fn input(state: &State, cluster: &Cluster, kind: &Kind, id: &Id) -> Option<String> {
    let source = match kind.shape() {
        Shape::Component => Source::Component(
            state.catalog().get(id)?,
            cluster.component(id.as_str())?,
            cluster.patches.get(id.as_str()),
        ),
        Shape::Cluster | Shape::Definition => {
            let name = kind.name().as_str();
            Source::Definition(state.definitions(name)?.get(id)?, cluster.reference(name, id.as_str())?)
        }
    };
    let mut text = Vec::new();
    source.write(kind, &ClusterPart::of(cluster), &mut text);
    String::from_utf8(text).ok()
}
