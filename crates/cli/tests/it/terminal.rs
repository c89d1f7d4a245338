//! A command line on a terminal, with somebody who types.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use harness::PATIENCE;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::frs::{Desk, FRS, words};

/// Ctrl-D.
pub(crate) const END: &str = "\u{4}";

/// A process on a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    pub(crate) fn start(desk: &Desk, line: &str) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&controller).expect("granted");
        unlockpt(&controller).expect("unlocked");
        let name = ptsname(&controller, Vec::new()).expect("a name");
        let flags = i32::try_from(OFlags::NOCTTY.bits()).expect("a flag");
        let end = File::options()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(std::ffi::OsStr::from_bytes(name.as_bytes()))
            .expect("the other end");
        let stdio = || Stdio::from(end.try_clone().expect("a descriptor"));
        let mut command = desk.command(FRS);
        let child = command
            .args(words(line))
            .env("TERM", "xterm-256color")
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .expect("a process");
        let keyboard = File::from(controller);
        let mut reader = keyboard.try_clone().expect("a descriptor");
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // It ends with an error when nobody has the other end any more.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                let _ = sender.send(buffer[..read].to_vec());
            }
        });
        Self { child, keyboard, screen, shown: Vec::new() }
    }

    /// Waits until this is on the screen.
    #[track_caller]
    pub(crate) fn until(mut self, what: &str) -> Self {
        while !self.text().contains(what) {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(more) => self.shown.extend(more),
                Err(why) => panic!("`{what}` is not shown ({why}): {}", self.text()),
            }
        }
        self
    }

    pub(crate) fn types(mut self, text: &str) -> Self {
        self.keyboard.write_all(text.as_bytes()).expect("typed");
        self
    }

    /// Waits for the end; the exit code, and everything that was on the screen, with escape codes as `\e`.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("an end");
        while let Ok(more) = self.screen.recv_timeout(PATIENCE) {
            self.shown.extend(more);
        }
        (status.code(), self.text().replace("\r\n", "\n").replace('\u{1b}', "\\e"))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }
}
