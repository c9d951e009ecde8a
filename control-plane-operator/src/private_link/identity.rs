//! The token of the control-plane-operator in a file, where clients of clouds look for it.
//!
//! It is issued by the hosted API server, which this operator starts: so no sidecar can write it before this operator runs.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use support::error::chain;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::hosted_control_plane::tokens::{NoToken, OPERATOR, RENEWED_AFTER, Tokens};

/// The file.
pub(super) struct TokenFile {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    tokens: Tokens,
    written: Option<Instant>,
}

// === impl TokenFile ===

impl TokenFile {
    /// A file of this name in the temporary directory, which is the pod's own.
    pub(super) fn new(client: &kube::Client, namespace: &str, name: &str) -> Self {
        Self {
            path: std::env::temp_dir().join(name),
            state: Mutex::new(State {
                tokens: Tokens::new(client.clone(), namespace),
                written: None,
            }),
        }
    }

    /// The path of the file, with a token that is valid for a while.
    pub(super) async fn fresh(&self) -> Result<&Path, NoToken> {
        let mut state = self.state.lock().await;
        let is_fresh = |at: Instant| at.elapsed() < RENEWED_AFTER;
        if !state.written.is_some_and(is_fresh) || !self.path.is_file() {
            let token = state.tokens.mint(OPERATOR).await?;
            let written = write(&self.path, token.as_bytes());
            written.map_err(|error| NoToken::Refused(chain(&error)))?;
            state.written = Some(Instant::now());
        }
        Ok(&self.path)
    }
}

/// Replaces a file that only this user may read. No reader sees a part of it.
pub(super) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    // Another process may have left it behind, with other permissions.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(content)?;
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn tokens_are_replaced_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(path.with_extension("new"), "left behind").unwrap();
        for token in ["one", "two"] {
            write(&path, token.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), token);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
