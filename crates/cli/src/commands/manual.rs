//! `completion` and `man`: what a shell and `man` want to know of the commands.

use std::path::PathBuf;

use clap::{Args, CommandFactory, ValueEnum};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output::Output;

/// Print what makes a shell complete commands, flags and the names of documents
///
/// bash: `source <(frs completion bash)` in ~/.bashrc. zsh: `source <(frs completion zsh)` in ~/.zshrc. fish: `frs completion fish | source` in
/// ~/.config/fish/config.fish. Names of clusters, components and other documents come from the service that is current.
#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell
    pub shell: Shell,
}

/// The shells that are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

impl Completion {
    pub(crate) fn run(self, output: &Output) -> Result<(), Failure> {
        let name = match self.shell {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Fish => "fish",
        };
        let shells = clap_complete::env::Shells::builtins();
        let shell =
            shells.completer(name).ok_or_else(|| Failure::failed(format!("`{name}` is not known")))?;
        let mut script = Vec::new();
        // Both names are completed, each by itself.
        for program in ["frs", "flux-resourceset-cli"] {
            shell
                .write_registration("COMPLETE", program, program, program, &mut script)
                .map_err(Failure::Output)?;
        }
        output.data(&String::from_utf8_lossy(&script))
    }
}

/// Write manual pages, one for each command
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to: a folder of MANPATH that ends in man1. Without it, the page of `frs` goes to stdout
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, output: &Output) -> Result<(), Failure> {
        let mut command = Arguments::command();
        command.build();
        let Some(folder) = &self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).map_err(Failure::Output)?;
            return output.data(&String::from_utf8_lossy(&page));
        };
        let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(command, folder).map_err(failed)?;
        output.note(&format!("The pages are in {}", folder.display()));
        Ok(())
    }
}
