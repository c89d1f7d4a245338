//! Secrets do not belong into patches: those are readable by everyone who may read the fleet, and kept for ever. Known forms are
//! refused.

/// Beginnings that issuers give to their secrets, so that they can be found.
const PREFIXES: &[(&str, &str)] = &[
    ("ghp_", "a GitHub token"),
    ("gho_", "a GitHub token"),
    ("ghu_", "a GitHub token"),
    ("ghs_", "a GitHub token"),
    ("ghr_", "a GitHub token"),
    ("github_pat_", "a GitHub token"),
    ("glpat-", "a GitLab token"),
    ("xoxb-", "a Slack token"),
    ("xoxp-", "a Slack token"),
    ("xapp-", "a Slack token"),
    ("sk_live_", "a Stripe key"),
    ("rk_live_", "a Stripe key"),
    ("hvs.", "a Vault token"),
    ("npm_", "an npm token"),
    ("pypi-AgEI", "a PyPI token"),
    ("dop_v1_", "a DigitalOcean token"),
    ("AGE-SECRET-KEY-", "an age key"),
    ("frs_", "a token of this service"),
];

/// What sort of secret a text holds, if it is one of those that can be told.
pub(super) fn secret_in(text: &str) -> Option<&'static str> {
    if text.match_indices("-----BEGIN ").any(|(at, begin)| is_private_key(&text[at + begin.len()..])) {
        return Some("a private key");
    }
    words(text).find_map(|word| {
        let issued =
            PREFIXES.iter().find(|(prefix, _)| word.len() >= prefix.len() + 16 && word.starts_with(prefix));
        issued.map(|(_, what)| *what).or_else(|| is_aws_key(word).then_some("an AWS access key"))
    })
}

fn is_private_key(label: &str) -> bool {
    label
        .split_once("-----")
        .is_some_and(|(label, _)| label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK"))
}

fn is_aws_key(word: &str) -> bool {
    word.len() == 20
        && (word.starts_with("AKIA") || word.starts_with("ASIA"))
        && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

/// Runs of what tokens are made of.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_what_only_looks_like_them() {
        let forty = "a1B2".repeat(10);
        let cases = [
            (format!("ghp_{forty}"), Some("a GitHub token")),
            (format!("https://x:glpat-{forty}@git.example.com"), Some("a GitLab token")),
            (format!("token={}", ["AKIA", "ABCDEFGHIJKLMNOP"].concat()), Some("an AWS access key")),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII".to_owned(), Some("a private key")),
            ("-----BEGIN PRIVATE KEY-----".to_owned(), Some("a private key")),
            ("-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(), Some("a private key")),
            ("-----BEGIN PGP PRIVATE KEY BLOCK-----".to_owned(), Some("a private key")),
            ("-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----".to_owned(), None),
            ("-----BEGIN PUBLIC KEY-----".to_owned(), None),
            ("see ghp_ in the manual".to_owned(), None),
            ("npm_config_registry".to_owned(), None),
            ("AKIA".to_owned(), None),
            ("3".to_owned(), None),
        ];
        for (text, expected) in cases {
            assert_eq!(secret_in(&text), expected, "{text}");
        }
    }
}
