//! The file with named contexts. It holds tokens, so only its owner may read it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files;

/// What the file holds.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// The context that is used if none is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_context: Option<String>,
    /// All of them.
    pub contexts: Vec<Context>,
}

/// A service, and what is shown there.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Context {
    /// What it is called.
    pub name: String,
    /// Where the fleet is managed.
    pub url: String,
    /// What is shown there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Or the file that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// What is shown for everything but polls, if that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_token: Option<String>,
    /// Or the file that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_token_file: Option<PathBuf>,
    /// Certificates that are trusted beside the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Where clusters ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_url: Option<String>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Context")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// The same without its secrets, to be shown.
    pub(crate) fn redacted(&self) -> Self {
        let hidden = |token: &Option<String>| token.as_ref().map(|_| "REDACTED".to_owned());
        Self { token: hidden(&self.token), write_token: hidden(&self.write_token), ..self.clone() }
    }
}

impl Settings {
    /// Where the file is if nobody says otherwise.
    pub(crate) fn default_path() -> Option<PathBuf> {
        let base = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
        base.map(|base| base.join("flux-resourceset/config.yaml"))
    }

    /// What the file holds; nothing if there is none.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::failed(format!("{} cannot be read: {error}", path.display()))),
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        // Without the lines around a mistake: there are tokens in them.
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(&text, options).map_err(|error| {
            Failure::with_next(
                format!("{} is not understood: {}", path.display(), files::mistake(&error)),
                "fix it, or move it away and use `frs config set-context`",
            )
        })
    }

    /// Writes all of it, or nothing.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("{} cannot be written: {error}", path.display()))
        };
        // A link is written through: it may lead into somebody's dotfiles.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        let text = serde_saphyr::to_string(self).map_err(|error| failed(&error))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
        file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o600)).map_err(|error| failed(&error))?;
        file.as_file().sync_all().map_err(|error| failed(&error))?;
        file.persist(path).map(drop).map_err(|error| failed(&error.error))
    }

    /// The context of this name.
    pub(crate) fn context(&self, name: &str) -> Option<&Context> {
        self.contexts.iter().find(|context| context.name == name)
    }

    /// The names, to say which there are.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.contexts.iter().map(|context| &*context.name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}
