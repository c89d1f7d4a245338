//! The tokens that come from the configuration. Only digests are kept; they are compared in constant time, and nothing here can be
//! printed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("must be visible ASCII characters without spaces: it is sent in a header");
        }
        Ok(Self { digest: digest(token.as_bytes()), principal: Principal { name: name.into(), role } })
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Everybody who may come in.
pub struct Identity {
    fixed: Vec<Credential>,
    files: Vec<(PathBuf, Role)>,
    current: ArcSwap<Vec<Credential>>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:?})", self.current.load())
    }
}

impl Identity {
    /// Nobody at all.
    pub fn nobody() -> Self {
        Self { fixed: Vec::new(), files: Vec::new(), current: ArcSwap::default() }
    }

    /// Those with a fixed token, and those in files. Says everything that is wrong.
    pub fn new(fixed: Vec<Credential>, files: Vec<(PathBuf, Role)>) -> Result<Self, Vec<String>> {
        let identity = Self { fixed, files, current: ArcSwap::default() };
        identity.current.store(Arc::new(identity.read()?));
        Ok(identity)
    }

    /// Reads the files again. What cannot be used leaves everything as it was; `true` if something is different.
    pub fn reload(&self) -> Result<bool, Vec<String>> {
        let read = self.read()?;
        let same = |a: &[Credential], b: &[Credential]| {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| a.digest == b.digest && a.principal == b.principal)
        };
        if same(&read, &self.current.load()) {
            return Ok(false);
        }
        self.current.store(Arc::new(read));
        Ok(true)
    }

    /// Whether there are files to reload.
    pub fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    fn read(&self) -> Result<Vec<Credential>, Vec<String>> {
        let mut problems = Vec::new();
        let mut all = self.fixed.clone();
        for (file, role) in &self.files {
            match std::fs::read_to_string(file) {
                Ok(text) => credentials(file, *role, &text, &mut all, &mut problems),
                Err(error) => {
                    problems.push(format!("the token file `{}` cannot be read: {error}", file.display()))
                }
            }
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
