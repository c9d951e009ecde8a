//! The command is killed in the middle, and run again.

use anyhow::{Context, Result, ensure};
use testbed::testbed::Testbed;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::install::command::Hypershift;
use crate::install::stored;

/// What it says when it is killed: among the CRDs, among what has no namespace, among the rights.
const POINTS: [&str; 3] = [
    "CustomResourceDefinition clusters.cluster.hypershift.openshift.io",
    "PriorityClass hypershift-etcd",
    "Role hypershift/operator",
];

/// Kills an installation at one point after the other; the last run finishes it.
pub(crate) async fn at_any_point(testbed: &Testbed, hypershift: &Hypershift) -> Result<()> {
    for point in POINTS {
        let before = stored::revisions(testbed).await?;
        let mut running = hypershift.begin()?;
        let output = running.stderr.take().context("it has no standard error")?;
        let mut lines = BufReader::new(output).lines();
        let mut said = Vec::new();
        loop {
            let line = lines.next_line().await?;
            let line = line.with_context(|| format!("it ended before {point}: {said:#?}"))?;
            if line.trim() == point {
                break;
            }
            said.push(line);
        }
        running.start_kill().context("cannot kill hypershift")?;
        let status = running.wait().await?;
        ensure!(
            status.code().is_none(),
            "it had ended before it was killed: {status}"
        );
        let changed = stored::changed(testbed, &before).await?;
        ensure!(!changed.is_empty(), "it had not begun at {point}");
    }
    hypershift.install(&[]).await?.succeeded().map(drop)
}
