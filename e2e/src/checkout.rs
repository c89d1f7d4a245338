//! Where things of this repository are: the checkout, what cargo built of it, and the folders of runs beside that.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// The folder of a profile that this program was built in: `target/debug`. A test is built one or more folders below it.
fn built() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let folder = this.parent().context("no folder")?;
    let folder = if folder.ends_with("deps") { folder.parent().context("no folder")? } else { folder };
    Ok(folder.to_owned())
}

/// Our own program, which `cargo build -p server` has put there.
pub fn our_binary() -> Result<PathBuf> {
    program("flux-resourceset", "server")
}

/// Our command line, which `cargo build -p cli` has put there.
pub fn our_command_line() -> Result<PathBuf> {
    program("frs", "cli")
}

fn program(name: &str, package: &str) -> Result<PathBuf> {
    let binary = built()?.join(name);
    anyhow::ensure!(binary.is_file(), "{} is not built: `cargo build -p {package}`", binary.display());
    Ok(binary)
}

/// A folder for a run of the loop.
pub fn run_folder(name: &str) -> Result<PathBuf> {
    Ok(built()?.parent().context("no folder to build in")?.join("e2e").join(name))
}
