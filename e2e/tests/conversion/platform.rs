//! The platform's own Cluster API beside ours (C03).

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::client::Resource;
use testbed::crds;
use testbed::service_account::ensure_namespace;

use crate::conversion::fixture::{Fixture, NAMESPACE};
use crate::conversion::stored::OLD;

const PLATFORM: &str = "platform";
/// A port on which no server listens.
const DEAD: &str = "https://127.0.0.1:1/convert";

/// Theirs is of another version and its webhook is unreachable: theirs cannot be read at another version, ours can.
/// Check C03.
pub(crate) async fn the_platform_has_its_own_webhook(fixture: &Fixture) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let mut theirs = crds::platform().await?;
    for crd in &mut theirs {
        let client = json!({"url": DEAD});
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
        // All that it ever had, so that there is something to convert.
        let versions = crd["spec"]["versions"].as_array_mut();
        for version in versions.into_iter().flatten() {
            version["served"] = json!(true);
        }
        // No contract labels: a client that looked references up in these CRDs would find nothing.
        crd["metadata"]["labels"] = json!({});
    }
    crds::install(admin, &theirs).await?;
    let (stored, other) = versions(&theirs)?;
    ensure_namespace(admin, PLATFORM).await?;
    let cluster = json!({
        "apiVersion": format!("cluster.x-k8s.io/{stored}"),
        "kind": "Cluster",
        "metadata": {"namespace": PLATFORM, "name": "its-own"},
        "spec": {"paused": true},
    });
    admin.apply(&[cluster]).await?;
    let path = |version: &str| {
        Resource::new(&format!("cluster.x-k8s.io/{version}"), "clusters").named(PLATFORM, "its-own")
    };
    admin.get(&path(&stored)).await?;
    ensure!(
        admin.get(&path(&other)).await.is_err(),
        "the platform's unreachable webhook converts"
    );
    let ours = admin.list(&OLD.within(NAMESPACE)).await?;
    ensure!(!ours.is_empty(), "ours are gone");
    // The label with the version of a reference is that of our CRD, not of theirs.
    let reference = &ours[0]["spec"]["controlPlaneRef"];
    ensure!(
        reference["apiVersion"].is_string(),
        "a reference is {reference}"
    );
    Ok(())
}

/// The stored and another served version of the platform's Clusters.
fn versions(crds: &[Value]) -> Result<(String, String)> {
    let clusters = crds
        .iter()
        .find(|crd| crd["metadata"]["name"] == "clusters.cluster.x-k8s.io");
    let versions = clusters.and_then(|crd| crd["spec"]["versions"].as_array());
    let name = |storage: bool| {
        let served = versions
            .into_iter()
            .flatten()
            .filter(|one| one["served"] == true);
        let mut fitting = served.filter(|one| one["storage"] == storage);
        let name = fitting.next().and_then(|one| one["name"].as_str());
        name.map(str::to_owned)
    };
    match (name(true), name(false)) {
        (Some(stored), Some(other)) => Ok((stored, other)),
        found => anyhow::bail!("the platform's versions are {found:?}"),
    }
}
