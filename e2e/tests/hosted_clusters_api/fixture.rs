//! What the operators find: kinds, releases in a registry, and themselves with their rights.

use anyhow::{Context, Result};
use testbed::agents::kinds;
use testbed::operator::{self, Identity, Operator, Replica, SOON};
use testbed::service_account::ensure_namespace;
use testbed::simulation::{Releases, install_kinds};
use testbed::testbed::Testbed;
use testbed::{crds, rights, wait};

use crate::hosted_clusters_api::old_releases::OldReleases;
use crate::hosted_clusters_api::slow_registries::{REQUEST_TIMEOUT, SlowRegistries};

/// Namespace of HostedClusters.
pub(crate) const NAMESPACE: &str = "clusters";

/// An operator that runs.
pub(crate) struct Running {
    pub(crate) identity: Identity,
    pub(crate) replica: Replica,
}

/// The fixture. The releases are served until it is dropped.
pub(crate) struct Fixture {
    pub(crate) operators: Vec<Running>,
    /// The release of clusters, and an older one for nodes.
    pub(crate) release: String,
    pub(crate) older: String,
    /// The release for nodes with processors of the Power architecture.
    pub(crate) power: String,
    pub(crate) old: OldReleases,
    /// Releases that are read for one stage only.
    pub(crate) fresh: [String; 3],
    /// A release that nodes may not have yet, and one that they should not have any more.
    pub(crate) skewed: [String; 2],
    pub(crate) slow: SlowRegistries,
    _releases: Releases,
}

// === impl Fixture ===

impl Fixture {
    /// Prepares; the operators have these flags, too.
    pub(crate) async fn with_flags(
        testbed: &mut Testbed,
        flags: &[(&'static str, &str)],
    ) -> Result<Self> {
        Self::with(testbed, flags, &[]).await
    }

    /// The same; the operators have these variables of the environment, too.
    pub(crate) async fn with(
        testbed: &mut Testbed,
        flags: &[(&'static str, &str)],
        variables: &[(&'static str, &str)],
    ) -> Result<Self> {
        install_kinds(testbed).await?;
        crds::install(&testbed.admin, &kinds::of_provider()).await?;
        testbed.start_controller_manager().await?;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let step = testbed.progress.step("pushing releases");
        let releases = Releases::start(testbed).await?;
        let release = releases.push("4.22.0").await?;
        let older = releases.push("4.21.9").await?;
        let power = releases.push_for("4.22.0", "ppc64le").await?;
        let old = OldReleases::push(&releases, testbed.path()).await?;
        let table = old.table.display().to_string();
        let fresh = [
            releases.push("4.21.1").await?,
            releases.push("4.21.2").await?,
            releases.push("4.21.3").await?,
        ];
        let skewed = [
            releases.push("4.23.0").await?,
            releases.push("4.18.5").await?,
        ];
        let slow = SlowRegistries::start(&releases.address()).await?;
        step.done();
        let host = [slow.addresses(), vec![releases.address()]]
            .concat()
            .join(",");
        let program = operator::build(&testbed.progress).await?;
        let mut operators = Vec::new();
        for which in Operator::ALL {
            let identity = Identity::create(testbed, which, &program)
                .await?
                .with_flag("insecure-registries", &host)
                .with_flag("capi-proxy-image", "images.example.com/capi-proxy:v1")
                .with_flag(
                    "hypershift-operator-image",
                    "images.example.com/hypershift-operator:v1",
                )
                .with_flag("registry-request-timeout", REQUEST_TIMEOUT)
                .with_flag("control-plane-operator-overrides", &table)
                .with_flag(
                    "agent-capi-provider-image",
                    "images.example.com/capi-agent:v1",
                );
            let identity = flags.iter().fold(identity, |identity, (name, value)| {
                identity.with_flag(name, *value)
            });
            let identity = variables.iter().fold(identity, |identity, (name, value)| {
                identity.with_variable(name, *value)
            });
            operators.push(Running::start(testbed, identity).await?);
        }
        Ok(Self {
            operators,
            release,
            older,
            power,
            old,
            fresh,
            skewed,
            slow,
            _releases: releases,
        })
    }
}

// === impl Running ===

impl Running {
    pub(crate) async fn start(testbed: &Testbed, identity: Identity) -> Result<Self> {
        let pod = format!("{}-1", identity.operator.name());
        let mut replica = identity.replica(testbed, &pod)?;
        replica.service.start().await?;
        let what = format!("{pod} to be ready");
        wait::until(&what, SOON, async || replica.is_ready().await).await?;
        Ok(Self { identity, replica })
    }

    /// What it is granted for a test is used, and nothing of it can be spared.
    pub(crate) async fn rights_are_minimal(&self, testbed: &Testbed, test: &str) -> Result<()> {
        let identity = &self.identity;
        let name = identity.operator.name();
        let step = testbed.progress.step(format!("rights of {name}"));
        let is_ready = self.replica.is_ready().await;
        is_ready.with_context(|| format!("{name} is not ready any more"))?;
        let account = rights::Account {
            username: &identity.username(),
            granted: &identity.operator.rights()?,
            audit: &testbed.control_plane.audit,
            admin: &testbed.admin,
        };
        rights::judge(&account, test).await?;
        step.done();
        Ok(())
    }
}
