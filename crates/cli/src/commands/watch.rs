//! `get --watch`: looks again and again, and shows what is new, different or gone.

use std::collections::BTreeMap;
use std::time::Duration;

use api::Revisioned;

use super::get::{Get, names};
use super::tables::table;
use crate::failure::Failure;
use crate::kinds::{Kind, Kinds};
use crate::output::Format;
use crate::session::Session;
use crate::when;

/// Watches until Ctrl-C.
pub(super) fn watch(get: &Get, session: &Session, kind: &Kind) -> Result<(), Failure> {
    if matches!(get.output, Format::Yaml | Format::Json) {
        return Err(Failure::usage("`--watch` shows tables and names"));
    }
    let interval = when::duration(&get.interval).filter(jiff::SignedDuration::is_positive);
    let interval = interval
        .and_then(|interval| Duration::try_from(interval).ok())
        .ok_or_else(|| Failure::usage("`--interval` must be a time such as 2s"))?;
    let (first, missing) = get.find(session, kind)?;
    if let Some(missing) = missing {
        return Err(missing);
    }
    session.output.data(&get.shown(session.kinds()?, kind, &first)?)?;
    let by_id = |found: Vec<Revisioned>| -> BTreeMap<String, Revisioned> {
        found.into_iter().map(|one| (one.id().to_owned(), one)).collect()
    };
    let mut known = by_id(first);
    let mut lost = false;
    loop {
        std::thread::sleep(interval);
        let found = match get.find(session, kind) {
            Ok((found, _)) => found,
            // A service that is restarted is no reason to stop watching.
            Err(Failure::Service(error))
                if !matches!(error.problem().map(|problem| problem.status), Some(400..500)) =>
            {
                if !lost {
                    session.output.note(&format!("{error}; going on"));
                }
                lost = true;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        lost = false;
        let now = by_id(found);
        let gone = known.iter().filter(|(id, _)| !now.contains_key(*id)).map(|(_, one)| (one, true));
        let news =
            now.iter().filter(|(id, one)| known.get(*id).is_none_or(|known| known.revision != one.revision));
        let told: Vec<(&Revisioned, bool)> = gone.chain(news.map(|(_, one)| (one, false))).collect();
        if !told.is_empty() {
            let lines = lines(get.output, session.kinds()?, kind, &told, known.values());
            session.output.data(&lines.join("\n"))?;
        }
        known = now;
    }
}

/// A line for each of these, as wide as in the table that was shown before.
fn lines<'a>(
    output: Format,
    kinds: &Kinds,
    kind: &Kind,
    told: &[(&'a Revisioned, bool)],
    before: impl Iterator<Item = &'a Revisioned>,
) -> Vec<String> {
    let rows: Vec<Revisioned> = told.iter().map(|(one, _)| *one).chain(before).cloned().collect();
    let lines = match output {
        Format::Name => names(kind, &rows),
        _ => table(kinds, kind, &rows, output == Format::Wide).lines().split_off(1),
    };
    let mark = |is_gone: bool| if is_gone { "   (gone)" } else { "" };
    lines.iter().zip(told).map(|(line, (_, is_gone))| format!("{line}{}", mark(*is_gone))).collect()
}
