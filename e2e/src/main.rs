//! `e2e up` leaves the loop running to play with, `e2e down` ends it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use e2e::checkout::run_folder;
use e2e::service::{ADMIN_TOKEN, CLUSTER_TOKEN};
use e2e::wait::within;
use e2e::world::World;
use rustix::process::{Pid, Signal, kill_process};

/// The real loop on this machine: Kubernetes, the Flux Operator, and our service.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand)]
enum What {
    /// Start it in the background, and say how to use it.
    Up,
    /// End it, and forget what it held.
    Down,
    /// Start it, and hold it until a signal comes.
    #[command(hide = true)]
    Hold,
}

fn main() -> Result<()> {
    let folder = run_folder("up")?;
    match Arguments::parse().command {
        What::Up => up(&folder),
        What::Down => down(&folder),
        What::Hold => hold(&folder),
    }
}

fn holder(folder: &Path) -> Option<Pid> {
    let pid = std::fs::read_to_string(folder.join("pid")).ok()?.trim().parse().ok()?;
    let pid = Pid::from_raw(pid)?;
    // The number may belong to somebody else by now.
    let command = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    command.ends_with("\0hold\0").then_some(pid)
}

fn guide(folder: &Path) -> PathBuf {
    folder.join("guide.txt")
}

fn up(folder: &Path) -> Result<()> {
    if holder(folder).is_some() {
        print!(
            "{}",
            std::fs::read_to_string(guide(folder)).unwrap_or_else(|_| "It is starting.\n".to_owned())
        );
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let log = std::fs::File::create(folder.join("log"))?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("hold")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in this terminal is not for it.
        .process_group(0)
        .spawn()?;
    std::fs::write(folder.join("pid"), child.id().to_string())?;
    let mut said = 0;
    // The parts may have to be built first.
    within(Duration::from_hours(1), "the loop runs", || {
        let log = std::fs::read_to_string(folder.join("log"))?;
        eprint!("{}", &log[said..]);
        said = log.len();
        if let Some(status) = child.try_wait()? {
            return Ok(Err(anyhow::anyhow!("it ended with {status}; the logs are in {}", folder.display())));
        }
        ensure!(guide(folder).exists(), "it is starting");
        Ok(Ok(()))
    })??;
    print!("{}", std::fs::read_to_string(guide(folder))?);
    Ok(())
}

fn down(folder: &Path) -> Result<()> {
    if let Some(pid) = holder(folder) {
        // What it started ends with it.
        kill_process(pid, Signal::TERM)?;
        within(Duration::from_secs(30), "the loop ends", || match holder(folder) {
            None => Ok(()),
            Some(_) => bail!("it runs"),
        })?;
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    println!("Nothing of it is left.");
    Ok(())
}

fn hold(folder: &Path) -> Result<()> {
    let world = World::start(folder)?;
    let path = guide(folder);
    std::fs::write(path.with_extension("new"), usage(&world))?;
    std::fs::rename(path.with_extension("new"), &path)?;
    loop {
        std::thread::park();
    }
}

fn usage(world: &World) -> String {
    let (east, west) = (world.east.kube.kubeconfig().display(), world.west.kube.kubeconfig().display());
    let kubectl = world.parts.binary("kubectl");
    let bin = kubectl.parent().unwrap_or(&kubectl).display();
    let (api, polls, folder) =
        (world.service.manage_url(), world.service.poll_url(), world.folder().display());
    format!(
        "
  Two clusters, east (dev) and west (prod), follow one service. `make e2e-down` ends all of it. Logs are in {folder}/logs.

  manage the fleet   {api}   token {ADMIN_TOKEN}
  clusters poll      {polls}   token {CLUSTER_TOKEN}

  To paste into another terminal:

  export PATH={bin}:$PATH KUBECONFIG={east} API={api} TOKEN={ADMIN_TOKEN}
  # for the other cluster: export KUBECONFIG={west}

  kubectl get resourcesetinputproviders,resourcesets,helmreleases,kustomizations -n flux-system

  curl -X PATCH -H \"Authorization: Bearer $TOKEN\" -H 'Content-Type: application/json' $API/clusters/east -d '{{\"patches\":{{\"podinfo\":{{\"replicaCount\":\"3\"}}}}}}'
  kubectl annotate -n flux-system resourcesetinputprovider platform-components reconcile.fluxcd.io/requestedAt=\"$(date +%s)\" --overwrite
  kubectl get pods -n podinfo --watch

"
    )
}
