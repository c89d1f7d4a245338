//! Where things are said: data on stdout, the rest on stderr. Colours only on a terminal, never with `NO_COLOR`.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};

use anstream::stream::{AsLockedWrite, RawStream};
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;

/// What goes.
pub(crate) const RED: Style = AnsiColor::Red.on_default();
/// What comes, or is well.
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
/// What becomes different, or wants attention.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// What stands out.
pub(crate) const BOLD: Style = Style::new().bold();
/// What may be passed over.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// A text in a style. It goes through [`Output`], which takes the style away where it does not belong.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// How what was asked for is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// A table
    Table,
    /// A table with more columns
    Wide,
    /// YAML
    Yaml,
    /// JSON
    Json,
    /// Names only, one a line
    Name,
}

impl Format {
    /// The formats that programs read; nothing for those that people read.
    pub(crate) fn encoded(self, value: &impl Serialize) -> Option<Result<String, Failure>> {
        match self {
            Self::Json => Some(json(value)),
            Self::Yaml => Some(yaml(value)),
            Self::Table | Self::Wide | Self::Name => None,
        }
    }
}

/// A value as JSON, on lines.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Failure::failed(format!("it cannot be written as JSON: {error}")))
}

/// A value as YAML.
pub(crate) fn yaml(value: &impl Serialize) -> Result<String, Failure> {
    serde_saphyr::to_string(value)
        .map_err(|error| Failure::failed(format!("it cannot be written as YAML: {error}")))
}

/// One of the streams.
struct Stream {
    writer: Box<dyn Write>,
    is_terminal: bool,
}

impl Stream {
    fn new(raw: impl RawStream + AsLockedWrite + 'static) -> Self {
        let is_terminal = raw.is_terminal();
        // What the environment says counts on a terminal only: nothing can force colours into a file.
        let choice = if is_terminal { AutoStream::choice(&raw) } else { ColorChoice::Never };
        Self { writer: Box::new(AutoStream::new(raw, choice)), is_terminal }
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        // Who reads a file wants it to the byte; a terminal does what it reads.
        let text = if self.is_terminal { harmless(text) } else { text.to_owned() };
        self.writer.write_all(text.as_bytes())?;
        self.writer.flush()
    }
}

/// A text without anything that a terminal obeys, but for line ends, tabs and our own styles: what a document or a service says must not
/// overwrite what was shown before, nor be read backwards.
fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let style = if character == '\u{1b}' { style_length(rest) } else { None };
        let length = style.unwrap_or(character.len_utf8());
        match character {
            _ if style.is_some() => safe.push_str(&rest[..length]),
            '\n' | '\t' => safe.push(character),
            other => seen(other, &mut safe),
        }
        rest = &rest[length..];
    }
    safe
}

/// A text on one line, in which everything can be seen.
pub(crate) fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, character| {
        seen(character, &mut line);
        line
    })
}

/// A character as it is, or in words if it is one that does something, or nothing that can be seen.
fn seen(character: char, text: &mut String) {
    match character {
        '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => text.extend(character.escape_unicode()),
        other if other.is_control() => text.extend(other.escape_default()),
        other => text.push(other),
    }
}

/// How long the style of ours is that a text begins with. No other is let through: there are some that hide what follows.
fn style_length(text: &str) -> Option<usize> {
    let ours = [RED, GREEN, YELLOW, BOLD, FAINT];
    let mut known = ours.iter().flat_map(|style| [format!("{style}"), format!("{style:#}")]);
    known.find(|known| text.starts_with(known.as_str())).map(|known| known.len())
}

/// Both streams.
pub(crate) struct Output {
    stdout: RefCell<Stream>,
    stderr: RefCell<Stream>,
    interactive: bool,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Output").field("interactive", &self.interactive).finish_non_exhaustive()
    }
}

impl Output {
    /// Those of this process.
    pub(crate) fn new() -> Self {
        Self {
            stdout: RefCell::new(Stream::new(std::io::stdout())),
            stderr: RefCell::new(Stream::new(std::io::stderr())),
            interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        }
    }

    /// Whether help may have colours: nothing can force them into a file.
    pub(crate) fn colours(&self) -> clap::ColorChoice {
        let are_terminals = self.stdout.borrow().is_terminal && self.stderr.borrow().is_terminal;
        if are_terminals { clap::ColorChoice::Auto } else { clap::ColorChoice::Never }
    }

    /// Whether somebody is there to be asked.
    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Data, with a line end if it has none.
    pub(crate) fn data(&self, text: &str) -> Result<(), Failure> {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.stdout.borrow_mut().write(&format!("{text}{end}")).map_err(Failure::Output)
    }

    /// Data to the byte: nothing is added.
    pub(crate) fn exact(&self, text: &str) -> Result<(), Failure> {
        self.stdout.borrow_mut().write(text).map_err(Failure::Output)
    }

    /// Anything else, as a line. Nobody may be listening.
    pub(crate) fn note(&self, text: &str) {
        let _ = self.stderr.borrow_mut().write(&format!("{text}\n"));
    }

    /// What somebody should know.
    pub(crate) fn warn(&self, text: &str) {
        self.note(&format!("{} {text}", styled(YELLOW, "warning:")));
    }

    /// The beginning of a line that will be answered.
    pub(crate) fn prompt(&self, text: &str) {
        let _ = self.stderr.borrow_mut().write(&format!("{text} "));
    }
}

#[cfg(test)]
mod tests {
    use super::{RED, harmless, styled, visible};

    #[test]
    fn a_terminal_gets_nothing_to_obey_but_styles() {
        let ours = styled(RED, "gone\n\tnext");
        assert_eq!(harmless(&ours), ours);
        assert_eq!(
            harmless("a\rb\u{1b}[2Jc\u{1b}]52;x\u{7}d\u{9b}e"),
            "a\\rb\\u{1b}[2Jc\\u{1b}]52;x\\u{7}d\\u{9b}e"
        );
        assert_eq!(harmless("a\u{1b}[8mhidden\u{1b}[38;5;1mb"), "a\\u{1b}[8mhidden\\u{1b}[38;5;1mb");
        assert_eq!(harmless("safe\u{202e}txt"), "safe\\u{202e}txt");
        assert_eq!(harmless("a\u{61c}b\u{200b}c\u{2028}d"), "a\\u{61c}b\\u{200b}c\\u{2028}d");
        assert_eq!(visible("one\r\n\ttwo\u{85}"), "one\\r\\n\\ttwo\\u{85}");
        assert_eq!(harmless("é ✓ 日本"), "é ✓ 日本");
    }
}
