//! What the operator finds, and itself, as an installation with the technology preview has them.

use anyhow::Result;
use api::features::{FEATURE_SET_ENV, FeatureSet};
use serde_json::{Value, json};
use testbed::operator::{self, Identity, Operator};
use testbed::providers::Provider;
use testbed::service_account::ensure_namespace;
use testbed::simulation::{Releases, install_preview_kinds};
use testbed::testbed::Testbed;

use crate::hosted_clusters_api::fixture::{NAMESPACE, Running};

/// The providers whose kinds there are.
const PROVIDERS: [Provider; 3] = [Provider::Gcp, Provider::Ibmcloud, Provider::Openstack];
/// The image of the proxy for Cluster API.
pub(crate) const PROXY_IMAGE: &str = "images.example.com/capi-proxy:v1";
/// The region of Google Cloud in which the operator manages service attachments.
pub(crate) const REGION: &str = "us-central1";
/// The version of the pools, which have an older release than their clusters.
pub(crate) const POOL_VERSION: &str = "4.21.9";

/// The fixture. The releases are served until it is dropped.
pub(crate) struct Fixture {
    pub(crate) operator: Running,
    /// The release of clusters, and that of their pools.
    pub(crate) release: String,
    pub(crate) older: String,
    /// A release for pools, without images that machines boot from.
    pub(crate) bare: String,
    _releases: Releases,
}

// === impl Fixture ===

impl Fixture {
    pub(crate) async fn prepare(testbed: &mut Testbed) -> Result<Self> {
        install_preview_kinds(testbed, &PROVIDERS).await?;
        testbed.start_controller_manager().await?;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let step = testbed.progress.step("pushing releases");
        let releases = Releases::start(testbed).await?;
        let release = releases.push("4.22.0").await?;
        let older = releases.push(POOL_VERSION).await?;
        let bare = releases.push_without_boot_images("4.21.10").await?;
        step.done();
        let program = operator::build(&testbed.progress).await?;
        let identity = Identity::create(testbed, Operator::Private, &program)
            .await?
            .with_flag("insecure-registries", releases.address())
            .with_flag("capi-proxy-image", PROXY_IMAGE)
            // `hypershift install --private-platform GCP` sets these two.
            .with_flag("gcp-project", "management-1")
            .with_flag("gcp-region", REGION)
            // A second backup replaces the first one.
            .with_flag("etcd-backup-max-count", "1")
            // `hypershift install --tech-preview-no-upgrade` sets it.
            .with_variable(FEATURE_SET_ENV, FeatureSet::TechPreviewNoUpgrade.name());
        Ok(Self {
            operator: Running::start(testbed, identity).await?,
            release,
            older,
            bare,
            _releases: releases,
        })
    }

    /// Has the pools among these objects have the older release.
    pub(crate) fn with_older_pools(&self, mut objects: Vec<Value>) -> Vec<Value> {
        for object in &mut objects {
            if object["kind"] == "NodePool" {
                object["spec"]["release"]["image"] = json!(self.older);
            }
        }
        objects
    }
}
