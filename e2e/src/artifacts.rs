//! Archives as Flux fetches them: charts and folders, made here so that the loop needs nothing of the Internet.

use std::path::Path;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A `tar.gz` of these files.
pub fn archive<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content)?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// A `tar.gz` of a folder's content.
pub fn folder(path: &Path) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    tar.append_dir_all(".", path)?;
    Ok(tar.into_inner()?.finish()?)
}

/// A small chart: a Deployment with `replicaCount`, and a ConfigMap that shows which values arrived, as JSON, and from which version.
pub fn chart(name: &str, version: &str) -> Result<Vec<u8>> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: {version}\n");
    let deployment = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
spec:
  replicas: {{ .Values.replicaCount | default 1 }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
        - name: main
          image: registry.example.com/{{ .Chart.Name }}:{{ .Chart.AppVersion }}
";
    let seen = "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-seen
  namespace: {{ .Release.Namespace }}
data:
  values: {{ .Values | toJson | quote }}
";
    let path = |file: &str| format!("{name}/{file}");
    let files = [
        (path("Chart.yaml"), metadata.as_str()),
        (path("values.yaml"), "{}\n"),
        (path("templates/deployment.yaml"), deployment),
        (path("templates/seen.yaml"), seen),
    ];
    archive(files.iter().map(|(path, content)| (path.as_str(), content.as_bytes())))
}

/// Directories as a repository of platform components has them: `<component>/<version>/{base,dev,prod}`, each a ConfigMap that says which
/// overlay it is, from which release of the artifact, and what was substituted.
pub fn overlays(component: &str, version: &str, release: &str) -> Result<Vec<u8>> {
    let base = format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: {component}
  namespace: flux-system
data:
  overlay: base
  version: \"{version}\"
  release: \"{release}\"
  log: \"${{LOG_LEVEL:=info}}\"
  cluster: \"${{CLUSTER_DNS}}\"
"
    );
    let overlay = |environment: &str| {
        format!(
            "resources: [../base]
patches:
  - patch: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {{name: {component}, namespace: flux-system}}
      data: {{overlay: {environment}}}
"
        )
    };
    let path = |file: &str| format!("core/{component}/{version}/{file}");
    let files = [
        (path("base/kustomization.yaml"), "resources: [objects.yaml]\n".to_owned()),
        (path("base/objects.yaml"), base),
        (path("dev/kustomization.yaml"), overlay("dev")),
        (path("prod/kustomization.yaml"), overlay("prod")),
    ];
    archive(files.iter().map(|(path, content)| (path.as_str(), content.as_bytes())))
}
