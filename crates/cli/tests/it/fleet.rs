//! The fleet that every test begins with: three clusters, one of them protected; overrides, patches and a component that is off.

use serde_json::{Value, json};

pub(crate) const READER: &str = "reader-token";
pub(crate) const ADMIN: &str = "admin-token";
/// Somebody else who may change the fleet.
pub(crate) const ALICE: &str = "token-of-alice";

pub(crate) fn fleet() -> Value {
    json!({
        "clusters": [
            {"id": "east", "cluster_name": "east", "cluster_dns": "east.k8s.example.com", "environment": "prod",
             "labels": {"region": "eu", "tier": "gold"}, "node_count": 3,
             "platform_components": [{"id": "cert-manager"}, {"id": "podinfo", "oci_tag": "6.8.0"}],
             "namespaces": [{"id": "team-a"}, {"id": "team-b", "labels": {"cost": "east"}}],
             "rolebindings": [{"id": "viewers"}],
             "patches": {"podinfo": {"replicaCount": "3", "ui.message": "hello east"}}},
            {"id": "north", "cluster_name": "north", "cluster_dns": "north.k8s.example.com", "environment": "dev",
             "labels": {"region": "eu"}, "protected": true,
             "platform_components": [{"id": "podinfo", "enabled": false}], "namespaces": [{"id": "team-a"}]},
            {"id": "west", "cluster_name": "west", "cluster_dns": "west.k8s.example.com", "environment": "prod",
             "labels": {"region": "us"},
             "platform_components": [{"id": "cert-manager"}, {"id": "podinfo"}],
             "namespaces": [{"id": "team-a"}], "rolebindings": [{"id": "viewers"}]},
        ],
        "platform_components": [
            {"id": "cert-manager", "component_path": "cert-manager", "oci_url": "https://charts.jetstack.io", "oci_tag": "v1.15.0"},
            {"id": "podinfo", "component_path": "podinfo", "component_version": "6", "delivery": "helm",
             "oci_url": "oci://ghcr.io/stefanprodan/charts/podinfo", "oci_tag": "6.7.1", "depends_on": ["cert-manager"]},
            {"id": "traefik", "component_path": "traefik", "oci_url": "https://traefik.github.io/charts", "oci_tag": "33.2.1"},
        ],
        "namespaces": [
            {"id": "spare"},
            {"id": "team-a", "labels": {"team": "a"}},
            {"id": "team-b", "labels": {"team": "b"}, "annotations": {"example.com/owner": "b@example.com"}},
        ],
        "rolebindings": [
            {"id": "viewers", "role": "view",
             "subjects": [{"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}]},
        ],
    })
}
