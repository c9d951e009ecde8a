//! What hosted clusters need: add-ons, a cloud, a release, and the operators as a user installs them.

use std::ops::AsyncFnMut;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use tokio::process::Command;

use super::programs::{self, Programs};
use super::{DEPLOYMENTS, LEGACY, OPERATORS};
use crate::add_ons::AddOns;
use crate::binaries::{Binaries, Binary};
use crate::cloud::FakeCloud;
use crate::guest::Initialization;
use crate::images::Image;
use crate::node::{Builder, NodeTestbed};
use crate::payload::{OptionalPrograms, Payload, Pushed, Release};
use crate::{crds, registry, wait};

/// What the operators run.
const IMAGES: [Image; 2] = [Image::HypershiftOperator, Image::CapiProxy];
/// The release that clusters have unless they request another one.
const VERSION: &str = "4.22.0";
/// For one stage. Generous: two control planes that start at the same time are slow on two processors, and no failure.
const WITHIN: Duration = Duration::from_mins(10);
/// For one stage while a developer looks at it.
const HELD_WITHIN: Duration = Duration::from_hours(1);

/// Fixture of tests with hosted clusters. Everything in it ends when it is dropped.
#[derive(Debug)]
pub struct Fixture {
    // In the order in which they are to end.
    /// The platform of the machines.
    pub cloud: FakeCloud,
    _add_ons: AddOns,
    /// The images of releases: more releases can be made of them.
    pub pushed: Pushed,
    /// The release that clusters have unless they request another one.
    pub release: Release,
    /// The commands of this tree.
    pub programs: Programs,
    /// The management cluster.
    pub testbed: NodeTestbed,
    /// The programs that only some releases have.
    further: OptionalPrograms,
}

// === impl Fixture ===

impl Fixture {
    /// Starts a management cluster, and equips it. Its releases have `further` programs.
    pub async fn start(builder: Builder, further: OptionalPrograms) -> Result<Self> {
        let testbed = builder.images(&IMAGES).start().await?;
        let programs = match Programs::build(&testbed.progress).await {
            Ok(programs) => programs,
            Err(error) => return testbed.finish(Err(error)),
        };
        Self::equip_with(testbed, programs, further).await
    }

    /// Equips a management cluster with what hosted clusters need; the operators are still to be installed.
    pub async fn equip(testbed: NodeTestbed, programs: Programs) -> Result<Self> {
        Self::equip_with(testbed, programs, OptionalPrograms::default()).await
    }

    async fn equip_with(
        testbed: NodeTestbed,
        programs: Programs,
        further: OptionalPrograms,
    ) -> Result<Self> {
        match parts(&testbed, further).await {
            Ok((add_ons, cloud, pushed, release)) => Ok(Self {
                cloud,
                _add_ons: add_ons,
                pushed,
                release,
                programs,
                testbed,
                further,
            }),
            Err(error) => testbed.finish(Err(error)),
        }
    }

    /// Installs the operators by the command that users have, for Cluster API's kinds of given types. The standard ones are
    /// the platform's, and made here as a platform would. A flag (`--name=value`) replaces the default one.
    pub async fn install(&self, capi_types: CapiTypes, flags: &[&str]) -> Result<String> {
        let testbed = &self.testbed;
        if capi_types == CapiTypes::Standard {
            let step = testbed.progress.step("the platform brings Cluster API");
            crds::install(&testbed.admin, &crds::of_hosted_clusters(capi_types).await?).await?;
            step.done();
        }
        let step = testbed.progress.step("installing the operators");
        let said = self
            .hypershift(&self.install_args(capi_types)?, flags)
            .await?;
        step.done();
        Ok(said)
    }

    /// The arguments of that command.
    fn install_args(&self, capi_types: CapiTypes) -> Result<Vec<String>> {
        let operator = self.testbed.image(Image::HypershiftOperator)?;
        let mut words = vec![
            "install".to_owned(),
            format!("--hypershift-image={operator}"),
            format!(
                "--additional-operator-env-vars=INSECURE_REGISTRIES={}",
                registry::NAME
            ),
            "--replicas=1".to_owned(),
        ];
        if capi_types == CapiTypes::Private {
            let proxy = self.testbed.image(Image::CapiProxy)?;
            let sources = [
                "sigs.k8s.io/cluster-api",
                "sigs.k8s.io/cluster-api-provider-aws/v2",
            ];
            words.push("--private-capi-types".to_owned());
            words.push(format!("--capi-proxy-image={proxy}"));
            words.extend(sources.map(|module| format!("--private-crds-from=module={module}")));
        }
        Ok(words)
    }

    /// What initializes nodes of clusters in its cloud.
    pub(super) fn initialization(&self) -> Initialization {
        self.further.initialization()
    }

    /// Waits until operator-legacy has gone by itself: with the last cluster that needs it.
    pub async fn legacy_goes(&self) -> Result<()> {
        let path = DEPLOYMENTS.named(OPERATORS, LEGACY);
        self.stage("operator-legacy is gone", async || {
            let left = self.testbed.admin.find(&path).await?;
            ensure!(left.is_none(), "it is there");
            Ok(())
        })
        .await
    }

    /// Runs `hypershift` as the administrator; returns its output. A flag replaces the default one.
    pub async fn hypershift(&self, usual: &[String], flags: &[&str]) -> Result<String> {
        let words = programs::with(usual.to_vec(), flags);
        programs::run(&self.programs.hypershift, &words, self.testbed.kubeconfig()).await
    }

    /// Runs `hcp` as the administrator; returns its output. A flag replaces the default one.
    pub async fn hcp(&self, usual: &[String], flags: &[&str]) -> Result<String> {
        let words = programs::with(usual.to_vec(), flags);
        let mut hcp = Command::new(&self.programs.hcp);
        // Commands must not use the account of the user who runs the tests.
        hcp.env("AWS_ENDPOINT_URL", self.cloud.url_on_loopback())
            .env("AWS_ACCESS_KEY_ID", "a")
            .env("AWS_SECRET_ACCESS_KEY", "s");
        programs::run_command(hcp, &words, self.testbed.kubeconfig()).await
    }

    /// One stage: waits until `probe` succeeds, and names it in the error.
    pub async fn stage<T>(&self, what: &str, probe: impl AsyncFnMut() -> Result<T>) -> Result<T> {
        let step = self.testbed.progress.step(what);
        let within = if super::is_held() {
            HELD_WITHIN
        } else {
            WITHIN
        };
        let found = wait::until(what, within, probe)
            .await
            .with_context(|| format!("stage {what:?}"))?;
        step.done();
        Ok(found)
    }

    /// Ends it. If `outcome` is an error, shows the ends of the logs and leaves the directory.
    pub fn finish<T>(self, outcome: Result<T>) -> Result<T> {
        let Self {
            cloud,
            _add_ons: add_ons,
            testbed,
            ..
        } = self;
        drop((cloud, add_ons));
        testbed.finish(outcome)
    }
}

async fn parts(
    testbed: &NodeTestbed,
    further: OptionalPrograms,
) -> Result<(AddOns, FakeCloud, Pushed, Release)> {
    let programs = async {
        // Built together, they share the processors.
        let mut needed = Payload::programs(further);
        needed.push(Binary::LocalPath);
        Binaries::ensure(&needed, &testbed.progress).await?;
        let add_ons = AddOns::start(testbed).await?;
        let payload = Payload::build_with(further, &testbed.progress).await?;
        anyhow::Ok((add_ons, payload))
    };
    let cloud = FakeCloud::start_with(testbed, further.initialization());
    let ((add_ons, payload), cloud) = tokio::try_join!(programs, cloud)?;
    let step = testbed.progress.step("pushing a release");
    let pushed = payload.push(&testbed.registry).await?;
    let release = pushed.release(&testbed.registry, VERSION).await?;
    step.done();
    Ok((add_ons, cloud, pushed, release))
}
