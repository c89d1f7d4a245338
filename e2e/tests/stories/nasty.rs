//! Documents with everything in them that breaks a template, YAML, a shell or a parser, as far as `apply` accepts it. What it refuses is
//! left out: only what gets through can do harm.

use std::sync::Arc;

use fleet::{
    Answer, CommitId, Kind, Operation, Origin, Patch, Policy, Reason, State, Target, Timestamp, Transaction,
    apply, render,
};
use proptest::prelude::{Strategy, any, prop};
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

/// What strings are put together from.
const ATOMS: &[&str] = &[
    "\"",
    "'",
    "`",
    "\\",
    "\n",
    "\r\n",
    "\t",
    " ",
    "  ",
    "<<",
    ">>",
    "<< inputs.id >>",
    "<<- end >>",
    "${X}",
    "${CLUSTER_DNS}",
    "$$",
    "$(x)",
    "{{ .Values.x }}",
    "---",
    "\n---\n",
    "\n...\n",
    "#",
    " # ",
    ": ",
    ":",
    "- ",
    "? ",
    "|",
    ">",
    "&a",
    "*a",
    "<<: *a",
    "!!str ",
    "!",
    "%",
    "@",
    "null",
    "~",
    "true",
    "yes",
    "1000650000",
    "0x1f",
    "1e3",
    ".nan",
    "-0",
    "{a,b}",
    "[1]",
    ",",
    "=",
    "/",
    "ü",
    "\u{1F600}",
    "\u{2028}",
    "\u{FEFF}",
    "\u{200D}",
    "\u{E0001}",
    "\u{7F}",
    "\u{85}",
    "\u{0}",
    "\u{FFFE}",
    "a",
    "word",
    "0",
];

/// What looks like something else than the string that it is.
const PLAIN: &[&str] = &[
    "",
    "a",
    "true",
    "false",
    "null",
    "yes",
    "no",
    "on",
    "y",
    "n",
    "1",
    "0",
    "007",
    "1000650000",
    "1.0",
    "1e3",
    "0x1f",
    "1_000",
    ".5",
    "2026-01-01",
    "12:30:45",
    "-1",
    "+1",
    "latest",
    "v1.0.0-1",
    "1.0.0+build",
    "a-b_c.D",
    "a/b",
    "team:x",
    "system:view",
    "jo <jo@example.com>",
    "x@y",
    "a b",
];

/// Names that are names, and look like something else.
const NAMES: &[&str] =
    &["true", "null", "123", "1e3", "0x1f", "no", "y", "a", "x-1", "1-x", "on", "007", "inf", "nan"];

fn text() -> impl Strategy<Value = String> {
    let atoms = prop::collection::vec(prop::sample::select(ATOMS), 0..8).prop_map(|atoms| atoms.concat());
    let chars = prop::collection::vec(any::<char>(), 0..12).prop_map(|chars| chars.into_iter().collect());
    let plain = prop::sample::select(PLAIN).prop_map(str::to_owned);
    let long = prop::sample::select(ATOMS).prop_map(|atom| atom.repeat(60_000 / atom.len()));
    Union::new_weighted(vec![
        (50, atoms.boxed()),
        (30, chars.boxed()),
        (30, plain.boxed()),
        (1, long.boxed()),
    ])
}

fn plain() -> impl Strategy<Value = String> {
    Union::new_weighted(vec![
        (4, prop::sample::select(PLAIN).prop_map(str::to_owned).boxed()),
        (1, text().boxed()),
    ])
}

fn map(keys: &'static [&'static str], values: impl Strategy<Value = String>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(keys), values, 0..4).prop_map(|entries| json!(entries))
}

fn namespace() -> impl Strategy<Value = Value> {
    const KEYS: &[&str] = &["a", "true", "123", "example.com/x", "null", "1e3", "x.y/z_w"];
    (map(KEYS, plain()), map(KEYS, text()))
        .prop_map(|(labels, annotations)| json!({"labels": labels, "annotations": annotations}))
}

fn rolebinding() -> impl Strategy<Value = Value> {
    let subject = (prop::sample::select(&["User", "Group", "ServiceAccount"][..]), plain(), plain())
        .prop_map(|(kind, name, namespace)| {
            let mut subject = json!({"kind": kind, "name": name});
            if kind == "ServiceAccount" {
                subject["namespace"] = namespace.into();
            }
            subject
        });
    (plain(), prop::collection::vec(subject, 1..4))
        .prop_map(|(role, subjects)| json!({"role": role, "subjects": subjects}))
}

fn secret_ref() -> impl Strategy<Value = Value> {
    const MORE: &[&str] = &["a.b", "1.0", "2026-01-01", "x.true.null"];
    Union::new([prop::sample::select(NAMES), prop::sample::select(MORE)])
        .prop_map(|name| json!({"name": name}))
}

fn verify() -> impl Strategy<Value = Value> {
    let provider = prop::sample::select(&["cosign", "notation"][..]);
    let identity =
        (text(), text()).prop_map(|(issuer, subject)| json!({"issuer": issuer, "subject": subject}));
    let identities = prop::collection::vec(identity, 1..3);
    // One of the two at least: without, anybody's signature would do, and the service refuses it.
    (provider, secret_ref(), identities, 0..3).prop_map(|(provider, secret, identities, which)| {
        let mut verify = json!({"provider": provider});
        if which != 1 {
            verify["secretRef"] = secret;
        }
        if which != 2 {
            verify["matchOIDCIdentity"] = identities.into();
        }
        verify
    })
}

fn component() -> impl Strategy<Value = Value> {
    let urls = &[
        "oci://registry.example.com/charts/a",
        "https://charts.example.com",
        "oci://127.0.0.1:5000/x_y/z",
        "https://charts.example.com/a%20b?c=d&e=f",
    ][..];
    let paths = &["a", "core/x/1.0.0", "1e3", "true", "a/b_c.d", "a b", "123"][..];
    let delivery = prop::sample::select(&["helm", "kustomize", ""][..]);
    let source = (
        prop::sample::select(urls),
        prop::option::weighted(0.3, secret_ref()),
        prop::option::weighted(0.3, verify()),
    );
    (source, prop::sample::select(paths), plain(), text(), any::<bool>(), delivery).prop_map(
        |((url, secret, verify), path, tag, version, env, delivery)| {
            let mut component =
                json!({"oci_url": url, "component_path": path, "oci_tag": tag, "component_version": version, "cluster_env_enabled": env});
            if !delivery.is_empty() {
                component["delivery"] = delivery.into();
            }
            for (field, value) in [("secretRef", secret), ("verify", verify)] {
                if let Some(value) = value {
                    component[field] = value;
                }
            }
            component
        },
    )
}

fn patch() -> impl Strategy<Value = (String, String)> {
    const KEYS: &[&str] = &[
        "a",
        "b.c",
        "b.d\\.e/f",
        "list[0]",
        "list[1].x",
        "true",
        "123",
        "A_B",
        "LOG_LEVEL",
        "x.true.null",
        "ui.message",
        "1e3",
    ];
    (prop::sample::select(KEYS).prop_map(str::to_owned), text())
}

/// A fleet of one cluster, `nasty`, made of what was accepted.
pub(crate) struct Nasty {
    state: State,
    runner: TestRunner,
    transactions: u128,
    pub(crate) refused: usize,
    /// Whether what was refused last was refused because an answer would be too large.
    full: bool,
}

impl Nasty {
    pub(crate) const DNS: &str = "nasty.k8s.example.com";

    /// The same ones each time, or others with a number in `E2E_SEED`.
    pub(crate) fn new() -> Self {
        let number: u64 =
            std::env::var("E2E_SEED").ok().and_then(|number| number.parse().ok()).unwrap_or_default();
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_be_bytes());
        let runner =
            TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
        let mut nasty = Self { state: State::empty(), runner, transactions: 0, refused: 0, full: false };
        nasty.try_apply(Kind::shipped().into_iter().map(|kind| Operation::Define(Arc::new(kind))).collect());
        nasty
    }

    fn try_apply(&mut self, operations: Vec<Operation>) -> bool {
        self.transactions += 1;
        let origin = Origin {
            commit: CommitId(self.transactions),
            time: Timestamp(1),
            actor: "nasty".into(),
            reason: None,
            request: None,
            version: "0".into(),
            idempotency: None,
        };
        let transaction = Transaction { operations, derived: false, confirm: None, origin };
        match apply(&self.state, &Policy::default(), &transaction) {
            Ok(applied) => {
                self.state = applied.next;
                true
            }
            Err(rejection) => {
                self.full = rejection.reason() == Some(&Reason::TooLarge);
                self.refused += 1;
                false
            }
        }
    }

    fn draw<T: std::fmt::Debug>(&mut self, strategy: impl Strategy<Value = T>) -> T {
        strategy.new_tree(&mut self.runner).expect("a value").current()
    }

    fn create(&mut self, kind: &str, body: Value) -> bool {
        self.try_apply(vec![Operation::Create { kind: kind.into(), body, replace_decommissioned: false }])
    }

    fn change(&mut self, body: Value) -> bool {
        let patch = Patch::Strategic(body);
        self.try_apply(vec![Operation::Patch {
            kind: "clusters".into(),
            target: Target::one("nasty"),
            patch,
        }])
    }

    /// Draws documents until so many of each kind were accepted and assigned to the cluster.
    pub(crate) fn draw_fleet(&mut self, each: usize) {
        loop {
            let name = self.draw(text());
            let environment = self.draw(prop::sample::select(&["dev", "prod"][..]));
            let cluster = json!({"id": "nasty", "cluster_name": name, "cluster_dns": Self::DNS, "environment": environment});
            if self.create("clusters", cluster) {
                break;
            }
        }
        for kind in ["namespaces", "rolebindings", "platform_components"] {
            let name = |n: usize| {
                NAMES
                    .get(n)
                    .map_or_else(|| format!("{n}-{kind}").replace('_', "-"), |name| (*name).to_owned())
            };
            let mut made = 0;
            while made < each {
                let mut document = match kind {
                    "namespaces" => self.draw(namespace()),
                    "rolebindings" => self.draw(rolebinding()),
                    _ => self.draw(component()),
                };
                let id = name(made);
                document["id"] = id.as_str().into();
                if kind == "platform_components" {
                    // One or two of those that are there, if their delivery is the same.
                    let others = prop::collection::btree_set(0..made.max(1), 0..3);
                    let others = self.draw(others).into_iter().filter(|other| *other < made).map(name);
                    document["depends_on"] = others.collect::<Vec<_>>().into();
                }
                if !self.create(kind, document) {
                    assert!(self.refused < 20 * (each + 50), "next to nothing of {kind} is accepted");
                    continue;
                }
                made += 1;
                let mut references = Map::new();
                references.insert(kind.to_owned(), json!([{"id": id}]));
                if !self.change(references.into()) {
                    assert!(self.full, "{kind}/{id} cannot be assigned");
                    break;
                }
                if kind == "platform_components" {
                    for _ in 0..4 {
                        let (key, value) = self.draw(patch());
                        self.change(json!({"patches": {&id: {key: value}}}));
                    }
                }
            }
        }
        // A long one, and one with nothing but what it must have.
        let unit = "x: <<y>> ${Z} # ü {{ z }} ";
        let long = unit.repeat(60_000 / unit.len() + 1);
        let long = json!({"id": "long-one", "annotations": {"a": long}});
        assert!(self.create("namespaces", long) && self.change(json!({"namespaces": [{"id": "long-one"}]})));
        assert!(
            self.create("namespaces", json!({"id": "bare-one"}))
                && self.change(json!({"namespaces": [{"id": "bare-one"}]}))
        );
    }

    /// What the cluster is told.
    pub(crate) fn inputs(&self, kind: &str) -> Vec<Value> {
        let Answer::Inputs(inputs) = render(&self.state, Self::DNS, kind) else {
            panic!("no inputs of {kind}")
        };
        let mut body: Value = serde_json::from_slice(inputs.body()).expect("JSON");
        serde_json::from_value(body["inputs"].take()).expect("a list")
    }

    /// The documents of a kind, as they are stored.
    pub(crate) fn documents(&self, kind: &str) -> Vec<Value> {
        let ids = self.state.ids(kind);
        ids.iter().filter_map(|id| Some(Value::Object(self.state.document(kind, id.as_str())?.0))).collect()
    }
}
