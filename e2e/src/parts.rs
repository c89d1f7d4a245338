//! The programs that are not ours: see `parts/build`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::checkout::repository;

/// The folder that `parts/build` keeps them in.
#[derive(Clone, Debug)]
pub struct Parts(PathBuf);

impl Parts {
    /// Builds what is not there yet, and says so on stderr.
    pub fn build() -> Result<Self> {
        let script = repository().join("e2e/parts/build");
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
