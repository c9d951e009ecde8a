//! What is decided from an observation: a chain of checks, each of which knows one subject.

mod certificates;
mod clusters;
mod crds;
mod operators;
mod permissions;
mod tenants;
mod webhooks;

use api::group::GroupTable;

use super::observation::Observation;
use super::report::Report;

/// Examines an observation.
pub fn examine(observation: &Observation, table: &GroupTable) -> Report {
    let mut report = Report {
        server_version: observation.server_version.clone(),
        ..Report::default()
    };
    crds::examine(&observation.crds, table, &mut report);
    let owners = clusters::examine(&observation.clusters, &mut report);
    operators::examine(observation, owners, &mut report);
    permissions::examine(&observation.permissions, &mut report);
    webhooks::examine(&observation.webhooks, &mut report);
    certificates::examine(&observation.certificates, &mut report);
    tenants::examine(observation, &mut report);
    report.findings.sort();
    report
}

#[cfg(test)]
mod tests;
