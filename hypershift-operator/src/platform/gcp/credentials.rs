//! What components authenticate to Google Cloud with: files by which they exchange a token of a service account of the
//! hosted cluster for one of a service account of the cloud. They have no secret in them.

use api::hypershift::v1beta1::platform::gcp::{
    GcpPlatformSpec, GcpServiceAccountsEmails, GcpWorkloadIdentityConfig,
};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::desired::Desired;
use crate::facts::Facts;

/// The key of the file in its Secret, and its name where the Secret is mounted.
pub(super) const FILE: &str = "application_default_credentials.json";
/// The Secret of the controllers that create machines.
pub(super) const NODE_MANAGEMENT: &str = "node-management-creds";
/// Where components find the token of their service account.
const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";

/// A component's account.
struct Account<'a> {
    /// The Secret with its file.
    secret: &'static str,
    field: &'static str,
    email: &'a str,
}

/// Fields that no file can be written without, and that are empty.
pub(super) fn problems(gcp: &GcpPlatformSpec) -> Vec<String> {
    let field = "spec.platform.gcp.workloadIdentity";
    let identity = &gcp.workload_identity;
    let accounts = accounts(&identity.service_accounts_emails);
    let accounts = accounts.map(|it| (format!("serviceAccountsEmails.{}", it.field), it.email));
    let names = [
        ("projectNumber", &identity.project_number),
        ("poolID", &identity.pool_id),
        ("providerID", &identity.provider_id),
    ];
    let names = names.map(|(name, value)| (name.to_owned(), value.as_str()));
    let all = names.into_iter().chain(accounts);
    all.filter(|(_, value)| value.is_empty())
        .map(|(name, _)| format!("{field}.{name} is empty: set it"))
        .collect()
}

/// The Secrets of all components. What is not complete is left out: validation reports it.
pub(super) fn desired(facts: &Facts, gcp: &GcpPlatformSpec) -> Vec<Desired> {
    if !problems(gcp).is_empty() {
        return Vec::new();
    }
    let identity = &gcp.workload_identity;
    let accounts = accounts(&identity.service_accounts_emails).into_iter();
    let secret = |account: Account<'_>| {
        let file = file(identity, account.email).to_string();
        let fields = json!({ "type": "Opaque", "data": { FILE: ByteString(file.into_bytes()) } });
        Desired::new::<Secret>(&facts.namespace, account.secret, fields)
    };
    accounts.map(secret).collect()
}

fn accounts(emails: &GcpServiceAccountsEmails) -> [Account<'_>; 6] {
    let GcpServiceAccountsEmails {
        node_pool,
        control_plane,
        cloud_controller,
        storage,
        image_registry,
        network,
    } = emails;
    [
        (NODE_MANAGEMENT, "nodePool", node_pool),
        (
            "control-plane-operator-creds",
            "controlPlane",
            control_plane,
        ),
        (
            "cloud-controller-manager-creds",
            "cloudController",
            cloud_controller,
        ),
        ("gcp-pd-cloud-credentials", "storage", storage),
        ("image-registry-creds", "imageRegistry", image_registry),
        ("cloud-network-config-controller-creds", "network", network),
    ]
    .map(|(secret, field, email)| Account {
        secret,
        field,
        email,
    })
}

fn file(identity: &GcpWorkloadIdentityConfig, email: &str) -> Value {
    let GcpWorkloadIdentityConfig {
        project_number,
        pool_id,
        provider_id,
        service_accounts_emails: _,
    } = identity;
    let pool =
        format!("projects/{project_number}/locations/global/workloadIdentityPools/{pool_id}");
    let account = format!("projects/-/serviceAccounts/{email}:generateAccessToken");
    json!({
        "type": "external_account",
        "audience": format!("//iam.googleapis.com/{pool}/providers/{provider_id}"),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "service_account_impersonation_url": format!("https://iamcredentials.googleapis.com/v1/{account}"),
        "credential_source": { "file": TOKEN, "format": { "type": "text" } },
    })
}
