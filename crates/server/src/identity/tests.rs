use http::HeaderValue;

use super::{Access, Credential, Denied, Identity, Role};

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("a header value")
}

fn identity() -> Identity {
    let reader = Credential::new("fleet-reader", Role::FleetReader, "read-me-please").expect("a good token");
    let admin = Credential::new("admin", Role::Admin, "write-me-please").expect("a good token");
    Identity::new(vec![reader, admin], Vec::new()).expect("two different tokens")
}

#[test]
fn a_bearer_token_and_the_password_of_basic_authentication_are_the_same_credential() {
    let identity = identity();
    let name = |text: &str| identity.authenticate(Some(&header(text))).map(|who| who.name.to_string());
    assert_eq!(name("Bearer read-me-please").as_deref(), Ok("fleet-reader"));
    assert_eq!(name("bearer write-me-please").as_deref(), Ok("admin"));
    let basic = format!("Basic {}", data_encoding::BASE64.encode(b"anybody:write-me-please"));
    assert_eq!(name(&basic).as_deref(), Ok("admin"));
}

#[test]
fn a_wrong_or_unreadable_credential_is_nobody() {
    let identity = identity();
    let denied = |text: &str| identity.authenticate(Some(&header(text))).expect_err("nobody");
    assert_eq!(identity.authenticate(None), Err(Denied::NoCredential));
    assert_eq!(denied("Bearer read-me-not"), Denied::Unknown);
    assert_eq!(denied("Bearer "), Denied::Unknown);
    assert_eq!(denied("Digest read-me-please"), Denied::Unreadable);
    assert_eq!(denied("Basic not-base64!"), Denied::Unreadable);
    assert_eq!(denied("read-me-please"), Denied::Unreadable);
}

#[test]
fn a_reader_polls_and_learns_who_it_is_and_nothing_else() {
    let allowed = |role: Role| {
        [Access::Open, Access::Whoami, Access::Inputs, Access::ClusterList, Access::Read, Access::Write]
            .map(|access| role.may(access))
    };
    assert_eq!(allowed(Role::FleetReader), [true, true, true, true, false, false]);
    assert_eq!(allowed(Role::Admin), [true; 6]);
}

#[test]
fn a_token_file_names_its_actors_and_is_read_again_when_it_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokens");
    std::fs::write(&file, "# the team\nalice=token-one\nplain-token\nc2VjcmV0==\n").expect("written");
    let identity = Identity::new(Vec::new(), vec![(file.clone(), Role::Admin)]).expect("a good file");
    let name = |token: &str| {
        identity.authenticate(Some(&header(&format!("Bearer {token}")))).map(|who| who.name.to_string())
    };
    assert_eq!(name("token-one").as_deref(), Ok("alice"));
    assert_eq!(name("plain-token").as_deref(), Ok("admin"));
    assert_eq!(name("c2VjcmV0==").as_deref(), Ok("admin"));
    assert_eq!(identity.reload(), Ok(false));

    std::fs::write(&file, "bob=token-two\n").expect("written");
    assert_eq!(identity.reload(), Ok(false), "somebody may still be writing it");
    assert_eq!(identity.reload(), Ok(true));
    assert_eq!(name("token-two").as_deref(), Ok("bob"));
    assert_eq!(name("token-one"), Err(Denied::Unknown));

    // A file that is being written, or that somebody emptied by mistake, locks nobody out.
    std::fs::write(&file, "\n").expect("written");
    assert_eq!(identity.reload(), Ok(false));
    assert_eq!(
        identity.reload(),
        Err(vec![format!("the token file `{}` has no token in it", file.display())])
    );
    assert_eq!(name("token-two").as_deref(), Ok("bob"));
}

#[test]
fn nothing_prints_a_token_or_its_digest() {
    let printed = format!("{:?}", identity());
    assert_eq!(printed, "Identity([Credential(fleet-reader as fleet-reader), Credential(admin as admin)])");
}

#[test]
fn a_broken_token_file_does_not_keep_another_from_being_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (readers, admins) = (folder.path().join("readers"), folder.path().join("admins"));
    std::fs::write(&readers, "reader-one\n").expect("written");
    std::fs::write(&admins, "admin-one\n").expect("written");
    let files = vec![(readers.clone(), Role::FleetReader), (admins.clone(), Role::Admin)];
    let identity = Identity::new(Vec::new(), files).expect("good files");
    std::fs::remove_file(&readers).expect("removed");
    std::fs::write(&admins, "admin-two\n").expect("written");
    for _ in 0..2 {
        assert!(identity.reload().is_err());
    }
    let known = |token: &str| identity.authenticate(Some(&header(&format!("Bearer {token}")))).is_ok();
    assert_eq!(["reader-one", "admin-one", "admin-two"].map(known), [true, false, true]);
}

#[test]
fn a_short_token_is_refused() {
    let refused = Credential::new("admin", Role::Admin, "off").expect_err("it is short");
    assert_eq!(refused, "must have at least 8 characters, better 32: `openssl rand -hex 20` draws one");
}
