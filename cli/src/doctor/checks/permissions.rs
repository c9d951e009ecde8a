//! Whether the operator may do what it has to.

use std::collections::BTreeMap;

use crate::doctor::observation::{Found, PermissionFacts};
use crate::doctor::report::{Finding, Report};

pub(super) fn examine(permissions: &Found<Vec<PermissionFacts>>, report: &mut Report) {
    match permissions {
        Found::Read(permissions) => report.findings.extend(missing(permissions)),
        Found::Unknown => {}
        Found::Refused(reason) => report.findings.push(Finding::warning(
            "the operator's permissions",
            format!("cannot check them: {reason}"),
            "ask for permission to create subjectaccessreviews",
        )),
    }
}

/// One finding for each resource, with all verbs.
fn missing(permissions: &[PermissionFacts]) -> Vec<Finding> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for permission in permissions.iter().filter(|permission| !permission.allowed) {
        missing
            .entry(&permission.resource)
            .or_default()
            .push(&permission.verb);
    }
    missing
        .into_iter()
        .map(|(resource, verbs)| {
            Finding::error(
                "service account operator",
                format!("it may not {} {resource}", verbs.join(", ")),
                "run hypershift install again: it restores the operator's roles",
            )
        })
        .collect()
}
