//! Which operator reconciles each hosted cluster, and why.

use api::annotations::Protocol;
use ownership::{ObservedGroups, Owner, evaluate};

use crate::doctor::observation::{ClusterFacts, Found};
use crate::doctor::report::{ClusterLine, Finding, Report};

/// Which owners there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Owners {
    /// Some belong to the new operator, or to a migration.
    pub(super) new: bool,
    /// Some belong to the legacy operator.
    pub(super) legacy: bool,
}

/// None if they cannot be decided.
pub(super) fn examine(clusters: &Found<Vec<ClusterFacts>>, report: &mut Report) -> Option<Owners> {
    let clusters = match clusters {
        Found::Read(clusters) => clusters,
        // Without the CRD there are none; the missing CRD is reported elsewhere.
        Found::Unknown => return Some(Owners::default()),
        Found::Refused(reason) => {
            report.findings.push(Finding::error(
                "HostedClusters",
                reason,
                "ask for permission to list hostedclusters",
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
                    format!("cannot observe which groups hold its objects: {reason}"),
                    "ask for permission to list Cluster API objects of both groups",
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
            "its control plane namespace belongs to another HostedCluster",
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
        Owner::Undecided => "none",
    }
}

fn because(protocol: &Protocol, observed: ObservedGroups) -> String {
    let Protocol {
        private,
        legacy,
        in_progress,
        failed,
    } = protocol;
    let claims: Vec<&str> = [
        (*private, "annotated as private"),
        (*legacy, "annotated as legacy"),
        (*in_progress, "locked by a migration"),
        (failed.is_some(), "migration failed"),
    ]
    .into_iter()
    .filter_map(|(is, claim)| is.then_some(claim))
    .collect();
    let claims = if claims.is_empty() {
        "not annotated".to_owned()
    } else {
        claims.join(", ")
    };
    let objects = match observed {
        ObservedGroups::None => "no Cluster API objects",
        ObservedGroups::Standard => "objects in standard groups",
        ObservedGroups::Private => "objects in private groups",
        ObservedGroups::Both => "objects in both groups",
    };
    format!("{claims}; {objects}")
}
