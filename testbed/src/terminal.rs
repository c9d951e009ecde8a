//! Commands, as a user at a terminal runs them.

use std::path::Path;

use anyhow::{Context, Result};
use tokio::process::Command;

/// Runs a command with a kubeconfig; gives its exit status and all that it says.
pub async fn run(command: &mut Command, kubeconfig: &Path) -> Result<(i32, String)> {
    let name = command.as_std().get_program().display().to_string();
    let command = command.arg("--kubeconfig").arg(kubeconfig);
    let output = command.kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("cannot run {name}"))?;
    let said = [output.stdout, output.stderr].concat();
    let code = output.status.code();
    Ok((
        code.with_context(|| format!("{name} was ended by a signal"))?,
        String::from_utf8_lossy(&said).into_owned(),
    ))
}
