//! The tokens that come from the configuration. Only digests are kept; they are compared in constant time, and nothing here can be
//! printed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use http::HeaderValue;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{Denied, Principal, Role, presented};

/// A token, by its digest, and who it is.
#[derive(Clone)]
pub struct Credential {
    digest: [u8; 32],
    principal: Principal,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({} as {})", self.principal.name, self.principal.role.as_str())
    }
}

impl Credential {
    /// A token; what is wrong with it continues a sentence that begins with its name.
    pub fn new(name: &str, role: Role, token: &str) -> Result<Self, &'static str> {
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("must be visible ASCII characters without spaces: it is sent in a header");
        }
        if token.len() < SHORTEST {
            return Err("must have at least 8 characters, better 32: `openssl rand -hex 20` draws one");
        }
        Ok(Self { digest: digest(token.as_bytes()), principal: Principal { name: name.into(), role } })
    }
}

/// What is shorter is guessed, or is a word that means something else.
const SHORTEST: usize = 8;

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Everybody who may come in.
pub struct Identity {
    fixed: Vec<Credential>,
    files: Mutex<Vec<TokenFile>>,
    current: ArcSwap<Vec<Credential>>,
}

/// A file with tokens, and what was last found in it.
struct TokenFile {
    path: PathBuf,
    role: Role,
    /// What is believed of it.
    text: String,
    /// What was there at the last look. Somebody may be writing it: half a token is a token too.
    seen: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:?})", self.current.load())
    }
}

impl Identity {
    /// Nobody at all.
    pub fn nobody() -> Self {
        Self { fixed: Vec::new(), files: Mutex::default(), current: ArcSwap::default() }
    }

    /// Those with a fixed token, and those in files. Says everything that is wrong.
    pub fn new(fixed: Vec<Credential>, files: Vec<(PathBuf, Role)>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut read = Vec::new();
        for (path, role) in files {
            match text_of(&path) {
                Ok(text) => read.push(TokenFile { path, role, seen: text.clone(), text }),
                Err(problem) => problems.push(problem),
            }
        }
        let credentials = all(&fixed, &read);
        problems.extend(credentials.as_ref().err().into_iter().flatten().cloned());
        match credentials {
            Ok(credentials) if problems.is_empty() => {
                Ok(Self { fixed, files: Mutex::new(read), current: ArcSwap::from_pointee(credentials) })
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
                Ok(credentials) => {
                    self.current.store(Arc::new(credentials));
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

    /// Who is asking.
    pub fn authenticate(&self, header: Option<&HeaderValue>) -> Result<Principal, Denied> {
        let token = presented(header.ok_or(Denied::NoCredential)?).ok_or(Denied::Unreadable)?;
        let digest = digest(&token);
        let all = self.current.load();
        // Looks at each of them, whichever it is.
        let mut found = None;
        for credential in all.iter() {
            if bool::from(credential.digest.ct_eq(&digest)) {
                found = Some(&credential.principal);
            }
        }
        found.cloned().ok_or(Denied::Unknown)
    }
}

fn text_of(file: &Path) -> Result<String, String> {
    let unreadable = |error| format!("the token file `{}` cannot be read: {error}", file.display());
    std::fs::read_to_string(file).map_err(unreadable)
}

/// Everybody, if all of it can be used; else everything that is wrong.
fn all(fixed: &[Credential], files: &[TokenFile]) -> Result<Vec<Credential>, Vec<String>> {
    let mut problems = Vec::new();
    let mut all = fixed.to_vec();
    for file in files {
        credentials(&file.path, file.role, &file.text, &mut all, &mut problems);
    }
    for (n, credential) in all.iter().enumerate() {
        let twice = all[..n].iter().find(|other| other.digest == credential.digest);
        if let Some(other) = twice {
            problems.push(if other.principal.role == credential.principal.role {
                format!("`{}` and `{}` have the same token", other.principal.name, credential.principal.name)
            } else {
                "AUTH_TOKEN and CRUD_AUTH_TOKEN are the same: every cluster could change the fleet; choose two"
                    .to_owned()
            });
        }
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

fn credentials(file: &Path, role: Role, text: &str, all: &mut Vec<Credential>, problems: &mut Vec<String>) {
    let before = (all.len(), problems.len());
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, token) = named(line).unwrap_or((role.as_str(), line));
        match Credential::new(name, role, token) {
            Ok(credential) => all.push(credential),
            Err(problem) => {
                problems.push(format!("`{}` line {}: a token {problem}", file.display(), n + 1));
            }
        }
    }
    if (all.len(), problems.len()) == before {
        problems.push(format!("the token file `{}` has no token in it", file.display()));
    }
}

/// A line `name=token`. A token in base64 may end in `=`, which names nobody.
fn named(line: &str) -> Option<(&str, &str)> {
    let (name, token) = line.split_once('=')?;
    let is_name = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte));
    let is_token = token.bytes().any(|byte| byte != b'=');
    (is_name && is_token).then_some((name, token))
}
