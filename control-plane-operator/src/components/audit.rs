//! Audit logs of API servers: which requests are logged, and the webhook that gets the log.

use api::hypershift::v1beta1::configuration::api_server::{AuditConfiguration, AuditProfile};
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec};
use serde_json::{Value, json};

use super::edit;
use super::kubeconfig::yaml;

const POLICY: &str = "policy.yaml";
const PROFILE: &str = "profile";
/// Name of the container that prints the log.
const LOGS: &str = "audit-logs";
/// Mount path of the webhook's kubeconfig.
const WEBHOOK_PATH: &str = "/etc/kubernetes/auditwebhook";
/// Options of API servers for the webhook.
const WEBHOOK: [(&str, &str); 3] = [
    (
        "audit-webhook-config-file",
        "/etc/kubernetes/auditwebhook/webhook-kubeconfig",
    ),
    ("audit-webhook-mode", "batch"),
    ("audit-webhook-initial-backoff", "5s"),
];

/// Sets the policy and the name of the profile.
#[expect(clippy::unnecessary_wraps, reason = "the form of adapt functions")]
pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let default = AuditConfiguration::default();
    let audit = settings(context).unwrap_or(&default);
    let profile = json!(audit.profile);
    let profile = profile.as_str().unwrap_or_default().to_owned();
    let data = config_map.data.get_or_insert_default();
    data.insert(POLICY.to_owned(), yaml(&policy(audit)));
    data.insert(PROFILE.to_owned(), profile);
    Ok(())
}

/// Removes the container that prints the log if nothing is logged.
pub(super) fn remove_unused_logs(context: &Context<'_>, pod: &mut PodSpec) {
    let is_on = settings(context).is_none_or(|audit| audit.profile != AuditProfile::None);
    pod.containers
        .retain(|container| is_on || container.name != LOGS);
}

/// Options for the webhook, if there is one.
pub(super) fn webhook_options(
    context: &Context<'_>,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    webhook(context).into_iter().flat_map(|_| WEBHOOK)
}

/// Mounts the webhook's kubeconfig, if there is one.
pub(super) fn mount_webhook(
    context: &Context<'_>,
    pod: &mut PodSpec,
    container: &str,
    volume: &str,
) -> Result<()> {
    let Some(secret) = webhook(context) else {
        return Ok(());
    };
    edit::mount_secret(pod, container, (volume, WEBHOOK_PATH), secret)
}

/// The Secret with the webhook's kubeconfig.
fn webhook<'a>(context: &Context<'a>) -> Option<&'a str> {
    let webhook = context.hcp.spec.audit_webhook.as_ref()?;
    (!webhook.name.is_empty()).then_some(webhook.name.as_str())
}

fn settings<'a>(context: &Context<'a>) -> Option<&'a AuditConfiguration> {
    let configuration = context.hcp.spec.configuration.as_ref()?;
    Some(&configuration.api_server.as_ref()?.audit)
}

/// The policy: the first matching rule decides.
fn policy(audit: &AuditConfiguration) -> Value {
    let mut rules = unlogged().to_vec();
    for custom in &audit.custom_rules {
        rules.extend(of_profile(custom.profile).into_iter().map(|mut rule| {
            rule["userGroups"] = json!([custom.group]);
            rule
        }));
    }
    rules.extend(of_profile(audit.profile));
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "metadata": { "name": "policy" },
        "omitManagedFields": true,
        "omitStages": ["RequestReceived"],
        "rules": rules,
    })
}

/// Frequent requests that change nothing: discovery and health checks, and counts of requests.
fn unlogged() -> [Value; 2] {
    [
        json!({
            "level": "None",
            "nonResourceURLs": ["/api*", "/version", "/healthz", "/readyz", "/livez"],
            "userGroups": ["system:authenticated", "system:unauthenticated"],
        }),
        json!({
            "level": "None",
            "namespaces": [""],
            "resources": [{
                "group": "apiserver.openshift.io",
                "resources": ["apirequestcounts", "apirequestcounts/*"],
            }],
            "users": ["system:apiserver"],
        }),
    ]
}

/// The rules of a profile: the contents of secrets are never logged.
fn of_profile(profile: AuditProfile) -> Vec<Value> {
    let writes = json!({
        "level": "RequestResponse",
        "verbs": ["create", "update", "patch", "delete", "deletecollection"],
    });
    let metadata = json!({ "level": "Metadata", "omitStages": ["RequestReceived"] });
    match profile {
        AuditProfile::None => vec![json!({ "level": "None" })],
        AuditProfile::Default => vec![logins(), metadata],
        AuditProfile::WriteRequestBodies => vec![sensitive(), writes, metadata],
        AuditProfile::AllRequestBodies => {
            vec![sensitive(), json!({ "level": "RequestResponse" })]
        }
    }
}

/// Logins of users: names of their tokens are hashes.
fn logins() -> Value {
    json!({
        "level": "RequestResponse",
        "resources": [
            { "group": "user.openshift.io", "resources": ["identities"] },
            {
                "group": "oauth.openshift.io",
                "resources": ["oauthaccesstokens", "oauthauthorizetokens"],
            },
        ],
        "verbs": ["create", "update", "patch", "delete"],
    })
}

/// Kinds with secrets.
fn sensitive() -> Value {
    json!({
        "level": "Metadata",
        "resources": [
            { "group": "route.openshift.io", "resources": ["routes", "routes/status"] },
            { "group": "", "resources": ["secrets", "serviceaccounts/token"] },
            { "group": "authentication.k8s.io", "resources": ["tokenreviews", "tokenrequests"] },
            { "group": "oauth.openshift.io", "resources": ["oauthclients", "tokenreviews"] },
            { "group": "machineconfiguration.openshift.io" },
        ],
    })
}
