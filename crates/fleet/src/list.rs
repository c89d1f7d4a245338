//! Lists of documents: which match, how many there are, and one page of them.
//!
//! A filter compares what is in force: a field that a document leaves out has the value that it gets anyway. Fields are compared as
//! they are held, as text or as JSON text, so that a list of a hundred thousand clusters decodes none of them.
//!
//! It knows documents and kinds, and nothing of what a filter or a page is called in a request, nor how large a page may be.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::canonical;
use crate::document::{Cluster, Component, Definition, Fields, Stored};
use crate::ids::Id;
use crate::kind::{Kind, Shape};
use crate::selector::Selector;
use crate::shelf::Shelf;
use crate::state::{Served, State};

/// Which documents are asked for, and which page of them.
#[derive(Clone, Debug)]
pub struct Listing<'a> {
    /// Of which kind.
    pub kind: &'a Kind,
    /// Properties, and the text that each must have: a string as it is, anything else as JSON. All must match.
    pub filters: Vec<(&'a str, &'a str)>,
    /// What their labels must be like. Other kinds than clusters have only their `labels` and `id` to select by.
    pub selector: Option<&'a Selector>,
    /// Only ids after this one, whether or not there is a document of it.
    pub after: Option<&'a str>,
    /// How many to pass over, counted from `after`.
    pub offset: usize,
    /// How many at most.
    pub limit: usize,
}

impl<'a> Listing<'a> {
    /// All documents of a kind, on one page.
    pub fn all(kind: &'a Kind) -> Self {
        Self { kind, filters: Vec::new(), selector: None, after: None, offset: 0, limit: usize::MAX }
    }
}

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<'s> {
    /// How many documents match, on whatever page.
    pub total: usize,
    /// The ids of those on this page, sorted.
    pub ids: Vec<&'s Id>,
    /// Whether there are more after this page.
    pub more: bool,
}

impl State {
    /// Lists documents. A filter by `id`, or by the `cluster_dns` of a cluster, is a look-up; others look at every document of the kind.
    pub fn list(&self, listing: &Listing<'_>) -> Page<'_> {
        let wanted = Wanted::of(listing);
        match listing.kind.shape() {
            Shape::Cluster if wanted.is_everything() => self.page_of_all_clusters(listing),
            Shape::Cluster => match (wanted.text("id"), wanted.text("cluster_dns")) {
                (Some(id), _) => page(wanted.among(self.cluster(id)), listing),
                (None, Some(dns)) => page(wanted.among(self.cluster_at(dns)), listing),
                (None, None) => page(wanted.among(self.clusters()), listing),
            },
            Shape::Component => match wanted.text("id") {
                Some(id) => page(wanted.among(self.component(id)), listing),
                None => page(sorted(wanted.among(self.components())), listing),
            },
            Shape::Definition => {
                let kind = listing.kind.name().as_str();
                match wanted.text("id") {
                    Some(id) => page(wanted.among(self.definition(kind, id)), listing),
                    None => {
                        let documents = self.definitions(kind).into_iter().flat_map(Shelf::values);
                        page(sorted(wanted.among(documents)), listing)
                    }
                }
            }
        }
    }

    /// Clusters are held in order, so that a page of all of them need not pass over those before it.
    fn page_of_all_clusters(&self, listing: &Listing<'_>) -> Page<'_> {
        let mut rest = self.clusters_after(listing.after).map(|cluster| &cluster.doc.id).skip(listing.offset);
        let ids = rest.by_ref().take(listing.limit).collect();
        Page { total: self.cluster_count(), ids, more: rest.next().is_some() }
    }

    fn cluster_at(&self, dns: &str) -> Option<&Arc<Stored<Cluster>>> {
        match self.served(dns) {
            Some(Served::Live(cluster)) => Some(cluster),
            Some(Served::Decommissioned(_)) | None => None,
        }
    }
}

/// Clusters are in order as they come; the documents of a shelf are not.
fn sorted(mut ids: Vec<&Id>) -> Vec<&Id> {
    ids.sort_unstable();
    ids
}

fn page<'s>(matches: Vec<&'s Id>, listing: &Listing<'_>) -> Page<'s> {
    let passed = listing.after.map_or(0, |after| matches.partition_point(|id| id.as_str() <= after));
    let from = passed.saturating_add(listing.offset);
    Page {
        total: matches.len(),
        more: from.saturating_add(listing.limit) < matches.len(),
        ids: matches.into_iter().skip(from).take(listing.limit).collect(),
    }
}

/// What a document must be like, made ready to be compared with many.
struct Wanted<'a> {
    filters: Vec<Filter<'a>>,
    selector: Option<&'a Selector>,
}

struct Filter<'a> {
    name: &'a str,
    text: &'a str,
    /// The value in its canonical JSON, of which there is only one.
    json: String,
    /// Whether a document that does not have the property matches.
    by_default: bool,
}

impl<'a> Wanted<'a> {
    fn of(listing: &Listing<'a>) -> Self {
        let declared = listing.kind.document_schema().get("properties");
        let filter = |&(name, text): &(&'a str, &'a str)| {
            let property = declared.and_then(|declared| declared.get(name));
            let member = |member: &str| property.and_then(|property| property.get(member));
            let is_string = member("type").and_then(Value::as_str) == Some("string");
            let json = if is_string { canonical::encode(text) } else { text.to_owned() };
            let by_default = member("default").is_some_and(|default| canonical::encode(default) == json);
            Filter { name, text, json, by_default }
        };
        Self { filters: listing.filters.iter().map(filter).collect(), selector: listing.selector }
    }

    fn is_everything(&self) -> bool {
        self.filters.is_empty() && self.selector.is_none()
    }

    /// The text that a filter wants a property to have.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.filters.iter().find(|filter| filter.name == name).map(|filter| filter.text)
    }

    /// The ids of those that match.
    fn among<'s, T: Listed + 's>(
        &self,
        candidates: impl IntoIterator<Item = &'s Arc<Stored<T>>>,
    ) -> Vec<&'s Id> {
        let documents = candidates.into_iter().map(|stored| &stored.doc);
        documents.filter(|document| self.fits(*document)).map(Listed::id).collect()
    }

    fn fits(&self, document: &impl Listed) -> bool {
        self.filters.iter().all(|filter| match document.property(filter.name) {
            Some(Held::Text(text)) => text == filter.text,
            Some(Held::Json(json)) => json == filter.json,
            None => filter.by_default,
        }) && self.selector.is_none_or(|selector| document.is_selected(selector))
    }
}

/// A property as a document holds it.
enum Held<'a> {
    Text(&'a str),
    Json(&'a str),
}

impl Held<'_> {
    fn flag(on: bool) -> Self {
        Self::Json(if on { "true" } else { "false" })
    }
}

/// A document as a list looks at it.
trait Listed {
    fn id(&self) -> &Id;
    /// What is in force of a property that a filter can be about: a string, a flag or a number.
    fn property(&self, name: &str) -> Option<Held<'_>>;
    fn is_selected(&self, selector: &Selector) -> bool;
}

impl Listed for Cluster {
    fn id(&self) -> &Id {
        &self.id
    }

    fn property(&self, name: &str) -> Option<Held<'_>> {
        match name {
            "environment" => Some(Held::Text(self.environment.as_str())),
            "cluster_dns" => Some(Held::Text(self.dns.as_str())),
            "cluster_name" => Some(Held::Text(&self.name)),
            "id" => Some(Held::Text(self.id.as_str())),
            "protected" => Some(Held::flag(self.is_protected())),
            other => self.rest.get(other).map(Held::Json),
        }
    }

    fn is_selected(&self, selector: &Selector) -> bool {
        selector.selects(self)
    }
}

impl Listed for Component {
    fn id(&self) -> &Id {
        &self.id
    }

    fn property(&self, name: &str) -> Option<Held<'_>> {
        match name {
            "id" => Some(Held::Text(self.id.as_str())),
            "component_path" => Some(Held::Text(&self.component_path)),
            "component_version" => self.component_version.as_deref().map(Held::Text),
            "oci_url" => Some(Held::Text(&self.oci_url)),
            "oci_tag" => Some(Held::Text(&self.oci_tag)),
            "cluster_env_enabled" => Some(Held::flag(self.follows_environment())),
            "delivery" => Some(Held::Text(self.effective_delivery().as_str())),
            other => self.rest.get(other).map(Held::Json),
        }
    }

    fn is_selected(&self, selector: &Selector) -> bool {
        labels_are_selected(&self.id, &self.rest, selector)
    }
}

impl Listed for Definition {
    fn id(&self) -> &Id {
        &self.id
    }

    fn property(&self, name: &str) -> Option<Held<'_>> {
        match name {
            "id" => Some(Held::Text(self.id.as_str())),
            other => self.fields.get(other).map(Held::Json),
        }
    }

    fn is_selected(&self, selector: &Selector) -> bool {
        labels_are_selected(&self.id, &self.fields, selector)
    }
}

/// Whether a document is selected by its id and by what it has as `labels`, if that is a map of strings.
fn labels_are_selected(id: &Id, fields: &Fields, selector: &Selector) -> bool {
    let labels: BTreeMap<String, String> =
        fields.get("labels").and_then(|labels| serde_json::from_str(labels).ok()).unwrap_or_default();
    selector.holds(|key| match key {
        "id" => Some(id.as_str()),
        label => labels.get(label).map(String::as_str),
    })
}
