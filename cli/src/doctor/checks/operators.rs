//! Whether the operators run that the hosted clusters need, and no others.

use super::clusters::Owners;
use crate::doctor::observation::{DeploymentFacts, Found, Observation};
use crate::doctor::report::{Finding, OperatorLine, Report};

const OPERATOR: &str = "operator";
const LEGACY: &str = "operator-legacy";

pub(super) fn examine(observation: &Observation, owners: Option<Owners>, report: &mut Report) {
    let deployments = match &observation.deployments {
        Found::Read(deployments) => deployments,
        Found::Unknown => return,
        Found::Refused(reason) => {
            let remedy = format!(
                "ask for permission to list deployments in namespace {}",
                observation.namespace
            );
            report
                .findings
                .push(Finding::error("Deployments", reason, remedy));
            return;
        }
    };
    let subject = |name: &str| format!("Deployment {}/{name}", observation.namespace);
    let operators = || {
        deployments
            .iter()
            .filter(|d| [OPERATOR, LEGACY].contains(&d.name.as_str()))
    };
    report.operators.extend(operators().map(line));
    report.findings.extend(
        operators().filter_map(|deployment| unavailable(&subject(&deployment.name), deployment)),
    );
    let there = |name: &str| deployments.iter().any(|deployment| deployment.name == name);
    if !there(OPERATOR) {
        report.findings.push(Finding::error(
            &subject(OPERATOR),
            "it does not exist",
            "run: hypershift install",
        ));
    }
    // Whether it is needed is not known when the clusters are not.
    let Some(owners) = owners else { return };
    if owners.legacy && !there(LEGACY) {
        report.findings.push(Finding::error(
            &subject(LEGACY),
            "it does not exist, but hosted clusters on standard types need it",
            "run hypershift install again: it sets up operator-legacy where it is needed",
        ));
    }
    if !owners.legacy && there(LEGACY) && there(OPERATOR) {
        report.findings.push(Finding::warning(
            &subject(LEGACY),
            "no hosted cluster needs it",
            "the operator removes it by itself; see the operator's log if it stays",
        ));
    }
}

fn line(deployment: &DeploymentFacts) -> OperatorLine {
    OperatorLine {
        name: deployment.name.clone(),
        available: format!("{}/{}", deployment.available, deployment.wanted),
        images: deployment.images.clone(),
    }
}

fn unavailable(subject: &str, deployment: &DeploymentFacts) -> Option<Finding> {
    (deployment.available < deployment.wanted).then(|| {
        Finding::error(
            subject,
            format!(
                "{} of {} replicas are available",
                deployment.available, deployment.wanted
            ),
            "see its pods and their events: kubectl describe pods",
        )
    })
}
