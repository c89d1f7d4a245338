//! The names that a kind and its filters cannot have, because routes have them: read off the table, and those of routes to come.

use std::collections::BTreeSet;

use fleet::{CLUSTERS, Reserved};

use super::Route;

/// Names of kinds that routes to come will need. Kinds come from files of users: a name that is given away cannot be taken back.
const LATER: [&str; 21] = [
    "changes",
    "credentials",
    "diff",
    "docs",
    "explain",
    "feed",
    "freezes",
    "openapi",
    "openapi.json",
    "openapi.yaml",
    "overrides",
    "plans",
    "profiles",
    "rollouts",
    "static",
    "status",
    "tokens",
    "ui",
    "versions",
    "watch",
    "webhooks",
];
/// The same, of what will stand beside a kind in the paths that a cluster polls.
const LATER_CLUSTER_PATHS: [&str; 2] = ["events", "kinds"];
/// The same, of query parameters.
const LATER_PARAMETERS: [&str; 1] = ["at"];

/// The fixed segment that follows one of these beginnings in a path.
fn after<'a>(path: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    let rest = beginnings.iter().find_map(|beginning| path.strip_prefix(beginning))?;
    rest.split('/').next().filter(|segment| !segment.starts_with('{'))
}

/// What these routes, and those to come, keep for themselves.
pub(super) fn reserved_by(routes: &[&'static Route]) -> Reserved {
    let mut kinds = BTreeSet::from(LATER);
    let mut cluster_paths = BTreeSet::from(LATER_CLUSTER_PATHS);
    let mut query_parameters = BTreeSet::from(LATER_PARAMETERS);
    for route in routes {
        // `clusters` is a kind itself.
        kinds.extend(after(route.path, &["/"]).filter(|name| *name != CLUSTERS));
        // Beside the kinds that a cluster refers to.
        kinds.extend(after(route.path, &["/clusters/{id}/", "/{kind}/{id}/"]));
        cluster_paths.extend(after(route.path, &["/api/v2/flux/clusters/{dns}/"]));
        if route.path == "/{kind}" {
            query_parameters.extend(route.query.parameters().iter().map(|parameter| parameter.name));
        }
    }
    Reserved {
        kinds: kinds.into_iter().collect(),
        cluster_paths: cluster_paths.into_iter().collect(),
        query_parameters: query_parameters.into_iter().collect(),
    }
}
