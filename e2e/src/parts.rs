//! The programs that are not ours: see `parts/build`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The folder that `parts/build` keeps them in.
#[derive(Clone, Debug)]
pub struct Parts(PathBuf);

impl Parts {
    /// Builds what is not there yet, and says so on stderr.
    pub fn build() -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("parts/build");
        let output = Command::new(&script)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| script.display().to_string())?;
        ensure!(output.status.success(), "{} ended with {}", script.display(), output.status);
        Ok(Self(PathBuf::from(String::from_utf8(output.stdout)?.trim())))
    }

    pub fn binary(&self, name: &str) -> PathBuf {
        self.0.join("bin").join(name)
    }

    /// The custom resources that a part brings.
    pub fn crds(&self, part: &str) -> PathBuf {
        self.0.join("crds").join(format!("{part}.yaml"))
    }

    /// What the operator installs Flux from.
    pub fn distribution(&self) -> PathBuf {
        self.0.join("distribution")
    }

    /// How KWOK lets nodes and pods live.
    pub fn stages(&self) -> PathBuf {
        self.0.join("stages.yaml")
    }
}

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// Our own program, which `cargo` has put beside this one's folder.
pub fn our_binary() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let found = this.ancestors().map(|folder| folder.join("flux-resourceset")).find(|path| path.is_file());
    found.context("flux-resourceset is not built: `cargo build -p server`")
}
