//! The demo, as a new user meets it: `make demo`, `make cli-demo`, `make demo-clean`, in a folder of its own and without containers.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::checkout::{our_binary, repository, run_folder};

use crate::Offline;

pub(crate) const OFFLINE: &[(&str, Offline)] =
    &[("it_starts_shows_everything_on_the_command_line_and_leaves_nothing_behind", from_start_to_end)];

fn from_start_to_end() -> Result<()> {
    let folder = run_folder(&format!("run-{}-demo", std::process::id()))?;
    std::fs::create_dir_all(&folder)?;
    let demo = folder.join("demo");
    let script = |name: &str, arguments: &[&str]| -> Result<String> {
        let binary = our_binary()?;
        let output = Command::new(repository().join("scripts").join(name))
            .args(arguments)
            .env("DEMO", "local")
            // Whatever ends this process.
            .env("DEMO_AS_LONG_AS", std::process::id().to_string())
            .env("DEMO_FOLDER", &demo)
            .env("DEMO_PROGRAMS", binary.parent().unwrap_or(Path::new("/")))
            .env("FLUX_API_CONFIG", folder.join("config.yaml"))
            .output()?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let end: Vec<&str> = out.lines().rev().take(20).collect();
        let end: Vec<&str> = end.into_iter().rev().collect();
        ensure!(output.status.success(), "scripts/{name} {}: {err}\n{}", arguments.join(" "), end.join("\n"));
        Ok(out.into_owned())
    };
    let began = Instant::now();
    let outcome = (|| {
        let guide = script("demo", &[])?;
        ensure!(guide.contains("demo-cluster-01 follows the service"), "{guide}");
        let ready = began.elapsed();
        let shown = script("cli-demo", &[])?;
        let last = shown.lines().find(|line| line.starts_with("That is all, in ")).context("its end")?;
        crate::figure(format!("the demo runs after {:.0} s; its flow: {last}", ready.as_secs_f32()));
        for step in 1..=7 {
            ensure!(shown.contains(&format!("\n{step}. ")), "it leaves step {step} out:\n{shown}");
        }
        let config = std::fs::read_to_string(folder.join("config.yaml"))?;
        ensure!(config.contains("name: demo"), "it leaves no context: {config}");
        Ok(())
    })();
    // However that ended.
    let cleaned = script("demo", &["clean"]);
    outcome?;
    ensure!(cleaned? == "Nothing of the demo is left.\n", "it says something else");
    ensure!(!demo.exists(), "{} is left behind", demo.display());
    Ok(std::fs::remove_dir_all(&folder)?)
}
