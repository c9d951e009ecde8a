//! A testbed's directory: its lock, its logs, and the record of its processes.
//!
//! No process outlives its testbed: each is killed when its owner is dropped; a keeper (a small shell that waits for
//! the end of a pipe) kills the recorded ones when this process dies without that; and a process that opens a directory that a
//! killed run left behind first ends what is still recorded there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};

use crate::lock::{self, Lock};

/// Environment variable that says where testbeds live.
pub const BASE_VARIABLE: &str = "HYPERSHIFT_TESTBED_DIR";

/// Name of the lock for what only one testbed on a machine can have: the development provider with its fixed ports.
pub const PROVIDER_LOCK: &str = "dev-provider";

/// Kills the recorded process groups as soon as its standard input ends.
const KEEPER: &str = r#"
while read -r _; do :; done
for record in "$1"/*; do
    [ -e "$record" ] && kill -s KILL -- "-${record##*/}"
done 2>/dev/null
exit 0
"#;

/// The directory of one running testbed. Removed when dropped, unless kept or panicking.
#[derive(Debug)]
pub struct WorkDir {
    directory: PathBuf,
    keeper: Child,
    kept: AtomicBool,
    /// Held until the testbed is dropped.
    _lock: Lock,
}

/// Where all testbeds of this user live.
pub fn base() -> PathBuf {
    std::env::var_os(BASE_VARIABLE).map_or_else(
        || std::env::temp_dir().join("hypershift-testbed"),
        PathBuf::from,
    )
}

/// The directory of the testbed called `name`, whether it runs or not.
pub fn directory_of(name: &str) -> PathBuf {
    base().join(name)
}

/// Whether a live process holds the testbed called `name`.
pub fn is_running(name: &str) -> Result<bool> {
    lock::is_held(&lock_path(name))
}

/// The process that holds the testbed called `name`.
pub fn owner(name: &str) -> Result<u32> {
    lock::holder(&lock_path(name))
}

/// Where a lock of all testbeds of this user is.
pub(crate) fn lock_path(name: &str) -> PathBuf {
    base().join(format!("{name}.lock"))
}

// === impl WorkDir ===

impl WorkDir {
    /// Takes the directory of the testbed called `name`, and ends what a killed run left in it.
    pub fn open(name: &str) -> Result<Self> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(plain) || name == PROVIDER_LOCK {
            bail!(
                "{name:?} is not a testbed name: use lower-case letters, digits and dashes, and not {PROVIDER_LOCK:?}"
            );
        }
        let directory = directory_of(name);
        fs::create_dir_all(base())
            .with_context(|| format!("cannot create {}", base().display()))?;
        let lock = take_lock(name)?;
        end_recorded(&directory.join("pids"))?;
        if directory.exists() {
            fs::remove_dir_all(&directory).with_context(|| {
                format!(
                    "cannot remove {}, left by a killed run",
                    directory.display()
                )
            })?;
        }
        for part in ["pids", "logs"] {
            let path = directory.join(part);
            fs::create_dir_all(&path)
                .with_context(|| format!("cannot create {}", path.display()))?;
        }
        let keeper = start_keeper(&directory.join("pids"))?;
        Ok(Self {
            directory,
            keeper,
            kept: AtomicBool::new(false),
            _lock: lock,
        })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// A file or directory in it.
    pub fn join(&self, part: impl AsRef<Path>) -> PathBuf {
        self.directory.join(part)
    }

    /// Where the log of the process called `name` is.
    pub fn log(&self, name: &str) -> PathBuf {
        self.directory.join("logs").join(format!("{name}.log"))
    }

    /// Leaves the directory in place when the testbed ends, for its logs.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Records a process group, to be ended by the keeper or by the next run.
    pub(crate) fn record(&self, pid: u32) -> Result<PathBuf> {
        let path = self.directory.join("pids").join(pid.to_string());
        let started = start_time(pid).unwrap_or_default();
        fs::write(&path, started).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // The end of its input ends the keeper; by now nothing is recorded, so it kills nothing.
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
        if std::thread::panicking() || self.kept.load(Ordering::Relaxed) {
            return;
        }
        // What cannot be removed now is removed by the next start.
        drop(fs::remove_dir_all(&self.directory));
    }
}

fn take_lock(name: &str) -> Result<Lock> {
    Lock::try_take(&lock_path(name))?.with_context(|| {
        format!(
            "the testbed {name} is already running: end it (cargo xtask testbed down --name {name}), or choose another \
             name"
        )
    })
}

fn start_keeper(pids: &Path) -> Result<Child> {
    use std::os::unix::process::CommandExt;
    Command::new("sh")
        .args(["-c", KEEPER, "keeper"])
        .arg(pids)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Its own group: the Ctrl-C that ends the test must not end the keeper.
        .process_group(0)
        .spawn()
        .context("cannot start sh, which ends the testbed's processes if this one is killed")
}

/// Ends the process groups of a killed run. A pid that another process has by now is left alone.
fn end_recorded(pids: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(pids) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot read {}", pids.display()))?
            .path();
        let recorded = fs::read_to_string(&path).unwrap_or_default();
        let pid = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.parse::<u32>().ok());
        if let Some(pid) = pid
            && start_time(pid).is_some_and(|started| started == recorded)
        {
            kill_group(pid, Signal::KILL);
        }
    }
    Ok(())
}

/// When a process started, in clock ticks since boot: with the pid it names one process for good.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name is in parentheses and may hold anything; the start time is the 20th field after it.
    let fields = stat.rsplit_once(')')?.1;
    fields.split_whitespace().nth(19).map(str::to_owned)
}

/// Signals a process group; that it is gone already is fine.
pub(crate) fn kill_group(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}
