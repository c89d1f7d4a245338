//! `kinds`: what kinds of documents the service has.

use clap::Args;

use crate::failure::Failure;
use crate::output::Format;
use crate::session::Session;
use crate::table::Table;

/// List the kinds of documents that the service has
#[derive(Debug, Args)]
pub(crate) struct ListKinds {
    /// How to show them; `json` and `yaml` have their schemas
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    pub output: Format,
}

impl ListKinds {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let kinds: Vec<_> = session.kinds()?.iter().collect();
        if let Some(text) = self.output.encoded(&kinds) {
            return session.output.data(&text?);
        }
        session.output.data(&match self.output {
            Format::Name => kinds.iter().map(|kind| kind.name.as_str()).collect::<Vec<_>>().join("\n"),
            _ => {
                let mut table = Table::new(["NAME", "SINGULAR", "POLLED AS", "FILTERS", "DESCRIPTION"]);
                for kind in kinds {
                    let filters = if kind.query_parameters.is_empty() {
                        "-".to_owned()
                    } else {
                        kind.query_parameters.join(",")
                    };
                    let description = kind.description.clone().unwrap_or_default();
                    table.row([
                        kind.name.clone(),
                        kind.singular.clone(),
                        kind.path.clone(),
                        filters,
                        description,
                    ]);
                }
                table.text()
            }
        })
    }
}
