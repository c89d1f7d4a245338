//! Which service is asked, and with what. Address and tokens come from one place, so that a token is never shown to another service than
//! the one it was given for: flags, else the chosen context, else the environment, else the current context.

use std::path::{Path, PathBuf};
use std::time::Duration;

use api::{ProblemName, Whoami};
use clap::Args;
use client::{Client, Credentials, Endpoint, Error, Token};

use crate::complete;
use crate::failure::Failure;
use crate::settings::{Context, Settings};

/// How long a completion may take.
const HASTE: Duration = Duration::from_secs(2);

/// The flags that every command has.
#[derive(Clone, Default, Args)]
#[command(next_help_heading = "Which service")]
pub(crate) struct ConnectionFlags {
    /// Use this context of the configuration file (environment: FLUX_API_CONTEXT)
    #[arg(long, global = true, value_name = "NAME", add = complete::contexts())]
    pub context: Option<String>,
    /// The configuration file (environment: FLUX_API_CONFIG)
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address of the service in crud mode (environment: FLUX_API_URL)
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// The token; others on this machine can see it here, so rather use the environment (FLUX_API_TOKEN) or a context
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// A second token, for everything but polls (environment: FLUX_API_WRITE_TOKEN)
    #[arg(long, global = true, value_name = "TOKEN")]
    pub write_token: Option<String>,
    /// Trust the certificates in this PEM file too (environment: FLUX_API_CA_FILE)
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

/// What came of them.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Where the fleet is managed.
    pub url: String,
    /// What is shown there.
    pub credentials: Credentials,
    /// Certificates that are trusted beside the system's.
    pub ca: Option<Certificates>,
    /// Where clusters ask, if that is known.
    pub poll_url: Option<String>,
    /// Where the address comes from.
    pub from: String,
    /// Where the token comes from.
    pub token_from: String,
}

/// Certificates in PEM, and where they are from.
#[derive(Clone, Debug)]
pub(crate) struct Certificates {
    file: PathBuf,
    pem: Vec<u8>,
}

impl Certificates {
    fn read(file: &Path) -> Result<Self, Failure> {
        Ok(Self { file: file.to_owned(), pem: read(file, "the CA file")? })
    }
}

/// Whether these are the same address, written with or without a slash at the end.
pub(crate) fn same_address(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The environment, as far as it matters here.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's environment; what is empty is not set.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

impl ConnectionFlags {
    /// The configuration file.
    pub(crate) fn settings_path(&self, environment: Environment) -> Result<PathBuf, Failure> {
        let path = self.config.clone().or_else(|| environment("FLUX_API_CONFIG").map(PathBuf::from));
        path.or_else(Settings::default_path).ok_or_else(|| {
            Failure::with_next("there is no home folder for the configuration file", "set FLUX_API_CONFIG")
        })
    }

    /// Which service is asked, and with what.
    pub(crate) fn resolve(&self, environment: Environment) -> Result<Connection, Failure> {
        let mut connection = self.chosen(environment)?;
        if let Some(token) = &self.token {
            connection.credentials.token = Some(Token::new(token));
            "--token".clone_into(&mut connection.token_from);
            // A token on the command line is meant for all of it.
            connection.credentials.write_token = None;
        }
        if let Some(token) = &self.write_token {
            connection.credentials.write_token = Some(Token::new(token));
            "--write-token".clone_into(&mut connection.token_from);
        }
        let of_environment = || environment("FLUX_API_CA_FILE").filter(|_| connection.ca.is_none());
        if let Some(file) = self.ca_file.clone().or_else(|| of_environment().map(PathBuf::from)) {
            connection.ca = Some(Certificates::read(&file)?);
        }
        Ok(connection)
    }

    fn chosen(&self, environment: Environment) -> Result<Connection, Failure> {
        if let Some(url) = &self.url {
            return Ok(Connection::plain(url, "--url", own_environment(environment, url)));
        }
        let settings = Settings::read(&self.settings_path(environment)?)?;
        let chosen = match (&self.context, environment("FLUX_API_CONTEXT")) {
            (Some(name), _) => Some((name.clone(), "--context")),
            (None, Some(name)) => Some((name, "FLUX_API_CONTEXT")),
            (None, None) => None,
        };
        if chosen.is_none()
            && let Some(url) = environment("FLUX_API_URL")
        {
            return Ok(Connection::plain(&url, "FLUX_API_URL", environment));
        }
        let current = settings.current_context.clone().map(|name| (name, "the current context"));
        let Some((name, from)) = chosen.or(current) else {
            return Err(Failure::Failed {
                what: "no service is chosen".to_owned(),
                next: vec![
                    "set FLUX_API_URL and FLUX_API_TOKEN, or `frs config set-context NAME --url … --token-file … --current`".to_owned(),
                    format!("available contexts: {}; choose one with --context or `frs config use-context`", settings.names()),
                ],
            });
        };
        let context = settings.context(&name).ok_or_else(|| {
            Failure::with_next(
                format!("there is no context `{name}` (from {from})"),
                format!("available contexts: {}", settings.names()),
            )
        })?;
        Connection::of_context(context, from, environment)
    }
}

impl Connection {
    fn plain(url: &str, from: &str, environment: Environment) -> Self {
        let (credentials, token_from) = credentials_of(environment);
        Self {
            url: url.to_owned(),
            credentials,
            ca: None,
            poll_url: None,
            from: from.to_owned(),
            token_from: token_from.to_owned(),
        }
    }

    fn of_context(context: &Context, from: &str, environment: Environment) -> Result<Self, Failure> {
        let either = |token: &Option<String>, file: &Option<PathBuf>| match (token, file) {
            (Some(token), _) => Ok(Some(Token::new(token))),
            (None, Some(file)) => token_of_file(file).map(Some),
            (None, None) => Ok(None),
        };
        let mut credentials = Credentials {
            token: either(&context.token, &context.token_file)?,
            write_token: either(&context.write_token, &context.write_token_file)?,
        };
        let from = format!("context `{}` ({from})", context.name);
        let mut token_from = from.clone();
        if credentials.token.is_none() && credentials.write_token.is_none() {
            // A file that is shared or kept in Git has none.
            let place;
            (credentials, place) = credentials_of(own_environment(environment, &context.url));
            place.clone_into(&mut token_from);
        }
        Ok(Self {
            url: context.url.clone(),
            credentials,
            ca: context.ca_file.as_deref().map(Certificates::read).transpose()?,
            poll_url: context.poll_url.clone(),
            from,
            token_from,
        })
    }

    /// A client of the service.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_of(&self.url)
    }

    /// A client that does not wait long.
    pub(crate) fn hasty_client(&self) -> Result<Client, Failure> {
        self.made(Client::with_patience(self.endpoint(&self.url)?, HASTE))
    }

    /// A client of another address of the same service, for example where clusters ask.
    pub(crate) fn client_of(&self, url: &str) -> Result<Client, Failure> {
        self.made(Client::new(self.endpoint(url)?))
    }

    /// Whom a token stands for; nobody if the service does not know it.
    pub(crate) fn owner_of(&self, token: &Token) -> Result<Option<Whoami>, Failure> {
        let credentials = Credentials { token: Some(token.clone()), write_token: None };
        let asking = Self { credentials, ..self.clone() };
        match asking.client()?.whoami() {
            Ok(whoami) => Ok(Some(whoami)),
            Err(error) if error.is(ProblemName::Unauthorised) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn made(&self, client: Result<Client, Error>) -> Result<Client, Failure> {
        client.map_err(|error| match &self.ca {
            Some(ca) => Failure::with_next(
                error.to_string(),
                format!("mend {}, or choose another with --ca-file", ca.file.display()),
            ),
            None => error.into(),
        })
    }

    fn endpoint(&self, url: &str) -> Result<Endpoint, Failure> {
        Endpoint::new(url, self.credentials.clone(), self.ca.as_ref().map(|ca| ca.pem.clone()))
            .map_err(|error| Failure::with_next(error, format!("the address comes from {}", self.from)))
    }
}

/// The environment of an address: one that names another address has nothing for this one.
fn own_environment<'a>(environment: Environment<'a>, url: &str) -> Environment<'a> {
    let is_foreign = environment("FLUX_API_URL").is_some_and(|other| !same_address(&other, url));
    if is_foreign { &|_| None } else { environment }
}

/// The tokens in the environment, and which of them the fleet is managed with.
fn credentials_of(environment: Environment) -> (Credentials, &'static str) {
    let token = |name: &str| environment(name).map(|token| Token::new(&token));
    let credentials =
        Credentials { token: token("FLUX_API_TOKEN"), write_token: token("FLUX_API_WRITE_TOKEN") };
    let from = match (&credentials.token, &credentials.write_token) {
        (_, Some(_)) => "FLUX_API_WRITE_TOKEN",
        (Some(_), None) => "FLUX_API_TOKEN",
        (None, None) => "nowhere",
    };
    (credentials, from)
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::failed(format!("{what} {} cannot be read: {error}", path.display())))
}

/// The token in a file: its one line.
pub(crate) fn token_of_file(path: &Path) -> Result<Token, Failure> {
    let text = String::from_utf8(read(path, "the token file")?).unwrap_or_default();
    let text = text.trim();
    if text.is_empty() || text.contains(|character: char| character.is_whitespace() || character.is_control())
    {
        return Err(Failure::failed(format!(
            "{} must hold a token on one line, and nothing else",
            path.display()
        )));
    }
    Ok(Token::new(text))
}

#[cfg(test)]
mod tests {
    use super::{Connection, ConnectionFlags};
    use crate::failure::Failure;

    const FILE: &str = "
current-context: here
contexts:
  - {name: here, url: 'http://here', token: of-here, poll-url: 'http://polls'}
  - {name: there, url: 'http://there', token: of-there, write-token: writes-there}
  - {name: bare, url: 'http://bare'}
  - {name: own-ca, url: 'https://own', ca-file: OWN-CA}
";

    fn resolve(flags: ConnectionFlags, variables: &[(&str, &str)]) -> Result<Connection, Failure> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        // Any file that is there will do for certificates that are not looked at.
        let own = file.path().display().to_string();
        std::fs::write(file.path(), FILE.replace("OWN-CA", &own)).expect("written");
        let flags = ConnectionFlags { config: Some(file.path().to_owned()), ..flags };
        flags.resolve(&|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn shown(connection: &Connection) -> (&str, Option<&str>, Option<&str>) {
        let credentials = &connection.credentials;
        (
            &connection.url,
            credentials.token.as_ref().map(client::Token::reveal),
            credentials.write_token.as_ref().map(client::Token::reveal),
        )
    }

    #[test]
    fn the_current_context_is_used_if_nothing_else_is_said() {
        let found = resolve(ConnectionFlags::default(), &[]).expect("a connection");
        assert_eq!(shown(&found), ("http://here", Some("of-here"), None));
        assert_eq!(found.poll_url.as_deref(), Some("http://polls"));
        assert_eq!(found.from, "context `here` (the current context)");
    }

    #[test]
    fn the_environment_comes_before_the_current_context_and_brings_its_own_token() {
        let found = resolve(
            ConnectionFlags::default(),
            &[("FLUX_API_URL", "http://env"), ("FLUX_API_TOKEN", "of-env")],
        );
        assert_eq!(shown(&found.expect("a connection")), ("http://env", Some("of-env"), None));
        let found =
            resolve(ConnectionFlags::default(), &[("FLUX_API_URL", "http://env")]).expect("a connection");
        assert_eq!(shown(&found), ("http://env", None, None));
    }

    #[test]
    fn a_chosen_context_never_gets_the_token_of_another_service() {
        let flags = || ConnectionFlags { context: Some("there".to_owned()), ..ConnectionFlags::default() };
        let variables = [("FLUX_API_URL", "http://env"), ("FLUX_API_TOKEN", "of-env")];
        let found = resolve(flags(), &variables).expect("a connection");
        assert_eq!(shown(&found), ("http://there", Some("of-there"), Some("writes-there")));
        let found =
            resolve(ConnectionFlags::default(), &[("FLUX_API_CONTEXT", "there")]).expect("a connection");
        assert_eq!(found.url, "http://there");
    }

    #[test]
    fn an_address_on_the_command_line_never_gets_the_token_of_another_service() {
        let flags = || ConnectionFlags { url: Some("http://flag/".to_owned()), ..ConnectionFlags::default() };
        let other = [("FLUX_API_URL", "http://env"), ("FLUX_API_TOKEN", "of-env")];
        assert_eq!(shown(&resolve(flags(), &other).expect("a connection")), ("http://flag/", None, None));
        let same = [("FLUX_API_URL", "http://flag"), ("FLUX_API_TOKEN", "of-env")];
        assert_eq!(
            shown(&resolve(flags(), &same).expect("a connection")),
            ("http://flag/", Some("of-env"), None)
        );
        let bare = [("FLUX_API_TOKEN", "of-env")];
        assert_eq!(
            shown(&resolve(flags(), &bare).expect("a connection")),
            ("http://flag/", Some("of-env"), None)
        );
    }

    #[test]
    fn a_context_without_a_token_takes_that_of_the_environment() {
        let flags = ConnectionFlags { context: Some("bare".to_owned()), ..ConnectionFlags::default() };
        let found = resolve(flags, &[("FLUX_API_TOKEN", "of-env")]).expect("a connection");
        assert_eq!(shown(&found), ("http://bare", Some("of-env"), None));
        let flags = ConnectionFlags { context: Some("bare".to_owned()), ..ConnectionFlags::default() };
        let found = resolve(flags, &[("FLUX_API_TOKEN", "of-env"), ("FLUX_API_URL", "http://env")])
            .expect("a connection");
        assert_eq!(shown(&found), ("http://bare", None, None));
    }

    #[test]
    fn a_context_without_tokens_takes_both_of_the_environment() {
        let flags = ConnectionFlags { context: Some("bare".to_owned()), ..ConnectionFlags::default() };
        let variables = [("FLUX_API_TOKEN", "reads"), ("FLUX_API_WRITE_TOKEN", "writes")];
        let found = resolve(flags, &variables).expect("a connection");
        assert_eq!(shown(&found), ("http://bare", Some("reads"), Some("writes")));
        assert_eq!(found.token_from, "FLUX_API_WRITE_TOKEN");
    }

    #[test]
    fn the_certificates_of_a_context_come_before_those_of_the_environment() {
        let others = tempfile::NamedTempFile::new().expect("a file");
        let others = others.path();
        let variables = [("FLUX_API_CA_FILE", others.to_str().expect("UTF-8"))];
        let file = |context: &str, ca_file: Option<&std::path::Path>| {
            let flags = ConnectionFlags {
                context: Some(context.to_owned()),
                ca_file: ca_file.map(ToOwned::to_owned),
                ..ConnectionFlags::default()
            };
            resolve(flags, &variables).expect("a connection").ca.expect("certificates").file
        };
        assert_ne!(file("own-ca", None), others);
        assert_eq!(file("own-ca", Some(others)), others);
        assert_eq!(file("bare", None), others);
    }

    #[test]
    fn a_flag_for_the_token_stands_for_both() {
        let flags = ConnectionFlags {
            context: Some("there".to_owned()),
            token: Some("of-flag".to_owned()),
            ..ConnectionFlags::default()
        };
        assert_eq!(
            shown(&resolve(flags, &[]).expect("a connection")),
            ("http://there", Some("of-flag"), None)
        );
    }

    #[test]
    fn an_unknown_context_says_which_there_are() {
        let flags = ConnectionFlags { context: Some("nowhere".to_owned()), ..ConnectionFlags::default() };
        let Err(Failure::Failed { what, next }) = resolve(flags, &[]) else { panic!("it was found") };
        assert_eq!(what, "there is no context `nowhere` (from --context)");
        assert_eq!(next, ["available contexts: here, there, bare, own-ca"]);
    }
}
