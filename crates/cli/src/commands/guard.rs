//! `guard`: its budgets, and allowances beyond them.

use std::fmt::Write;

use api::Grant;
use clap::{Args, Subcommand};

use crate::change::reason;
use crate::failure::Failure;
use crate::output::Format;
use crate::session::Session;
use crate::table::Table;
use crate::words::count;

/// Show what the guard lets through, and allow somebody more
///
/// The guard asks about removals that nobody named, and about many at once; a plan says so, and `--expect` or `--max-removals` answers.
/// Beyond its budgets of an hour no answer helps: an admin allows somebody a number of removals, for some time and for a reason.
#[derive(Debug, Args)]
pub(crate) struct Guard {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Status(Status),
    Allow(Allow),
    Revoke(Revoke),
}

/// Show the guard's limits, what is used up of the last hour, and the allowances
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table", hide_default_value = true)]
    output: Format,
}

/// Allow somebody more removals than the budgets of an hour
///
/// An allowance is used up by what it lets through. It covers a change only if it covers all of it.
#[derive(Debug, Args)]
pub(crate) struct Allow {
    /// Whom, as `frs audit` shows them [default: yourself]
    #[arg(long = "for", value_name = "ACTOR")]
    to: Option<String>,
    /// How many decommissions, clusters that leave an environment, and deletions of namespaces
    #[arg(long, value_name = "NUMBER", default_value_t = 0, required_unless_present = "removals")]
    deletions: u32,
    /// How many other removals
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    removals: u32,
    /// For how long, at most 240
    #[arg(long, value_name = "NUMBER", default_value_t = 60)]
    minutes: u32,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Take an allowance back
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// Its id, as `frs guard status` shows it
    id: String,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Guard {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        match self.what {
            What::Status(status) => status.run(session),
            What::Allow(allow) => allow.run(session),
            What::Revoke(revoke) => revoke.run(session),
        }
    }
}

impl Status {
    fn run(self, session: &Session) -> Result<(), Failure> {
        let guard = session.client.guard()?;
        if let Some(text) = self.output.encoded(&guard) {
            return session.output.data(&text?);
        }
        let api::Guard { limits, spent, allowances } = guard;
        if self.output == Format::Name {
            let ids: Vec<String> = allowances.into_iter().map(|allowance| allowance.id).collect();
            return session.output.data(&ids.join("\n"));
        }
        let mut table = Table::new(["WITHIN AN HOUR", "USED", "LIMIT"]);
        for (what, used, limit) in [
            ("deletions", spent.deletions, limits.deletions_per_hour),
            ("removals", spent.removals, limits.removals_per_hour),
            ("confirmations", spent.confirmations, limits.confirmations_per_hour),
        ] {
            table.row([what.to_owned(), used.to_string(), limit.to_string()]);
        }
        let mut text = table.text();
        let reach = limits.changed_clusters.map_or("any number of".to_owned(), |most| most.to_string());
        let _ = write!(
            text,
            "\n\nWithout a confirmation one change removes something on at most {}, and reaches {reach} clusters.\n\n",
            count(limits.clusters as usize, "cluster")
        );
        if allowances.is_empty() {
            text.push_str("No allowance is in force.");
        } else {
            let mut table =
                Table::new(["ALLOWANCE", "FOR", "DELETIONS", "REMOVALS", "UNTIL", "BY", "REASON"]);
            for allowance in allowances {
                table.row([
                    allowance.id,
                    allowance.to,
                    allowance.deletions.to_string(),
                    allowance.removals.to_string(),
                    allowance.until,
                    allowance.by,
                    allowance.reason,
                ]);
            }
            text.push_str(&table.text());
        }
        session.output.data(&text)
    }
}

impl Allow {
    fn run(self, session: &Session) -> Result<(), Failure> {
        let to = match self.to {
            Some(actor) => actor,
            None => session.client.whoami()?.actor,
        };
        let Self { deletions, removals, minutes, .. } = self;
        let grant = Grant { to, deletions, removals, minutes };
        let granted = session.client.allow(&grant, &reason(&self.reason)?)?;
        session.output.data(&format!(
            "{} may make {} and {} beyond the budgets until {}: allowance {}",
            granted.to,
            count(granted.deletions as usize, "deletion"),
            count(granted.removals as usize, "removal"),
            granted.until,
            granted.id
        ))
    }
}

impl Revoke {
    fn run(self, session: &Session) -> Result<(), Failure> {
        let why = self.reason.as_deref().map(reason).transpose()?;
        session.client.revoke_allowance(&self.id, why.as_deref())?;
        session.output.data(&format!("allowance {} revoked", self.id))
    }
}
