//! The programs that are not ours: see `parts/build`.

use std::path::{Path, PathBuf};
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

    /// What the operator's own command makes of a kind's ResourceSet and a file of inputs.
    pub fn rendered(&self, kind: &str, inputs: &Path) -> Result<Vec<u8>> {
        let output = Command::new(self.binary("flux-operator-cli"))
            .args(["build", "resourceset", "-f"])
            .arg(repository().join(format!("cluster/resourcesets/{kind}.yaml")))
            .arg("--inputs-from")
            .arg(inputs)
            .output()?;
        ensure!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
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
