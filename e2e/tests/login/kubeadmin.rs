//! The password of `kubeadmin`: its hash is in the hosted cluster, and on the Secret that restarts the OAuth server.

use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use testbed::client::Patch;
use testbed::hosted::{Cluster, Guest, NAMESPACE, SECRETS};

/// Annotation with the hash.
const HASH: &str = "hypershift.openshift.io/kubeadmin-secret-hash";

/// The hash in the hosted cluster is that of the password that its user gets. A changed one is restored.
pub(crate) async fn password_has_its_hash(cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
    let admin = &cluster.fixture().testbed.admin;
    let own = SECRETS.named(&cluster.namespace(), "kubeadmin-password");
    let live = SECRETS.named("kube-system", "kubeadmin");
    let fixture = cluster.fixture();
    let hash = fixture
        .stage("the password of kubeadmin has a hash", async || {
            let status = cluster.seen().await?["status"]["kubeadminPassword"].clone();
            let name = status["name"].as_str().context("it has no password")?;
            let copy = SECRETS.named(NAMESPACE, name);
            let password = admin.secret_value(&copy, "password").await?;
            let hash = guest.client.secret_value(&live, "kubeadmin").await?;
            let hash = String::from_utf8(hash)?;
            ensure!(hash.starts_with("$2a$10$"), "{hash}");
            ensure!(
                bcrypt::verify(password, &hash).map_err(|error| anyhow!("{hash}: {error}"))?,
                "it is of another password"
            );
            let secret = admin.get(&own).await?;
            let annotation = &secret["metadata"]["annotations"][HASH];
            ensure!(
                *annotation == hash.as_str(),
                "the annotation is {annotation}"
            );
            Ok(hash)
        })
        .await?;
    let other = json!({ "data": { "kubeadmin": STANDARD.encode("other") } });
    guest.client.patch(&live, Patch::Merge, &other).await?;
    fixture
        .stage("a changed hash is restored", async || {
            let found = guest.client.secret_value(&live, "kubeadmin").await?;
            ensure!(found == hash.as_bytes(), "it is another one");
            Ok(())
        })
        .await
}

/// With users of an external provider, there is no password.
pub(crate) async fn password_is_gone(cluster: &Cluster<'_>) -> Result<()> {
    let admin = &cluster.fixture().testbed.admin;
    let own = SECRETS.named(&cluster.namespace(), "kubeadmin-password");
    let fixture = cluster.fixture();
    fixture
        .stage("the password of kubeadmin is gone", async || {
            let secret = admin.find(&own).await?;
            ensure!(secret.is_none(), "Secret {own} exists");
            let status = &cluster.seen().await?["status"];
            ensure!(status["kubeadminPassword"].is_null(), "{status}");
            Ok(())
        })
        .await
}
