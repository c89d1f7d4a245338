//! `edit`: a document in an editor.

use api::{Operation, ProblemName, Revisioned};
use clap::Args;
use serde_json::Value;

use crate::change::{ChangeFlags, Outcome, carry_out};
use crate::complete;
use crate::document::{Difference, differences, merged, normalised};
use crate::draft::Draft;
use crate::failure::Failure;
use crate::files;
use crate::kinds::Kind;
use crate::output::visible;
use crate::session::Session;

/// Change a document in your editor (VISUAL, EDITOR)
///
/// The document becomes what you wrote. If somebody else changes it meanwhile, what you changed is changed in the new one; if it is the
/// same field, the editor opens again with your version of it, and says what theirs is. Save nothing, or an empty file, to leave it as it is.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// Its kind
    #[arg(add = complete::kinds())]
    pub kind: String,
    /// Its id
    #[arg(add = complete::documents())]
    pub id: String,
    #[command(flatten)]
    pub change: ChangeFlags,
}

impl Edit {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kind = session.kind(&self.kind)?;
        let mut base = session.client.document(&kind.name, &self.id)?;
        let draft = Draft::new(&self.id, &page(kind, &base.document, &[])?)?;
        let mut offered = None;
        loop {
            let text = match draft.edit() {
                Ok(text) => text,
                Err(failure) => return Err(keep(session, draft, failure)),
            };
            if written(&text).next().is_none() {
                return Err(Failure::Declined);
            }
            // Who closes the editor has not said that their version is to win.
            if self.change.is_agreed()
                && offered.as_deref().is_some_and(|offered| written(offered).eq(written(&text)))
            {
                let what = "somebody else has changed the same field, and you left it at that";
                return Err(keep(session, draft, Failure::Moved(what.to_owned())));
            }
            match self.made(session, kind, &base, &text) {
                Ok(Made::Done) => return Ok(()),
                Ok(Made::Planned) => {
                    told_where(session, draft);
                    return Ok(());
                }
                Ok(Made::Overtaken { newer, merged, notes }) => {
                    session.output.note("Somebody else has changed the same field meanwhile.");
                    base = newer;
                    let text = match page(kind, &merged, &notes).and_then(|text| draft.replace(text)) {
                        Ok(text) => text,
                        Err(failure) => return Err(keep(session, draft, failure)),
                    };
                    offered = Some(text);
                }
                // What can be mended is shown where it was typed.
                Err(failure) if session.output.is_interactive() && mendable(&failure) => {
                    failure.tell(session.output);
                    if !crate::ask::confirm(session.output, "Edit it again?") {
                        return Err(keep(session, draft, Failure::Declined));
                    }
                }
                Err(failure) => return Err(keep(session, draft, failure)),
            }
        }
    }

    /// Tries to make the change that the text is.
    fn made(&self, session: &Session, kind: &Kind, base: &Revisioned, text: &str) -> Result<Made, Failure> {
        let edited = files::one_of("what you wrote", text, kind, session.kinds()?)?;
        let edited = normalised(&edited);
        if edited == normalised(&base.document) {
            session.output.note("Nothing was edited.");
            return Ok(Made::Done);
        }
        let mut on = base.clone();
        loop {
            let operation = Operation::Put {
                kind: kind.name.clone(),
                id: self.id.clone(),
                body: merged(&base.document, &edited, &on.document),
                revision: Some(on.revision),
            };
            let stale = match carry_out(session, &vec![operation].into(), &self.change) {
                Err(Failure::Refused { problem, .. }) if problem.urn == ProblemName::Stale.urn() => problem,
                Ok(Outcome::Shown) if self.change.plan => return Ok(Made::Planned),
                other => return other.map(|_| Made::Done),
            };
            let newer = session.client.document(&kind.name, &self.id)?;
            if newer.revision == on.revision {
                return Err(Failure::Refused { problem: stale, sources: Vec::new() });
            }
            let notes = overlaps(&base.document, &edited, &newer.document);
            if !notes.is_empty() {
                let merged = merged(&base.document, &edited, &newer.document);
                return Ok(Made::Overtaken { newer, merged, notes });
            }
            session.output.note(&format!(
                "It has changed in revision {}, elsewhere; trying again on that.",
                newer.revision
            ));
            on = newer;
        }
    }
}

/// What came of an edit.
enum Made {
    /// It was made, or there was nothing to make.
    Done,
    /// It was only shown.
    Planned,
    /// Somebody else changed the same.
    Overtaken {
        /// The document now.
        newer: Revisioned,
        /// The document now, with all of this edit made to it.
        merged: Value,
        /// What both have changed.
        notes: Vec<String>,
    },
}

/// The fields that both have changed, in words.
fn overlaps(base: &Value, mine: &Value, theirs: &Value) -> Vec<String> {
    // A reference that comes or goes is more than its id.
    let of = |document: &Value| {
        let mut all = differences(Some(base), Some(document));
        for one in all.iter_mut().filter(|one| one.old.is_none() || one.new.is_none()) {
            one.place.truncate(one.place.strip_suffix("/id").map_or(one.place.len(), str::len));
        }
        all
    };
    let (mine, theirs) = (of(mine), of(theirs));
    // Two who do the same have no quarrel; nor have they about what comes or goes with it.
    let same = |place: &str| {
        let at = |all: &[Difference]| all.iter().find(|one| one.place == place).map(|one| one.new.clone());
        at(&mine).is_some_and(|new| Some(new) == at(&theirs))
    };
    let touches = |one: &str, other: &str| {
        let (outer, inner) = if one.len() <= other.len() { (one, other) } else { (other, one) };
        let is_inside =
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_inside && !same(outer)
    };
    let told = |value: Option<&Value>| value.map_or("nothing".to_owned(), ToString::to_string);
    let both = mine.iter().filter_map(|mine| {
        let other = theirs.iter().find(|theirs| touches(&mine.place, &theirs.place));
        other.map(|theirs| {
            format!(
                "{}: you wrote {}, they wrote {}",
                mine.place,
                told(mine.new.as_ref()),
                told(theirs.new.as_ref())
            )
        })
    });
    both.collect()
}

/// What is written there, without comments and empty lines.
fn written(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

/// What the editor shows.
fn page(kind: &Kind, document: &Value, notes: &[String]) -> Result<String, Failure> {
    let mut page = String::from(
        "# Change what you want, save and close. Nothing is done before you have seen what it does.\n",
    );
    for note in notes {
        page.push_str("# Somebody else has changed this meanwhile. ");
        page.push_str(&visible(note));
        page.push('\n');
    }
    page.push_str(&files::yaml(kind, document)?);
    Ok(page)
}

fn mendable(failure: &Failure) -> bool {
    match failure {
        Failure::Refused { problem, .. } => matches!(problem.status, 400 | 409 | 422),
        Failure::Failed { .. } | Failure::Usage(_) => true,
        _ => false,
    }
}

/// Nothing that was written is lost, however it ends.
fn keep(session: &Session, draft: Draft, failure: Failure) -> Failure {
    told_where(session, draft);
    failure
}

fn told_where(session: &Session, draft: Draft) {
    session.output.note(&format!("What you wrote is in {}", draft.keep()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{overlaps, page};
    use crate::files;
    use crate::kinds::tests::kinds;

    /// A carriage return in a key ended the comment that told of it, and the rest of the key was read as a field.
    #[test]
    fn what_a_comment_tells_stays_a_comment() {
        let kinds = kinds();
        let kind = kinds.clusters().expect("clusters");
        let document = json!({"id": "x"});
        for end in ["\r", "\n", "\u{85}", "\u{2028}", "\u{2029}"] {
            let note = format!("/patches/podinfo/a{end}protected: true #: you wrote \"1\"");
            let page = page(kind, &document, &[note]).expect("a page");
            assert_eq!(files::one_of("it", &page, kind, &kinds).expect("a document"), document, "{page:?}");
        }
    }

    #[test]
    fn two_who_change_different_fields_do_not_overlap() {
        let base = json!({"id": "x", "labels": {"a": "1", "b": "1"}, "namespaces": [{"id": "n"}]});
        let mine = json!({"id": "x", "labels": {"a": "2", "b": "1"}, "namespaces": [{"id": "n"}]});
        let elsewhere =
            json!({"id": "x", "labels": {"a": "1", "b": "2"}, "namespaces": [{"id": "n"}, {"id": "m"}]});
        assert_eq!(overlaps(&base, &mine, &elsewhere), Vec::<String>::new());
        let same = json!({"id": "x", "labels": {"a": "3", "b": "1"}, "namespaces": [{"id": "n"}]});
        assert_eq!(overlaps(&base, &mine, &same), ["/labels/a: you wrote \"2\", they wrote \"3\""]);
        // A reference that they took away is not brought back by a field of it.
        let pinned = json!({"id": "x", "labels": {"a": "1", "b": "1"}, "namespaces": [{"id": "n", "labels": {"l": "v"}}]});
        let without = json!({"id": "x", "labels": {"a": "1", "b": "1"}});
        assert_eq!(
            overlaps(&base, &pinned, &without),
            ["/namespaces/n/labels/l: you wrote \"v\", they wrote nothing"]
        );
        // Nor is one that they took away while a field of it was taken out.
        let unset = json!({"id": "x", "labels": {"a": "1", "b": "1"}, "namespaces": [{"id": "n"}]});
        assert_eq!(
            overlaps(&pinned, &unset, &without),
            ["/namespaces/n/labels/l: you wrote nothing, they wrote nothing"]
        );
        assert_eq!(overlaps(&pinned, &without, &without), Vec::<String>::new());
        // Both want the same: no quarrel.
        assert_eq!(overlaps(&base, &mine, &mine), Vec::<String>::new());
        let gone = json!({"id": "x", "namespaces": [{"id": "n"}]});
        assert_eq!(overlaps(&base, &mine, &gone), ["/labels/a: you wrote \"2\", they wrote nothing"]);
    }
}
