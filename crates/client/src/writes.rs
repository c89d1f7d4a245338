//! Changes. Every one of them is a batch: what is tried is what is done.

use api::{Allowance, BatchAnswer, Grant, Operation, Plan, ProblemName};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use crate::reads::path;
use crate::{Answer, Client, Error, answered};

/// How often the pages of a plan are asked for anew that the fleet moves away from under them.
const PLAN_ATTEMPTS: usize = 5;

/// What a change is made under.
#[derive(Clone, Debug)]
pub struct Commitment {
    /// The revision of the fleet that the plan was worked out on: the change is refused on any other.
    pub planned_on: u64,
    /// The removals that are confirmed, if the plan asks for that.
    pub confirm: Option<String>,
    /// Why, for the audit log.
    pub reason: Option<String>,
}

/// A change that was made.
#[derive(Clone, Debug)]
pub struct Committed {
    /// What it changed.
    pub answer: BatchAnswer,
    /// What one should know about it.
    pub warnings: Vec<String>,
}

impl Client {
    /// What these operations would do, all pages of it. Nothing is changed.
    pub fn plan(&self, operations: &[Operation]) -> Result<Plan, Error> {
        let mut attempts = PLAN_ATTEMPTS;
        loop {
            attempts -= 1;
            match self.pages_of_plan(operations) {
                // The fleet has changed in between: the pages before are of another plan.
                Err(error) if attempts > 0 && has_moved(&error) => {}
                outcome => return outcome,
            }
        }
    }

    fn pages_of_plan(&self, operations: &[Operation]) -> Result<Plan, Error> {
        let mut plan: Plan = self.batch("/batch?dry_run=true", operations, &[])?.json()?;
        while let Some(next) = plan.next.take() {
            let page = self.batch(&format!("/batch?dry_run=true&after={next}"), operations, &[])?;
            plan.append(page.json()?);
        }
        Ok(plan)
    }

    /// Does these operations, all or none.
    pub fn commit(&self, operations: &[Operation], under: &Commitment) -> Result<Committed, Error> {
        let mut headers = vec![("X-Plan-Revision", under.planned_on.to_string())];
        headers.extend(under.confirm.clone().map(|digest| ("X-Confirm", digest)));
        headers.extend(under.reason.clone().map(|reason| ("X-Change-Reason", reason)));
        let answer = self.batch("/batch", operations, &headers)?;
        let warnings = answer.headers.get_all("warning").iter();
        let warnings = warnings.filter_map(|warning| warning.to_str().ok().map(warning_text)).collect();
        Ok(Committed { answer: answer.json()?, warnings })
    }

    /// Allows somebody more than the guard's budgets.
    pub fn allow(&self, grant: &Grant, reason: &str) -> Result<Allowance, Error> {
        let (request, url) = self.request(Method::POST, "/guard/allowances");
        let request = request.header("X-Change-Reason", reason).header(CONTENT_TYPE, "application/json");
        answered(request.body(json!(grant).to_string()).send(), url)?.json()
    }

    /// Takes an allowance back.
    pub fn revoke_allowance(&self, id: &str, reason: Option<&str>) -> Result<(), Error> {
        let (mut request, url) = self.request(Method::DELETE, &path(["guard", "allowances", id])?);
        if let Some(reason) = reason {
            request = request.header("X-Change-Reason", reason);
        }
        answered(request.send(), url).map(drop)
    }

    fn batch(
        &self,
        path: &str,
        operations: &[Operation],
        headers: &[(&str, String)],
    ) -> Result<Answer, Error> {
        let (mut request, url) = self.request(Method::POST, path);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let body = json!({ "operations": operations }).to_string();
        answered(request.header(CONTENT_TYPE, "application/json").body(body).send(), url)
    }
}

/// Whether the next page of a plan is of another one. (A document at another revision than an operation expects is 412.)
fn has_moved(error: &Error) -> bool {
    error.is(ProblemName::Stale) && error.problem().is_some_and(|problem| problem.status == 409)
}

/// The text of `299 - "text"`.
fn warning_text(header: &str) -> String {
    let text = header.strip_prefix("299 - ").unwrap_or(header);
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::warning_text;

    #[test]
    fn a_warning_is_the_text_between_its_quotes() {
        assert_eq!(
            warning_text(r#"299 - "the patches of \"podinfo\" went too""#),
            r#"the patches of "podinfo" went too"#
        );
        assert_eq!(warning_text("something else"), "something else");
    }
}
