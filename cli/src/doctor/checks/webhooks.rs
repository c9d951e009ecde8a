//! Whether the webhooks answer that requests for our objects go through.

use crate::doctor::observation::{Found, WebhookFacts, WebhookUser};
use crate::doctor::report::{Finding, Report};

pub(super) fn examine(webhooks: &Found<Vec<WebhookFacts>>, report: &mut Report) {
    match webhooks {
        Found::Read(webhooks) => report.findings.extend(webhooks.iter().flat_map(findings)),
        Found::Unknown => {}
        Found::Refused(reason) => report.findings.push(Finding::warning(
            "webhooks",
            format!("cannot check whether they answer: {reason}"),
            "ask for permission to list webhook configurations, Services and EndpointSlices",
        )),
    }
}

fn findings(webhook: &WebhookFacts) -> Vec<Finding> {
    let service = &webhook.service;
    let (subject, without) = match &webhook.user {
        WebhookUser::Conversion(crd) => (
            crd.clone(),
            "its objects cannot be read or written at all versions",
        ),
        WebhookUser::Admission(name) => (
            format!("webhook configuration {name}"),
            "requests that it guards fail",
        ),
    };
    let mut findings = Vec::new();
    match webhook.ready {
        None => findings.push(Finding::error(
            &subject,
            format!("its webhook's Service {service} is not there: {without}"),
            "run hypershift install again, or remove the webhook",
        )),
        Some(0) => findings.push(Finding::error(
            &subject,
            format!("nothing ready is behind its webhook's Service {service}: {without}"),
            "see the pods behind the Service: kubectl get endpointslices, kubectl describe pods",
        )),
        Some(_) => {}
    }
    if !webhook.has_authority {
        findings.push(Finding::error(
            &subject,
            "its webhook has no caBundle, so that the API server trusts no certificate of it",
            "wait for the certificate authority to be injected, or run hypershift install again",
        ));
    }
    findings
}
