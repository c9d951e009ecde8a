//! Whether the webhooks' certificates are good, and for how long.

use crate::doctor::observation::{CertificateFacts, Found};
use crate::doctor::report::{Finding, Report};

const DAY: i64 = 24 * 60 * 60;
/// A certificate is renewed long before.
const SOON: i64 = 30 * DAY;

pub(super) fn examine(certificates: &Found<Vec<CertificateFacts>>, report: &mut Report) {
    match certificates {
        Found::Read(certificates) => report
            .findings
            .extend(certificates.iter().filter_map(finding)),
        Found::Unknown => {}
        Found::Refused(reason) => report.findings.push(Finding::warning(
            "certificates",
            format!("failed to read the certificates of webhooks: {reason}"),
            "ask for the permission to get Secrets in the operators' namespace",
        )),
    }
}

fn finding(certificate: &CertificateFacts) -> Option<Finding> {
    let subject = format!("Secret {}", certificate.secret);
    let remedy = "run hypershift install again, which renews it; the operator's log says why it was not renewed";
    let Some(left) = certificate.seconds_left else {
        return Some(Finding::error(
            &subject,
            "it holds no certificate that can be read, so that no object can be converted",
            remedy,
        ));
    };
    if left <= 0 {
        let problem = "its certificate has expired, so that no object can be converted";
        return Some(Finding::error(&subject, problem, remedy));
    }
    (left < SOON).then(|| {
        let problem = format!("its certificate expires in {} days", left / DAY);
        Finding::warning(&subject, problem, remedy)
    })
}
