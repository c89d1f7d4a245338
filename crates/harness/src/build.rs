//! Building the programs: cargo builds for tests only what is of their own package.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where the programs are: beside the running test, and in its profile. They are built, once, all together, so that all are built from the
/// same dependencies. `make unit`, which builds everything, says with `PROGRAMS_ARE_BUILT` that this is not needed.
pub fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        // A test is in `target/<profile>/deps`.
        let test = std::env::current_exe().expect("this test");
        let folder = test.parent().and_then(Path::parent).expect("a folder of programs").to_owned();
        if std::env::var_os("PROGRAMS_ARE_BUILT").is_none() {
            build(&folder);
        }
        folder
    })
}

fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--locked",
            "--quiet",
            "-p",
            "server",
            "-p",
            "cli",
            "--profile",
            profile,
            "--target-dir",
        ])
        .arg(folder.parent().expect("a target folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo");
    assert!(built.success(), "the programs are not built");
}
