//! How the service says it is.

use api::Standing;

use crate::{Client, Error, answered};

/// What `/ready` tells, whether it is ready or not, and when.
#[derive(Clone, Debug)]
pub struct Heard {
    /// How it is.
    pub standing: Standing,
    /// The time of day there, as HTTP has it.
    pub date: Option<String>,
}

impl Client {
    /// How the service is. A service that is not ready says so; that is no error.
    pub fn standing(&self) -> Result<Heard, Error> {
        let url = format!("{}/ready", self.endpoint.url());
        // It is for everybody: no token has to go there.
        let response = self
            .http
            .get(&url)
            .send()
            .map_err(|error| Error::Unreachable { url: url.clone(), because: crate::root_cause(&error) })?;
        let date = response.headers().get("date").and_then(|date| date.to_str().ok()).map(ToOwned::to_owned);
        if response.status().as_u16() != 503 {
            return answered(Ok(response), url)?.json().map(|standing| Heard { standing, date });
        }
        let body = response.text().unwrap_or_default();
        let standing: Standing = serde_json::from_str(&body)
            .map_err(|_| Error::Foreign { url, because: crate::foreign(503, body.as_bytes()) })?;
        Ok(Heard { standing, date })
    }
}
