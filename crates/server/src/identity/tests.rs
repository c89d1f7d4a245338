use std::path::PathBuf;

use http::{HeaderMap, HeaderValue, header};

use super::{
    Action, Actor, ConfiguredTokens, Forbidden, Identity, Principal, Role, Target, Token, Unauthenticated,
    authorise,
};

fn headers(authorization: &[&str]) -> HeaderMap {
    let value = |text: &&str| (header::AUTHORIZATION, HeaderValue::from_str(text).expect("a header value"));
    authorization.iter().map(value).collect()
}

fn identity() -> Identity {
    let poller = Token::new(None, Role::Poller, "read-me-please").expect("a good token");
    let admin = Token::new(None, Role::Admin, "write-me-please").expect("a good token");
    Identity::new(ConfiguredTokens::new(vec![poller, admin], Vec::new()).expect("two different tokens"))
}

fn of_files(files: Vec<(PathBuf, Role)>) -> Identity {
    Identity::new(ConfiguredTokens::new(Vec::new(), files).expect("good files"))
}

fn actor(identity: &Identity, authorization: &str) -> Result<String, Unauthenticated> {
    identity.authenticate(&headers(&[authorization])).map(|principal| principal.actor.to_string())
}

#[test]
fn a_bearer_token_and_the_password_of_basic_authentication_are_the_same_credential() {
    let identity = identity();
    assert_eq!(actor(&identity, "Bearer read-me-please").as_deref(), Ok("file:poller"));
    assert_eq!(actor(&identity, "bearer write-me-please").as_deref(), Ok("file:admin"));
    let basic = format!("Basic {}", data_encoding::BASE64.encode(b"anybody:write-me-please"));
    assert_eq!(actor(&identity, &basic).as_deref(), Ok("file:admin"));
}

#[test]
fn a_wrong_or_unreadable_credential_is_nobody() {
    let identity = identity();
    let denied = |texts: &[&str]| identity.authenticate(&headers(texts)).expect_err("nobody");
    assert_eq!(denied(&[]), Unauthenticated::NoCredential);
    assert_eq!(denied(&["Bearer read-me-not"]), Unauthenticated::Unknown);
    assert_eq!(denied(&["Bearer "]), Unauthenticated::Unknown);
    assert_eq!(denied(&["Digest read-me-please"]), Unauthenticated::Unreadable);
    assert_eq!(denied(&["Basic not-base64!"]), Unauthenticated::Unreadable);
    assert_eq!(denied(&["read-me-please"]), Unauthenticated::Unreadable);
    assert_eq!(denied(&["Bearer read-me-please", "Bearer read-me-please"]), Unauthenticated::Twice);
}

#[test]
fn a_poller_polls_any_cluster_and_asks_who_it_is_and_nothing_else() {
    let actions =
        [Action::Whoami, Action::Poll, Action::ListClusters, Action::Read, Action::Plan, Action::Write];
    let document = Target::Document { kind: "clusters", id: "one" };
    let targets = [
        Target::Service,
        Target::Fleet,
        Target::Cluster("one.example.com"),
        Target::Kind("clusters"),
        document,
    ];
    let allowed = |role: Role| {
        let principal = Principal { actor: Actor::File("x".into()), role };
        let all = actions.iter().flat_map(|action| targets.map(|target| (*action, target)));
        all.filter(|(action, target)| authorise(&principal, *action, *target).is_ok()).collect::<Vec<_>>()
    };
    assert_eq!(
        allowed(Role::Poller),
        [
            (Action::Whoami, Target::Service),
            (Action::Poll, Target::Cluster("one.example.com")),
            (Action::ListClusters, Target::Fleet),
        ]
    );
    assert_eq!(allowed(Role::Admin).len(), actions.len() * targets.len());
    assert_eq!(Forbidden(Role::Poller).to_string(), "a credential with the role `poller` may not do this");
}

#[test]
fn a_token_file_names_its_actors_and_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokens");
    std::fs::write(&file, "# the team\nalice=token-one\nplain-token\n").expect("written");
    let identity = of_files(vec![(file.clone(), Role::Admin)]);
    let actor = |token: &str| actor(&identity, &format!("Bearer {token}"));
    let reload = || identity.tokens().reload();
    assert_eq!(actor("token-one").as_deref(), Ok("file:alice"));
    assert_eq!(actor("plain-token").as_deref(), Ok("file:admin"));
    assert_eq!(reload(), Ok(false));

    std::fs::write(&file, "bob=token-two\n").expect("written");
    assert_eq!(reload(), Ok(false), "somebody may still be writing it");
    assert_eq!(reload(), Ok(true));
    assert_eq!(actor("token-two").as_deref(), Ok("file:bob"));
    assert_eq!(actor("token-one"), Err(Unauthenticated::Unknown));

    // A file that is being written, or that somebody emptied by mistake, locks nobody out.
    std::fs::write(&file, "\n").expect("written");
    assert_eq!(reload(), Ok(false));
    assert_eq!(reload(), Err(vec![format!("the token file `{}` has no token in it", file.display())]));
    assert_eq!(actor("token-two").as_deref(), Ok("file:bob"));
}

fn problems_of_line(line: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokens");
    std::fs::write(&file, format!("# two lines\n{line}\n")).expect("written");
    let read = ConfiguredTokens::new(Vec::new(), vec![(file.clone(), Role::Admin)]);
    let place = format!("`{}` line 2: ", file.display());
    let told = |problem: String| problem.strip_prefix(&place).unwrap_or(&problem).to_owned();
    read.err().into_iter().flatten().map(told).collect()
}

/// `clusters=$(openssl rand -hex 20)` wrote such a line where openssl is missing, and `clusters=` was then everybody's admin token.
#[test]
fn a_name_without_a_token_does_not_become_a_token_that_anybody_can_guess() {
    let no_token =
        "there is no token after the name: write `name=token`. (A token that ends in `=` needs a name)";
    // Some of these are base64 by accident, even with capital letters.
    for line in [
        "clusters=",
        "clusters==",
        "ops-bot=",
        "ci-pipeline-prod-01=",
        "=",
        "deployment-of-the-fleet=",
        "Admin123=",
        "OurProductionKubeTokens=",
    ] {
        assert_eq!(problems_of_line(line), [no_token], "{line}");
    }
}

#[test]
fn a_line_that_is_almost_name_and_token_is_refused_and_not_repeated() {
    let spaces = "a line has no spaces: write `name=token`, or the token alone";
    let no_name = "there is no name before `=`: write `name=token`, with a name of up to 64 letters, digits, `.`, `_`, `-` or `@`";
    for (line, problem) in [
        ("alice = 0123456789abcdef", spaces),
        ("alice= 0123456789abcdef", spaces),
        ("alice =", spaces),
        ("export alice=0123456789abcdef", spaces),
        ("=0123456789abcdef", no_name),
        ("al/ice=0123456789abcdef", no_name),
        (
            "alice=short",
            "a token must have at least 8 characters, better 32: `openssl rand -hex 20` draws one",
        ),
        (
            "alice=t\u{f6}ken-of-alice",
            "a token must be visible ASCII characters without spaces: it is sent in a header",
        ),
    ] {
        assert_eq!(problems_of_line(line), [problem], "{line}");
    }
}

#[test]
fn a_token_in_base64_may_end_in_an_equals_sign_if_it_has_a_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokens");
    std::fs::write(&file, "alice=c2VjcmV0cw==\n").expect("written");
    let identity = of_files(vec![(file, Role::Admin)]);
    assert_eq!(actor(&identity, "Bearer c2VjcmV0cw==").as_deref(), Ok("file:alice"));
    assert_eq!(problems_of_line("q1Jd0nQ4b8m1W0yTn5sXzA==").len(), 1);
}

#[test]
fn nothing_prints_a_token_or_its_digest() {
    assert_eq!(
        format!("{:?}", identity()),
        "Identity { tokens: ConfiguredTokens([Token(file:poller as poller), Token(file:admin as admin)]) }"
    );
}

#[test]
fn a_broken_token_file_does_not_keep_another_from_being_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (pollers, admins) = (folder.path().join("pollers"), folder.path().join("admins"));
    std::fs::write(&pollers, "poller-one\n").expect("written");
    std::fs::write(&admins, "admin-one\n").expect("written");
    let identity = of_files(vec![(pollers.clone(), Role::Poller), (admins.clone(), Role::Admin)]);
    std::fs::remove_file(&pollers).expect("removed");
    std::fs::write(&admins, "admin-two\n").expect("written");
    for _ in 0..2 {
        assert!(identity.tokens().reload().is_err());
    }
    let known = |token: &str| actor(&identity, &format!("Bearer {token}")).is_ok();
    assert_eq!(["poller-one", "admin-one", "admin-two"].map(known), [true, false, true]);
}

#[test]
fn a_short_token_is_refused() {
    let refused = Token::new(None, Role::Admin, "off").expect_err("it is short");
    assert_eq!(refused, "must have at least 8 characters, better 32: `openssl rand -hex 20` draws one");
}
