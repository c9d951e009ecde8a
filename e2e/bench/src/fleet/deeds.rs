//! What the operator did, and when, as the API server's audit log has it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;

use super::stage::{NAMESPACE, Stage, index};
use crate::statistics::figure;
use testbed::audit::{Event, Mark};

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    clusters: BTreeMap<usize, Cluster>,
    pub(super) writes: usize,
    pub(super) reads: usize,
}

/// What was done for one.
#[derive(Debug, Default)]
struct Cluster {
    /// When it was asked for.
    asked: Option<Timestamp>,
    /// When the last of its objects was written.
    last: Option<Timestamp>,
    /// Objects that were made.
    made: usize,
}

// === impl Deeds ===

impl Deeds {
    /// Reads what was done since the mark.
    pub(super) fn read(stage: &Stage<'_>, mark: Mark) -> Result<Self> {
        let username = stage.username();
        let mut deeds = Self::default();
        for event in stage.testbed.control_plane.audit.since(mark)? {
            if event.user.username == username {
                deeds.own(&event)?;
            } else if event.object_ref.resource == "hostedclusters" && is_done(&event) {
                let asked = &mut deeds.of(&event.object_ref.name).asked;
                *asked = asked.or(Some(time(&event)?));
            }
        }
        Ok(deeds)
    }

    fn own(&mut self, event: &Event) -> Result<()> {
        if !event.is_write() {
            self.reads += 1;
            return Ok(());
        }
        let about = &event.object_ref;
        if matches!(
            about.resource.as_str(),
            "leases" | "events" | "selfsubjectaccessreviews"
        ) {
            return Ok(());
        }
        self.writes += 1;
        let is_object = about.subresource.is_empty() && about.resource != "hostedclusters";
        if !is_object || !is_done(event) {
            return Ok(());
        }
        let namespace = about.namespace.strip_prefix(NAMESPACE);
        let Some(name) = namespace.and_then(|it| it.strip_prefix('-')) else {
            return Ok(());
        };
        let written = time(event)?;
        let cluster = self.of(name);
        cluster.made += usize::from(event.response_status.code == 201);
        cluster.last = cluster.last.max(Some(written));
        Ok(())
    }

    fn of(&mut self, name: &str) -> &mut Cluster {
        self.clusters.entry(index(name)).or_default()
    }

    /// Seconds until each of the clusters had all its objects. They are alike: one that has fewer is not done.
    pub(super) fn seconds(&self, clusters: usize) -> Result<Vec<f64>> {
        let most = self.clusters.values().map(|it| it.made).max();
        let each = self.clusters.values().map(|cluster| {
            let asked = cluster.asked;
            let asked = asked.context("a cluster was made that nobody asked for")?;
            let last = cluster.last.context("nothing was made for a cluster")?;
            ensure!(
                Some(cluster.made) == most,
                "one has {} objects, and another {most:?}",
                cluster.made
            );
            Ok(last.duration_since(asked).as_secs_f64())
        });
        let seconds: Vec<f64> = each.collect::<Result<_>>()?;
        ensure!(
            seconds.len() == clusters,
            "{} of {clusters} clusters were made",
            seconds.len()
        );
        Ok(seconds)
    }

    /// Seconds from the first wish to the last object.
    pub(super) fn total(&self) -> Result<f64> {
        let first = self.clusters.values().filter_map(|it| it.asked).min();
        let last = self.clusters.values().filter_map(|it| it.last).max();
        let (first, last) = first.zip(last).context("nothing was made")?;
        Ok(last.duration_since(first).as_secs_f64())
    }

    /// Objects of each cluster.
    pub(super) fn objects(&self) -> f64 {
        let made: usize = self.clusters.values().map(|it| it.made).sum();
        figure(made as u64) / figure(self.clusters.len().max(1) as u64)
    }
}

fn is_done(event: &Event) -> bool {
    event.is_write() && (200..300).contains(&event.response_status.code)
}

fn time(event: &Event) -> Result<Timestamp> {
    let text = &event.received;
    text.parse()
        .with_context(|| format!("{text:?} is no time in the audit log"))
}
