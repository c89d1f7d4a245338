//! The promises of the documents, followed through the real loop. Each story is a test with a name; they run one after another in one
//! world, which is started for the first story that needs it and ended with the last.

mod adoption;
mod boot;
mod catalog;
mod changes;
mod command_line;
mod decommission;
mod demo;
mod deploy;
mod independence;
mod limits;
mod management;
mod nasty;
mod options;
mod outage;
mod poison;
mod sources;
mod stability;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use e2e::checkout::run_folder;
use e2e::world::World;
use libtest_mimic::{Arguments, Failed, Trial};

/// A story in the world.
type Story = fn(&mut World) -> Result<()>;

/// A story that needs no world.
type Offline = fn() -> Result<()>;

/// In the order in which they run. A group stands alone on a world that has just been started; within a group the order counts.
const GROUPS: &[(&str, &[(&str, Story)])] = &[
    ("boot", boot::STORIES),
    ("changes", changes::STORIES),
    ("command_line", command_line::STORIES),
    ("sources", sources::STORIES),
    ("independence", independence::STORIES),
    ("management", management::STORIES),
    ("deploy", deploy::STORIES),
    ("stability", stability::STORIES),
    ("limits", limits::STORIES),
    ("poison", poison::STORIES),
    ("options", options::STORIES),
    ("adoption", adoption::STORIES),
    ("outage", outage::STORIES),
    ("decommission", decommission::STORIES),
];

/// These need no world.
const OFFLINE: &[(&str, &[(&str, Offline)])] =
    &[("poison", poison::OFFLINE), ("options", options::OFFLINE), ("demo", demo::OFFLINE)];

/// What was measured on the way, for the end.
static FIGURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes something that was measured.
fn figure(what: String) {
    FIGURES.lock().unwrap_or_else(PoisonError::into_inner).push(what);
}

/// The world, once a story has needed it; or why it could not be started.
type Shared = Arc<Mutex<Option<Result<World, String>>>>;

fn in_the_world(world: &Shared, story: Story) -> Result<()> {
    let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = run_folder(&format!("run-{}", std::process::id()))?;
    let start =
        || World::start(&folder).map_err(|error| format!("{error:#}; the logs are in {}", folder.display()));
    let world = world.get_or_insert_with(start);
    let world = world.as_mut().map_err(|error| anyhow::anyhow!("the world did not start: {error}"))?;
    world.alive()?;
    story(world)
}

/// What has failed so far: what fails afterwards may fail because of that.
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn told(name: &str, outcome: Result<()>) -> Result<(), Failed> {
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    let after = failed.first().map(|first| format!("(after {first} has failed) ")).unwrap_or_default();
    outcome.map_err(|error| {
        failed.push(name.to_owned());
        format!("{after}{error:#}").into()
    })
}

fn main() -> ExitCode {
    // One after another, in this thread: they share the world, and its processes end with the thread that started them.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let world = Shared::default();
    let mut trials = Vec::new();
    for (group, stories) in OFFLINE {
        for (name, story) in *stories {
            let name = format!("{group}::{name}");
            trials.push(Trial::test(name.clone(), move || told(&name, story())));
        }
    }
    for (group, stories) in GROUPS {
        for (name, story) in *stories {
            let (name, world) = (format!("{group}::{name}"), world.clone());
            trials.push(Trial::test(name.clone(), move || told(&name, in_the_world(&world, *story))));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);

    let world = world.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Ok(world)) = &world {
        let (plane, flux) = world.east.memory();
        figure(format!("a cluster's control plane holds {plane} MiB, the Flux Operator and Flux {flux} MiB"));
    }
    for figure in FIGURES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("e2e: {figure}");
    }
    if let Some(Ok(world)) = world {
        match world.end(conclusion.has_failed()) {
            Ok(logs) if conclusion.has_failed() => eprintln!("e2e: the logs are kept in {}", logs.display()),
            Ok(_) => {}
            Err(error) => eprintln!("e2e: {error:#}"),
        }
    }
    conclusion.exit_code()
}
