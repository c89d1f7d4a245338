//! `demo`: the walk-through. Every step is a command that anybody could type; only documents of its own are touched, and they are removed at
//! the end.

use api::Operation;
use clap::{Args, Parser};

use crate::arguments::FleetCommand;
use crate::ask;
use crate::change::{ChangeFlags, carry_out};
use crate::failure::Failure;
use crate::output::{BOLD, FAINT, styled};
use crate::session::Session;

const EAST: &str = "frs-demo-east";
const WEST: &str = "frs-demo-west";
const COMPONENT: &str = "frs-demo-podinfo";
const NAMESPACE: &str = "frs-demo-team-a";
const DOMAIN: &str = "frs-demo.invalid";
const SOURCE: &str = "oci://ghcr.io/stefanprodan/charts/podinfo";

/// Walk through what the service does, on documents made for it, which are removed at the end
///
/// Each step says what happens and why, and shows the command that does it. Nothing else in the fleet is touched; but its two clusters are
/// in the list of clusters meanwhile, for whoever makes machines from that, and its deletions count for the guard. So rather use a
/// service that is not in use: `make run` starts one.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Do not wait between the steps
    #[arg(short, long)]
    pub yes: bool,
    /// Only remove what a walk-through that was broken off has left behind
    #[arg(long, conflicts_with = "yes")]
    pub clean: bool,
}

/// A command of a step.
#[derive(Parser)]
struct Typed {
    #[command(subcommand)]
    command: FleetCommand,
}

/// A step: what it is, why, and the commands.
struct Step {
    title: &'static str,
    why: &'static str,
    commands: Vec<String>,
}

impl Demo {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        if self.clean {
            return clean(session);
        }
        if !self.yes && !session.output.is_interactive() {
            return Err(Failure::usage("nobody is there to press Enter between the steps: use `--yes`"));
        }
        if !self.yes && session.client.has_any(&session.kinds()?.clusters()?.name)? {
            let question = format!("{} has clusters already. Walk through it there?", session.connection.url);
            if !ask::confirm(session.output, &question) {
                return Err(Failure::Declined);
            }
        }
        clean(session)?;
        match self.walk(session) {
            // A walk-through that stops half-way has left something behind, even if only nobody reads it any more.
            Err(failure) => {
                failure.tell(session.output);
                Err(Failure::with_next(
                    "the walk-through is broken off",
                    "`frs demo --clean` removes what it has left",
                ))
            }
            Ok(()) => session.output.data(
                "\nThat is all. Nothing of it is left but its revisions in the audit log: `frs audit`.",
            ),
        }
    }

    fn walk(&self, session: &Session) -> Result<(), Failure> {
        for (number, step) in steps().iter().enumerate() {
            let title = format!("{}. {}", number + 1, step.title);
            session.output.data(&format!("\n{}\n", styled(BOLD, title)))?;
            session.output.data(step.why)?;
            if !self.yes {
                ask::wait(session.output, "\nPress Enter to do it.");
            }
            for command in &step.commands {
                run(session, command)?;
            }
        }
        clean(session)
    }
}

/// Runs a command as it would be typed.
fn run(session: &Session, line: &str) -> Result<(), Failure> {
    session.output.data(&format!("\n{}", styled(FAINT, format_args!("$ {line}"))))?;
    let step = Typed::try_parse_from(shlex::split(line).unwrap_or_default())
        .map_err(|error| Failure::failed(error.to_string()))?;
    super::on_fleet(step.command, session)
}

fn steps() -> Vec<Step> {
    let step = |title, why, commands: &[String]| Step { title, why, commands: commands.to_vec() };
    vec![
        step(
            "A catalog and two clusters",
            "A component is described once, in the catalog. Clusters only refer to it. Creating them changes no machine: a cluster gets\n\
             what it refers to when its own Flux asks for it.",
            &[
                format!(
                    "frs create component {COMPONENT} --set component_path=podinfo --set oci_url={SOURCE} --set oci_tag=6.7.1 --set delivery=helm --yes"
                ),
                format!("frs create namespace {NAMESPACE} --set labels.team=a --yes"),
                format!(
                    "frs create cluster {EAST} --dns {EAST}.{DOMAIN} --environment dev --set platform_components.{COMPONENT}.enabled=true --yes"
                ),
                format!("frs create cluster {WEST} --like {EAST} --environment prod --yes"),
                format!("frs get clusters {EAST} {WEST}"),
            ],
        ),
        step(
            "A namespace for one cluster",
            "Assigning adds to what the cluster gets. At its next poll the ResourceSet renders one Namespace more, and Flux applies it.",
            &[
                format!("frs assign namespace {NAMESPACE} --cluster {EAST} --yes"),
                format!("frs inputs {EAST} namespaces"),
            ],
        ),
        step(
            "Other values for one cluster",
            "A patch is a Helm value of one component on one cluster. No branch, no overlay, no pipeline: the next poll has it, and the\n\
             Deployment is scaled.",
            &[
                format!(
                    "frs set patch {COMPONENT} --cluster {EAST} replicaCount=3 'ui.message=Hello from the demo' --yes --reason 'more traffic'"
                ),
                format!("frs inputs {EAST} components"),
            ],
        ),
        step(
            "A canary",
            "An override pins another version on one cluster. All others stay with the catalog.",
            &[
                format!("frs set override {COMPONENT} --cluster {EAST} oci_tag=6.8.0 --yes"),
                format!("frs inputs {WEST} components"),
            ],
        ),
        step(
            "A new version for the whole fleet",
            "One change of the catalog. The plan shows each cluster that will see it, and that the canary will not: it has its own version.",
            &[format!(
                "frs patch component {COMPONENT} --set oci_tag=6.9.0 --yes --reason 'upgrade of podinfo'"
            )],
        ),
        step(
            "Back again",
            "Rolling back is a change like any other. What a cluster gets afterwards is, byte for byte, what it got before.",
            &[
                format!("frs patch component {COMPONENT} --set oci_tag=6.7.1 --yes --reason 'rolled back'"),
                format!("frs unset override {COMPONENT} --cluster {EAST} --yes"),
                format!("frs inputs {EAST} components"),
            ],
        ),
        step(
            "What would be deleted is known before",
            "Flux deletes whatever is missing from an answer. So every plan says, by name, what that will be. This one is only shown.",
            &[format!("frs patch cluster {EAST} --unset platform_components --unset namespaces --plan")],
        ),
        step(
            "Who did what, and why",
            "The audit log is the database itself: there is no change without its record.",
            &[format!("frs history cluster {EAST}"), format!("frs describe component {COMPONENT}")],
        ),
        step(
            "The end of a cluster",
            "A decommissioned cluster is answered with empty lists, so its Flux removes everything. That is the only way to such an answer:\n\
             an unknown cluster gets 404 and keeps what it has.",
            &[
                format!("frs decommission {EAST} --yes --reason 'end of the demo'"),
                "frs get decommissioned".to_owned(),
            ],
        ),
    ]
}

/// What there is of the walk-through. What only has the same name is somebody's, and stops it.
fn leftovers(session: &Session) -> Result<Vec<Operation>, Failure> {
    let kinds = session.kinds()?;
    let (clusters, components) = (&kinds.clusters()?.name, &kinds.components()?.name);
    let namespaces = &kinds.find("namespaces")?.name;
    let dns = |cluster: &str| format!("{cluster}.{DOMAIN}");
    let ours = [
        (clusters, EAST, "/cluster_dns", dns(EAST)),
        (clusters, WEST, "/cluster_dns", dns(WEST)),
        (components, COMPONENT, "/oci_url", SOURCE.to_owned()),
        (namespaces, NAMESPACE, "/labels/team", "a".to_owned()),
    ];
    let mut operations = Vec::new();
    for (kind, id, pointer, mark) in ours {
        let Some(found) = session.document(kind, id)? else { continue };
        if found.document.pointer(pointer).is_none_or(|found| *found != mark) {
            return Err(Failure::with_next(
                format!("{kind}/{id} is there, and is not of the walk-through"),
                "rename it, or use another service: the walk-through deletes what it has made under that name",
            ));
        }
        operations.push(Operation::Delete {
            kind: kind.clone(),
            id: Some(id.to_owned()),
            selector: None,
            revision: None,
        });
    }
    Ok(operations)
}

/// Removes what there is of the walk-through.
fn clean(session: &Session) -> Result<(), Failure> {
    let operations = leftovers(session)?;
    // Both of its clusters, and no other.
    let agreed = || ChangeFlags {
        max_clusters: Some(2),
        reason: Some("end of `frs demo`".to_owned()),
        ..ChangeFlags::default()
    };
    if !operations.is_empty() {
        session.output.data(&format!("\n{}\n", styled(BOLD, "Cleaning up")))?;
        carry_out(session, &operations.into(), &agreed())?;
    }
    let records = session.client.decommissioned()?;
    let ours = records.into_iter().filter(|record| record.dns.ends_with(&format!(".{DOMAIN}")));
    let forget: Vec<Operation> = ours.map(|record| Operation::Forget { dns: record.dns }).collect();
    if !forget.is_empty() {
        carry_out(session, &forget.into(), &agreed())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Typed, steps};

    #[test]
    fn every_step_is_a_command_that_can_be_typed() {
        for line in steps().iter().flat_map(|step| &step.commands) {
            let words = shlex::split(line).expect("quotes that end");
            if let Err(error) = Typed::try_parse_from(words) {
                panic!("{line}: {error}");
            }
        }
    }
}
