//! Which operator owns each hosted cluster, and why.

use api::annotations::Protocol;
use ownership::{ObservedGroups, Owner, evaluate};

use crate::doctor::observation::{ClusterFacts, Found};
use crate::doctor::report::{ClusterLine, Finding, Report};

/// Whose hosted clusters there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Owners {
    /// Some are the new operator's, or a migration's.
    pub(super) new: bool,
    /// Some are the legacy operator's.
    pub(super) legacy: bool,
}

/// Nothing if that cannot be told.
pub(super) fn examine(clusters: &Found<Vec<ClusterFacts>>, report: &mut Report) -> Option<Owners> {
    let clusters = match clusters {
        Found::Read(clusters) => clusters,
        // Without the CRD there are none, and the CRD's absence is told of elsewhere.
        Found::Unknown => return Some(Owners::default()),
        Found::Refused(reason) => {
            report.findings.push(Finding::error(
                "HostedClusters",
                reason,
                "ask for the right to list hostedclusters",
            ));
            return None;
        }
    };
    let mut owners = Some(Owners::default());
    for cluster in clusters {
        match &cluster.observed {
            Ok(observed) => {
                let owner = evaluate_cluster(cluster, *observed, report);
                if let Some(owners) = &mut owners {
                    owners.legacy |= owner == Owner::Legacy;
                    owners.new |= matches!(owner, Owner::New | Owner::Migration);
                }
            }
            Err(reason) => {
                owners = None;
                report.findings.push(Finding::error(
                    &subject(cluster),
                    format!("which groups hold its objects cannot be told: {reason}"),
                    "ask for the right to list Cluster API objects of both groups",
                ));
            }
        }
    }
    owners
}

fn evaluate_cluster(
    cluster: &ClusterFacts,
    observed: ObservedGroups,
    report: &mut Report,
) -> Owner {
    let mut protocol = Protocol::read(&cluster.annotations);
    // In a namespace of another cluster there is no migration of this one.
    protocol.in_progress &= cluster.refusal.is_none();
    let evaluation = evaluate(&protocol, observed);
    if let Some(refusal) = &cluster.refusal {
        report.findings.push(Finding::error(
            &subject(cluster),
            "its control plane namespace is not its own",
            refusal.clone(),
        ));
    }
    report.clusters.push(ClusterLine {
        name: cluster.name.clone(),
        owner: name(evaluation.owner).to_owned(),
        because: because(&protocol, observed),
    });
    if let Some(invalid) = evaluation.invalid {
        report.findings.push(Finding::error(
            &subject(cluster),
            invalid.reason(),
            invalid.to_string(),
        ));
    }
    if let Some(reason) = &protocol.failed {
        report.findings.push(Finding::warning(
            &subject(cluster),
            format!("its migration failed: {reason}"),
            format!(
                "once the cause is gone, remove its annotation {}",
                api::annotations::MIGRATION_FAILED
            ),
        ));
    }
    evaluation.owner
}

fn subject(cluster: &ClusterFacts) -> String {
    format!("HostedCluster {}", cluster.name)
}

fn name(owner: Owner) -> &'static str {
    match owner {
        Owner::New => "operator",
        Owner::Legacy => "operator-legacy",
        Owner::Migration => "migration",
        Owner::Undecided => "nobody",
    }
}

fn because(protocol: &Protocol, observed: ObservedGroups) -> String {
    let Protocol {
        private,
        legacy,
        in_progress,
        failed,
    } = protocol;
    let marks: Vec<&str> = [
        (*private, "marked private"),
        (*legacy, "marked legacy"),
        (*in_progress, "locked by a migration"),
        (failed.is_some(), "migration failed"),
    ]
    .into_iter()
    .filter_map(|(is, mark)| is.then_some(mark))
    .collect();
    let marks = if marks.is_empty() {
        "not marked".to_owned()
    } else {
        marks.join(", ")
    };
    let objects = match observed {
        ObservedGroups::None => "no Cluster API objects",
        ObservedGroups::Standard => "objects in standard groups",
        ObservedGroups::Private => "objects in private groups",
        ObservedGroups::Both => "objects in both groups",
    };
    format!("{marks}; {objects}")
}
