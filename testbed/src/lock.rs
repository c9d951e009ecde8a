//! Locks between processes: a file that says who holds it, and that is gone when no process does.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::wait;

/// The longest wait for another process's lock.
const PATIENCE: Duration = Duration::from_hours(1);

/// A held lock. It is released when it is dropped or its process ends.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

// === impl Lock ===

impl Lock {
    /// Takes the lock, unless another process holds it.
    pub fn try_take(path: &Path) -> Result<Option<Self>> {
        let failed = || format!("cannot lock {}", path.display());
        loop {
            // Not truncated: until it is locked, the process id in it is another's.
            let mut file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(path)
                .with_context(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
            }
            // Its last holder may have removed it between the opening and the locking: then this is no lock at all.
            if !is_at(&file, path) {
                continue;
            }
            file.set_len(0)
                .and_then(|()| write!(file, "{}", std::process::id()))
                .with_context(failed)?;
            return Ok(Some(Self {
                path: path.to_owned(),
                _file: file,
            }));
        }
    }

    /// Takes the lock as soon as it is free.
    pub async fn take(path: &Path) -> Result<Self> {
        let what = format!("the lock {}", path.display());
        wait::until(&what, PATIENCE, async || {
            Self::try_take(path)?.with_context(|| match holder(path) {
                Ok(pid) => format!("process {pid} holds it"),
                Err(error) => format!("{error:#}"),
            })
        })
        .await
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is still locked, so that the file of no other process is removed.
        drop(fs::remove_file(&self.path));
    }
}

/// Whether a live process holds the lock.
pub fn is_held(path: &Path) -> Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot open {}", path.display()));
        }
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot look at the lock {}", path.display()))
        }
    }
}

/// The process that holds the lock.
pub fn holder(path: &Path) -> Result<u32> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.trim()
        .parse()
        .with_context(|| format!("{} does not say which process holds it", path.display()))
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_has_one_holder_at_a_time() {
        let path = std::env::temp_dir().join(format!("lock-test-{}", std::process::id()));
        let first = Lock::try_take(&path).unwrap().unwrap();
        assert!(is_held(&path).unwrap());
        assert_eq!(holder(&path).unwrap(), std::process::id());
        assert!(Lock::try_take(&path).unwrap().is_none());
        drop(first);
        assert!(!is_held(&path).unwrap());
        let second = Lock::take(&path).await.unwrap();
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}
