//! Hosted clusters and node pools on the platforms of the technology preview, OpenStack and Google Cloud, and on IBM Cloud:
//! what the operator of an installation with the technology preview makes for Cluster API, field by field, what it refuses,
//! and that nothing is left. One of them is backed up.
//!
//! No provider and no cloud is here: what they would report is not waited for, and finalizers of a provider are set and
//! removed by the test. What `hcp` creates and destroys on Google Cloud is in a fake.

mod etcd_backup;
pub(crate) mod fixture;
mod google_cloud;
pub(crate) mod google_cloud_from_nothing;
mod ibm_cloud;
mod openstack;
mod pools;
mod provider;

use anyhow::{Context, Result};
use testbed::progress::Progress;
use testbed::rights;
use testbed::testbed::Testbed;

use crate::hosted_clusters_api::fixture::NAMESPACE;
use fixture::Fixture;

/// One cluster on each platform, from what is refused to its end. Check O05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_on_openstack_gcp_and_ibm_cloud_come_and_go() -> Result<()> {
    let mut testbed = Testbed::start("preview", Progress::detect()).await?;
    let outcome = run(&mut testbed).await;
    testbed.finish(outcome)
}

async fn run(testbed: &mut Testbed) -> Result<()> {
    let fixture = &Fixture::prepare(testbed).await?;
    let testbed = &*testbed;
    let admin = &testbed.admin;
    let progress = &testbed.progress;
    let step = progress.step("clusters on OpenStack, Google Cloud and IBM Cloud come and go");
    // Side by side: most of their time is intervals at which the operator looks again.
    let on_openstack = async {
        let lived = openstack::lives(admin, fixture).await;
        lived.context("the one on OpenStack")
    };
    let on_google_cloud = async {
        let lived = google_cloud::lives(admin, fixture).await;
        lived.context("the one on Google Cloud")
    };
    let on_ibm_cloud = async {
        let lived = ibm_cloud::live(admin, fixture).await;
        lived.context("those on IBM Cloud")
    };
    let (_user, kubeconfig) = testbed.superuser(NAMESPACE, "user").await?;
    let from_nothing = async {
        let ran = google_cloud_from_nothing::runs(testbed, fixture, &kubeconfig).await;
        ran.context("the one that hcp creates on Google Cloud")
    };
    tokio::try_join!(on_openstack, on_google_cloud, on_ibm_cloud, from_nothing)?;
    step.done();
    let operator = &fixture.operator;
    operator.rights_are_minimal(testbed, rights::PREVIEW).await
}
