//! What must be so in `deploy/`, seen without a cluster. What Kubernetes says to it is shown by `make e2e`.

use std::path::Path;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What stands behind this wherever it is in a file.
fn values<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let end = |rest: &'a str| rest.split([' ', '\n', '"', '}']).next().unwrap_or_default();
    text.split(before).skip(1).map(end).collect()
}

#[test]
fn the_image_is_built_by_the_toolchain_of_the_checkout() {
    let toolchain = text("rust-toolchain.toml");
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).expect("a channel");
    let dockerfile = text("deploy/Dockerfile");
    assert_eq!(values(&dockerfile, "\nFROM rust:"), [format!("{}-bookworm", channel.trim_matches('"'))]);
}

#[test]
fn the_image_is_called_by_its_version_wherever_it_is_named() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, before, expected) in [
        ("deploy/Dockerfile", "flux-resourceset:", 1),
        ("deploy/Dockerfile", "ARG VERSION=", 1),
        ("deploy/base/statefulset.yaml", "image: flux-resourceset:", 2),
        ("docs/src/running.md", "platform/flux-resourceset:", 2),
        ("docs/src/running.md", "newTag: ", 1),
    ] {
        assert_eq!(values(&text(file), before), vec![version; expected], "{file}: {before}");
    }
}
