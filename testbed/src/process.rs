//! Programs that run as long as their owner: own process group, output in a log file.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::wait;
use crate::work_dir::{WorkDir, kill_group};

/// How much of a log an error shows.
const TAIL_LINES: usize = 15;

/// How to start a program.
#[derive(Debug, Clone)]
pub struct Launch {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    environment: Vec<(String, String)>,
}

/// A running program. Killed, with its whole process group, when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    record: PathBuf,
}

// === impl Launch ===

impl Launch {
    /// A program and the name under which it is known: also the name of its log.
    pub fn new(name: impl Into<String>, program: &Path) -> Self {
        Self {
            name: name.into(),
            program: program.to_owned(),
            args: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds a flag of the form `--name=value`.
    #[must_use]
    pub fn flag(self, name: &str, value: impl std::fmt::Display) -> Self {
        self.arg(format!("--{name}={value}"))
    }

    /// Adds a flag whose value is a path.
    #[must_use]
    pub fn path_flag(self, name: &str, path: &Path) -> Self {
        let mut arg = OsString::from(format!("--{name}="));
        arg.push(path);
        self.arg(arg)
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn environment(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Has it started by another program: `entry`, whose own arguments come before this program's.
    #[must_use]
    pub fn through(mut self, entry: &[OsString]) -> Self {
        let mut line = entry.iter().cloned();
        if let Some(program) = line.next() {
            let inner = std::mem::replace(&mut self.program, PathBuf::from(program));
            let args = std::mem::take(&mut self.args);
            self.args = line.chain([inner.into_os_string()]).chain(args).collect();
        }
        self
    }

    /// The name given at the start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it; its output is added to its log in the work directory.
    pub fn spawn(&self, work_dir: &WorkDir) -> Result<Process> {
        let log = work_dir.log(&self.name);
        let output = open_log(&log)?;
        let errors = output
            .try_clone()
            .with_context(|| format!("cannot share {}", log.display()))?;
        let child = Command::new(&self.program)
            .args(&self.args)
            // The caller's own cluster must never be reached by accident.
            .env_remove("KUBECONFIG")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(work_dir.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {} ({})", self.name, self.program.display()))?;
        let record = work_dir.record(child.id())?;
        Ok(Process {
            name: self.name.clone(),
            child,
            log,
            record,
        })
    }
}

fn open_log(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot open the log {}", path.display()))
}

// === impl Process ===

impl Process {
    /// The process's id, and its group's.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file of its output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("failed to get the state of {}", self.name))
    }

    /// Sends a signal to the whole group.
    pub fn signal(&self, signal: Signal) {
        kill_group(self.child.id(), signal);
    }

    /// Terminates it, and kills it if it has not ended within `grace`.
    pub async fn stop(mut self, grace: Duration) -> Result<()> {
        self.signal(Signal::TERM);
        let ended = wait::until("the end of a process", grace, async || {
            match self.exited()? {
                Some(status) => Ok(status),
                None => wait::not_yet("still running"),
            }
        })
        .await;
        // Late or not, dropping ends it.
        drop(ended);
        Ok(())
    }

    /// The last lines of its log, for an error message.
    pub fn tail(&self) -> String {
        tail(&self.log, TAIL_LINES)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        drop(self.child.wait());
        drop(std::fs::remove_file(&self.record));
    }
}

/// The last `lines` lines of a log.
pub fn tail(log: &Path, lines: usize) -> String {
    let text = match std::fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("(no log: {error})"),
    };
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_process_is_gone_and_its_directory_too() {
        let work_dir = WorkDir::open("unit-process").unwrap();
        let directory = work_dir.path().to_owned();
        let launch = Launch::new("sleeper", Path::new("sh"))
            .arg("-c")
            .arg("echo started; sleep 600");
        let process = launch.spawn(&work_dir).unwrap();
        let group = process.pid();
        assert!(directory.join("pids").join(group.to_string()).exists());
        drop(process);
        assert!(!Path::new(&format!("/proc/{group}")).exists());
        drop(work_dir);
        assert!(!directory.exists());
    }

    #[test]
    fn a_second_owner_is_refused() {
        let _work_dir = WorkDir::open("unit-twice").unwrap();
        let error = WorkDir::open("unit-twice").unwrap_err();
        assert!(error.to_string().contains("already running"), "{error:#}");
        assert!(crate::work_dir::is_running("unit-twice").unwrap());
    }
}
