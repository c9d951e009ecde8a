//! A cluster on Google Cloud, from a project that has nothing but a network of others, to one that has nothing more than that.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use fake_clouds::google_cloud::GoogleCloud;
use serde_json::{Value, json};
use testbed::certs::write;
use testbed::cloud_proxy::CloudProxy;
use testbed::testbed::Testbed;

use crate::hosted_clusters_api::from_nothing::{Scenario, names_what_is_there, words};
use crate::hosted_clusters_preview::fixture::{Fixture, REGION};

/// The ID of the project.
pub(crate) const PROJECT: &str = "project-1";
const NUMBER: &str = "123456789012";
/// The services of a project.
pub(crate) const HOSTS: [&str; 4] = [
    "compute.googleapis.com",
    "iam.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "oauth2.googleapis.com",
];
/// What the HostedCluster names of the infrastructure.
const FIELDS: [&str; 4] = [
    "/spec/platform/gcp/networkConfig/network/name",
    "/spec/platform/gcp/networkConfig/privateServiceConnectSubnet/name",
    "/spec/platform/gcp/workloadIdentity/poolID",
    "/spec/platform/gcp/workloadIdentity/providerID",
];

/// Creates network, service accounts and cluster, and destroys them.
pub(crate) async fn runs(testbed: &Testbed, fixture: &Fixture, kubeconfig: &Path) -> Result<()> {
    let directory = testbed.path().join("google-cloud");
    let proxy = CloudProxy::start(&directory, &HOSTS, project()).await?;
    let credentials = directory.join("credentials.json");
    let scenario = Scenario {
        platform: "gcp",
        name: "green",
        proxy,
        variables: variables(&credentials)?,
        create: words(&["--project", PROJECT, "--region", REGION]),
        destroy: Vec::new(),
        killed_at: [4, 4],
    };
    scenario
        .runs(testbed, &fixture.release, kubeconfig, fits)
        .await
}

/// The cluster names what was created, and so do its components.
fn fits(cluster: &Value, there: &[String]) -> Result<()> {
    names_what_is_there(cluster, &FIELDS, there)?;
    let emails = &cluster["spec"]["platform"]["gcp"]["workloadIdentity"]["serviceAccountsEmails"];
    for email in emails.as_object().context("no service accounts")?.values() {
        let email = email.as_str().context("not an address")?;
        let is_there = there.iter().any(|line| line.contains(email));
        ensure!(is_there, "{email} is not in {there:#?}");
    }
    Ok(())
}

/// Writes credentials of a user, and gives the variables by which `hcp` finds them.
pub(crate) fn variables(path: &Path) -> Result<Vec<(&'static str, String)>> {
    let text = json!({
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "s3cret",
        "refresh_token": "s3cret",
    });
    write(path, &text.to_string())?;
    let path = path.display().to_string();
    Ok(vec![("GOOGLE_APPLICATION_CREDENTIALS", path)])
}

/// A project with a network of others.
pub(crate) fn project() -> GoogleCloud {
    let mut cloud = GoogleCloud::new(PROJECT, NUMBER);
    let network = json!({ "description": "Default network for the project" });
    cloud.compute.insert("global/networks/default", network);
    cloud.policy.bind("roles/owner", "user:owner@example.com");
    cloud
}
