//! Identity providers of the OAuth server: the HostedCluster reports one that is not used, until it is repaired.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::conditions;
use testbed::hosted::{Cluster, NAMESPACE, SECRETS};

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const VALID: &str = "ValidIDPConfiguration";
/// The Secret with users.
const USERS: &str = "login-users";
/// A Secret that has none.
const OTHER: &str = "login-other";
/// Configuration of the OAuth server, in the control plane.
const OAUTH: &str = "oauth-openshift";
/// Where the OAuth server has the users.
const FILE: &str = "/etc/oauth/idp/idp_secret_0_file-data/htpasswd";

/// A provider whose Secret lacks a key is reported with the reason and not used; with another Secret, it is used.
pub(crate) async fn refused_ones_are_reported(cluster: &Cluster<'_>) -> Result<()> {
    let fixture = cluster.fixture();
    let admin = &fixture.testbed.admin;
    fixture
        .stage(
            "without identity providers, there is no problem",
            async || is(cluster, "True", "IDPConfigurationValid", "").await,
        )
        .await?;
    for (name, key) in [(USERS, "htpasswd"), (OTHER, "other")] {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "namespace": NAMESPACE, "name": name },
            "stringData": { key: "" },
        });
        admin.create(&SECRETS.within(NAMESPACE), &secret).await?;
    }
    configure(cluster, &file(OTHER)).await?;
    fixture
        .stage(
            "a provider whose Secret lacks a key is reported",
            async || {
                let reason = format!("IDP file config: Secret {OTHER} has no key htpasswd");
                is(cluster, "False", "IDPConfigurationError", &reason).await?;
                ensure!(!is_used(cluster).await?, "it is used");
                Ok(())
            },
        )
        .await?;
    configure(cluster, &file(USERS)).await?;
    fixture
        .stage("the repaired provider is used", async || {
            is(cluster, "True", "IDPConfigurationValid", "").await?;
            ensure!(is_used(cluster).await?, "it is not used");
            Ok(())
        })
        .await?;
    configure(cluster, &Value::Null).await
}

/// A provider with the users of a Secret.
fn file(secret: &str) -> Value {
    let provider = json!({
        "name": "file",
        "type": "HTPasswd",
        "mappingMethod": "claim",
        "htpasswd": { "fileData": { "name": secret } },
    });
    json!({ "identityProviders": [provider] })
}

/// Configures the OAuth server, as users do.
async fn configure(cluster: &Cluster<'_>, oauth: &Value) -> Result<()> {
    let admin = &cluster.fixture().testbed.admin;
    let patch = json!({ "spec": { "configuration": { "oauth": oauth } } });
    admin.patch(&cluster.path(), Patch::Merge, &patch).await?;
    Ok(())
}

/// What the HostedCluster reports of its identity providers.
async fn is(cluster: &Cluster<'_>, status: &str, reason: &str, part: &str) -> Result<()> {
    let seen = cluster.seen().await?;
    let found = conditions::find(&seen, VALID).context("no condition")?;
    let message = found["message"].as_str().unwrap_or_default();
    ensure!(
        found["status"] == status && found["reason"] == reason && message.contains(part),
        "{found}"
    );
    Ok(())
}

/// Whether the configuration of the OAuth server has a provider.
async fn is_used(cluster: &Cluster<'_>) -> Result<bool> {
    let admin = &cluster.fixture().testbed.admin;
    let path = CONFIG_MAPS.named(&cluster.namespace(), OAUTH);
    let config_map = admin.get(&path).await?;
    let text = config_map["data"]["config.yaml"].as_str();
    Ok(text.context("no configuration")?.contains(FILE))
}
