//! An OCI registry on the loopback, and pushing to it. A push is three requests, so no client is needed.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use data_encoding::{BASE64, HEXLOWER};
use rcgen::{KeyPair, SigningKey as _};
use reqwest::blocking::Client;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::parts::Parts;
use crate::ports;
use crate::process::{Process, Program};
use crate::wait::until;

/// What is in an artifact: its media types.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// A Helm chart.
    Chart,
    /// A folder, as `flux push artifact` makes it.
    Folder,
}

/// A registry. What is pushed is in memory.
#[derive(Debug)]
pub struct Registry {
    address: String,
    client: Client,
    _process: Process,
}

impl Registry {
    pub fn start(parts: &Parts, logs: &Path) -> Result<Self> {
        let [port] = ports::free()?;
        let mut process = Program::new("registry", &parts.binary("registry"), logs)
            .arguments([format!("-port={port}")])
            .start()?;
        // Flux speaks plain HTTP to a registry on the loopback, and on nothing else.
        let address = format!("127.0.0.1:{port}");
        let client = Client::new();
        until("the registry answers", || {
            process.alive()?;
            client.get(format!("http://localhost:{port}/v2/")).send()?.error_for_status()?;
            Ok(())
        })?;
        Ok(Self { address, client, _process: process })
    }

    /// The URL of a repository in it.
    pub fn url(&self, repository: &str) -> String {
        format!("oci://{}/{repository}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.address.parse()?)
    }

    /// Puts an archive there under a tag, and returns the digest of its manifest.
    pub fn push(&self, repository: &str, tag: &str, content: Content, archive: &[u8]) -> Result<String> {
        let (config_type, layer_type) = match content {
            Content::Chart => (
                "application/vnd.cncf.helm.config.v1+json",
                "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
            ),
            Content::Folder => {
                ("application/vnd.cncf.flux.config.v1+json", "application/vnd.cncf.flux.content.v1.tar+gzip")
            }
        };
        let layer = self.push_blob(repository, layer_type, archive)?;
        self.push_manifest(repository, tag, config_type, &layer)
    }

    /// Signs an artifact as `cosign sign --key` does, without a transparency log: the signature is an artifact with a tag of its own.
    pub fn sign(&self, repository: &str, digest: &str, key: &KeyPair) -> Result<()> {
        let payload = json!({
            "critical": {
                "identity": {"docker-reference": format!("{}/{repository}", self.address)},
                "image": {"docker-manifest-digest": digest},
                "type": "cosign container image signature",
            },
            "optional": null,
        })
        .to_string();
        let signature = BASE64.encode(&key.sign(payload.as_bytes())?);
        let media_type = "application/vnd.dev.cosign.simplesigning.v1+json";
        let mut layer = self.push_blob(repository, media_type, payload.as_bytes())?;
        layer["annotations"] = json!({"dev.cosignproject.cosign/signature": signature});
        let tag = format!("{}.sig", digest.replace(':', "-"));
        self.push_manifest(repository, &tag, "application/vnd.oci.image.config.v1+json", &layer).map(drop)
    }

    fn push_manifest(&self, repository: &str, tag: &str, config_type: &str, layer: &Value) -> Result<String> {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.push_blob(repository, config_type, b"{}")?,
            "layers": [layer],
        })
        .to_string();
        let url = format!("http://{}/v2/{repository}/manifests/{tag}", self.address);
        let digest = digest(manifest.as_bytes());
        let request =
            self.client.put(url).header("Content-Type", "application/vnd.oci.image.manifest.v1+json");
        let answer = request.body(manifest).send()?;
        ensure!(answer.status().is_success(), "{repository}:{tag}: {}: {}", answer.status(), answer.text()?);
        Ok(digest)
    }

    fn push_blob(&self, repository: &str, media_type: &str, blob: &[u8]) -> Result<Value> {
        let digest = digest(blob);
        let begin = self
            .client
            .post(format!("http://{}/v2/{repository}/blobs/uploads/", self.address))
            .send()?
            .error_for_status()?;
        let to = begin.headers().get("Location").context("no place to upload to")?.to_str()?;
        let mut url = begin.url().join(to)?;
        url.query_pairs_mut().append_pair("digest", &digest);
        let put = self.client.put(url).body(blob.to_vec()).send()?;
        ensure!(put.status().is_success(), "{repository}: {}: {}", put.status(), put.text()?);
        Ok(json!({"mediaType": media_type, "digest": digest, "size": blob.len()}))
    }
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(content)))
}
