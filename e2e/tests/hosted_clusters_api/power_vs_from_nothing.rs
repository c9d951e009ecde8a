//! A cluster on Power VS, from an account of IBM Cloud that has nothing but a resource group and a zone of Internet Services,
//! to one that has nothing more than that.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use fake_clouds::ibm_cloud::IbmCloud;
use serde_json::Value;
use testbed::cloud_proxy::CloudProxy;
use testbed::testbed::Testbed;

use crate::hosted_clusters_api::fixture::Fixture;
use crate::hosted_clusters_api::from_nothing::{Scenario, names_what_is_there, words};

/// The resource group.
pub(crate) const GROUP: &str = "group";
/// The services in the default region.
pub(crate) const HOSTS: [&str; 8] = [
    "iam.cloud.ibm.com",
    "resource-controller.cloud.ibm.com",
    "api.cis.cloud.ibm.com",
    "tags.global-search-tagging.cloud.ibm.com",
    "transit.cloud.ibm.com",
    "us-south.iaas.cloud.ibm.com",
    "us-south.power-iaas.cloud.ibm.com",
    "s3.us-south.cloud-object-storage.appdomain.cloud",
];
/// What the HostedCluster names of the infrastructure: names, because the fake shows no identifiers.
const FIELDS: [&str; 2] = [
    "/spec/platform/powervs/vpc/name",
    "/spec/platform/powervs/vpc/subnet",
];

/// Creates workspace, network, API keys and cluster, and destroys them.
pub(crate) async fn runs(testbed: &Testbed, fixture: &Fixture, kubeconfig: &Path) -> Result<()> {
    let directory = testbed.path().join("ibm-cloud");
    let proxy = CloudProxy::start(&directory, &HOSTS, account()).await?;
    let scenario = Scenario {
        platform: "powervs",
        name: "frame",
        proxy,
        variables: variables(),
        create: words(&["--resource-group", GROUP]),
        destroy: Vec::new(),
        killed_at: [6, 4],
    };
    scenario
        .runs(testbed, &fixture.release, kubeconfig, fits)
        .await
}

/// An account with a resource group and a zone.
pub(crate) fn account() -> IbmCloud {
    IbmCloud::with_zone(GROUP, "example.com")
}

/// Credentials, as `hcp` reads them.
pub(crate) fn variables() -> Vec<(&'static str, String)> {
    vec![("IBMCLOUD_API_KEY", "key-of-the-user".to_owned())]
}

/// The cluster names what was created, and each component has an API key that exists.
fn fits(cluster: &Value, there: &[String]) -> Result<()> {
    names_what_is_there(cluster, &FIELDS, there)?;
    let power_vs = cluster["spec"]["platform"]["powervs"].as_object();
    let fields = power_vs.context("it is not on Power VS")?.keys();
    let credentials = fields.filter(|field| field.ends_with("Creds")).count();
    let keys = there.iter().filter(|line| line.starts_with("ApiKey "));
    let keys = keys.count();
    ensure!(
        keys == credentials,
        "{keys} API keys for {credentials} components"
    );
    Ok(())
}
