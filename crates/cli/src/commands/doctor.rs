//! `doctor`: whether this command line and the service understand each other, and what to do if not.

use std::cmp::Ordering;

use api::{Standing, Whoami};
use clap::Args;
use client::{Client, Error, Heard};
use jiff::Timestamp;

use crate::connection::{Connection, ConnectionFlags, environment};
use crate::failure::Failure;
use crate::output::{GREEN, Output, RED, YELLOW, styled};

/// A clock that is off by more than this is worth a word.
const CLOCK: i64 = 10;
/// A service that is behind by more than this is worth a word.
const BEHIND: u64 = 5;

/// What to do if the store holds what a process does not understand.
const NEWER: &str = "upgrade that process; until then it answers with the last revision that it understands, for a limited time only";

/// Look at the connection to the service: address, token, versions, freshness, clock
#[derive(Debug, Args)]
pub(crate) struct Doctor {}

/// What was found, and what to do about it.
struct Finding {
    grade: Grade,
    /// What was looked at.
    about: &'static str,
    what: String,
    next: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Grade {
    Well,
    Attention,
    Bad,
}

impl Finding {
    fn well(about: &'static str, what: impl Into<String>) -> Self {
        Self { grade: Grade::Well, about, what: what.into(), next: None }
    }

    fn attention(about: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { grade: Grade::Attention, about, what: what.into(), next: Some(next.into()) }
    }

    fn bad(about: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { grade: Grade::Bad, about, what: what.into(), next: Some(next.into()) }
    }
}

impl Doctor {
    pub(crate) fn run(flags: &ConnectionFlags, output: &Output) -> Result<(), Failure> {
        let connection = flags.resolve(&environment)?;
        let mut findings = Vec::new();
        look(&connection, &mut findings);
        let worst = findings.iter().map(|finding| finding.grade).max().unwrap_or(Grade::Well);
        match tell(&findings, output) {
            // It is bad, whether or not anybody reads why.
            Err(failure) if worst == Grade::Bad && failure.is_unread() => Err(Failure::Shown),
            Ok(()) if worst == Grade::Bad => Err(Failure::Shown),
            other => other,
        }
    }
}

fn tell(findings: &[Finding], output: &Output) -> Result<(), Failure> {
    for Finding { grade, about, what, next } in findings {
        let sign = match grade {
            Grade::Well => styled(GREEN, "ok  "),
            Grade::Attention => styled(YELLOW, "note"),
            Grade::Bad => styled(RED, "bad "),
        };
        output.data(&format!("{sign} {about:9} {what}"))?;
        if let Some(next) = next {
            output.data(&format!("     → {next}"))?;
        }
    }
    Ok(())
}

fn look(connection: &Connection, findings: &mut Vec<Finding>) {
    let client = match connection.client() {
        Ok(client) => client,
        Err(failure) => return findings.push(unusable("address", &failure)),
    };
    findings.push(Finding::well("address", format!("{}, from {}", connection.url, connection.from)));
    findings.extend(plain_http(&client));
    let Some(Heard { standing, date }) = standing(&client, findings) else { return };
    findings.push(version(&standing));
    if standing.is_crud() {
        findings.push(Finding::well("mode", "crud: the fleet is managed here"));
    } else {
        findings.push(Finding::bad(
            "mode",
            format!("{}: this process only answers clusters", standing.mode),
            "use the address of a process in crud mode",
        ));
    }
    freshness(&standing, findings);
    findings.extend(clock(date.as_deref(), Timestamp::now()));
    findings.push(token(connection, &client.whoami()));
    if let Some(url) = &connection.poll_url {
        polls(connection, url, &client, findings);
    }
}

/// Settings that no request can be made with.
fn unusable(about: &'static str, failure: &Failure) -> Finding {
    let (because, next) = failure.in_words();
    Finding { grade: Grade::Bad, about, what: because, next: next.into_iter().next() }
}

fn plain_http(client: &Client) -> Option<Finding> {
    (!client.is_private()).then(|| {
        Finding::attention(
            "transport",
            "plain HTTP: whoever is on the way reads the token and can change what clusters get",
            "put a proxy with TLS in front of the service, and use https://",
        )
    })
}

fn standing(client: &Client, findings: &mut Vec<Finding>) -> Option<Heard> {
    match client.standing() {
        Ok(standing) => {
            findings.push(Finding::well("reachable", "yes"));
            Some(standing)
        }
        Err(error @ Error::Unreachable { .. }) => {
            let next = "is it running? does the address have the right host and port? is a firewall or a proxy between?";
            findings.push(Finding::bad("reachable", format!("{error}"), next));
            None
        }
        Err(error) => {
            findings.push(Finding::bad(
                "reachable",
                format!("{error}"),
                "is the address that of flux-resourceset?",
            ));
            None
        }
    }
}

fn version(standing: &Standing) -> Finding {
    let mine = env!("CARGO_PKG_VERSION");
    if standing.version == mine {
        return Finding::well("version", format!("{mine}, both"));
    }
    Finding::attention(
        "version",
        format!("service {}, command line {mine}", standing.version),
        "use the same version of both: what one knows the other may not",
    )
}

fn freshness(standing: &Standing, findings: &mut Vec<Finding>) {
    let behind = standing.seconds_behind.unwrap_or_default();
    match (standing.is_ready(), standing.revision) {
        (true, Some(revision)) if behind <= BEHIND => {
            findings.push(Finding::well("fresh", format!("revision {revision}, store {}, {behind} s behind", standing.store)));
        }
        (true, revision) => findings.push(Finding::attention("fresh", format!("revision {}, store {}, {behind} s behind", revision.unwrap_or_default(), standing.store),
            "look at the service's log: it has trouble with its database, and stops answering after MAX_STALENESS",
        )),
        (false, _) => findings.push(Finding::bad("fresh", format!("not ready: {}", standing.because.as_deref().unwrap_or("it does not say why")),
            "look at the service's log; clusters keep what they have meanwhile",
        )),
    }
    if let Some(needs) = &standing.needs {
        findings.push(Finding::bad("needs", needs.clone(), NEWER));
    }
    if let Some(seconds) = standing.clock_behind_seconds {
        findings.push(Finding::attention("commits", format!("the last one is stamped {seconds} s ahead of the service's clock"),
            "set the clock of the service's machine. If that is right, another one was wrong once: commits keep the later time until it is reached, and the guard's hourly numbers do not come back. `frs guard allow` lifts them; a new store from `frs export` is rid of them",
        ));
    }
    if standing.has_failed_writer() {
        findings.push(Finding::bad(
            "writer",
            "it has ended: changes are refused, polls go on",
            "look at the service's log for the reason (the disk?), fix it, and restart the process",
        ));
    }
}

fn clock(date: Option<&str>, now: Timestamp) -> Option<Finding> {
    let there = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date?).ok()?;
    let off = now.duration_since(there).as_secs();
    if off.abs() <= CLOCK {
        return Some(Finding::well("clock", "both agree"));
    }
    let which = if off > 0 { "behind" } else { "ahead of" };
    Some(Finding::attention(
        "clock",
        format!("the service's is {} s {which} this machine's", off.abs()),
        "set both by NTP: times in the audit log, and the guard's hourly limits, follow the service's",
    ))
}

fn token(connection: &Connection, whoami: &Result<Whoami, Error>) -> Finding {
    let from = &connection.token_from;
    match whoami {
        Ok(whoami @ Whoami { actor, role }) if whoami.is_admin() => {
            Finding::well("token", format!("`{actor}`, role {role}, from {from}"))
        }
        Ok(Whoami { actor, role }) => Finding::bad(
            "token",
            format!("`{actor}`, role {role}, from {from}: it may not manage the fleet"),
            "use a token of role admin: CRUD_AUTH_TOKEN of the service, as FLUX_API_TOKEN or FLUX_API_WRITE_TOKEN",
        ),
        Err(_) if connection.credentials.token.is_none() && connection.credentials.write_token.is_none() => {
            Finding::bad(
                "token",
                "none",
                "set FLUX_API_TOKEN, or `frs config set-context NAME --token-file FILE`",
            )
        }
        Err(error) if error.is(api::ProblemName::Unauthorised) => Finding::bad(
            "token",
            format!("the service does not know the one from {from}"),
            "compare it with CRUD_AUTH_TOKEN of the service: was it changed, or is it cut off?",
        ),
        Err(error) => {
            Finding::bad("token", format!("it cannot be tried: {error}"), "look at the service's log")
        }
    }
}

/// The process that clusters ask is another one; it should be where this one is.
fn polls(connection: &Connection, url: &str, managing: &Client, findings: &mut Vec<Finding>) {
    let client = match connection.client_of(url) {
        Ok(client) => client,
        Err(failure) => return findings.push(unusable("polls", &failure)),
    };
    findings.extend(plain_http(&client));
    // In this order: what is asked later cannot be behind.
    let heard = client.standing().and_then(|heard| Ok((heard.standing, managing.standing()?.standing)));
    findings.push(match heard {
        Ok((standing, managed)) => compared(url, &standing, &managed),
        Err(error) => {
            Finding::bad("polls", format!("{error}"), "clusters cannot ask either; they keep what they have")
        }
    });
}

fn compared(url: &str, standing: &Standing, managed: &Standing) -> Finding {
    let is_another = match standing.revision.cmp(&managed.revision) {
        Ordering::Less => false,
        Ordering::Equal => standing.hash != managed.hash,
        Ordering::Greater => true,
    };
    if standing.is_ready() && is_another {
        return Finding::bad(
            "polls",
            format!(
                "{url} has another fleet: it is at revision {}, this one at {}",
                standing.revision.unwrap_or_default(),
                managed.revision.unwrap_or_default()
            ),
            "the two processes do not have the same database: look at DATABASE_URL of both",
        );
    }
    if let Some(needs) = &standing.needs {
        return Finding::bad("polls", format!("{url}: {needs}"), NEWER);
    }
    match (standing.is_ready(), standing.revision) {
        (true, revision) if revision >= managed.revision => {
            Finding::well("polls", format!("{url} is ready, at revision {}", revision.unwrap_or_default()))
        }
        (true, revision) => Finding::attention(
            "polls",
            format!(
                "{url} is at revision {}, this one at {}",
                revision.unwrap_or_default(),
                managed.revision.unwrap_or_default()
            ),
            "a moment is normal; if it stays so, the two processes do not have the same database",
        ),
        (false, _) => Finding::bad(
            "polls",
            format!("{url} is not ready: {}", standing.because.as_deref().unwrap_or("it does not say why")),
            "look at its log; clusters keep what they have meanwhile",
        ),
    }
}

#[cfg(test)]
mod tests {
    use api::{GuardLimits, Standing};
    use client::{Client, Credentials, Endpoint};
    use jiff::Timestamp;

    use super::{Finding, Grade, clock, compared, freshness, plain_http, version};

    #[test]
    fn a_clock_that_is_off_is_told_and_which_one() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().expect("a time");
        let finding =
            |date: &str| clock(Some(date), now).map(|finding| (finding.grade == Grade::Well, finding.what));
        assert_eq!(finding("Mon, 16 Nov 2026 10:00:04 GMT"), Some((true, "both agree".to_owned())));
        assert_eq!(
            finding("Mon, 16 Nov 2026 09:58:00 GMT"),
            Some((false, "the service's is 120 s behind this machine's".to_owned()))
        );
        assert_eq!(
            finding("Mon, 16 Nov 2026 10:01:00 GMT"),
            Some((false, "the service's is 60 s ahead of this machine's".to_owned()))
        );
        assert!(clock(None, now).is_none());
    }

    /// A service that is well, but for what is changed.
    fn standing(change: impl FnOnce(&mut Standing)) -> Standing {
        let guard = GuardLimits {
            clusters: 3,
            deletions_per_hour: 10,
            removals_per_hour: 50,
            confirmations_per_hour: 5,
            changed_clusters: None,
        };
        let mut standing = Standing {
            status: api::READY.to_owned(),
            because: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            mode: api::CRUD.to_owned(),
            revision: Some(7),
            hash: Some("abc".to_owned()),
            store: "reachable".to_owned(),
            needs: None,
            clock_behind_seconds: None,
            seconds_behind: Some(0),
            writer: Some("running".to_owned()),
            guard,
        };
        change(&mut standing);
        standing
    }

    fn told(finding: &Finding) -> (Grade, String) {
        (finding.grade, format!("{}: {}", finding.about, finding.what))
    }

    #[test]
    fn a_service_of_another_version_is_noted() {
        let mine = env!("CARGO_PKG_VERSION");
        assert_eq!(told(&version(&standing(|_| {}))), (Grade::Well, format!("version: {mine}, both")));
        let other = standing(|standing| standing.version = "0.0.9".to_owned());
        assert_eq!(
            told(&version(&other)),
            (Grade::Attention, format!("version: service 0.0.9, command line {mine}"))
        );
    }

    #[test]
    fn how_fresh_a_service_is_and_whether_it_still_writes_is_told() {
        let found = |change: fn(&mut Standing)| {
            let mut findings = Vec::new();
            freshness(&standing(change), &mut findings);
            findings.iter().map(told).collect::<Vec<_>>()
        };
        let fresh = (Grade::Well, "fresh: revision 7, store reachable, 0 s behind".to_owned());
        assert_eq!(found(|_| {}), std::slice::from_ref(&fresh));
        assert_eq!(
            found(|standing| {
                standing.seconds_behind = Some(6);
                standing.store = "not confirmed".to_owned();
            }),
            [(Grade::Attention, "fresh: revision 7, store not confirmed, 6 s behind".to_owned())]
        );
        assert_eq!(
            found(|standing| {
                standing.status = "not ready".to_owned();
                standing.because = Some("the store was replaced".to_owned());
            }),
            [(Grade::Bad, "fresh: not ready: the store was replaced".to_owned())]
        );
        assert_eq!(
            found(|standing| standing.needs = Some("revision 8 was written by version 9.0.0".to_owned())),
            [fresh.clone(), (Grade::Bad, "needs: revision 8 was written by version 9.0.0".to_owned())]
        );
        assert_eq!(
            found(|standing| standing.clock_behind_seconds = Some(3_600)),
            [
                fresh.clone(),
                (
                    Grade::Attention,
                    "commits: the last one is stamped 3600 s ahead of the service's clock".to_owned()
                )
            ]
        );
        assert_eq!(
            found(|standing| standing.writer = Some(api::WRITER_FAILED.to_owned())),
            [fresh, (Grade::Bad, "writer: it has ended: changes are refused, polls go on".to_owned())]
        );
    }

    #[test]
    fn the_process_that_clusters_ask_is_where_the_other_is_or_it_is_told() {
        let found =
            |change: fn(&mut Standing)| told(&compared("http://p", &standing(change), &standing(|_| {})));
        assert_eq!(found(|_| {}), (Grade::Well, "polls: http://p is ready, at revision 7".to_owned()));
        assert_eq!(
            found(|polled| {
                polled.revision = Some(6);
                polled.needs = Some("revision 7 was written by version 9.0.0".to_owned());
            }),
            (Grade::Bad, "polls: http://p: revision 7 was written by version 9.0.0".to_owned())
        );
        assert_eq!(
            found(|polled| polled.revision = Some(6)),
            (Grade::Attention, "polls: http://p is at revision 6, this one at 7".to_owned())
        );
        let another = "polls: http://p has another fleet: it is at revision";
        assert_eq!(
            found(|polled| polled.revision = Some(8)),
            (Grade::Bad, format!("{another} 8, this one at 7"))
        );
        assert_eq!(
            found(|polled| polled.hash = Some("other".to_owned())),
            (Grade::Bad, format!("{another} 7, this one at 7"))
        );
        assert_eq!(
            found(|polled| polled.status = "not ready".to_owned()),
            (Grade::Bad, "polls: http://p is not ready: it does not say why".to_owned())
        );
    }

    #[test]
    fn plain_http_is_for_this_machine() {
        let finding = |url: &str| {
            let endpoint = Endpoint::new(url, Credentials::default(), None).expect("an address");
            plain_http(&Client::new(endpoint).expect("a client"))
        };
        assert!(finding("http://127.0.0.1:8080").is_none());
        assert!(finding("https://fleet.example.com").is_none());
        assert!(finding("http://fleet.example.com").is_some());
        assert!(finding("http://localhost.example.com").is_some());
    }
}
