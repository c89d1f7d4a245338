//! What a Kubernetes API server, Flux and an OCI registry accept as names, labels, tags and paths. Each rule is a plain
//! function over text and, through [`FORMATS`], a `format` that a kind's file can ask for by name.

/// A `format` of the kind files: its name, its test, and the sentence that says what would be right.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) test: fn(&str) -> bool,
    pub(crate) wants: &'static str,
}

pub(crate) const FORMATS: &[Format] = &[
    Format {
        name: "dns-label",
        test: dns_label,
        wants: "at most 63 of a-z, 0-9 and `-`, beginning and ending with a letter or digit",
    },
    Format {
        name: "dns-name",
        test: dns_name,
        wants: "a lower-case DNS name such as `eu-1.k8s.example.com`, at most 253 characters",
    },
    Format {
        name: "label-key",
        test: label_key,
        wants: "a Kubernetes label key: `name` or `example.com/name`, the name at most 63 of A-Z, a-z, 0-9, `-`, `_`, `.`",
    },
    Format {
        name: "label-value",
        test: label_value,
        wants: "a Kubernetes label value: empty, or at most 63 of A-Z, a-z, 0-9, `-`, `_`, `.`, beginning and ending with a letter or digit",
    },
    Format {
        name: "annotation-key",
        test: label_key_of_any_case,
        wants: "a Kubernetes annotation key: `name` or `example.com/name`",
    },
    Format { name: "free-label-key", test: free_label_key, wants: FREE_KEY },
    Format { name: "free-annotation-key", test: free_annotation_key, wants: FREE_KEY },
    Format {
        name: "pod-security-version",
        test: pod_security_version,
        wants: "`latest`, or `v1.` and a number such as `v1.31`",
    },
    Format {
        name: "source-url",
        test: source_url,
        wants: "`oci://registry/repository` or `https://host/path`, without user name, tag, query or blanks",
    },
    Format {
        name: "oci-tag",
        test: oci_tag,
        wants: "a tag or version such as `v1.1.0-rc1`: A-Z, a-z, 0-9, `_`, `.`, `-`, `+`, at most 128, not beginning with `.`, `-` or `+`",
    },
    Format {
        name: "component-path",
        test: component_path,
        wants: "a relative path such as `observability/grafana/17.1.0`, of A-Z, a-z, 0-9, `.`, `_`, `-`, without `..`; `.` is the root",
    },
    Format {
        name: "role-name",
        test: role_name,
        wants: "the name of a ClusterRole, of A-Z, a-z, 0-9, `:`, `.`, `_`, `-`",
    },
    Format {
        name: "plain-name",
        test: plain_name,
        wants: "a name that is not empty and has neither `<<` nor `>>` in it",
    },
    Format {
        name: "yaml-text",
        test: yaml_text,
        wants: "one line that begins with a letter or a digit and that YAML reads as the same text without quotes: no `: `, no ` #`, no `<<`, `>>` or `${`, no `:` or blank at its end, and not a number, `true`, `null` or the like",
    },
];

/// What the keys of labels and annotations have to be on an object that the Flux Operator makes.
const FREE_KEY: &str = "free to use: Flux takes orders from keys under `fluxcd.controlplane.io` and `toolkit.fluxcd.io`, even to delete the object; leave it out, or choose another prefix. Only the annotation `fluxcd.controlplane.io/prune` may be set, to `disabled` or `enabled`";

/// The one order that is a legitimate wish: with `disabled`, Flux keeps the object when its input is gone.
const PRUNE: &str = "fluxcd.controlplane.io/prune";

fn ends_alphanumeric(text: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    alphanumeric(text.as_bytes().first()) && alphanumeric(text.as_bytes().last())
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(allowed)
}

/// An RFC 1123 label.
pub(crate) fn dns_label(text: &str) -> bool {
    text.len() <= 63
        && ends_alphanumeric(text)
        && all(text, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// An RFC 1123 subdomain.
pub(crate) fn dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(dns_label)
}

fn qualified(text: &str, prefix_is_right: impl Fn(&str) -> bool) -> bool {
    let name = match text.split_once('/') {
        Some((prefix, name)) if prefix_is_right(prefix) => name,
        Some(_) => return false,
        None => text,
    };
    name.len() <= 63 && ends_alphanumeric(name) && all(name, label_character)
}

fn label_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

pub(crate) fn label_key(text: &str) -> bool {
    qualified(text, dns_name)
}

/// Kubernetes folds an annotation's key before it looks at its prefix.
fn label_key_of_any_case(text: &str) -> bool {
    qualified(text, |prefix| dns_name(&prefix.to_ascii_lowercase()))
}

pub(crate) fn label_value(text: &str) -> bool {
    text.is_empty() || (text.len() <= 63 && ends_alphanumeric(text) && all(text, label_character))
}

/// Whether Flux takes orders from labels or annotations of this key, and so past the guard: with `reconcile: disabled` the operator
/// deletes what it made, with `force: enabled` it deletes and makes anew what the API server refuses, at a wrong `copyFrom` or
/// `checksumFrom` it stops the whole set. The others say whose an object is, or are orders to other parts of Flux.
fn obeyed_by_flux(key: &str) -> bool {
    let domains = ["fluxcd.controlplane.io", "toolkit.fluxcd.io"];
    // Flux does not obey a prefix in capitals, which an annotation may have; whoever wrote it thinks that it does.
    let prefix = key.split_once('/').map_or_else(String::new, |(prefix, _)| prefix.to_ascii_lowercase());
    let within = |domain: &str| {
        prefix.strip_suffix(domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    domains.into_iter().any(within)
}

fn free_label_key(text: &str) -> bool {
    !obeyed_by_flux(text)
}

fn free_annotation_key(text: &str) -> bool {
    text == PRUNE || !obeyed_by_flux(text)
}

/// What the admission of the API server takes as the version of a pod security level.
fn pod_security_version(text: &str) -> bool {
    let minor = |digits: &str| {
        all(digits, |b| b.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'))
            && digits.parse::<i64>().is_ok()
    };
    text == "latest" || text.strip_prefix("v1.").is_some_and(minor)
}

fn source_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("oci://").or_else(|| text.strip_prefix("https://")) else {
        return false;
    };
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(a, p)| (a, Some(p)));
    let (host, port) = authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
    let is_oci = text.starts_with("oci://");
    // Registries know repositories in lower case only, of 2 to 255 characters: Flux would never fetch another.
    let character = |b: u8| label_character(b) && !(is_oci && b.is_ascii_uppercase()) || b == b'~' && !is_oci;
    let segment = |s: &str| !s.is_empty() && s != "." && s != ".." && all(s, character);
    let segments = |p: &str| p.strip_suffix('/').unwrap_or(p).split('/').all(segment);
    dns_name(&host.to_ascii_lowercase())
        && port.is_none_or(is_port)
        && match path {
            None | Some("") => !is_oci,
            Some(path) => {
                segments(path) && (!is_oci || (!path.ends_with('/') && (2..=255).contains(&path.len())))
            }
        }
}

fn is_port(text: &str) -> bool {
    !text.starts_with(['+', '0']) && text.parse::<u16>().is_ok()
}

fn oci_tag(text: &str) -> bool {
    text.len() <= 128
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
        && all(text, |b| label_character(b) || b == b'+')
}

fn component_path(text: &str) -> bool {
    let path = text.strip_prefix("./").unwrap_or(text);
    matches!(text, "." | "./")
        || path.split('/').all(|s| !s.is_empty() && s != "." && s != ".." && all(s, label_character))
}

fn role_name(text: &str) -> bool {
    ends_alphanumeric(text) && all(text, |b| label_character(b) || b == b':')
}

fn plain_name(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains("<<") && !text.contains(">>")
}

/// A text that manifests may have without quotes, as Flux substitutes it.
fn yaml_text(text: &str) -> bool {
    let is_line_end = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let lower = text.to_ascii_lowercase();
    let other_type = matches!(&*lower, "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null")
        || lower.replace('_', "").parse::<f64>().is_ok()
        || [("0x", 16), ("0o", 8), ("0b", 2)].iter().any(|(prefix, base)| {
            let digits = lower.strip_prefix(prefix);
            digits.is_some_and(|digits| digits.chars().all(|digit| digit.is_digit(*base)))
        });
    text.starts_with(char::is_alphanumeric)
        && text == text.trim()
        && !text.contains(is_line_end)
        && !text.ends_with(':')
        && ![": ", " #", "<<", ">>", "${"].iter().any(|part| text.contains(part))
        && !other_type
}

/// Whether a name matches a pattern of a `reserved` list: the name itself, or a prefix that ends in `*`.
pub(crate) fn reserved_by(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// A substitution variable of a Flux Kustomization.
pub(crate) fn substitution_name(text: &str) -> bool {
    // It becomes a key of a ConfigMap.
    text.len() <= 253
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && all(text, |b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Text that can be substituted into YAML without changing its structure.
pub(crate) fn substitution_value(text: &str) -> bool {
    !text.ends_with(':') && all(text, |b| b.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(test: fn(&str) -> bool, right: &[&str], wrong: &[&str]) {
        for text in right {
            assert!(test(text), "{text:?} should be accepted");
        }
        for text in wrong {
            assert!(!test(text), "{text:?} should be refused");
        }
    }

    #[test]
    fn dns_labels_and_names() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        table(dns_label, &["a", "a-1", "0", &longest], &["", "A", "-a", "a-", "a.b", "a_b", "ä", &too_long]);
        let long_name = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        table(
            dns_name,
            &["a", "a.b", "eu-1.k8s.example.com", &long_name],
            &["", ".", "a.", "a..b", "A.b", "a/b"],
        );
        assert!(!dns_name(&format!("{long_name}c")), "254 characters");
    }

    #[test]
    fn label_keys_and_values() {
        let (longest, too_long) = ("v".repeat(63), "v".repeat(64));
        let domain = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        let (longest_key, too_long_name) = (format!("{domain}/{longest}"), format!("example.com/{too_long}"));
        let too_long_prefix = format!("{domain}c/a");
        table(
            label_key,
            &["a", "A_b.c", "example.com/a", "example.com/A", &longest, &longest_key],
            &[
                "",
                "/a",
                "a/",
                "a/b/c",
                "Example.com/a",
                "-a",
                "a_",
                "a b",
                "ä",
                "a_b/c",
                &too_long,
                &too_long_name,
            ],
        );
        table(label_key, &[], &[&too_long_prefix, "a\n", "example.com /a"]);
        table(
            label_key_of_any_case,
            &["Example.com/a", "a", "Example.COM/A_b", &longest_key],
            &["", "exa mple.com/a", "/a", "a/", "a/b/c", "-a", &too_long_name, &too_long_prefix],
        );
        table(
            label_value,
            &["", "a", "1.2_3-x", &longest],
            &["-a", "a-", "a/b", "a b", "a\n", "ä", &too_long],
        );
    }

    #[test]
    fn keys_that_steer_flux_are_not_free() {
        let obeyed = [
            "fluxcd.controlplane.io/reconcile",
            "fluxcd.controlplane.io/force",
            "FluxCD.ControlPlane.io/prune",
            "fluxcd.controlplane.io/pruned",
            "resourceset.fluxcd.controlplane.io/name",
            "toolkit.fluxcd.io/x",
            "kustomize.toolkit.fluxcd.io/prune",
        ];
        let free = [
            "team",
            "fluxcd.controlplane.io",
            "toolkit.fluxcd.io",
            "example.com/fluxcd.controlplane.io",
            "notfluxcd.controlplane.io/x",
            "mytoolkit.fluxcd.io/x",
            "fluxcd.controlplane.io.example.com/x",
            "controlplane.io/x",
            "fluxcd.io/x",
        ];
        table(free_label_key, &free, &obeyed);
        table(free_label_key, &[], &[PRUNE]);
        table(free_annotation_key, &free, &obeyed);
        table(free_annotation_key, &[PRUNE], &[]);
    }

    #[test]
    fn pod_security_versions() {
        table(
            pod_security_version,
            &["latest", "v1.0", "v1.9", "v1.31", "v1.9223372036854775807"],
            &[
                "",
                "v1",
                "v1.",
                "1.31",
                "v2.0",
                "v1.031",
                "v1.00",
                "v1.+1",
                "v1.-1",
                "v1.31.0",
                "Latest",
                "v1.9223372036854775808",
            ],
        );
    }

    #[test]
    fn source_urls() {
        table(
            source_url,
            &[
                "oci://ghcr.io/stefanprodan/charts/podinfo",
                "oci://127.0.0.1:5000/ab",
                "oci://x.io/a/b",
                "https://charts.jetstack.io",
                "https://x.io/~A",
                "https://x.io/a/",
            ],
            &[
                "http://x.io",
                "oci://x.io",
                "oci://",
                "https://",
                "oci://x.io/",
                "oci://x.io/a:tag",
                "oci://u:p@x.io/a",
                "https://x.io/a b",
                "https://x.io/?q=1",
                "https://x.io:0/",
                "https://x.io:99999/",
                "oci://x.io/../a",
                "oci://x.io/a//b",
                "oci://x.io/a",
                "oci://x.io/A/b",
                "oci://x.io/~a",
                "oci://x.io:+80/ab",
                "oci://x.io:080/ab",
                "oci://x.io/<<a>>",
            ],
        );
    }

    #[test]
    fn tags_paths_and_roles() {
        let too_long = "t".repeat(129);
        table(
            oci_tag,
            &["v1.1.0-rc1", "latest", "_x", "1.0.0+up2"],
            &["", ".a", "-a", "+a", "a/b", "a:b", "a b", &too_long],
        );
        table(
            component_path,
            &["a", "a/b/1.0", "./a", ".", "./"],
            &["", "/a", "a/", "a//b", "..", "a/../b", "a/./b", "a b", "<<a>>"],
        );
        table(role_name, &["view", "system:node", "a_b.c-d"], &["", "a/b", ":a", "a%b"]);
        table(
            yaml_text,
            &["eu-1", "dev one", "Zürich (old)", "a:b", "1a", "1.2.3", "c", "nothing"],
            &[
                "",
                " ",
                "a ",
                "a\nb",
                "a\u{2028}b",
                "a: b",
                "a:",
                "a #b",
                "a<<b",
                "${A}",
                "a ${B}",
                "- a",
                "*a",
                "\"a\"",
                "[a]",
                "007",
                "1e3",
                "1_000",
                "0x1f",
                "True",
                "null",
                "inf",
                "No",
            ],
        );
        table(plain_name, &["CN=x,OU=y", "a b", "a<b"], &["", " ", "a<<b", "a>>b"]);
    }

    #[test]
    fn substitutions_stay_one_yaml_scalar() {
        table(substitution_name, &["A", "_a1"], &["", "1a", "a-b", "a.b"]);
        table(
            substitution_value,
            &["", "a:b", "1.2.3", "x@y%z"],
            &["a:", "a b", "{a}", "#a", "a\n", "\"a\""],
        );
    }

    #[test]
    fn reserved_names_are_exact_or_by_prefix() {
        assert!(reserved_by("kube-*", "kube-system"));
        assert!(!reserved_by("kube-*", "kubernetes"));
        assert!(reserved_by("default", "default"));
        assert!(!reserved_by("default", "default-2"));
    }
}
