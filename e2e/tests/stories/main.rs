//! The promises of the documents, followed through the real loop. Each story is a test with a name; they run one after another in one
//! world, which is started for the first story that needs it and ended with the last.

mod boot;
mod changes;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use e2e::world::World;
use libtest_mimic::{Arguments, Failed, Trial};

/// A story in the world.
type Story = fn(&mut World) -> Result<()>;

/// The world, once a story has needed it; or why it could not be started.
type Shared = Arc<Mutex<Option<Result<World, String>>>>;

fn in_the_world(world: &Shared, story: Story) -> Result<(), Failed> {
    let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
    let world = world.get_or_insert_with(|| World::start().map_err(|error| format!("{error:#}")));
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
    for (name, story) in [boot::STORIES, changes::STORIES].into_iter().flatten() {
        let world = world.clone();
        trials.push(Trial::test(*name, move || in_the_world(&world, *story)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);

    let world = world.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Ok(world)) = world {
        let folder = world.folder().to_owned();
        drop(world);
        if conclusion.has_failed() {
            eprintln!("e2e: the logs are kept in {}", folder.join("logs").display());
        } else if let Err(error) = std::fs::remove_dir_all(&folder) {
            eprintln!("e2e: {}: {error}", folder.display());
        }
    }
    conclusion.exit_code()
}
