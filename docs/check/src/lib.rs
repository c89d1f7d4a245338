//! The book as its tests see it: pages of Markdown with headings, links and blocks of code. Markdown is read with the parser of mdBook
//! and with its options, and headings get the anchors that mdBook gives them.
//!
//! It knows nothing of the service or of what the book says.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The top of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.canonicalize().unwrap_or(here)
}

/// A page of Markdown.
#[derive(Debug)]
pub struct Page {
    /// Where it is, from the top of the repository.
    pub path: PathBuf,
    /// What can be linked to in it.
    pub anchors: BTreeSet<String>,
    /// What it links to, or shows.
    pub links: Vec<Link>,
    /// Its blocks of code.
    pub blocks: Vec<Block>,
    /// The rows of its tables, without their headings.
    pub rows: Vec<Row>,
    /// Words in the text that are set as code.
    pub words: Vec<Word>,
}

/// A link or an image.
#[derive(Debug)]
pub struct Link {
    /// The line that it is on, counted from 1.
    pub line: usize,
    /// Where it leads.
    pub target: String,
}

/// A block of code.
#[derive(Debug)]
pub struct Block {
    /// The line that it begins on, counted from 1.
    pub line: usize,
    /// What the fence says that it is.
    pub language: String,
    /// The code.
    pub text: String,
    /// Whether `<!-- output -->` stands before it: it is what the block before it prints.
    pub is_output: bool,
}

/// A row of a table.
#[derive(Debug)]
pub struct Row {
    /// The line that it is on, counted from 1.
    pub line: usize,
    /// The headings of its table.
    pub headings: Vec<String>,
    /// What is set as code in each of its cells.
    pub words: Vec<Vec<String>>,
    /// The text of each of its cells.
    pub cells: Vec<String>,
}

/// Something in the text that is set as code.
#[derive(Debug)]
pub struct Word {
    /// The line that it is on, counted from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
}

impl Page {
    /// Reads a page.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(root().join(path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(path, &text)
    }

    /// Every page of the book, and those that stand beside it.
    ///
    /// # Panics
    ///
    /// If the book is not there.
    pub fn all() -> Vec<Self> {
        let mut paths = vec!["README.md".into(), "CONTRIBUTING.md".into(), "CHANGELOG.md".into()];
        paths.extend(chapters());
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn parse(path: &Path, text: &str) -> Self {
        let mut page = Self {
            path: path.to_owned(),
            anchors: BTreeSet::new(),
            links: Vec::new(),
            blocks: Vec::new(),
            rows: Vec::new(),
            words: Vec::new(),
        };
        let line = |range: &Range<usize>| text[..range.start].matches('\n').count() + 1;
        let mut heading: Option<(Option<String>, String)> = None;
        let mut block: Option<Block> = None;
        let mut headings = Vec::new();
        let mut is_head = false;
        let mut is_body = false;
        let mut is_output = false;
        for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { id, .. }) => {
                    heading = Some((id.map(|id| id.to_string()), String::new()))
                }
                Event::End(TagEnd::Heading(_)) => {
                    if let Some((id, title)) = heading.take() {
                        page.add_anchor(&id.unwrap_or_else(|| anchor(&title)));
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(Link { line: line(&range), target: dest_url.to_string() });
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.to_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    block = Some(Block { line: line(&range), language, text: String::new(), is_output });
                    is_output = false;
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Start(Tag::TableHead) => {
                    headings.clear();
                    is_head = true;
                }
                Event::End(TagEnd::TableHead) => (is_head, is_body) = (false, true),
                Event::Start(Tag::TableRow) => {
                    let headings = headings.clone();
                    page.rows.push(Row {
                        line: line(&range),
                        headings,
                        words: Vec::new(),
                        cells: Vec::new(),
                    });
                }
                Event::Start(Tag::TableCell) if is_head => headings.push(String::new()),
                Event::Start(Tag::TableCell) if is_body => {
                    if let Some(row) = page.rows.last_mut() {
                        row.words.push(Vec::new());
                        row.cells.push(String::new());
                    }
                }
                Event::End(TagEnd::Table) => is_body = false,
                Event::Text(said) => {
                    if let Some((_, title)) = &mut heading {
                        title.push_str(&said);
                    } else if let Some(block) = &mut block {
                        block.text.push_str(&said);
                    } else if is_head && let Some(heading) = headings.last_mut() {
                        heading.push_str(&said);
                    } else if is_body
                        && let Some(cell) = page.rows.last_mut().and_then(|row| row.cells.last_mut())
                    {
                        cell.push_str(&said);
                    }
                }
                Event::Code(said) => {
                    if let Some((_, title)) = &mut heading {
                        title.push_str(&said);
                    }
                    if is_body && let Some(row) = page.rows.last_mut() {
                        row.words.last_mut().into_iter().for_each(|cell| cell.push(said.to_string()));
                        row.cells.last_mut().into_iter().for_each(|cell| cell.push_str(&said));
                    }
                    page.words.push(Word { line: line(&range), text: said.to_string() });
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    is_output |= html.trim() == "<!-- output -->";
                    let quoted = ["src=\"", "href=\""].into_iter().flat_map(|mark| html.split(mark).skip(1));
                    page.links.extend(quoted.filter_map(|rest| {
                        rest.split('"')
                            .next()
                            .map(|target| Link { line: line(&range), target: target.to_owned() })
                    }));
                }
                _ => {}
            }
        }
        page
    }

    fn add_anchor(&mut self, wanted: &str) {
        let mut found = wanted.to_owned();
        let mut count = 1;
        while !self.anchors.insert(found.clone()) {
            found = format!("{wanted}-{count}");
            count += 1;
        }
    }
}

/// The files of the book's chapters, from the top of the repository.
///
/// # Panics
///
/// If the book is not there.
pub fn chapters() -> Vec<PathBuf> {
    let folder = Path::new("docs/src");
    let entries = fs::read_dir(root().join(folder)).expect("the book");
    let names = entries.map(|entry| PathBuf::from(entry.expect("an entry").file_name()));
    let mut found: Vec<_> = names
        .filter(|name| name.extension().is_some_and(|end| end == "md"))
        .map(|name| folder.join(name))
        .collect();
    found.sort();
    found
}

/// As mdBook has them.
fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_SMART_PUNCTUATION
        | Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_GFM
}

/// The anchor that mdBook gives a heading.
fn anchor(title: &str) -> String {
    let kept = title.trim().to_lowercase();
    let letters = kept.chars().filter_map(|letter| match letter {
        _ if letter.is_alphanumeric() || letter == '_' || letter == '-' => Some(letter),
        _ if letter.is_whitespace() => Some('-'),
        _ => None,
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page::parse(Path::new("page.md"), text)
    }

    #[test]
    fn headings_have_the_anchors_that_mdbook_gives_them() {
        let page = page("# What happens when…\n## `frs` and `a_b`\n## Twice\n## Twice\n## Named {#other}\n");
        let anchors = ["frs-and-a_b", "other", "twice", "twice-1", "what-happens-when"];
        assert_eq!(page.anchors.iter().map(String::as_str).collect::<Vec<_>>(), anchors);
    }

    #[test]
    fn links_images_and_attributes_are_found_with_their_lines() {
        let page = page("[a](b.md#c)\n\n![d](e.svg)\n\n<img src=\"f.svg\" alt=\"\">\n\n`[no](link.md)`\n");
        let links: Vec<_> = page.links.iter().map(|link| (link.line, link.target.as_str())).collect();
        assert_eq!(links, [(1, "b.md#c"), (3, "e.svg"), (5, "f.svg")]);
    }

    #[test]
    fn blocks_know_their_language_and_whether_they_are_output() {
        let page = page("```sh\na\n```\n\n<!-- output -->\n```text\nb\n```\n\n```json\nc\n```\n");
        let blocks: Vec<_> = page
            .blocks
            .iter()
            .map(|block| (block.line, block.language.as_str(), block.text.as_str(), block.is_output))
            .collect();
        assert_eq!(blocks, [(1, "sh", "a\n", false), (6, "text", "b\n", true), (10, "json", "c\n", false)]);
    }

    #[test]
    fn rows_have_what_is_set_as_code_in_each_cell() {
        let page = page("| a | b |\n|---|---|\n| one | `two`, three `four` |\n");
        assert_eq!(page.rows.len(), 1);
        assert_eq!(page.rows[0].headings, ["a", "b"]);
        assert_eq!(page.rows[0].line, 3);
        assert_eq!(page.rows[0].words, [vec![], vec!["two".to_owned(), "four".to_owned()]]);
        assert_eq!(page.rows[0].cells, ["one", "two, three four"]);
    }
}
