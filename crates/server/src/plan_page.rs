//! A plan as it goes over the wire: everything is counted, and told in pages that are bounded by bytes. Nothing is kept between two pages:
//! the plan is worked out again, and where it no longer is the one that the page before was of, there is no next page.

use std::ops::Range;

use api::{Asks, Change, PlannedDocuments};
use fleet::{DocumentChange, DocumentGroup, FieldChange, InputChange, Plan, Questions};

use crate::problem::{Answered, Refusal};
use crate::query::digits;
use crate::wire;

/// At most this many bytes of names and fields are on a page, unless a single change has more. Less than on other pages: the plan is worked
/// out anew for each, and the first is mostly all that is looked at.
const PLAN_PAGE_BYTES: usize = 1024 * 1024;

/// Where a page begins. As text it is for this service alone to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cursor {
    /// The digest of the plan that it is a place in.
    digest: String,
    place: Place,
}

/// A group, counted over all lists of a plan, and a name in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Place {
    group: usize,
    name: usize,
}

impl Cursor {
    pub(crate) fn parse(text: &str) -> Answered<Self> {
        let read = || {
            let (digest, place) = text.split_once('.')?;
            let (group, name) = place.split_once('.')?;
            let number = |text| digits(text).and_then(|number| usize::try_from(number).ok());
            let place = Place { group: number(group)?, name: number(name)? };
            (!digest.is_empty()).then(|| Self { digest: digest.to_owned(), place })
        };
        read().ok_or_else(|| {
            Refusal::bad_request(format!("`after` is `{text}`; it must be what a dry run gave as `next`"))
        })
    }

    fn text(digest: &str, place: Place) -> String {
        format!("{digest}.{}.{}", place.group, place.name)
    }
}

/// One page of a plan: the first, or the one that begins at a cursor.
pub(crate) fn page(plan: &Plan, actor: &str, after: Option<&Cursor>) -> Answered<api::Plan> {
    let digest = plan.digest.to_string();
    if after.is_some_and(|cursor| cursor.digest != digest) {
        return Err(Refusal::plan_moved());
    }
    Ok(page_of(plan, actor, digest, after.map(|cursor| cursor.place).unwrap_or_default()))
}

fn page_of(plan: &Plan, actor: &str, digest: String, from: Place) -> api::Plan {
    let Plan { applied, questions, confirm, effects, environments, warnings, notes, .. } = plan;
    let Questions { removals: asked, reach, allowance } = questions;
    let asks = [(asked, Asks::Removals), (reach, Asks::Clusters)];
    let because = [questions.confirmation(), allowance.clone()].into_iter().flatten().collect::<Vec<_>>();
    let mut page = Page { from, left: PLAN_PAGE_BYTES, at: 0, is_empty: true, next: None };
    let groups = plan.documents();
    let documents = groups.iter().filter_map(|group| documents(group, &mut page)).collect();
    let changes = effects.effects.iter().filter_map(|effect| effect_of(effect, &mut page)).collect();
    let removed = plan.removals();
    let groups = removed.iter().filter_map(|group| {
        let range = page.take(0, &group.clusters, |cluster| cluster.as_str())?;
        let clusters = group.clusters[range].iter().map(ToString::to_string).collect();
        Some(wire::removal_group(group, clusters))
    });
    let removals = api::Removals { groups: groups.collect(), ..wire::removals_counted(&applied.removals) };
    let totals = effects.totals.iter().map(|(kind, totals)| {
        let fleet::Totals { added, changed, removed } = *totals;
        (kind.to_string(), api::Totals { added, changed, removed })
    });
    let environments = environments.iter().map(|totals| api::EnvironmentTotals {
        environment: totals.environment.to_string(),
        clusters: totals.clusters,
        removals: totals.removals,
    });
    api::Plan {
        revision: plan.revision().0,
        next: page.next.map(|place| Cursor::text(&digest, place)),
        digest,
        changed: plan.changed(),
        documents,
        environments: environments.collect(),
        reached: plan.reached(),
        effects: api::Effects { clusters: effects.clusters, totals: totals.collect(), changes },
        removals,
        lacking: applied.lacking.iter().map(lacking).collect(),
        confirm: questions.confirmation().map(|_| confirm.to_string()),
        asks: asks.iter().filter(|(asked, _)| asked.is_some()).map(|(_, asks)| *asks).collect(),
        because: (!because.is_empty()).then(|| because.join("; ")),
        allowance: allowance.as_ref().map(|_| wire::needed_allowance(actor, &applied.removals)),
        warnings: applied.warnings.iter().chain(warnings).cloned().collect(),
        notes: notes.clone(),
    }
}

/// What fits on a page, as group after group is offered to it.
struct Page {
    from: Place,
    left: usize,
    /// The group that is offered next.
    at: usize,
    is_empty: bool,
    /// Where the next page begins, once this one is full.
    next: Option<Place>,
}

impl Page {
    /// Which names of a group are on the page; none if the group is not. `head` is what comes with the first of its names.
    fn take<T>(&mut self, head: usize, names: &[T], text: impl Fn(&T) -> &str) -> Option<Range<usize>> {
        let group = self.at;
        self.at += 1;
        if group < self.from.group || self.next.is_some() {
            return None;
        }
        let start = if group == self.from.group { self.from.name } else { 0 };
        let mut end = start;
        for name in names.get(start..)? {
            // With quotes and a comma, and whatever a group has besides.
            let bytes =
                text(name).len() + 3 + if end == start { 100 } else { 0 } + if end == 0 { head } else { 0 };
            if bytes > self.left && !self.is_empty {
                self.next = Some(Place { group, name: end });
                break;
            }
            self.left = self.left.saturating_sub(bytes);
            self.is_empty = false;
            end += 1;
        }
        (end > start).then_some(start..end)
    }
}

fn documents(group: &DocumentGroup<'_>, page: &mut Page) -> Option<PlannedDocuments> {
    let (change, fields, document) = match &group.change {
        DocumentChange::Added(document) => (Change::Added, &[][..], document.as_deref()),
        DocumentChange::Changed(fields) => (Change::Changed, &fields[..], None),
        DocumentChange::Removed => (Change::Removed, &[][..], None),
    };
    let head = bytes_of(fields) + document.map_or(0, str::len);
    let range = page.take(head, &group.keys, |key| key.id())?;
    let is_first = range.start == 0;
    Some(PlannedDocuments {
        kind: wire::key(group.keys[0]).kind,
        change,
        fields: if is_first { fields_of(fields) } else { Vec::new() },
        document: document.filter(|_| is_first).map(wire::json),
        count: group.keys.len(),
        ids: group.keys[range].iter().map(|key| key.id().to_owned()).collect(),
    })
}

fn effect_of(effect: &fleet::Effect, page: &mut Page) -> Option<api::Effect> {
    let (change, fields) = match &effect.change {
        InputChange::Added => (Change::Added, &[][..]),
        InputChange::Removed => (Change::Removed, &[][..]),
        InputChange::Changed(fields) => (Change::Changed, &fields[..]),
    };
    let range = page.take(bytes_of(fields), &effect.clusters, |cluster| cluster.as_str())?;
    Some(api::Effect {
        kind: effect.kind.to_string(),
        input: effect.input.to_string(),
        change,
        fields: if range.start == 0 { fields_of(fields) } else { Vec::new() },
        count: effect.clusters.len(),
        clusters: effect.clusters[range].iter().map(ToString::to_string).collect(),
    })
}

fn lacking(lacking: &fleet::Lacking) -> api::Lacking {
    api::Lacking {
        operation: lacking.operation,
        selector: lacking.selector.clone(),
        kind: lacking.kind.to_string(),
        id: lacking.id.to_string(),
        selected: lacking.selected,
        lacking: lacking.clusters.total,
        clusters: lacking.clusters.first.iter().map(ToString::to_string).collect(),
    }
}

fn bytes_of(fields: &[FieldChange]) -> usize {
    let side = |side: &Option<String>| side.as_ref().map_or(0, String::len);
    fields.iter().map(|field| field.pointer.as_str().len() + side(&field.old) + side(&field.new) + 40).sum()
}

fn fields_of(fields: &[FieldChange]) -> Vec<api::FieldChange> {
    let field = |field: &FieldChange| api::FieldChange {
        pointer: field.pointer.as_str().to_owned(),
        old: field.old.as_deref().map(wire::json),
        new: field.new.as_deref().map(wire::json),
    };
    fields.iter().map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Page, Place};

    fn pages(groups: &[(usize, &[&str])], bytes: usize) -> Vec<Vec<Vec<String>>> {
        let mut all = Vec::new();
        let mut from = Some(Place::default());
        while let Some(place) = from {
            let mut page = Page { from: place, left: bytes, at: 0, is_empty: true, next: None };
            let told = groups.iter().filter_map(|(head, names)| {
                let range = page.take(*head, names, |name| name)?;
                Some(names[range].iter().map(ToString::to_string).collect())
            });
            all.push(told.collect());
            assert!(page.next.is_none_or(|next| next > place), "{:?} after {place:?}", page.next);
            from = page.next;
        }
        all
    }

    #[test]
    fn every_name_is_on_exactly_one_page_and_a_page_is_never_empty() {
        let groups: [(usize, &[&str]); 4] =
            [(10, &["a", "b", "c"]), (0, &["d"]), (5_000, &["e", "f"]), (0, &["g"])];
        for bytes in [0, 1, 100, 105, 120, 230, 1_000, 6_000] {
            let pages = pages(&groups, bytes);
            let names: Vec<&str> = pages.iter().flatten().flatten().map(String::as_str).collect();
            assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g"], "{bytes}");
            assert!(pages.iter().all(|page| !page.is_empty()), "{bytes}: {pages:?}");
        }
        assert_eq!(pages(&groups, 0).len(), 7);
        assert_eq!(pages(&groups, 6_000).len(), 1);
        // The first group fits, the next one as well, and the large one is on a page of its own.
        let three = pages(&groups, 1_000);
        assert_eq!(
            three,
            [vec![vec!["a", "b", "c"], vec!["d"]], vec![vec!["e"]], vec![vec!["f"], vec!["g"]]]
        );
    }

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        let place = Place { group: 3, name: 20 };
        let cursor = Cursor::parse(&Cursor::text("abc", place)).ok();
        assert_eq!(cursor, Some(Cursor { digest: "abc".to_owned(), place }));
        for text in ["", "abc", "abc.1", ".1.2", "abc.1.x", "abc.01.2", "abc.-1.2"] {
            assert!(Cursor::parse(text).is_err(), "{text}");
        }
    }
}
