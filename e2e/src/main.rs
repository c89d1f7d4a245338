//! The demo on this machine without containers, as `scripts/demo` starts and ends it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use e2e::demo::Demo;
use e2e::wait::within;
use rustix::process::{Pid, Signal, kill_process};

/// The demo on this machine: Kubernetes, the Flux Operator, and our service, each a process.
#[derive(Parser)]
struct Arguments {
    /// Where its logs and data are
    #[arg(long)]
    folder: PathBuf,
    /// End with the process of this number
    #[arg(long, env = "DEMO_AS_LONG_AS", hide = true)]
    as_long_as: Option<u32>,
    #[command(subcommand)]
    command: What,
}

#[derive(Subcommand)]
enum What {
    /// Start it in the background, and print its settings
    Up,
    /// End it, and forget what it held
    Down,
    /// End the service, and leave the cluster alone
    StopApi,
    /// Start the service again
    StartApi,
    /// Start it, and hold it until a signal comes
    #[command(hide = true)]
    Hold,
}

fn main() -> ExitCode {
    let Arguments { folder, as_long_as, command } = Arguments::parse();
    let outcome = match command {
        What::Up => up(&folder),
        What::Down => down(&folder),
        What::StopApi => want(&folder, Api::Stopped),
        What::StartApi => want(&folder, Api::Runs),
        What::Hold => hold(&folder, as_long_as),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The service's two processes. Only the thread that holds them can start one, so it is told by a file what is wanted, and tells by another
/// what is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Api {
    Runs,
    Stopped,
}

const WANTED: &str = "api-wanted";
const FOUND: &str = "api-found";
const SETTINGS: &str = "settings";

impl Api {
    fn word(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Stopped => "stopped",
        }
    }

    fn read(file: &Path) -> Option<Self> {
        let word = std::fs::read_to_string(file).ok()?;
        [Self::Runs, Self::Stopped].into_iter().find(|api| api.word() == word)
    }
}

/// Writes a file that others read meanwhile.
fn write(file: &Path, content: &str) -> Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, content)?;
    Ok(std::fs::rename(new, file)?)
}

fn holder(folder: &Path) -> Option<Pid> {
    let pid = std::fs::read_to_string(folder.join("pid")).ok()?.trim().parse().ok()?;
    let pid = Pid::from_raw(pid)?;
    // The number may belong to somebody else by now.
    let command = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
    command.ends_with("\0hold\0").then_some(pid)
}

fn up(folder: &Path) -> Result<()> {
    let settings = folder.join(SETTINGS);
    let mut started = None;
    if holder(folder).is_none() {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let log = std::fs::File::create(folder.join("log"))?;
        // Whatever happens to this terminal is not for it.
        let child = Command::new("setsid")
            .arg(std::env::current_exe()?)
            .arg("--folder")
            .arg(folder)
            .arg("hold")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        std::fs::write(folder.join("pid"), child.id().to_string())?;
        started = Some(child);
    }
    let mut said = 0;
    // The parts may have to be built first.
    within(Duration::from_hours(1), "the demo runs", || {
        let log = std::fs::read_to_string(folder.join("log"))?;
        eprint!("{}", &log[said..]);
        said = log.len();
        if settings.exists() {
            return Ok(Ok(()));
        }
        let ended = match &mut started {
            Some(child) => child.try_wait()?.is_some(),
            None => holder(folder).is_none(),
        };
        if ended {
            return Ok(Err(anyhow::anyhow!("it has ended; its logs are in {}", folder.display())));
        }
        bail!("it is starting")
    })??;
    print!("{}", std::fs::read_to_string(settings)?);
    Ok(())
}

fn down(folder: &Path) -> Result<()> {
    if let Some(pid) = holder(folder) {
        // What it started ends with it.
        kill_process(pid, Signal::TERM)?;
        within(Duration::from_secs(30), "the demo ends", || match holder(folder) {
            None => Ok(()),
            Some(_) => bail!("it runs"),
        })?;
    }
    if folder.exists() {
        // A process that was just told to end may still write.
        within(Duration::from_secs(30), "its folder goes", || {
            std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())
        })?;
    }
    Ok(())
}

fn want(folder: &Path, api: Api) -> Result<()> {
    ensure!(holder(folder).is_some(), "the demo does not run");
    write(&folder.join(WANTED), api.word())?;
    within(Duration::from_mins(2), &format!("the service is to be: {}", api.word()), || {
        ensure!(holder(folder).is_some(), "the demo has ended; its logs are in {}", folder.display());
        ensure!(Api::read(&folder.join(FOUND)) == Some(api), "it is not");
        Ok(())
    })
}

fn hold(folder: &Path, as_long_as: Option<u32>) -> Result<()> {
    let mut demo = Demo::start(folder)?;
    let mut found = Api::Runs;
    write(&folder.join(FOUND), found.word())?;
    write(&folder.join(SETTINGS), &demo.settings())?;
    loop {
        let wanted = Api::read(&folder.join(WANTED)).unwrap_or(found);
        if wanted != found {
            match wanted {
                Api::Runs => demo.service.resume()?,
                Api::Stopped => demo.service.stop()?,
            }
            found = wanted;
            write(&folder.join(FOUND), found.word())?;
        }
        // Half a cluster would only puzzle whoever plays with it.
        demo.alive()?;
        if as_long_as.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
