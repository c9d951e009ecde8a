//! Whether the operator may do what it has to.

use std::collections::BTreeMap;

use crate::doctor::observation::{Found, RightFacts};
use crate::doctor::report::{Finding, Report};

pub(super) fn examine(rights: &Found<Vec<RightFacts>>, report: &mut Report) {
    match rights {
        Found::Read(rights) => report.findings.extend(missing(rights)),
        Found::Unknown => {}
        Found::Refused(reason) => report.findings.push(Finding::warning(
            "the operator's rights",
            format!("they cannot be told: {reason}"),
            "ask for the right to create subjectaccessreviews",
        )),
    }
}

/// One finding for each resource, with all verbs.
fn missing(rights: &[RightFacts]) -> Vec<Finding> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for right in rights.iter().filter(|right| !right.allowed) {
        missing
            .entry(&right.resource)
            .or_default()
            .push(&right.verb);
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
