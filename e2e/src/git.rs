//! A Git repository over HTTP, with nothing but the `git` command: what a GitRepository fetches from.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::listener::{self, Request, Response};

/// Commits a copy of a folder as `below` in a new repository, and serves it. Says its URL.
pub fn serve(scratch: &Path, content: &Path, below: &str) -> Result<String> {
    let (work, bare) = (scratch.join("work"), scratch.join("plane.git"));
    std::fs::create_dir_all(&work)?;
    let to = work.join(below);
    run(Command::new("cp").arg("-r").arg(content).arg(&to))?;
    let git = |arguments: &[&str]| run(Command::new("git").arg("-C").arg(&work).args(arguments));
    git(&["init", "--quiet", "--initial-branch=main"])?;
    git(&["add", "."])?;
    git(&[
        "-c",
        "user.name=e2e",
        "-c",
        "user.email=e2e@example.com",
        "-c",
        "commit.gpgsign=false",
        "commit",
        "--quiet",
        "--message=the plane",
    ])?;
    run(Command::new("git").args(["clone", "--quiet", "--bare"]).arg(&work).arg(&bare))?;
    let address = listener::serve(move |request| {
        answer(&bare, request).unwrap_or_else(|error| {
            eprintln!("e2e: git: {error:#}");
            Response::status(500)
        })
    })?;
    Ok(format!("http://{address}/plane.git"))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Git's "smart" protocol: what there is, and then a pack of what is wanted.
fn answer(bare: &PathBuf, request: &Request) -> Result<Response> {
    let upload = |arguments: &[&str], input: &[u8]| -> Result<Vec<u8>> {
        let mut child = Command::new("git")
            .args(["upload-pack", "--stateless-rpc"])
            .args(arguments)
            .arg(bare)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        child.stdin.take().context("stdin")?.write_all(input)?;
        Ok(child.wait_with_output()?.stdout)
    };
    match request.path.as_str() {
        "/plane.git/info/refs?service=git-upload-pack" => {
            let mut body = b"001e# service=git-upload-pack\n0000".to_vec();
            body.extend(upload(&["--advertise-refs"], &[])?);
            Ok(Response { status: 200, media_type: "application/x-git-upload-pack-advertisement", body })
        }
        "/plane.git/git-upload-pack" => {
            let body = upload(&[], &request.body)?;
            Ok(Response { status: 200, media_type: "application/x-git-upload-pack-result", body })
        }
        _ => Ok(Response::status(404)),
    }
}
