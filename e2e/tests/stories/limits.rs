//! The bounds of the operator, and ours before them.

use anyhow::{Context, Result, ensure};
use e2e::kube::{Kind, Place};
use e2e::world::World;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{Story, catalog};

pub(crate) const STORIES: &[(&str, Story)] = &[
    ("150_inputs_all_arrive", all_arrive),
    ("the_largest_answer_that_we_accept_is_accepted_and_one_byte_more_is_refused_at_the_write", largest),
    ("what_kubernetes_stores_escaped_counts_as_it_is_stored", escaped),
];

/// The operator takes no longer body.
const BODY: usize = 900 * 1024;
/// What etcd can still take, with `<`, `>` and `&` as six bytes each.
const STORED: usize = 1024 * 1024;
/// So many namespaces carry the weight: a document is at most 64 KiB.
const CARRIERS: usize = 16;

fn assign(world: &World, namespaces: &[Value]) -> Result<()> {
    catalog::assign(&world.service, &[("namespaces", namespaces)])
}

/// Takes them away again, and waits until they are gone.
fn unassign(world: &World, namespaces: &[Value]) -> Result<()> {
    catalog::unassign(&world.service, &[("namespaces", namespaces)])?;
    world.east.follow("namespaces")?;
    for namespace in namespaces {
        world.east.kube.gone(&Place::global(Kind::NAMESPACE, namespace["id"].as_str().context("an id")?))?;
    }
    Ok(())
}

fn all_arrive(world: &mut World) -> Result<()> {
    let exported = || -> Result<usize> {
        let provider = world.east.kube.get(&Place::flux(Kind::PROVIDER, "namespaces"))?;
        Ok(provider["status"]["exportedInputs"].as_array().map_or(0, Vec::len))
    };
    let before = exported()?;
    let namespaces: Vec<Value> = (0..150).map(|n| json!({"id": format!("many-{n:03}")})).collect();
    assign(world, &namespaces)?;
    world.east.follow("namespaces")?;
    ensure!(exported()? == before + 150, "{} inputs were exported, {before} before", exported()?);
    for namespace in &namespaces {
        world.east.kube.get(&Place::global(Kind::NAMESPACE, namespace["id"].as_str().context("an id")?))?;
    }
    unassign(world, &namespaces)
}

/// The size of east's answer: as it is sent, and as Kubernetes stores it.
fn sizes(world: &World) -> Result<(usize, usize)> {
    let body = world.service.poll_text(&world.east.identity.dns, "namespaces")?;
    let escaped = body.bytes().filter(|byte| b"<>&".contains(byte)).count();
    Ok((body.len(), body.len() + 5 * escaped))
}

/// Gives a carrier another load.
fn load(world: &World, carrier: usize, load: &str) -> Result<u16> {
    let path = format!("/namespaces/heavy-{carrier:02}");
    let answer =
        world.service.request(Method::PATCH, &path, Some(&json!({"annotations": {"load": load}})), &[])?;
    if answer.status >= 300 {
        let body = answer.body.to_string();
        ensure!(body.contains("east"), "the refusal does not name the cluster: {body}");
    }
    Ok(answer.status)
}

/// Loads the carriers until `size` is exactly `limit`, then asks for one byte more, and sees what the operator makes of it.
fn fill(world: &World, unit: &str, limit: usize, size: impl Fn() -> Result<usize>) -> Result<()> {
    let namespaces: Vec<Value> =
        (0..CARRIERS).map(|n| json!({"id": format!("heavy-{n:02}"), "annotations": {"load": "x"}})).collect();
    assign(world, &namespaces)?;
    // A full load is the same for all but the last two, which make up for the rest.
    let empty = size()?;
    let weight = if unit == "<" { 6 } else { 1 };
    let full = (limit - empty) / (CARRIERS - 1) / weight;
    for carrier in 0..CARRIERS - 2 {
        ensure!(load(world, carrier, &unit.repeat(full))? == 200, "carrier {carrier} was refused");
    }
    let rest = limit - size()?;
    ensure!(
        load(world, CARRIERS - 2, &unit.repeat(rest / 2 / weight))? == 200,
        "the last but one was refused"
    );
    let rest = limit - size()?;
    // Whole units, and single bytes for what is left of them. The load was one byte.
    let exact =
        |extra: usize| format!("{}{}", unit.repeat(rest / weight), "y".repeat(rest % weight + 1 + extra));
    ensure!(load(world, CARRIERS - 1, &exact(0))? == 200, "exactly {limit} was refused");
    ensure!(size()? == limit, "{} is not {limit}", size()?);

    world.east.follow("namespaces")?;
    let revision = world.east.poll("namespaces")?;
    let arrived =
        world.east.kube.get(&Place::global(Kind::NAMESPACE, &format!("heavy-{:02}", CARRIERS - 1)))?;
    ensure!(arrived["metadata"]["annotations"]["load"] == exact(0), "another load arrived");

    ensure!(load(world, CARRIERS - 1, &exact(1))? == 422, "one byte more was not refused");
    ensure!(world.east.poll("namespaces")? == revision, "what was refused got there");
    unassign(world, &namespaces)
}

fn largest(world: &mut World) -> Result<()> {
    let world = &*world;
    fill(world, "x", BODY, || Ok(sizes(world)?.0))
}

fn escaped(world: &mut World) -> Result<()> {
    let world = &*world;
    fill(world, "<", STORED, || Ok(sizes(world)?.1))
}
