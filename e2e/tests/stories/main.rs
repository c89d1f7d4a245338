//! The promises of the documents, followed through the real loop. Each story is a test with a name; they run one after another in one
//! world, which is started for the first story that needs it and ended with the last.

mod adoption;
mod boot;
mod changes;
mod decommission;
mod independence;
mod limits;
mod management;
mod nasty;
mod options;
mod outage;
mod poison;
mod stability;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use e2e::world::{World, folder};
use libtest_mimic::{Arguments, Failed, Trial};

/// A story in the world.
type Story = fn(&mut World) -> Result<()>;

/// A story that needs no world.
type Offline = fn() -> Result<()>;

/// In the order in which they run: each leaves the two clusters as the next one expects them.
const STORIES: &[&[(&str, Story)]] = &[
    boot::STORIES,
    changes::STORIES,
    independence::STORIES,
    management::STORIES,
    stability::STORIES,
    limits::STORIES,
    poison::STORIES,
    options::STORIES,
    adoption::STORIES,
    outage::STORIES,
    decommission::STORIES,
];

/// What was measured on the way, for the end.
static FIGURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes something that was measured.
fn figure(what: String) {
    FIGURES.lock().unwrap_or_else(PoisonError::into_inner).push(what);
}

/// What is in one and not in the other.
fn difference(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let lost = before
        .iter()
        .filter(|entry| after.get(entry.0) != Some(entry.1))
        .map(|entry| format!("- {} {}", entry.0, entry.1));
    let new = after
        .iter()
        .filter(|entry| before.get(entry.0) != Some(entry.1))
        .map(|entry| format!("+ {} {}", entry.0, entry.1));
    lost.chain(new).collect()
}

/// The world, once a story has needed it; or why it could not be started.
type Shared = Arc<Mutex<Option<Result<World, String>>>>;

fn in_the_world(world: &Shared, story: Story) -> Result<(), Failed> {
    let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
    let start = || World::start(&folder(&format!("run-{}", std::process::id()))?);
    let world = world.get_or_insert_with(|| start().map_err(|error| format!("{error:#}")));
    let world = world.as_mut().map_err(|error| format!("the world did not start: {error}"))?;
    world.east.flux.alive()?;
    world.west.flux.alive()?;
    story(world).map_err(|error| format!("{error:#}").into())
}

fn main() -> ExitCode {
    // One after another, in this thread: they share the world, and its processes end with the thread that started them.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let world = Shared::default();
    let mut trials = Vec::new();
    for (name, story) in [poison::OFFLINE, options::OFFLINE] {
        trials.push(Trial::test(name, move || story().map_err(|error| format!("{error:#}").into())));
    }
    for (name, story) in STORIES.iter().copied().flatten() {
        let world = world.clone();
        trials.push(Trial::test(*name, move || in_the_world(&world, *story)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);

    let world = world.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Ok(world)) = world {
        let (plane, flux) = world.east.memory();
        figure(format!("a cluster's control plane holds {plane} MiB, the Flux Operator and Flux {flux} MiB"));
        for figure in FIGURES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            println!("e2e: {figure}");
        }
        match world.end(conclusion.has_failed()) {
            Ok(logs) if conclusion.has_failed() => eprintln!("e2e: the logs are kept in {}", logs.display()),
            Ok(_) => {}
            Err(error) => eprintln!("e2e: {error:#}"),
        }
    }
    conclusion.exit_code()
}
