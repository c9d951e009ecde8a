//! A cluster on Azure, from a subscription that has nothing but a public DNS zone, to one that has nothing more than that.

use std::path::Path;

use anyhow::Result;
use fake_clouds::azure::{Azure, GRAPH, MANAGEMENT};
use serde_json::{Value, json};
use testbed::certs::{Authority, write};
use testbed::cloud_proxy::CloudProxy;
use testbed::testbed::Testbed;

use crate::hosted_clusters_api::fixture::Fixture;
use crate::hosted_clusters_api::from_nothing::{Scenario, names_what_is_there, words};

const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
const TENANT: &str = "00000000-0000-0000-0000-000000000002";
const CLIENT: &str = "00000000-0000-0000-0000-000000000003";
const LOGIN: &str = "login.microsoftonline.com";
/// The services of a subscription.
pub(crate) const HOSTS: [&str; 3] = [MANAGEMENT, GRAPH, LOGIN];
/// The resource group with the public DNS zone.
pub(crate) const ZONES: &str = "zones";
/// What the HostedCluster names of the infrastructure.
const FIELDS: [&str; 5] = [
    "/spec/dns/publicZoneID",
    "/spec/dns/privateZoneID",
    "/spec/platform/azure/vnetID",
    "/spec/platform/azure/securityGroupID",
    "/spec/platform/azure/resourceGroup",
];

/// Creates resource groups, network, identities, roles and cluster, and destroys them.
pub(crate) async fn runs(testbed: &Testbed, fixture: &Fixture, kubeconfig: &Path) -> Result<()> {
    let directory = testbed.path().join("azure");
    let proxy = CloudProxy::start(&directory, &HOSTS, subscription()).await?;
    let credentials = directory.join("credentials.json");
    write_credentials(&credentials)?;
    let key = Authority::create(&directory.join("issuer"))?.signing_key("tokens")?;
    let (credentials, key) = (
        credentials.display().to_string(),
        key.private.display().to_string(),
    );
    let scenario = Scenario {
        platform: "azure",
        name: "blue",
        proxy,
        variables: Vec::new(),
        create: words(&[
            "--azure-creds",
            &credentials,
            "--oidc-issuer-url",
            "https://issuer.example.com/blue",
            "--sa-token-issuer-private-key-path",
            &key,
        ]),
        destroy: words(&["--azure-creds", &credentials]),
        killed_at: [6, 4],
    };
    scenario
        .runs(testbed, &fixture.release, kubeconfig, fits)
        .await
}

/// The cluster names what was created.
fn fits(cluster: &Value, there: &[String]) -> Result<()> {
    names_what_is_there(cluster, &FIELDS, there)
}

/// Writes the credentials of an application, as `hcp` reads them.
pub(crate) fn write_credentials(path: &Path) -> Result<()> {
    let text = json!({
        "subscriptionId": SUBSCRIPTION,
        "tenantId": TENANT,
        "clientId": CLIENT,
        "clientSecret": "s3cret",
    });
    write(path, &text.to_string())
}

/// A subscription with a public DNS zone.
pub(crate) fn subscription() -> Azure {
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{ZONES}");
    let zone = format!("{group}/providers/Microsoft.Network/dnszones/example.com");
    Azure::default()
        .with(&group, json!({ "location": "eastus" }))
        .with(&zone, json!({ "location": "global" }))
}
