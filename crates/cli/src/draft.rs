//! A text in somebody's editor.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::connection::environment;
use crate::failure::Failure;

/// The editor that is asked for: `VISUAL`, `EDITOR`, else `vi`.
fn editor() -> String {
    environment("VISUAL").or_else(|| environment("EDITOR")).unwrap_or_else(|| "vi".to_owned())
}

/// A text being edited. The file stays if something goes wrong, so that no work is lost.
#[derive(Debug)]
pub(crate) struct Draft {
    file: tempfile::TempPath,
}

impl Draft {
    /// A new file with this text in it.
    pub(crate) fn new(name: &str, text: &str) -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure::failed(format!("a file to edit cannot be made: {error}"));
        let builder_name = format!("{name}-");
        let mut file =
            tempfile::Builder::new().prefix(&builder_name).suffix(".yaml").tempfile().map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(Self { file: file.into_temp_path() })
    }

    /// Where it is.
    fn path(&self) -> &Path {
        &self.file
    }

    /// Puts another text into it, all of it or nothing: what was written is not lost if there is no room.
    pub(crate) fn replace(&self, text: String) -> Result<String, Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", self.file.display()));
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        new.write_all(text.as_bytes()).map_err(failed)?;
        new.persist(&self.file).map_err(|error| failed(error.error))?;
        Ok(text)
    }

    /// Opens the editor, and returns what is in the file when it is closed.
    pub(crate) fn edit(&self) -> Result<String, Failure> {
        let editor = editor();
        // An editor may have arguments: `code --wait`.
        let status =
            Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(self.path()).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                return Err(Failure::failed(format!(
                    "the editor `{editor}` ended with {status}; nothing was changed"
                )));
            }
            Err(error) => {
                return Err(Failure::with_next(
                    format!("the editor `{editor}` cannot be started: {error}"),
                    "set EDITOR",
                ));
            }
        }
        std::fs::read_to_string(self.path())
            .map_err(|error| Failure::failed(format!("{}: {error}", self.path().display())))
    }

    /// Leaves the file where it is, and says where that is.
    pub(crate) fn keep(self) -> String {
        let path = self.file.display().to_string();
        match self.file.keep() {
            Ok(path) => path.display().to_string(),
            Err(_) => path,
        }
    }
}
