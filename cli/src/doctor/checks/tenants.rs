//! Whether authors of HostedClusters are held to the tenant model.

use crate::doctor::observation::{Found, Observation};
use crate::doctor::report::{Finding, Report};
use crate::install::tenant_policy::Mode;

pub(super) fn examine(observation: &Observation, report: &mut Report) {
    let subject = format!(
        "ValidatingAdmissionPolicyBinding {}",
        crate::install::tenant_policy::name(&observation.namespace)
    );
    let remedy = "run hypershift install with --tenant-policy=enforce, see SECURITY.md";
    let problem = match &observation.tenant_policy {
        Found::Read(Mode::Enforce) => return,
        Found::Read(Mode::Warn) => {
            "the tenant policy only warns: authors of HostedClusters can run any image in control plane namespaces"
                .to_owned()
        }
        Found::Read(Mode::Off) | Found::Unknown => {
            "there is no tenant policy: authors of HostedClusters can run any image in control plane namespaces"
                .to_owned()
        }
        Found::Refused(reason) => {
            report.findings.push(Finding::warning(
                &subject,
                format!("failed to read the tenant policy: {reason}"),
                "ask for the permission to get validatingadmissionpolicybindings",
            ));
            return;
        }
    };
    report
        .findings
        .push(Finding::warning(&subject, problem, remedy));
}
