//! What a fleet finds: kinds, releases in a registry, both operators with their rights, and a user at a terminal.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use testbed::agents;
use testbed::cargo::{Program, command_line};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::control_plane::Endpoint;
use testbed::migration::client;
use testbed::operator::{self, Identity, Operator, Replica, SOON, Server, Times, value};
use testbed::service_account::{ServiceAccount, ensure_namespace};
use testbed::simulation::{Releases, Simulation, install_all_kinds, install_kinds};
use testbed::terminal;
use testbed::testbed::Testbed;
use testbed::wait;
use tokio::process::Command;

use crate::migration_fleet::infra_cluster::InfraCluster;
use crate::migration_fleet::trail::Trail;

/// Namespace of HostedClusters.
pub(crate) const NAMESPACE: &str = "clusters";
/// The image of the proxy.
const PROXY: &str = "images.example.com/capi-proxy:v1";
/// How long a cluster has to be well before a migration is committed.
const WELL: &str = "2s";
/// Environment variable that names a built control-plane-operator, so that none is built.
const BINARY_VARIABLE: &str = "HYPERSHIFT_CONTROL_PLANE_OPERATOR";
/// Controllers of kube-controller-manager that take part: who would make pods is left out, and [`Simulation`] is in
/// their place.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
                           root-ca-certificate-publisher-controller,resourcequota-controller,\
                           validatingadmissionpolicy-status-controller";
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// The ConfigMap by which migrations are slowed down and stopped.
const SWITCH: &str = "private-capi-migration";
const COUNT: &str = "hypershift_private_capi_hosted_clusters";

/// Further flags of operators that make clusters on every platform. Clusters on Google Cloud have to be in the region in which
/// the operator manages service attachments.
const ALL_PLATFORMS: [(&str, &str); 5] = [
    ("feature-set", "TechPreviewNoUpgrade"),
    (
        "agent-capi-provider-image",
        "images.example.com/capi-agent:v1",
    ),
    (
        "kubevirt-capi-provider-image",
        "images.example.com/capi-kubevirt:v1",
    ),
    ("gcp-project", "management-1"),
    ("gcp-region", "us-central1"),
];

/// Where the clusters of a fleet are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platforms {
    /// On AWS.
    Aws,
    /// On all platforms, the technology preview's included.
    All,
}

/// All of it.
pub(crate) struct Fixture {
    pub(crate) release: String,
    /// The same for nodes with processors of the Power architecture.
    pub(crate) power: String,
    /// Where virtual machines run.
    pub(crate) infra_cluster: InfraCluster,
    pub(crate) control_plane_operator: PathBuf,
    /// For those who look at objects as the tests do.
    pub(crate) client: kube::Client,
    /// The changes of hosted clusters.
    pub(crate) trail: Trail,
    /// The user of the command line.
    sre: ServiceAccount,
    command: PathBuf,
    kubeconfig: PathBuf,
    identities: [Identity; 2],
    new: Option<Replica>,
    old: Option<Replica>,
    _releases: Releases,
    _simulation: Simulation,
}

// === impl Fixture ===

impl Fixture {
    pub(crate) async fn prepare(testbed: &mut Testbed, platforms: Platforms) -> Result<Self> {
        match platforms {
            Platforms::Aws => install_kinds(testbed).await?,
            Platforms::All => install_all_kinds(testbed).await?,
        }
        let manager = &mut testbed.control_plane.controller_manager;
        manager.add_flag("controllers", CONTROLLERS);
        testbed.start_controller_manager().await?;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        ensure_namespace(&testbed.admin, agents::NAMESPACE).await?;
        agents::allow_consumer(&testbed.admin, agents::NAMESPACE, NAMESPACE).await?;
        let program = operator::build(&testbed.progress).await?;
        let own = Program::dev("control-plane-operator", "control-plane-operator");
        let own = own.find(BINARY_VARIABLE, &testbed.progress).await?;
        let command = command_line(&testbed.progress).await?;
        let releases = Releases::start(testbed).await?;
        let release = releases.push("4.22.0").await?;
        let power = releases.push_for("4.22.0", "ppc64le").await?;
        let registry = releases.address();
        let identity = async |which| {
            let identity = Identity::create(testbed, which, &program).await?;
            let identity = identity
                .with_flag("insecure-registries", &registry)
                .with_flag("capi-proxy-image", PROXY)
                .with_flag("migration-concurrency", "1")
                .with_flag("migration-health-period", WELL);
            let further = ALL_PLATFORMS.iter().filter(|_| platforms == Platforms::All);
            anyhow::Ok(further.fold(identity, |identity, (name, value)| {
                identity.with_flag(name, *value)
            }))
        };
        let identities = [
            identity(Operator::Private).await?,
            identity(Operator::Legacy).await?,
        ];
        let (sre, kubeconfig) = testbed.superuser(operator::NAMESPACE, "sre").await?;
        Ok(Self {
            release,
            power,
            infra_cluster: InfraCluster::start(testbed).await?,
            control_plane_operator: own,
            client: client(testbed.control_plane.admin_kubeconfig()).await?,
            trail: Trail::begin(&testbed.admin),
            sre,
            command,
            kubeconfig,
            identities,
            new: None,
            old: None,
            _releases: releases,
            _simulation: Simulation::start(&testbed.admin),
        })
    }

    /// Installs operator-legacy: its Deployment, and a process in its place.
    pub(crate) async fn install_legacy(&mut self, testbed: &Testbed) -> Result<()> {
        let labels = json!({ "app": "operator-legacy" });
        let deployment = json!({
            "apiVersion": DEPLOYMENTS.api_version,
            "kind": "Deployment",
            "metadata": { "name": Operator::Legacy.name(), "namespace": operator::NAMESPACE },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "operator", "image": "operator" }] },
                },
            },
        });
        testbed.admin.apply(&[deployment]).await?;
        self.old = Some(start(testbed, &self.identities[1]).await?);
        Ok(())
    }

    /// Starts the operator with private types.
    pub(crate) async fn install_private(&mut self, testbed: &Testbed) -> Result<()> {
        self.new = Some(start(testbed, &self.identities[0]).await?);
        Ok(())
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let new = self.new.as_mut().context("it does not run")?;
        new.service.kill();
        Ok(())
    }

    /// Lets another one follow.
    pub(crate) async fn follow(&mut self) -> Result<()> {
        let new = self.new.as_mut().context("it was never installed")?;
        new.service.start().await
    }

    /// Waits until operator-legacy's Deployment is gone, and ends its process, as its pod would end.
    pub(crate) async fn legacy_goes(&mut self, admin: &ApiClient) -> Result<()> {
        let path = DEPLOYMENTS.named(operator::NAMESPACE, Operator::Legacy.name());
        wait::until("operator-legacy to be deleted", SOON, async || {
            ensure!(admin.find(&path).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
        if let Some(mut old) = self.old.take() {
            old.service.stop().await?;
        }
        Ok(())
    }

    /// Whether operator-legacy is still there.
    pub(crate) async fn has_legacy(&self, admin: &ApiClient) -> Result<()> {
        let path = DEPLOYMENTS.named(operator::NAMESPACE, Operator::Legacy.name());
        admin.get(&path).await.map(drop)
    }

    /// Says by the ConfigMap how many are migrated at a time.
    pub(crate) async fn switch(&self, admin: &ApiClient, data: &serde_json::Value) -> Result<()> {
        let path = CONFIG_MAPS.named(operator::NAMESPACE, SWITCH);
        let switch = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": SWITCH, "namespace": operator::NAMESPACE },
            "data": data,
        });
        admin.patch(&path, Patch::Apply, &switch).await.map(drop)
    }

    /// M20: every hosted cluster is counted once. A replica that does not lead reports nothing.
    pub(crate) async fn adds_up(&self) -> Result<()> {
        let Some(new) = self.new.as_ref().filter(|new| new.service.pid().is_some()) else {
            return Ok(());
        };
        let Ok(scrape) = new.scrape().await else {
            return Ok(());
        };
        let mut sum = 0;
        for state in ["pending", "done", "failed", "active"] {
            sum += value(&scrape, &format!("{COUNT}{{state=\"{state}\"}}"))?;
        }
        let total = value(&scrape, &format!("{COUNT}_total "))?;
        ensure!(
            sum == total,
            "m20: {sum} clusters have a state, and there are {total}"
        );
        Ok(())
    }

    /// How many clusters are in a state, by the metrics.
    pub(crate) async fn counted(&self, state: &str) -> Result<u64> {
        let new = self.new.as_ref().context("it does not run")?;
        value(
            &new.scrape().await?,
            &format!("{COUNT}{{state=\"{state}\"}}"),
        )
    }

    /// Runs `hypershift`; gives its exit status and what it says.
    pub(crate) async fn hypershift(&self, words: &[&str]) -> Result<(i32, String)> {
        terminal::run(Command::new(&self.command).args(words), &self.kubeconfig).await
    }

    /// The same, where it must succeed.
    pub(crate) async fn does(&self, words: &[&str]) -> Result<String> {
        let (code, said) = self.hypershift(words).await?;
        ensure!(code == 0, "hypershift {words:?} ended with {code}: {said}");
        Ok(said)
    }

    /// The user name of the command line.
    pub(crate) fn sre(&self) -> String {
        self.sre.username()
    }
}

async fn start(testbed: &Testbed, identity: &Identity) -> Result<Replica> {
    let pod = format!("{}-1", identity.operator.name());
    let Endpoint { server, authority } = testbed.control_plane.endpoint();
    let server = Server {
        url: &server,
        authority: Some(&authority),
    };
    let mut replica = identity.replica_at(testbed, &pod, server, Times::PATIENT)?;
    replica.service.start().await?;
    let what = format!("{pod} to be ready");
    wait::until(&what, SOON, async || replica.is_ready().await).await?;
    Ok(replica)
}
