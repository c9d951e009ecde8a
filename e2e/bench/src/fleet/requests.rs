//! The operator's requests in the API server's audit log.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;

use super::stage::{NAMESPACE, Stage, index};
use crate::statistics::figure;
use testbed::audit::{Event, Mark};

/// The operator's requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    clusters: BTreeMap<usize, Cluster>,
    pub(super) writes: usize,
    /// Reads by verb and resource, except of Leases. Watches are excluded: they stay open for hours.
    pub(super) reads: BTreeMap<String, usize>,
}

/// The objects of one HostedCluster.
#[derive(Debug, Default)]
struct Cluster {
    /// When the HostedCluster was created.
    requested: Option<Timestamp>,
    /// When the last of its objects was written.
    last: Option<Timestamp>,
    /// Objects that were created.
    created: usize,
}

// === impl Requests ===

impl Requests {
    /// Reads the requests since the mark.
    pub(super) fn read(stage: &Stage<'_>, mark: Mark) -> Result<Self> {
        let username = stage.username();
        let mut requests = Self::default();
        for event in stage.testbed.control_plane.audit.since(mark)? {
            if event.user.username == username {
                requests.own(&event)?;
            } else if event.object_ref.resource == "hostedclusters" && is_done(&event) {
                let requested = &mut requests.of(&event.object_ref.name).requested;
                *requested = requested.or(Some(time(&event)?));
            }
        }
        Ok(requests)
    }

    fn own(&mut self, event: &Event) -> Result<()> {
        let about = &event.object_ref;
        if !event.is_write() {
            let is_counted = event.verb != "watch" && about.resource != "leases";
            if is_counted {
                *self.reads.entry(what(event)).or_default() += 1;
            }
            return Ok(());
        }
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
        cluster.created += usize::from(event.response_status.code == 201);
        cluster.last = cluster.last.max(Some(written));
        Ok(())
    }

    fn of(&mut self, name: &str) -> &mut Cluster {
        self.clusters.entry(index(name)).or_default()
    }

    /// Seconds until each HostedCluster had all its objects. All have the same number of objects, or are not complete.
    pub(super) fn seconds(&self, clusters: usize) -> Result<Vec<f64>> {
        let most = self.clusters.values().map(|it| it.created).max();
        let each = self.clusters.values().map(|cluster| {
            let requested = cluster.requested;
            let requested =
                requested.context("objects were created for an unknown HostedCluster")?;
            let last = cluster.last.context("a HostedCluster has no objects")?;
            ensure!(
                Some(cluster.created) == most,
                "one has {} objects, and another {most:?}",
                cluster.created
            );
            Ok(last.duration_since(requested).as_secs_f64())
        });
        let seconds: Vec<f64> = each.collect::<Result<_>>()?;
        ensure!(
            seconds.len() == clusters,
            "{} of {clusters} HostedClusters have objects",
            seconds.len()
        );
        Ok(seconds)
    }

    /// Seconds from the first creation to the last object.
    pub(super) fn total(&self) -> Result<f64> {
        let first = self.clusters.values().filter_map(|it| it.requested).min();
        let last = self.clusters.values().filter_map(|it| it.last).max();
        let (first, last) = first.zip(last).context("no object was created")?;
        Ok(last.duration_since(first).as_secs_f64())
    }

    /// Objects per HostedCluster.
    pub(super) fn objects(&self) -> f64 {
        let created: usize = self.clusters.values().map(|it| it.created).sum();
        figure(created as u64) / figure(self.clusters.len().max(1) as u64)
    }
}

/// Verb and resource of a read, or its path if it has no resource.
fn what(event: &Event) -> String {
    let about = &event.object_ref;
    if about.resource.is_empty() {
        return format!("{} {}", event.verb, event.uri);
    }
    let group = match about.api_group.as_str() {
        "" => String::new(),
        group => format!(".{group}"),
    };
    format!("{} {}{group}", event.verb, about.resource)
}

fn is_done(event: &Event) -> bool {
    event.is_write() && (200..300).contains(&event.response_status.code)
}

fn time(event: &Event) -> Result<Timestamp> {
    let text = &event.received;
    text.parse()
        .with_context(|| format!("{text:?} in the audit log is not a valid time"))
}
