//! The tokens of the configuration, from variables and files. Only digests are kept; they are compared in constant time, and nothing
//! here can be printed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Actor, Authenticator, Credentials, Principal, Role, Unauthenticated};

/// A token, by its digest, and who has it.
#[derive(Clone)]
pub struct Token {
    digest: [u8; 32],
    principal: Principal,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({} as {})", self.principal.actor, self.principal.role.as_str())
    }
}

impl Token {
    /// A token; an error continues a sentence that begins with the name of its variable or with `a token`. Without a name, the actor
    /// is called like the role.
    pub fn new(name: Option<&str>, role: Role, token: &str) -> Result<Self, &'static str> {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("must be visible ASCII characters without spaces: it is sent in a header");
        }
        if token.len() < SHORTEST {
            return Err("must have at least 8 characters, better 32: `openssl rand -hex 20` draws one");
        }
        let actor = Actor::File(name.unwrap_or(role.as_str()).into());
        Ok(Self { digest: digest(token.as_bytes()), principal: Principal { actor, role } })
    }
}

/// Anything shorter can be guessed, or is a word that means something else.
const SHORTEST: usize = 8;

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// All tokens of the configuration.
#[derive(Default)]
pub struct ConfiguredTokens {
    fixed: Vec<Token>,
    files: Mutex<Vec<TokenFile>>,
    current: ArcSwap<Vec<Token>>,
}

/// A file with tokens, and what was last found in it.
struct TokenFile {
    path: PathBuf,
    role: Role,
    /// The text whose tokens are in force.
    text: String,
    /// What was there at the last look. Somebody may be writing it: half a token is a token too.
    seen: String,
}

impl fmt::Debug for ConfiguredTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfiguredTokens({:?})", self.current.load())
    }
}

impl Authenticator for ConfiguredTokens {
    fn authenticate(&self, credentials: &Credentials) -> Result<Option<Principal>, Unauthenticated> {
        let Some(token) = &credentials.token else { return Ok(None) };
        let digest = digest(token);
        let all = self.current.load();
        // Compares with each of them, whichever it is.
        let mut found = None;
        for token in all.iter() {
            if bool::from(token.digest.ct_eq(&digest)) {
                found = Some(&token.principal);
            }
        }
        Ok(found.cloned())
    }
}

impl ConfiguredTokens {
    /// Fixed tokens, and those in files. Reports everything that is wrong.
    pub fn new(fixed: Vec<Token>, files: Vec<(PathBuf, Role)>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut read = Vec::new();
        for (path, role) in files {
            match text_of(&path) {
                Ok(text) => read.push(TokenFile { path, role, seen: text.clone(), text }),
                Err(problem) => problems.push(problem),
            }
        }
        let tokens = all(&fixed, &read);
        problems.extend(tokens.as_ref().err().into_iter().flatten().cloned());
        match tokens {
            Ok(tokens) if problems.is_empty() => {
                Ok(Self { fixed, files: Mutex::new(read), current: ArcSwap::from_pointee(tokens) })
            }
            _ => Err(problems),
        }
    }

    /// Looks at the files again. A file that has changed is believed when the next look finds it the same, and if it can be used;
    /// otherwise it counts as it was, whatever becomes of the others. `true` if something is different.
    pub fn reload(&self) -> Result<bool, Vec<String>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut problems = Vec::new();
        let mut changed = false;
        for n in 0..files.len() {
            let found = match text_of(&files[n].path) {
                Ok(found) => found,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            let settled = std::mem::replace(&mut files[n].seen, found.clone()) == found;
            if !settled || found == files[n].text {
                continue;
            }
            let before = std::mem::replace(&mut files[n].text, found);
            match all(&self.fixed, &files) {
                Ok(tokens) => {
                    self.current.store(Arc::new(tokens));
                    changed = true;
                }
                Err(found) => {
                    files[n].text = before;
                    problems.extend(found);
                }
            }
        }
        if problems.is_empty() { Ok(changed) } else { Err(problems) }
    }

    /// Whether there are files to reload.
    pub fn has_files(&self) -> bool {
        !self.files.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

fn text_of(file: &Path) -> Result<String, String> {
    let unreadable = |error| format!("the token file `{}` cannot be read: {error}", file.display());
    std::fs::read_to_string(file).map_err(unreadable)
}

/// All tokens, if every one can be used; else everything that is wrong.
fn all(fixed: &[Token], files: &[TokenFile]) -> Result<Vec<Token>, Vec<String>> {
    let mut problems = Vec::new();
    let mut all = fixed.to_vec();
    for file in files {
        read(file, &mut all, &mut problems);
    }
    for (n, token) in all.iter().enumerate() {
        let twice = all[..n].iter().find(|other| other.digest == token.digest);
        if let Some(Token { principal: other, .. }) = twice {
            problems.push(if other.role == token.principal.role {
                format!("`{}` and `{}` have the same token", other.actor, token.principal.actor)
            } else {
                "AUTH_TOKEN and CRUD_AUTH_TOKEN are the same: every cluster could change the fleet; choose two"
                    .to_owned()
            });
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

fn read(file: &TokenFile, all: &mut Vec<Token>, problems: &mut Vec<String>) {
    let before = (all.len(), problems.len());
    for (n, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match split(line).and_then(|(name, token)| Token::new(name, file.role, token).map_err(a_token)) {
            Ok(token) => all.push(token),
            Err(problem) => problems.push(format!("`{}` line {}: {problem}", file.path.display(), n + 1)),
        }
    }
    if (all.len(), problems.len()) == before {
        problems.push(format!("the token file `{}` has no token in it", file.path.display()));
    }
}

fn a_token(problem: &'static str) -> String {
    format!("a token {problem}")
}

/// The name and the token in a line. The line is a secret, so no problem repeats any of it.
///
/// `name=` without a token must not become the token `name=`, which anybody can guess: that line is what `name=$(openssl …)` makes
/// where openssl is missing. A token in base64 may end in `=` as well; nothing tells the two apart, so it needs a name.
fn split(line: &str) -> Result<(Option<&str>, &str), String> {
    if line.contains(char::is_whitespace) {
        return Err("a line has no spaces: write `name=token`, or the token alone".to_owned());
    }
    let Some((name, token)) = line.split_once('=') else { return Ok((None, line)) };
    let has_token = token.bytes().any(|byte| byte != b'=');
    if !has_token {
        return Err(
            "there is no token after the name: write `name=token`. (A token that ends in `=` needs a name)"
                .to_owned(),
        );
    }
    let is_name = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte));
    if !is_name {
        return Err(format!(
            "there is no name before `=`: write `name=token`, with a name of up to {MAX_NAME} letters, digits, `.`, `_`, `-` or `@`"
        ));
    }
    Ok((Some(name), token))
}

/// The longest name of a token.
const MAX_NAME: usize = 64;
