//! The audit policy of the API server: the profile, and custom rules by group.

use api::hypershift::v1beta1::configuration::api_server::{AuditConfiguration, AuditProfile};
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::components::kubeconfig::yaml;

const POLICY: &str = "policy.yaml";

/// The audit settings of a hosted control plane.
pub(super) fn settings<'a>(context: &Context<'a>) -> Option<&'a AuditConfiguration> {
    let configuration = context.hcp.spec.configuration.as_ref()?;
    Some(&configuration.api_server.as_ref()?.audit)
}

/// Whether audit logging is enabled.
pub(super) fn is_on(context: &Context<'_>) -> bool {
    settings(context).is_none_or(|audit| audit.profile != AuditProfile::None)
}

pub(super) fn adapt(context: &Context<'_>, config_map: &mut ConfigMap) -> Result<()> {
    let Some(audit) = settings(context) else {
        return Ok(());
    };
    let data = config_map.data.get_or_insert_default();
    let text = data.get(POLICY).cloned().unwrap_or_default();
    let mut policy: Value = serde_saphyr::from_str(&text)
        .map_err(|_| Error::missing("ConfigMap kas-audit-config", POLICY))?;
    let mut rules = policy["rules"].as_array().cloned().unwrap_or_default();
    // The last rule is the catch-all rule.
    rules.pop();
    for custom in &audit.custom_rules {
        let groups = [custom.group.clone()];
        rules.extend(of_profile(custom.profile).into_iter().map(|mut rule| {
            rule["userGroups"] = json!(groups);
            rule
        }));
    }
    rules.extend(of_profile(audit.profile));
    policy["rules"] = json!(rules);
    data.insert(POLICY.to_owned(), yaml(&policy));
    data.insert(
        "profile".to_owned(),
        json!(audit.profile).as_str().unwrap_or_default().to_owned(),
    );
    Ok(())
}

/// The rules of a profile: the contents of secrets are never logged.
fn of_profile(profile: AuditProfile) -> Vec<Value> {
    let metadata = json!({ "level": "Metadata", "omitStages": ["RequestReceived"] });
    let sensitive = json!({
        "level": "Metadata",
        "omitStages": ["RequestReceived"],
        "resources": [
            { "group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"] },
            { "group": "authentication.k8s.io", "resources": ["tokenreviews", "tokenrequests"] },
            { "group": "oauth.openshift.io", "resources": ["oauthclients", "tokenreviews"] },
            { "group": "route.openshift.io", "resources": ["routes", "routes/status"] },
        ],
    });
    let writes = json!({
        "level": "RequestResponse",
        "omitStages": ["RequestReceived"],
        "verbs": ["update", "patch", "create", "delete", "deletecollection"],
    });
    let reads = json!({
        "level": "RequestResponse",
        "omitStages": ["RequestReceived"],
        "verbs": ["get", "list"],
    });
    match profile {
        AuditProfile::None => vec![json!({ "level": "None" })],
        AuditProfile::Default => vec![metadata],
        AuditProfile::WriteRequestBodies => vec![sensitive, writes, metadata],
        AuditProfile::AllRequestBodies => vec![sensitive, writes, reads, metadata],
    }
}
