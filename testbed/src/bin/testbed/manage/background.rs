//! A testbed in a process of its own, started and left.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use testbed::{wait, work_dir};

use super::{Shape, State};

/// The first start builds everything.
const UP_WITHIN: Duration = Duration::from_hours(1);

/// Starts the testbed called `name`, shows its progress, and returns when it is up.
pub(super) async fn start(name: &str, shape: &Shape) -> Result<State> {
    if work_dir::is_running(name)? {
        bail!("testbed {name} is running already: cargo xtask testbed status shows how to use it");
    }
    let log = log_of(name)?;
    let mut child = spawn(name, shape, &log)?;
    let mut shown = 0;
    let up = wait::until(&format!("testbed {name} to be up"), UP_WITHIN, async || {
        shown = show_new(&log, shown)?;
        if let Some(status) = child
            .try_wait()
            .context("failed to get the state of the testbed")?
        {
            return Ok(Err(status));
        }
        let state = State::read(name)?;
        if state.pid != child.id() {
            return wait::not_yet("what is written down is another run's");
        }
        Ok(Ok(state))
    })
    .await?;
    match up {
        Ok(state) => Ok(state),
        Err(status) => bail!(
            "testbed {name} ended before it was up ({status}); see {}",
            log.display()
        ),
    }
}

fn log_of(name: &str) -> Result<PathBuf> {
    let base = work_dir::base();
    std::fs::create_dir_all(&base).with_context(|| format!("cannot create {}", base.display()))?;
    Ok(log_path(name))
}

fn log_path(name: &str) -> PathBuf {
    work_dir::base().join(format!("{name}.up.log"))
}

/// Removes what the background process said while it started.
pub(super) fn forget(name: &str) {
    // A testbed in the foreground has none.
    drop(std::fs::remove_file(log_path(name)));
}

fn spawn(name: &str, shape: &Shape, log: &Path) -> Result<Child> {
    let output = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    Command::new(program)
        .args(["up", "--foreground", "--name", name])
        .args(shape.args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        // Its own group, so that the terminal's Ctrl-C and hang-up do not reach it.
        .process_group(0)
        .spawn()
        .context("cannot start the testbed's process")
}

/// Shows what has been added to the log since `from`; gives its new end.
fn show_new(log: &Path, from: u64) -> Result<u64> {
    let mut text = Vec::new();
    File::open(log)
        .and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut text)
        })
        .and_then(|_| std::io::stderr().write_all(&text))
        .with_context(|| format!("cannot show {}", log.display()))?;
    Ok(from + u64::try_from(text.len()).unwrap_or_default())
}
