//! Inputs, encoded ahead of time. Each definition holds its input as text, cut where the cluster's own parts go, so that an
//! answer is made by concatenation and a catalog change re-encodes one text and invalidates nothing.

use crate::canonical::{encode, push_string};
use crate::document::{Component, ComponentOverrides, ComponentPatches, Delivery, Fields};
use crate::ids::Id;
use crate::kind::Kind;

/// Where the parts of an input go: into a buffer, or into a count of bytes. Both walk the same code.
pub(crate) trait Sink {
    /// Text whose [`escapes`] are known already.
    fn counted(&mut self, text: &str, escapes: usize);
    /// Text whose escapes are not known.
    fn text(&mut self, text: &str);
}

impl Sink for Vec<u8> {
    fn counted(&mut self, text: &str, _: usize) {
        self.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

/// How large an answer is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Size {
    /// As it is sent.
    pub sent: usize,
    /// As the operator stores it, with what Go escapes in JSON counted as the six bytes that it becomes.
    pub stored: usize,
}

impl Sink for Size {
    fn counted(&mut self, text: &str, escapes: usize) {
        self.sent += text.len();
        self.stored += text.len() + escapes;
    }

    fn text(&mut self, text: &str) {
        self.counted(text, escapes(text));
    }
}

/// How many bytes more the text takes once `<`, `>`, `&`, U+2028 and U+2029 are each written as `\u` and four digits.
pub(crate) fn escapes(text: &str) -> usize {
    let mut more = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'>' | b'&' => more += 5,
            0xe2 if matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) => more += 3,
            _ => {}
        }
    }
    more
}

/// A text and its escapes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Piece {
    text: Box<str>,
    escapes: usize,
}

impl Piece {
    fn of(text: String) -> Self {
        Self { escapes: escapes(&text), text: text.into() }
    }

    fn write(&self, sink: &mut impl Sink) {
        sink.counted(&self.text, self.escapes);
    }
}

/// The input of a component but for the cluster, as one text: `patches` goes in at `patches_at`, `values` at the end. The marks
/// cut out what a reference may override.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ComponentFragment {
    text: Box<str>,
    patches_at: usize,
    component_path: (usize, usize),
    depends_on: (usize, usize),
    enabled: (usize, usize),
    oci_tag: (usize, usize),
    /// Before and after `patches_at`.
    escapes: (usize, usize),
    takes_values: bool,
}

impl ComponentFragment {
    pub(crate) fn of(component: &Component) -> Self {
        let delivery = component.effective_delivery();
        let mut text =
            format!(",\"cluster_env_enabled\":{},\"component_path\":", component.follows_environment());
        let component_path = push(&mut text, &encode(&component.component_path));
        text.push_str(",\"component_version\":");
        text.push_str(&encode(component.component_version.as_deref().unwrap_or_default()));
        text.push_str(",\"delivery\":");
        text.push_str(&encode(delivery.as_str()));
        text.push_str(",\"depends_on\":");
        let depends_on = push(&mut text, &encode_ids(component.dependencies()));
        text.push_str(",\"enabled\":");
        let enabled = push(&mut text, "true");
        text.push_str(",\"id\":");
        text.push_str(&encode(component.id.as_str()));
        text.push_str(",\"patches\":");
        let patches_at = text.len();
        text.push_str(",\"source\":{\"oci_tag\":");
        let oci_tag = push(&mut text, &encode(&component.oci_tag));
        text.push_str(",\"oci_url\":");
        text.push_str(&encode(&component.oci_url));
        text.push_str("},\"values\":");
        let escapes = (escapes(&text[..patches_at]), escapes(&text[patches_at..]));
        let takes_values = delivery == Delivery::Helm;
        Self {
            text: text.into(),
            patches_at,
            component_path,
            depends_on,
            enabled,
            oci_tag,
            escapes,
            takes_values,
        }
    }

    /// Writes the input of this component on a cluster.
    pub(crate) fn write(
        &self,
        cluster: &ClusterPart,
        overrides: Option<&ComponentOverrides>,
        patches: Option<ComponentPatches<'_>>,
        sink: &mut impl Sink,
    ) {
        cluster.open(sink);
        match overrides {
            None => sink.counted(&self.text[..self.patches_at], self.escapes.0),
            Some(overrides) => {
                let mut from = 0;
                let mut cut = |at: (usize, usize), by: Option<String>| {
                    if let Some(by) = by {
                        sink.text(&self.text[from..at.0]);
                        sink.text(&by);
                        from = at.1;
                    }
                };
                cut(self.component_path, overrides.component_path.as_deref().map(encode));
                cut(self.depends_on, overrides.depends_on.as_deref().map(encode_ids));
                cut(self.enabled, overrides.enabled.map(|enabled| enabled.to_string()));
                sink.text(&self.text[from..self.patches_at]);
            }
        }
        sink.text(patches.map_or("{}", |of| of.patches));
        match overrides.and_then(|overrides| overrides.oci_tag.as_deref()) {
            None => sink.counted(&self.text[self.patches_at..], self.escapes.1),
            Some(tag) => {
                sink.text(&self.text[self.patches_at..self.oci_tag.0]);
                sink.text(&encode(tag));
                sink.text(&self.text[self.oci_tag.1..]);
            }
        }
        sink.text(patches.filter(|_| self.takes_values).map_or("{}", |of| of.values));
        sink.counted("}", 0);
    }

    /// Whether the patches of a cluster are sent a second time, as a tree of values.
    pub(crate) fn takes_values(&self) -> bool {
        self.takes_values
    }

    /// The size of the input but for the cluster's own parts.
    pub(crate) fn size(&self) -> Size {
        Size { sent: self.text.len(), stored: self.text.len() + self.escapes.0 + self.escapes.1 }
    }
}

/// The input of a definition: what stands before the cluster, and what stands after it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct DefinitionFragment {
    to_cluster: Piece,
    from_cluster: Piece,
}

impl DefinitionFragment {
    pub(crate) fn of(kind: &Kind, id: &Id, fields: &Fields) -> Self {
        let (mut before, mut after) = (String::new(), String::new());
        let mut part = &mut before;
        let mut separator = '{';
        for (name, text) in members(kind, id, &[fields]) {
            part.push(separator);
            separator = ',';
            part.push_str(&encode(name));
            part.push(':');
            match text {
                None => part = &mut after,
                Some(text) => part.push_str(&text),
            }
        }
        after.push('}');
        Self { to_cluster: Piece::of(before), from_cluster: Piece::of(after) }
    }

    /// Writes the input of this definition on a cluster that overrides nothing of it.
    pub(crate) fn write(&self, cluster: &ClusterPart, sink: &mut impl Sink) {
        self.to_cluster.write(sink);
        cluster.write(sink);
        self.from_cluster.write(sink);
    }

    /// The size of the input but for the cluster's own parts.
    pub(crate) fn size(&self) -> Size {
        let mut size = Size::default();
        self.to_cluster.write(&mut size);
        self.from_cluster.write(&mut size);
        size
    }
}

/// Writes the input of a definition on a cluster that overrides something of it.
pub(crate) fn write_overridden(
    kind: &Kind,
    id: &Id,
    layers: [&Fields; 2],
    cluster: &ClusterPart,
    sink: &mut impl Sink,
) {
    let mut separator = "{";
    for (name, text) in members(kind, id, &layers) {
        sink.counted(separator, 0);
        separator = ",";
        sink.text(&encode(name));
        sink.counted(":", 0);
        match text {
            None => cluster.write(sink),
            Some(text) => sink.text(&text),
        }
    }
    sink.counted("}", 0);
}

/// The members of a definition's input, sorted by name: every declared property from the first layer that has it, else what
/// the kind says; and the cluster, which has no text of its own here.
fn members<'a>(
    kind: &'a Kind,
    id: &'a Id,
    layers: &'a [&'a Fields],
) -> impl Iterator<Item = (&'a str, Option<std::borrow::Cow<'a, str>>)> {
    let properties = kind.properties.iter().map(move |property| {
        let name: &str = &property.name;
        let text = match name {
            "id" => encode(id.as_str()).into(),
            _ => layers.iter().find_map(|layer| layer.get(name)).unwrap_or(&property.otherwise).into(),
        };
        (name, Some(text))
    });
    let split = kind.properties.partition_point(|property| &*property.name < "cluster");
    let (before, after) = (properties.clone().take(split), properties.skip(split));
    before.chain([("cluster", None)]).chain(after)
}

/// How the input of a component begins.
const OPENING: &str = "{\"cluster\":";

/// What every input says of its cluster, encoded once for an answer, behind [`OPENING`].
pub(crate) struct ClusterPart(Piece);

impl ClusterPart {
    pub(crate) fn of(cluster: &crate::document::Cluster) -> Self {
        let mut text = String::with_capacity(64 + cluster.dns.as_str().len() + cluster.name.len());
        text.push_str(OPENING);
        text.push_str("{\"dns\":");
        push_string(&mut text, cluster.dns.as_str());
        text.push_str(",\"environment\":");
        push_string(&mut text, cluster.environment.as_str());
        text.push_str(",\"name\":");
        push_string(&mut text, &cluster.name);
        text.push('}');
        Self(Piece::of(text))
    }

    /// Writes an input's beginning, which for components is the cluster.
    fn open(&self, sink: &mut impl Sink) {
        self.0.write(sink);
    }

    /// Writes the cluster alone.
    fn write(&self, sink: &mut impl Sink) {
        sink.counted(&self.0.text[OPENING.len()..], self.0.escapes);
    }
}

fn push(text: &mut String, part: &str) -> (usize, usize) {
    let start = text.len();
    text.push_str(part);
    (start, text.len())
}

fn encode_ids(ids: &[Id]) -> String {
    encode(&ids.iter().map(Id::as_str).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_what_go_adds() {
        assert_eq!(escapes("plain"), 0);
        assert_eq!(escapes("<a>&"), 15);
        assert_eq!(escapes("\u{2028}\u{2029}\u{2027}\u{202a}"), 6);
        assert_eq!(escapes("\u{2028}".trim_end_matches('x')), 3);
    }

    /// Catalog changes are judged by this size: one that is too small lets an answer grow beyond what the operator stores.
    #[test]
    fn a_component_counts_its_escapes_on_both_sides_of_the_patches() {
        let text: Box<str> = "&&<".into();
        let fragment = ComponentFragment { text, escapes: (10, 5), ..ComponentFragment::default() };
        assert_eq!(fragment.size(), Size { sent: 3, stored: 18 });
    }
}
