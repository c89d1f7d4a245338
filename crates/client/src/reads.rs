//! Everything that only asks.

use api::{Decommissioned, DocumentVersion, Guard, Kind, Revision, RevisionDetail, Revisioned, Whoami};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Answer, Client, Error};

/// The most that one page has.
const PAGE: usize = 1_000;

/// Which documents of a kind.
#[derive(Clone, Default, Debug)]
pub struct Asked {
    /// Only those that this selects.
    pub selector: Option<String>,
    /// Only those with these values.
    pub filters: Vec<(String, String)>,
}

/// How far a list of several pages is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How many there are so far.
    pub so_far: usize,
    /// How many there will be, if the service says so.
    pub total: Option<usize>,
}

/// Which revisions.
#[derive(Clone, Default, Debug)]
pub struct AuditQuery {
    /// Only those that this actor made.
    pub actor: Option<String>,
    /// Only those that changed documents of this kind.
    pub kind: Option<String>,
    /// Only those that changed documents of this id.
    pub id: Option<String>,
    /// Not before this time.
    pub since: Option<String>,
    /// Before this time.
    pub until: Option<String>,
}

/// The path with these segments, whatever was typed for them.
pub(crate) fn path<const SEGMENTS: usize>(segments: [&str; SEGMENTS]) -> Result<String, Error> {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let mut path = String::new();
    for segment in segments {
        // These mean other paths, even percent-encoded.
        if matches!(segment, "" | "." | "..") {
            return Err(Error::Name(segment.to_owned()));
        }
        path.push('/');
        path.extend(utf8_percent_encode(segment, KEPT));
    }
    Ok(path)
}

/// Something that sorts right before all ids that begin like this, if there is such a thing.
fn before(beginning: &str) -> Option<String> {
    let last = beginning.chars().next_back().filter(char::is_ascii_alphanumeric)?;
    let smaller = char::from_u32(u32::from(last) - 1)?;
    // No id has a tilde, which is greater than what they have.
    Some(format!("{}{smaller}~", &beginning[..beginning.len() - 1]))
}

impl Answer {
    /// Where the next page is: what `Link: <…>; rel="next"` says.
    fn next(&self) -> Option<String> {
        let link = self.header("link")?;
        let (target, relation) = link.strip_prefix('<')?.split_once('>')?;
        relation.contains("rel=\"next\"").then(|| target.to_owned())
    }
}

impl Client {
    /// Follows pages until there is no more, or enough.
    fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        enough: usize,
        mut progress: impl FnMut(Progress),
    ) -> Result<Vec<T>, Error> {
        let mut all: Vec<T> = Vec::new();
        let mut answer = self.get(path, query)?;
        loop {
            all.extend(answer.json::<Vec<T>>()?);
            let total = answer.header("x-total-count").and_then(|count| count.parse().ok());
            progress(Progress { so_far: all.len(), total });
            match answer.next() {
                Some(next) if all.len() < enough => answer = self.get(&next, &[])?,
                _ => break,
            }
        }
        all.truncate(enough);
        Ok(all)
    }

    /// The guard's limits, what is used up of them, and the allowances.
    pub fn guard(&self) -> Result<Guard, Error> {
        self.get("/guard", &[])?.json()
    }

    /// The kinds that the service has.
    pub fn kinds(&self) -> Result<Vec<Kind>, Error> {
        self.get("/kinds", &[])?.json()
    }

    /// The documents of a kind, all pages of them, sorted by id.
    pub fn list(
        &self,
        kind: &str,
        asked: &Asked,
        progress: impl FnMut(Progress),
    ) -> Result<Vec<Revisioned>, Error> {
        let limit = PAGE.to_string();
        let mut query = vec![("revisions", "true"), ("limit", &*limit)];
        query.extend(asked.selector.as_deref().map(|selector| ("selector", selector)));
        query.extend(asked.filters.iter().map(|(name, value)| (&**name, &**value)));
        self.pages(&path([kind])?, &query, usize::MAX, progress)
    }

    /// The ids of the first documents of a kind that begin like this, for completions: one request.
    pub fn first_ids(&self, kind: &str, beginning: &str) -> Result<Vec<String>, Error> {
        let limit = PAGE.to_string();
        let after = before(beginning);
        let mut query = vec![("limit", &*limit)];
        query.extend(after.as_deref().map(|after| ("after", after)));
        let documents: Vec<Value> = self.get(&path([kind])?, &query)?.json()?;
        Ok(documents.iter().filter_map(|document| document["id"].as_str().map(ToOwned::to_owned)).collect())
    }

    /// Whether there is any document of a kind.
    pub fn has_any(&self, kind: &str) -> Result<bool, Error> {
        Ok(!self.get(&path([kind])?, &[("limit", "1")])?.json::<Vec<Value>>()?.is_empty())
    }

    /// Who the service takes us for.
    pub fn whoami(&self) -> Result<Whoami, Error> {
        self.get("/whoami", &[])?.json()
    }

    /// One document.
    pub fn document(&self, kind: &str, id: &str) -> Result<Revisioned, Error> {
        let answer = self.get(&path([kind, id])?, &[])?;
        let tag = answer.header("etag").map(|tag| tag.trim_start_matches("W/").trim_matches('"'));
        let revision = tag.and_then(|tag| tag.parse().ok()).ok_or_else(|| Error::Foreign {
            url: answer.url.clone(),
            because: "its answer has no revision as `ETag`".to_owned(),
        })?;
        Ok(Revisioned { revision, document: answer.json()? })
    }

    /// The clusters that refer to a document.
    pub fn users(&self, kind: &str, id: &str) -> Result<Vec<String>, Error> {
        let limit = PAGE.to_string();
        self.pages(&path([kind, id, "users"])?, &[("limit", &limit)], usize::MAX, |_| {})
    }

    /// The newest revisions of a document.
    pub fn history(&self, kind: &str, id: &str, most: usize) -> Result<Vec<DocumentVersion>, Error> {
        let limit = most.clamp(1, PAGE).to_string();
        self.pages(&path([kind, id, "history"])?, &[("limit", &limit)], most, |_| {})
    }

    /// The newest revisions of the fleet.
    pub fn revisions(&self, asked: &AuditQuery, most: usize) -> Result<Vec<Revision>, Error> {
        let limit = most.clamp(1, PAGE).to_string();
        let mut query = vec![("limit", &*limit)];
        for (name, value) in [
            ("actor", &asked.actor),
            ("kind", &asked.kind),
            ("id", &asked.id),
            ("since", &asked.since),
            ("until", &asked.until),
        ] {
            query.extend(value.as_deref().map(|value| (name, value)));
        }
        self.pages("/revisions", &query, most, |_| {})
    }

    /// One revision with everything that it changed.
    pub fn revision(&self, number: u64) -> Result<RevisionDetail, Error> {
        let limit = PAGE.to_string();
        let mut answer = self.get(&format!("/revisions/{number}"), &[("limit", &limit)])?;
        let mut detail: RevisionDetail = answer.json()?;
        while let Some(next) = answer.next() {
            answer = self.get(&next, &[])?;
            detail.changes.extend(answer.json::<RevisionDetail>()?.changes);
        }
        Ok(detail)
    }

    /// The records of decommissioned clusters.
    pub fn decommissioned(&self) -> Result<Vec<Decommissioned>, Error> {
        let limit = PAGE.to_string();
        self.pages("/decommissioned", &[("limit", &limit)], usize::MAX, |_| {})
    }

    /// What a cluster gets of a kind, to the byte.
    pub fn inputs(&self, cluster: &str, kind: &str) -> Result<String, Error> {
        self.get(&path(["clusters", cluster, "inputs", kind])?, &[])?.text()
    }

    /// What a cluster gets of a kind when it asks itself; `hyphened` is the kind with hyphens.
    pub fn poll(&self, dns: &str, hyphened: &str) -> Result<String, Error> {
        self.get(&path(["api", "v2", "flux", "clusters", dns, hyphened])?, &[])?.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_cannot_leave_its_path_segment() {
        assert_eq!(
            path(["clusters", "eu-1.k8s.example.com"]).expect("a path"),
            "/clusters/eu-1.k8s.example.com"
        );
        assert_eq!(path(["clusters", "a/../b?c#d e"]).expect("a path"), "/clusters/a%2F..%2Fb%3Fc%23d%20e");
    }

    #[test]
    fn completions_begin_where_the_typed_text_sorts() {
        let ids = ["proc", "proc-z.9", "prod", "prod-2", "proe"];
        let from = |beginning: &str| {
            let after = before(beginning);
            ids.into_iter().filter(|id| after.as_deref().is_none_or(|after| *id > after)).collect::<Vec<_>>()
        };
        assert_eq!(from("prod"), ["prod", "prod-2", "proe"]);
        assert_eq!(from("prod-2"), ["prod-2", "proe"]);
        assert_eq!(from(""), ids);
        assert_eq!(from("prod-"), ids);
        assert_eq!(from("é"), ids);
    }

    /// `frs get cluster ..` asked for `/`, and was told that there is no such path.
    #[test]
    fn a_name_that_means_another_path_is_not_sent() {
        for name in ["", ".", ".."] {
            let error = path(["clusters", name]).expect_err("no path");
            assert_eq!(
                error.to_string(),
                format!("`{name}` names nothing: names begin with a letter or a digit")
            );
        }
    }
}
