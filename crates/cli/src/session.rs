//! What a command works with: the service, what kinds it has, and where things are said.

use std::cell::OnceCell;
use std::time::Duration;

use api::{ProblemName, Revisioned};
use client::{Asked, Client};
use indicatif::{ProgressBar, ProgressStyle};

use crate::connection::{Connection, ConnectionFlags, environment};
use crate::failure::Failure;
use crate::kinds::{Kind, Kinds};
use crate::output::Output;

/// One run of the command line.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    /// Where things are said.
    pub output: &'a Output,
    /// Which service, and why that one.
    pub connection: Connection,
    /// The service.
    pub client: Client,
    kinds: OnceCell<Kinds>,
}

impl<'a> Session<'a> {
    /// With the service that flags, environment and configuration choose.
    pub(crate) fn open(flags: &ConnectionFlags, output: &'a Output) -> Result<Self, Failure> {
        let connection = flags.resolve(&environment)?;
        let client = connection.client()?;
        Ok(Self { output, connection, client, kinds: OnceCell::new() })
    }

    /// The kinds that the service has; it is asked once.
    pub(crate) fn kinds(&self) -> Result<&Kinds, Failure> {
        if let Some(kinds) = self.kinds.get() {
            return Ok(kinds);
        }
        let kinds = Kinds::new(self.client.kinds()?);
        Ok(self.kinds.get_or_init(|| kinds))
    }

    /// The kind that somebody means.
    pub(crate) fn kind(&self, name: &str) -> Result<&Kind, Failure> {
        self.kinds()?.find(name)
    }

    /// A document, if it is there.
    pub(crate) fn document(&self, kind: &str, id: &str) -> Result<Option<Revisioned>, Failure> {
        match self.client.document(kind, id) {
            Ok(document) => Ok(Some(document)),
            Err(error) if error.is(ProblemName::Missing) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The documents of a kind. If that takes several pages, a terminal sees how far it is.
    pub(crate) fn list(&self, kind: &str, asked: &Asked) -> Result<Vec<Revisioned>, Failure> {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        let list = self.client.list(kind, asked, |page| {
            if let Some(total) = page.total.filter(|total| *total > page.so_far) {
                bar.enable_steady_tick(Duration::from_millis(100));
                bar.set_message(format!("{} of {total} {kind}", page.so_far));
            }
        });
        bar.finish_and_clear();
        Ok(list?)
    }
}
