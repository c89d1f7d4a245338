//! The compact forms of documents written as their canonical text, member by member, without a tree of values in between.

use std::collections::BTreeSet;

use super::cluster::{Cluster, ComponentOverrides, Reference};
use super::patches::Patches;
use super::{Component, Delivery, Fields};
use crate::canonical;
use crate::ids::{Id, PATCHES, PLATFORM_COMPONENTS};

/// Which members of the document are written.
pub(super) struct Wanted<'a> {
    /// Whether a member is.
    pub(super) member: &'a dyn Fn(&str) -> bool,
    /// Of the patches, only those of these components.
    pub(super) patches_of: Option<&'a BTreeSet<String>>,
}

/// Writes a cluster's document, or some members of it.
pub(super) fn cluster(cluster: &Cluster, wanted: &Wanted<'_>) -> String {
    let mut members: Vec<(&str, Member<'_>)> = vec![
        ("cluster_dns", Member::Text(cluster.dns.as_str())),
        ("cluster_name", Member::Text(&cluster.name)),
        ("environment", Member::Text(cluster.environment.as_str())),
        ("id", Member::Text(cluster.id.as_str())),
    ];
    members.extend(cluster.labels.as_deref().map(|labels| ("labels", Member::Labels(labels))));
    members.extend(cluster.protected.map(|protected| ("protected", Member::flag(protected))));
    members.extend(cluster.rest.iter().map(|(name, text)| (name, Member::Json(text))));
    if !cluster.components.is_empty() {
        members.push((PLATFORM_COMPONENTS, Member::Components(&cluster.components)));
    }
    members.extend(cluster.references.iter().map(|(kind, found)| (kind.as_str(), Member::References(found))));
    if !cluster.patches.is_empty() {
        members.push((PATCHES, Member::Patches(&cluster.patches, wanted.patches_of)));
    }
    members.retain(|(name, _)| (wanted.member)(name));
    members.sort_unstable_by_key(|(name, _)| *name);
    let mut text = String::with_capacity(256 + 64 * cluster.components.len() + cluster.patches.len());
    canonical::push_object(&mut text, members, |text, member| member.write(text));
    text
}

/// Writes a component's document.
pub(super) fn component(component: &Component) -> String {
    let mut members: Vec<(&str, Member<'_>)> = vec![
        ("component_path", Member::Text(&component.component_path)),
        ("oci_tag", Member::Text(&component.oci_tag)),
        ("oci_url", Member::Text(&component.oci_url)),
    ];
    let version = component.component_version.as_deref();
    members.extend(version.map(|version| ("component_version", Member::Text(version))));
    members.extend(component.cluster_env_enabled.map(|on| ("cluster_env_enabled", Member::flag(on))));
    members.extend(component.depends_on.as_deref().map(|ids| ("depends_on", Member::Ids(ids))));
    let delivery = component.delivery.map(Delivery::as_str);
    members.extend(delivery.map(|delivery| ("delivery", Member::Text(delivery))));
    members.extend(component.rest.iter().map(|(name, json)| (name, Member::Json(json))));
    identified(&component.id, members)
}

/// Writes the document of an id and fields.
pub(super) fn definition(id: &Id, fields: &Fields) -> String {
    identified(id, fields.iter().map(|(name, json)| (name, Member::Json(json))).collect())
}

fn identified<'a>(id: &'a Id, members: Vec<(&'a str, Member<'a>)>) -> String {
    let mut text = String::new();
    with_id(&mut text, id, members);
    text
}

/// A member of a document, before it is written.
enum Member<'a> {
    Text(&'a str),
    Json(&'a str),
    Labels(&'a [(Id, Id)]),
    Ids(&'a [Id]),
    Components(&'a [Reference<ComponentOverrides>]),
    References(&'a [Reference<Fields>]),
    Patches(&'a Patches, Option<&'a BTreeSet<String>>),
}

impl Member<'_> {
    fn flag(on: bool) -> Self {
        Self::Json(if on { "true" } else { "false" })
    }

    fn write(self, text: &mut String) {
        match self {
            Self::Text(value) => canonical::push_string(text, value),
            Self::Json(json) => text.push_str(json),
            Self::Labels(labels) => canonical::push_object(
                text,
                labels.iter().map(|(key, value)| (key.as_str(), value.as_str())),
                canonical::push_string,
            ),
            Self::Ids(ids) => list(text, ids, |text, id| canonical::push_string(text, id.as_str())),
            Self::Patches(patches, only) => {
                let wanted =
                    patches.iter().filter(|of| only.is_none_or(|only| only.contains(of.component.as_str())));
                let members = wanted.map(|of| (of.component.as_str(), of.patches));
                canonical::push_object(text, members, String::push_str);
            }
            Self::References(references) => list(text, references, |text, Reference { id, overrides }| {
                let overrides = overrides.as_deref().into_iter().flat_map(Fields::iter);
                let members = overrides.map(|(name, json)| (name, Member::Json(json)));
                with_id(text, id, members.collect());
            }),
            Self::Components(references) => list(text, references, |text, Reference { id, overrides }| {
                let mut members = Vec::new();
                if let Some(overrides) = overrides {
                    members.extend(overrides.rest.iter().map(|(name, json)| (name, Member::Json(json))));
                    members.extend(overrides.enabled.map(|on| ("enabled", Member::flag(on))));
                    members.extend(overrides.oci_tag.as_deref().map(|tag| ("oci_tag", Member::Text(tag))));
                    members.extend(
                        overrides
                            .component_path
                            .as_deref()
                            .map(|path| ("component_path", Member::Text(path))),
                    );
                    members
                        .extend(overrides.depends_on.as_deref().map(|ids| ("depends_on", Member::Ids(ids))));
                }
                with_id(text, id, members);
            }),
        }
    }
}

fn with_id<'a>(text: &mut String, id: &'a Id, mut members: Vec<(&'a str, Member<'a>)>) {
    members.push(("id", Member::Text(id.as_str())));
    members.sort_unstable_by_key(|(name, _)| *name);
    canonical::push_object(text, members, |text, member| member.write(text));
}

fn list<T>(text: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    text.push('[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        write(text, item);
    }
    text.push(']');
}
