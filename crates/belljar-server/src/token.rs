//! The bearer token of the HTTP server: created once, readable by its owner only.

#[cfg(test)]
mod tests;

use std::{
    fmt, fs, io,
    io::{Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use belljar_contract::hex;
use belljar_paths::{
    owner,
    owner::{Purpose, UntrustedPath},
};
use sha2::{Digest, Sha256};

/// A secret that lets its bearer use the server. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Another user could have written the file or its directory.
    #[error("cannot use the token file: {0}")]
    Untrusted(#[from] UntrustedPath),
    /// The file cannot be read or written.
    #[error("cannot read or create token file {path}")]
    File {
        /// Path of the token file.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Others can read the file, so the token is not a secret.
    #[error("token file {path} can be read by others; run: chmod 600 {path}")]
    Shared {
        /// Path of the token file.
        path: String,
    },
    /// The file's content is too easy to guess.
    #[error("token file {path} must hold at least 32 characters without spaces")]
    Weak {
        /// Path of the token file.
        path: String,
    },
}

impl BearerToken {
    /// The token in the file at `path`. Creates the file, with a new token, if it does not exist.
    ///
    /// # Errors
    /// If another user owns or can write the file or its directory, if others can read the file, if
    /// it cannot be read or created, or if it holds no good token.
    pub fn at(path: &Path) -> Result<Self, TokenError> {
        let shown = || path.display().to_string();
        let failed = |source| TokenError::File { path: shown(), source };
        let mut file = match owner::open(path, Purpose::State) {
            Err(error) if error.is_missing() => {
                match make(path) {
                    // Another process was quicker: use its token.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made.map_err(failed)?,
                }
                owner::open(path, Purpose::State)?
            }
            opened => opened?,
        };
        if let Some(directory) = path.parent() {
            owner::check(directory, Purpose::State)?;
        }
        if file.metadata().map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(TokenError::Shared { path: shown() });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Self::new(text.trim()).ok_or_else(|| TokenError::Weak { path: shown() })
    }

    /// The given text as a token; `None` if it is too easy to guess.
    pub fn new(text: &str) -> Option<Self> {
        let fits = text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }

    /// The token itself, to hand to a client.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether a client sent this token. It compares digests, so its duration reveals nothing: a
    /// client cannot choose the digest.
    pub(crate) fn matches(&self, guess: &str) -> bool {
        Sha256::digest(&self.0) == Sha256::digest(guess)
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(…)")
    }
}

/// Written under another name and then linked into place, so that no reader sees half of it.
fn make(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let draft = path.with_extension(format!("new-{}", hex::encode(&random_bytes()[..8])));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file
        .write_all(hex::encode(&random_bytes()).as_bytes())
        .and_then(|()| file.write_all(b"\n"))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    written
}

/// 32 random bytes. The kernel's source does not fail once it is initialised, and without it there
/// is no safe way to continue.
pub(crate) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert!(filled == Ok(32), "the kernel has no randomness");
    bytes
}
