//! Whose each CRD is, and whether its versions and contract labels hold together.

use api::group::{CapiTypes, GroupTable};

use crate::crds::contract;
use crate::doctor::observation::CrdFacts;
use crate::doctor::report::{CrdLine, Finding, Report};

/// Keys, or beginnings of keys, of labels and annotations that identify the manager of a CRD; the first that is found counts.
///
/// The version operator of OpenShift marks what it keeps with annotations of the first two prefixes; the operator
/// behind the multicluster engine (MCE) labels what it installs with the third, clusterctl with the fourth.
const MARKS: [(&str, &str); 4] = [
    ("include.release.openshift.io/", "platform"),
    ("release.openshift.io/", "platform"),
    ("backplaneconfig.name", "MCE"),
    ("clusterctl.", "clusterctl"),
];
/// Parts of the names of field managers that identify it, too.
const MANAGERS: [(&str, &str); 5] = [
    ("cluster-version-operator", "platform"),
    ("cluster-capi-operator", "platform"),
    ("backplane", "MCE"),
    ("multiclusterengine", "MCE"),
    ("clusterctl", "clusterctl"),
];
/// The group of our own API.
const OWN_GROUP: &str = "hypershift.openshift.io";

pub(super) fn examine(crds: &[CrdFacts], table: &GroupTable, report: &mut Report) {
    let mut private = 0;
    for crd in crds {
        let found = table.find(crd.group.as_bytes());
        let types = found.map(|(_, types)| types);
        report.crds.push(line(crd, types));
        // CRDs of the platform are listed, and not checked.
        if types == Some(CapiTypes::Standard) {
            continue;
        }
        report.findings.extend(versions(crd));
        if let Some((pair, _)) = found {
            private += 1;
            if contract::required(pair) {
                report.findings.extend(label(crd));
            }
        }
    }
    if private == 0 {
        report.findings.push(Finding::warning(
            "CustomResourceDefinitions",
            "there is none of a private group",
            "install with: hypershift install --private-capi-types",
        ));
    }
}

fn line(crd: &CrdFacts, types: Option<CapiTypes>) -> CrdLine {
    let (owner, because) = owner(crd, types);
    let contracts = contract::read(&crd.marks);
    CrdLine {
        name: crd.name.clone(),
        owner,
        because,
        served: crd.served.clone(),
        storage: crd.storage.clone(),
        stored: crd.stored.clone(),
        contracts: contracts
            .into_iter()
            .map(|(contract, versions)| format!("{contract}={versions}"))
            .collect(),
    }
}

fn owner(crd: &CrdFacts, types: Option<CapiTypes>) -> (String, String) {
    if types == Some(CapiTypes::Private) {
        return ("ours".to_owned(), "private group".to_owned());
    }
    if crd.group == OWN_GROUP || crd.group.ends_with(&format!(".{OWN_GROUP}")) {
        return ("ours".to_owned(), "our own API".to_owned());
    }
    for (key, owner) in MARKS {
        if let Some(found) = crd.marks.keys().find(|found| found.starts_with(key)) {
            return (owner.to_owned(), found.clone());
        }
    }
    for (part, owner) in MANAGERS {
        if let Some(found) = crd.managers.iter().find(|found| found.contains(part)) {
            return (owner.to_owned(), format!("written by {found}"));
        }
    }
    let because = match &crd.managers[..] {
        [] => "no manager is recorded".to_owned(),
        managers => format!("written by {}", managers.join(", ")),
    };
    ("unknown".to_owned(), because)
}

/// Older contracts may name versions that are not served: controllers that know the newest one do not use them.
fn label(crd: &CrdFacts) -> Option<Finding> {
    let Some((contract, version)) = contract::picked(&crd.marks) else {
        return Some(Finding::error(
            &crd.name,
            "it has no contract label, so controllers cannot determine which version to use",
            "derive it again with --contract-label, and apply it",
        ));
    };
    let plural = crd.name.split('.').next().unwrap_or_default();
    if crd.served.iter().any(|served| served == version) || !contract::is_looked_up(plural) {
        return None;
    }
    Some(Finding::error(
        &crd.name,
        format!("controllers use version {version} for contract {contract}, and it is not served"),
        "derive it again from the provider's release, and apply it",
    ))
}

fn versions(crd: &CrdFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !crd.established {
        findings.push(Finding::error(
            &crd.name,
            "it is not established: the API server does not serve it",
            format!(
                "see the conditions of: kubectl get crd {} -o yaml",
                crd.name
            ),
        ));
    }
    let others: Vec<&str> = crd
        .stored
        .iter()
        .map(String::as_str)
        .filter(|v| *v != crd.storage)
        .collect();
    if !others.is_empty() {
        findings.push(Finding::warning(
            &crd.name,
            format!("objects may still be stored at {}", others.join(", ")),
            format!("before a version is removed, write every object once and set status.storedVersions to {}", crd.storage),
        ));
    }
    findings
}
