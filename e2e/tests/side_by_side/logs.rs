//! No secret of a hosted cluster is anywhere but in Secrets: not in a log, an Event, a condition or an annotation.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use testbed::hosted::{Fixture, NAMESPACE, SECRETS};

use crate::side_by_side::Running;
use crate::side_by_side::needles::Needles;

/// Where etcd has what may hold secrets.
const STORED_SECRETS: &str = "/registry/secrets/";
/// Where a node has the logs of its pods, of those also that have ended, in its directory.
const POD_LOGS: &str = "pod-logs";
/// How every token of a service account begins: a header that names its algorithm.
const TOKEN: &str = "eyJhbGciOiJ";

/// Looks for every value of every Secret of the clusters, in all logs of all pods, machines and processes, and in all
/// objects of the management cluster that are no Secrets.
pub(crate) async fn hold_no_secret(fixture: &Fixture, clusters: &[&Running<'_>]) -> Result<()> {
    let testbed = &fixture.testbed;
    let step = testbed
        .progress
        .step("no secret is in a log or in another object");
    let needles = needles(fixture, clusters).await?;
    ensure!(
        needles.len() > 100,
        "there are only {} secrets",
        needles.len()
    );
    let mut leaks = Vec::new();
    let (mut logs, mut bytes) = (0, 0);
    for path in log_files(testbed.path())? {
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        logs += 1;
        bytes += text.len();
        let place = path.strip_prefix(testbed.path()).unwrap_or(&path);
        leaks.extend(leaked(&needles, &text, &place.display().to_string()));
        if String::from_utf8_lossy(&text).contains(TOKEN) {
            leaks.push(format!("{}: a token", place.display()));
        }
    }
    let stored = testbed.control_plane.etcd.stored("/registry/").await?;
    let objects = stored
        .iter()
        .filter(|one| !one.key.starts_with(STORED_SECRETS));
    for object in objects {
        leaks.extend(leaked(&needles, &object.value, &object.key));
    }
    ensure!(leaks.is_empty(), "secrets have got out: {leaks:#?}");
    step.done_with(&format!(
        "{} secrets, {logs} logs of {} MB, {} objects",
        needles.len(),
        bytes / 1_000_000,
        stored.len()
    ));
    Ok(())
}

fn leaked(needles: &Needles, text: &[u8], place: &str) -> Vec<String> {
    let found = needles.found_in(text).into_iter();
    found.map(|origin| format!("{place}: {origin}")).collect()
}

/// Of the clusters' Secrets on the management cluster, and of those inside of them.
async fn needles(fixture: &Fixture, clusters: &[&Running<'_>]) -> Result<Needles> {
    let mut needles = Needles::default();
    let mut namespaces = vec![NAMESPACE.to_owned()];
    namespaces.extend(clusters.iter().map(|one| one.cluster.namespace()));
    for namespace in namespaces {
        for secret in fixture
            .testbed
            .admin
            .list(&SECRETS.within(&namespace))
            .await?
        {
            needles.add(&secret, &namespace)?;
        }
    }
    for one in clusters {
        for secret in one.guest.client.list(&SECRETS.all()).await? {
            needles.add(&secret, &format!("inside of {}", one.cluster.name()))?;
        }
    }
    Ok(needles)
}

/// The logs of processes, of the nodes' pods, and of the cloud's machines and theirs: all files in directories of logs.
fn log_files(testbed: &Path) -> Result<Vec<PathBuf>> {
    let mut places = vec![testbed.join("logs")];
    for entry in fs::read_dir(testbed)? {
        places.push(entry?.path().join(POD_LOGS));
    }
    for entry in fs::read_dir(testbed.join("machines"))? {
        places.push(entry?.path().join("var/log"));
    }
    let mut files = Vec::new();
    while let Some(place) = places.pop() {
        // What is no directory, or is gone, holds no logs.
        for entry in fs::read_dir(&place).into_iter().flatten() {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                places.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    let of_pods = |path: &&PathBuf| path.iter().any(|part| part == POD_LOGS);
    let count = files.iter().filter(of_pods).count();
    ensure!(count > 40, "there are only {count} logs of pods");
    Ok(files)
}
