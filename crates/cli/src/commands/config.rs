//! `config`: the file with named services.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::complete;
use crate::connection::{ConnectionFlags, environment, same_address};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::settings::{Context, Settings};
use crate::table::Table;
use crate::words::or_dash;

/// Name services, and choose between them
#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub what: What,
}

/// What can be done with the file.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Show the file, without its tokens
    View,
    /// List the contexts
    GetContexts,
    /// Show which context is current
    CurrentContext,
    /// Choose the context that is used if none is named
    UseContext {
        /// Its name
        #[arg(add = complete::contexts())]
        name: String,
    },
    /// Add a context, or change one; `--url`, `--token`, `--write-token` and `--ca-file` say what is in it
    SetContext(SetContext),
    /// Remove a context
    DeleteContext {
        /// Its name
        #[arg(add = complete::contexts())]
        name: String,
    },
}

/// A context to be set.
#[derive(Debug, Args)]
pub(crate) struct SetContext {
    /// Its name
    #[arg(add = complete::contexts())]
    pub name: String,
    /// The file that the token is in; it is read each time
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The file that the token for everything but polls is in
    #[arg(long, value_name = "FILE")]
    pub write_token_file: Option<PathBuf>,
    /// Where clusters ask, if that is not where the fleet is managed
    #[arg(long, value_name = "URL")]
    pub poll_url: Option<String>,
    /// Make it the current one
    #[arg(long, conflicts_with = "current_if_none")]
    pub current: bool,
    /// Make it the current one if there is none
    #[arg(long)]
    pub current_if_none: bool,
}

impl Config {
    pub(crate) fn run(self, flags: &ConnectionFlags, output: &Output) -> Result<(), Failure> {
        let path = flags.settings_path(&environment)?;
        let mut settings = Settings::read(&path)?;
        match self.what {
            What::View => {
                let contexts = settings.contexts.iter().map(Context::redacted).collect();
                output.data(&output::yaml(&Settings { contexts, ..settings })?)
            }
            What::GetContexts => {
                let mut table = Table::new(["CURRENT", "NAME", "URL", "POLLS"]);
                for context in &settings.contexts {
                    let current =
                        if settings.current_context.as_ref() == Some(&context.name) { "*" } else { "" };
                    let polls = or_dash(context.poll_url.as_ref());
                    table.row([current, &context.name, &context.url, &polls]);
                }
                output.data(&table.text())
            }
            What::CurrentContext => match &settings.current_context {
                Some(name) => output.data(name),
                None => Err(Failure::with_next(
                    "no context is current",
                    "`frs config use-context NAME` chooses one",
                )),
            },
            What::UseContext { name } => {
                require(&settings, &name)?;
                settings.current_context = Some(name.clone());
                settings.write(&path)?;
                output.note(&format!("`{name}` is the current context."));
                Ok(())
            }
            What::SetContext(set) => set.run(settings, &path, flags, output),
            What::DeleteContext { name } => {
                require(&settings, &name)?;
                settings.contexts.retain(|context| context.name != name);
                if settings.current_context.as_ref() == Some(&name) {
                    settings.current_context = None;
                }
                settings.write(&path)?;
                output.note(&format!("`{name}` is gone."));
                Ok(())
            }
        }
    }
}

fn require(settings: &Settings, name: &str) -> Result<(), Failure> {
    match settings.context(name) {
        Some(_) => Ok(()),
        None => Err(Failure::with_next(
            format!("there is no context `{name}`"),
            format!("available contexts: {}", settings.names()),
        )),
    }
}

impl SetContext {
    fn run(
        self,
        mut settings: Settings,
        path: &std::path::Path,
        flags: &ConnectionFlags,
        output: &Output,
    ) -> Result<(), Failure> {
        let known = settings.context(&self.name).cloned();
        let mut context = known.unwrap_or_else(|| Context { name: self.name.clone(), ..Context::default() });
        if self.name.trim().is_empty() || flags.token.as_deref().is_some_and(|token| token.trim().is_empty())
        {
            return Err(Failure::usage("the name of a context and its token must not be empty"));
        }
        if let Some(url) = &flags.url {
            if !context.url.is_empty() && !same_address(&context.url, url) {
                // A token must not go to another service than the one it was given for.
                context = Context { name: context.name, ..Context::default() };
                output.warn(
                    "it had another address: the tokens, CA file and poll address of that one are forgotten",
                );
            }
            context.url.clone_from(url);
        }
        if context.url.is_empty() {
            return Err(Failure::usage("a new context needs an address: `--url URL`"));
        }
        // It is checked now, not when it is used.
        client::Endpoint::new(&context.url, client::Credentials::default(), None).map_err(Failure::Usage)?;
        if flags.token.is_some() || self.token_file.is_some() {
            context.token.clone_from(&flags.token);
            context.token_file = self.token_file.as_deref().map(absolute).transpose()?;
        }
        if flags.write_token.is_some() || self.write_token_file.is_some() {
            context.write_token.clone_from(&flags.write_token);
            context.write_token_file = self.write_token_file.as_deref().map(absolute).transpose()?;
        }
        if let Some(file) = &flags.ca_file {
            context.ca_file = Some(absolute(file)?);
        }
        if let Some(url) = &self.poll_url {
            client::Endpoint::new(url, client::Credentials::default(), None).map_err(Failure::Usage)?;
            context.poll_url = self.poll_url;
        }
        settings.contexts.retain(|other| other.name != self.name);
        settings.contexts.push(context);
        settings.contexts.sort_by(|one, other| one.name.cmp(&other.name));
        if self.current || (self.current_if_none && settings.current_context.is_none()) {
            settings.current_context = Some(self.name.clone());
        }
        settings.write(path)?;
        output.note(&format!("Context `{}` is in {}", self.name, path.display()));
        Ok(())
    }
}

/// A file that is named here must be found from anywhere.
fn absolute(path: &std::path::Path) -> Result<PathBuf, Failure> {
    path.canonicalize()
        .map_err(|error| Failure::failed(format!("{} cannot be read: {error}", path.display())))
}
