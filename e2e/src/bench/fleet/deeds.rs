//! What the operator did, and when, as the API server's audit log has it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;

use super::stage::{NAMESPACE, Stage, index};
use crate::audit::{Event, Mark};
use crate::bench::statistics::figure;

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Deeds {
    /// When each cluster was asked for, and when the last of its objects was written.
    clusters: BTreeMap<usize, (Option<Timestamp>, Option<Timestamp>)>,
    /// Objects that were made.
    made: usize,
    pub(super) writes: usize,
    pub(super) reads: usize,
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
                let asked = &mut deeds.of(&event.object_ref.name).0;
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
        self.made += usize::from(event.response_status.code == 201);
        let written = time(event)?;
        let last = &mut self.of(name).1;
        *last = (*last).max(Some(written));
        Ok(())
    }

    fn of(&mut self, name: &str) -> &mut (Option<Timestamp>, Option<Timestamp>) {
        self.clusters.entry(index(name)).or_default()
    }

    /// Seconds until each of the clusters had all its objects.
    pub(super) fn seconds(&self, clusters: usize) -> Result<Vec<f64>> {
        let pairs = self.clusters.values().map(|(asked, last)| {
            let asked = asked.context("a cluster was made that nobody asked for")?;
            let last = last.context("nothing was made for a cluster")?;
            Ok(last.duration_since(asked).as_secs_f64())
        });
        let seconds: Vec<f64> = pairs.collect::<Result<_>>()?;
        ensure!(
            seconds.len() == clusters,
            "{} of {clusters} clusters were made",
            seconds.len()
        );
        Ok(seconds)
    }

    /// Seconds from the first wish to the last object.
    pub(super) fn total(&self) -> Result<f64> {
        let first = self.clusters.values().filter_map(|it| it.0).min();
        let last = self.clusters.values().filter_map(|it| it.1).max();
        let (first, last) = first.zip(last).context("nothing was made")?;
        Ok(last.duration_since(first).as_secs_f64())
    }

    /// Objects of each cluster.
    pub(super) fn objects(&self) -> f64 {
        figure(self.made as u64) / figure(self.clusters.len().max(1) as u64)
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
