//! Inputs, encoded ahead of time. Each definition holds its input as text, cut where the cluster's own parts go, so that an
//! answer is made by concatenation and a catalog change re-encodes one text and invalidates nothing.
//!
//! Every input has a `hash` of its other fields. It is a sum over them, so that it is put together like the text: what the definition
//! adds, less what a reference overrides, and what reference, patches and cluster add. The members of `source` count one by one, as
//! `source/oci_tag`, because a reference overrides one of them.

use crate::canonical::{encode, needs_no_escape, push_string};
use crate::document::{
    Cluster, Component, ComponentOverrides, ComponentPatches, Delivery, Field, Fields, Hashes,
};
use crate::hash::InputHash;
use crate::ids::Id;
use crate::kind::Kind;

/// Where the parts of an input go: into a buffer, or into a count of bytes. Both walk the same code.
pub(crate) trait Sink {
    /// Text whose [`escapes`] are known already.
    fn counted(&mut self, text: &str, escapes: usize);
    /// Text whose escapes are not known.
    fn text(&mut self, text: &str);
    /// The hash of an input.
    fn hash(&mut self, hash: InputHash);

    /// A string as JSON. Most of ours need no escape, and then it is a copy.
    fn string(&mut self, value: &str) {
        if needs_no_escape(value) {
            self.counted("\"", 0);
            self.text(value);
            self.counted("\"", 0);
        } else {
            self.text(&encode(value));
        }
    }

    /// A list of ids as JSON.
    fn ids(&mut self, ids: &[Id]) {
        self.counted("[", 0);
        for (n, id) in ids.iter().enumerate() {
            if n > 0 {
                self.counted(",", 0);
            }
            self.string(id.as_str());
        }
        self.counted("]", 0);
    }
}

impl Sink for Vec<u8> {
    fn counted(&mut self, text: &str, _: usize) {
        self.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    fn hash(&mut self, hash: InputHash) {
        self.extend_from_slice(&hash.digits());
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

    fn hash(&mut self, _: InputHash) {
        self.sent += InputHash::DIGITS;
        self.stored += InputHash::DIGITS;
    }
}

/// How many bytes more the text takes once `<`, `>`, `&`, U+2028 and U+2029 are each written as `\u` and four digits.
pub(crate) fn escapes(text: &str) -> usize {
    let bytes = text.as_bytes();
    // Most texts have none. No early exit, so that the loop vectorises.
    if bytes.iter().filter(|b| matches!(b, b'<' | b'>' | b'&' | 0xe2)).count() == 0 {
        return 0;
    }
    let mut more = 0;
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

/// A part of the text that a reference may override.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Part {
    from: usize,
    to: usize,
    hash: InputHash,
}

/// The input of a component but for the cluster, as one text: the hash goes in at `hash_at`, `patches` at `patches_at`, `values` at the
/// end.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ComponentFragment {
    text: Box<str>,
    hash_at: usize,
    patches_at: usize,
    component_path: Part,
    depends_on: Part,
    enabled: Part,
    oci_tag: Part,
    /// Before the hash, before the patches, after them.
    escapes: [usize; 3],
    takes_values: bool,
    /// What all of it adds to the hash.
    hash: InputHash,
    /// What no patches add to the hash.
    unpatched: InputHash,
}

/// Puts the text of an input together, and adds up its hash.
#[derive(Default)]
struct Writing {
    text: String,
    hash: InputHash,
}

impl Writing {
    /// A member, after this opening; what it is called in the hash ends with its name.
    fn member(&mut self, opening: &str, hashed_as: &str, json: &str) -> Part {
        let name = hashed_as.rsplit('/').next().unwrap_or(hashed_as);
        self.text.push_str(opening);
        push_string(&mut self.text, name);
        self.text.push(':');
        let from = self.text.len();
        self.text.push_str(json);
        let hash = InputHash::of_field(hashed_as, json);
        self.hash = self.hash + hash;
        Part { from, to: self.text.len(), hash }
    }

    /// Where something is left out that each cluster has its own of.
    fn gap(&mut self, before: &str, after: &str) -> usize {
        self.text.push_str(before);
        let at = self.text.len();
        self.text.push_str(after);
        at
    }
}

/// The empty object: no patches, no values, nothing said about a source.
const NOTHING: &str = "{}";

impl ComponentFragment {
    pub(crate) fn of(component: &Component) -> Self {
        let delivery = component.effective_delivery();
        let mut writing = Writing::default();
        let environment = if component.follows_environment() { "true" } else { "false" };
        writing.member(",", "cluster_env_enabled", environment);
        let component_path = writing.member(",", "component_path", &encode(&component.component_path));
        let version = component.component_version.as_deref().unwrap_or_default();
        writing.member(",", "component_version", &encode(version));
        writing.member(",", "delivery", &encode(delivery.as_str()));
        let depends_on = writing.member(",", "depends_on", &encode_ids(component.dependencies()));
        let enabled = writing.member(",", "enabled", "true");
        let hash_at = writing.gap(",\"hash\":\"", "\"");
        writing.member(",", "id", &encode(component.id.as_str()));
        let patches_at = writing.gap(",\"patches\":", "");
        let oci_tag = writing.member(",\"source\":{", "source/oci_tag", &encode(&component.oci_tag));
        writing.member(",", "source/oci_url", &encode(&component.oci_url));
        for (name, hashed_as) in [("secretRef", "source/secretRef"), ("verify", "source/verify")] {
            writing.member(",", hashed_as, component.rest.get(name).unwrap_or(NOTHING));
        }
        writing.gap("},\"values\":", "");
        let Writing { text, hash } = writing;
        let escapes =
            [escapes(&text[..hash_at]), escapes(&text[hash_at..patches_at]), escapes(&text[patches_at..])];
        let takes_values = delivery == Delivery::Helm;
        let nothing = Hashes::of(NOTHING, NOTHING);
        Self {
            text: text.into(),
            hash_at,
            patches_at,
            component_path,
            depends_on,
            enabled,
            oci_tag,
            escapes,
            takes_values,
            // What is not delivered by Helm has no values, whatever its patches are.
            hash: if takes_values { hash } else { hash + nothing.values },
            unpatched: if takes_values { nothing.patches + nothing.values } else { nothing.patches },
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
        let mut hash = self.hash + cluster.hash;
        match overrides {
            None => sink.counted(&self.text[..self.hash_at], self.escapes[0]),
            Some(overrides) => {
                hash = hash + overrides.hash;
                let ComponentOverrides { component_path, depends_on, enabled, .. } = overrides;
                let is_cut = [component_path.is_some(), depends_on.is_some(), enabled.is_some()];
                if is_cut == [false; 3] {
                    sink.counted(&self.text[..self.hash_at], self.escapes[0]);
                } else {
                    let mut from = 0;
                    let mut up_to = |part: Part, sink: &mut _| {
                        Sink::text(sink, &self.text[from..part.from]);
                        from = part.to;
                        hash = hash - part.hash;
                    };
                    if let Some(path) = component_path {
                        up_to(self.component_path, sink);
                        sink.string(path);
                    }
                    if let Some(ids) = depends_on {
                        up_to(self.depends_on, sink);
                        sink.ids(ids);
                    }
                    if let Some(enabled) = enabled {
                        up_to(self.enabled, sink);
                        sink.counted(if *enabled { "true" } else { "false" }, 0);
                    }
                    sink.text(&self.text[from..self.hash_at]);
                }
            }
        }
        let tag = overrides.and_then(|overrides| overrides.oci_tag.as_deref());
        if tag.is_some() {
            hash = hash - self.oci_tag.hash;
        }
        hash = hash
            + match patches {
                None => self.unpatched,
                Some(of) if self.takes_values => of.hashes.patches + of.hashes.values,
                Some(of) => of.hashes.patches,
            };
        sink.hash(hash);
        sink.counted(&self.text[self.hash_at..self.patches_at], self.escapes[1]);
        sink.text(patches.map_or(NOTHING, |of| of.patches));
        match tag {
            None => sink.counted(&self.text[self.patches_at..], self.escapes[2]),
            Some(tag) => {
                sink.text(&self.text[self.patches_at..self.oci_tag.from]);
                sink.string(tag);
                sink.text(&self.text[self.oci_tag.to..]);
            }
        }
        sink.text(patches.filter(|_| self.takes_values).map_or(NOTHING, |of| of.values));
        sink.counted("}", 0);
    }

    /// Whether the patches of a cluster are sent a second time, as a tree of values.
    pub(crate) fn takes_values(&self) -> bool {
        self.takes_values
    }

    /// The size of the input but for the cluster's own parts.
    pub(crate) fn size(&self) -> Size {
        let sent = self.text.len() + InputHash::DIGITS;
        Size { sent, stored: sent + self.escapes.iter().sum::<usize>() }
    }
}

/// What the overrides of a component add to the hash of its input.
pub(crate) fn hash_of_overrides(overrides: &ComponentOverrides) -> InputHash {
    let fields = [
        ("component_path", overrides.component_path.as_deref().map(encode)),
        ("depends_on", overrides.depends_on.as_deref().map(encode_ids)),
        ("enabled", overrides.enabled.map(|enabled| enabled.to_string())),
        ("source/oci_tag", overrides.oci_tag.as_deref().map(encode)),
    ];
    fields.iter().filter_map(|(name, json)| Some(InputHash::of_field(name, json.as_ref()?))).sum()
}

/// The input of a definition: what stands before the cluster, between it and the hash, and after that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DefinitionFragment {
    to_cluster: Piece,
    to_hash: Piece,
    from_hash: Piece,
    /// What the definition adds to the hash.
    hash: InputHash,
    /// The id as a member of the input.
    id: Field,
}

impl DefinitionFragment {
    pub(crate) fn of(kind: &Kind, id: &Id, fields: &Fields) -> Self {
        let id = Field::new("id", encode(id.as_str()));
        let mut parts = [String::new(), String::new(), String::new()];
        let (mut part, mut separator, mut hash) = (0, '{', InputHash::default());
        for (name, member) in members(kind, &id, &[fields]) {
            parts[part].push(separator);
            separator = ',';
            push_string(&mut parts[part], name);
            parts[part].push(':');
            match member {
                Member::Field(field) => {
                    parts[part].push_str(&field.json);
                    hash = hash + field.hash;
                }
                Member::Cluster => part = 1,
                Member::Hash => {
                    parts[part].push('"');
                    part = 2;
                    parts[part].push('"');
                }
            }
        }
        let [to_cluster, to_hash, mut from_hash] = parts;
        from_hash.push('}');
        let [to_cluster, to_hash, from_hash] = [to_cluster, to_hash, from_hash].map(Piece::of);
        Self { to_cluster, to_hash, from_hash, hash, id }
    }

    /// Writes the input of this definition on a cluster that overrides nothing of it.
    pub(crate) fn write(&self, cluster: &ClusterPart, sink: &mut impl Sink) {
        self.to_cluster.write(sink);
        cluster.write(sink);
        self.to_hash.write(sink);
        sink.hash(self.hash + cluster.hash);
        self.from_hash.write(sink);
    }

    /// Writes the input of this definition on a cluster that overrides something of it.
    pub(crate) fn write_overridden(
        &self,
        kind: &Kind,
        fields: &Fields,
        overrides: &Fields,
        cluster: &ClusterPart,
        sink: &mut impl Sink,
    ) {
        let layers = [overrides, fields];
        let members = || members(kind, &self.id, &layers);
        let hash = members().filter_map(|(_, member)| match member {
            Member::Field(field) => Some(field.hash),
            Member::Cluster | Member::Hash => None,
        });
        let hash = hash.sum::<InputHash>() + cluster.hash;
        let mut separator = "{";
        for (name, member) in members() {
            sink.counted(separator, 0);
            separator = ",";
            sink.text(&encode(name));
            sink.counted(":", 0);
            match member {
                Member::Field(field) => sink.text(&field.json),
                Member::Cluster => cluster.write(sink),
                Member::Hash => {
                    sink.counted("\"", 0);
                    sink.hash(hash);
                    sink.counted("\"", 0);
                }
            }
        }
        sink.counted("}", 0);
    }

    /// The size of the input but for the cluster's own parts.
    pub(crate) fn size(&self) -> Size {
        let mut size = Size { sent: InputHash::DIGITS, stored: InputHash::DIGITS };
        for piece in [&self.to_cluster, &self.to_hash, &self.from_hash] {
            piece.write(&mut size);
        }
        size
    }
}

/// A member of a definition's input.
#[derive(Clone, Copy)]
enum Member<'a> {
    Field(&'a Field),
    Cluster,
    Hash,
}

/// The members of a definition's input, sorted by name: every declared property from the first layer that has it, else what
/// the kind says; the cluster and the hash. No property is called like either of these.
fn members<'a>(
    kind: &'a Kind,
    id: &'a Field,
    layers: &'a [&'a Fields],
) -> impl Iterator<Item = (&'a str, Member<'a>)> {
    let member = move |property: &'a crate::kind::Property| {
        let name: &str = &property.name;
        let field = match name {
            "id" => id,
            _ => layers.iter().find_map(|layer| layer.field(name)).unwrap_or(&property.otherwise),
        };
        (name, Member::Field(field))
    };
    let properties = &kind.properties;
    let before = |name: &str| properties.partition_point(|property| &*property.name < name);
    let (cluster, hash) = (before("cluster"), before("hash"));
    let own = |from: usize, to: usize| properties[from..to].iter().map(member);
    own(0, cluster)
        .chain([("cluster", Member::Cluster)])
        .chain(own(cluster, hash))
        .chain([("hash", Member::Hash)])
        .chain(own(hash, properties.len()))
}

/// How the input of a component begins.
const OPENING: &str = "{\"cluster\":";

/// What every input says of its cluster, encoded once for an answer, behind [`OPENING`].
pub(crate) struct ClusterPart {
    piece: Piece,
    hash: InputHash,
}

impl ClusterPart {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        Self { piece: Piece::of(Self::text(cluster)), hash: cluster.hash }
    }

    /// What a cluster adds to the hash of each of its inputs.
    pub(crate) fn hash_of(cluster: &Cluster) -> InputHash {
        InputHash::of_field("cluster", &Self::text(cluster)[OPENING.len()..])
    }

    fn text(cluster: &Cluster) -> String {
        let mut text = String::with_capacity(64 + cluster.dns.as_str().len() + cluster.name.len());
        text.push_str(OPENING);
        text.push_str("{\"dns\":");
        push_string(&mut text, cluster.dns.as_str());
        text.push_str(",\"environment\":");
        push_string(&mut text, cluster.environment.as_str());
        text.push_str(",\"name\":");
        push_string(&mut text, &cluster.name);
        text.push('}');
        text
    }

    /// Writes an input's beginning, which for components is the cluster.
    fn open(&self, sink: &mut impl Sink) {
        self.piece.write(sink);
    }

    /// Writes the cluster alone.
    fn write(&self, sink: &mut impl Sink) {
        sink.counted(&self.piece.text[OPENING.len()..], self.piece.escapes);
    }
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
    fn a_component_counts_its_escapes_in_each_part() {
        let text: Box<str> = "&&<".into();
        let fragment = ComponentFragment { text, escapes: [10, 5, 1], ..ComponentFragment::default() };
        assert_eq!(fragment.size(), Size { sent: 19, stored: 35 });
    }
}
