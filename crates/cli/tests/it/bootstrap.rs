//! `cluster bootstrap`.

use crate::fleet::{ADMIN, ALICE, READER};
use crate::frs::{Desk, World};
use crate::snapshot::snapshot;

const OCI: &str =
    "cluster bootstrap east --plane oci://ghcr.io/example/plane --service-url https://fleet.example.com/";
const GIT: &str = "cluster bootstrap east --plane https://git.example.com/fleet.git --service-url https://fleet.example.com";

#[test]
fn a_cluster_is_given_its_identity_its_token_and_the_sync() {
    let world = World::new().with("FLUX_CLUSTER_TOKEN", READER);
    snapshot!(world.harmless(&[
        OCI,
        &format!("{OCI} --tag v2 --path ./demo --component ../tls --component ../adoption/all"),
        &format!("{GIT} --tag release"),
        &format!("{OCI} --flux-instance --tag v2 --component ../tls"),
    ]));
}

#[test]
fn its_token_comes_from_a_file_or_the_environment_and_else_is_a_placeholder() {
    let world = World::new();
    let secret = |run: crate::frs::Run| {
        let line = run.stdout.lines().find(|line| line.trim_start().starts_with("token:")).map(str::trim);
        (line.unwrap_or_default().to_owned(), run.stderr)
    };
    let (line, warning) = secret(world.frs(OCI).expect(0));
    assert_eq!(line, "token: replace-me");
    world.desk.file("token", "token-of-file\n");
    let world = world.with("FLUX_CLUSTER_TOKEN", "token-of-environment");
    let unknown = "warning: the service does not know the cluster's token: it would be answered 401\n";
    let of_environment = secret(world.frs(OCI).expect(0));
    assert_eq!(of_environment, ("token: token-of-environment".to_owned(), unknown.to_owned()));
    let of_file = world.frs(&format!("{OCI} --token-file token")).expect(0);
    assert_eq!(secret(of_file), ("token: token-of-file".to_owned(), unknown.to_owned()));
    let known = world.with("FLUX_CLUSTER_TOKEN", READER).frs(OCI).expect(0);
    assert_eq!(secret(known), (format!("token: {READER}"), String::new()));
    snapshot!(warning);
}

/// Whichever way it comes, and whether it is the command line's own or not.
#[test]
fn the_token_that_manages_the_fleet_is_never_given_away() {
    let world = World::new().with("FLUX_CLUSTER_TOKEN", ADMIN);
    world.desk.file("token", ADMIN);
    snapshot!(world.harmless(&[OCI, &format!("{OCI} --token-file token")]));
    let url = world.service.url();
    for (own, given) in [
        (Desk::at(&url).with("FLUX_API_TOKEN", ALICE), ALICE),
        (Desk::at(&url).with("FLUX_API_TOKEN", ALICE), ADMIN),
        (Desk::at(&url).with("FLUX_API_TOKEN", ALICE).with("FLUX_API_WRITE_TOKEN", ADMIN), ALICE),
        (Desk::at(&url).with("FLUX_API_TOKEN", READER).with("FLUX_API_WRITE_TOKEN", ADMIN), ADMIN),
    ] {
        let run = own.with("FLUX_CLUSTER_TOKEN", given).frs(OCI).expect(1);
        assert_eq!(run.stdout, "");
        assert!(run.stderr.contains("a cluster must not have it"), "{run}");
    }
    // The token for polls may be given to a cluster: it is what clusters poll with.
    let both = world.with("FLUX_API_TOKEN", READER).with("FLUX_API_WRITE_TOKEN", ADMIN);
    both.with("FLUX_CLUSTER_TOKEN", READER).frs(OCI).expect(0);
}

#[test]
fn what_is_not_said_comes_from_the_context_or_is_warned_of() {
    let world = World::new().with("FLUX_CLUSTER_TOKEN", READER);
    let url = world.service.url();
    let context = format!("config set-context here --url {url} --token {ADMIN}");
    world.frs(&context).expect(0);
    let line = "cluster bootstrap east --context here";
    let unknown = world.frs(line).expect(0);
    assert!(unknown.stdout.contains(&format!("INTERNAL_API_URL: {url}\n")), "{unknown}");
    world.frs(&format!("{context} --poll-url https://polls.example.com")).expect(0);
    let known = world.frs(&format!("{line} --plane oci://ghcr.io/example/plane")).expect(0);
    assert!(known.stdout.contains("INTERNAL_API_URL: https://polls.example.com\n"), "{known}");
    assert_eq!(known.stderr, "");
    snapshot!(unknown.to_string());
}

#[test]
fn what_cannot_be_bootstrapped_is_refused() {
    let world = World::new().with("FLUX_CLUSTER_TOKEN", READER);
    world.desk.file("two", "a\nb\n");
    world.desk.file("none", "\n");
    snapshot!(world.harmless(&[
        "cluster bootstrap nobody --plane oci://x/y --service-url https://fleet.example.com",
        "cluster bootstrap east --plane ghcr.io/x/y --service-url https://fleet.example.com",
        &format!("{GIT} --flux-instance"),
        &format!("{OCI} --token-file two"),
        &format!("{OCI} --token-file none"),
        &format!("{OCI} --token-file nowhere"),
    ]));
}
