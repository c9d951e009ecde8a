//! Each kind of configuration reaches nodes, and each change of it: by machines that take the place of others, and by
//! machines that stay. The release has the programs that make the configuration, as OpenShift's releases have.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group;
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::hosted::{Cluster, Fixture, NAMESPACE, NODE_POOLS, OPERATORS, PODS};
use testbed::node::condition;
use testbed::{fixtures, wait};

use crate::hosted_cluster::configured_files::Levels;
use crate::hosted_cluster::configured_pools::{IN_PLACE, Pools, Seen, text};
use crate::hosted_cluster::pools::of_pool;
use crate::hosted_cluster::{capi_types, timeline};

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// The ConfigMap with a MachineConfig.
const SETTINGS: &str = "node-settings";
/// What both pools refer to.
const CONFIGURATION: [&str; 5] = [
    SETTINGS,
    "node-kubelet",
    "node-runtime",
    "node-policy",
    "node-sources",
];
/// A label of nodes, and the prefix that it has on machines.
const LABEL: &str = "example.com/restarted";
const MANAGED: &str = "managed.hypershift.openshift.io.";
/// How long nodes are watched that must not change.
const WATCHED: Duration = Duration::from_secs(15);

/// A change of one kind of configuration.
type Change = (&'static str, fn(&mut Levels));

/// Each of them replaces machines, or what is on them.
const CHANGES: [Change; 7] = [
    ("MachineConfig", |it| it.machine += 1),
    ("KubeletConfig", |it| it.kubelet += 1),
    ("ContainerRuntimeConfig", |it| it.runtime += 1),
    ("ClusterImagePolicy", |it| it.policy += 1),
    ("ImageDigestMirrorSet", |it| it.mirrors += 1),
    ("ImageContentSourcePolicy", |it| it.sources += 1),
    ("trust bundle", |it| it.authorities += 1),
];

/// A cluster in FIPS mode with two pools.
struct Configured<'a> {
    fixture: &'a Fixture,
    cluster: &'a Cluster<'a>,
    pools: Pools<'a>,
}

pub(crate) async fn scenario(fixture: &Fixture) -> Result<()> {
    let capi_types = capi_types()?;
    fixture.install(capi_types, &[]).await?;
    let cluster = Cluster::new(fixture, "demo", capi_types);
    let mut levels = Levels::FIRST;
    let authorities = [authority()?, authority()?];
    let bundle = format!(
        "--additional-trust-bundle={}",
        file(fixture, "authorities.crt", &authorities[0])?
    );
    let mirrors = levels.image_content_sources().to_string();
    let mirrors = file(fixture, "mirrors.yaml", &mirrors)?;
    let mirrors = format!("--image-content-sources={mirrors}");
    cluster.create(&["--fips", &bundle, &mirrors]).await?;
    let guest = cluster.comes_up().await?;
    timeline::show(fixture, &cluster).await?;
    let configured = Configured {
        fixture,
        cluster: &cluster,
        pools: Pools {
            fixture,
            cluster: &cluster,
            guest: &guest,
            authorities,
        },
    };
    configured.begins(&levels).await?;
    configured.stays_when_operators_restart().await?;
    for (kind, change) in CHANGES {
        let before = configured.pools.seen().await?;
        change(&mut levels);
        configured.apply(&levels).await?;
        configured.rolls_out(kind, &before, &levels).await?;
    }
    configured.is_tuned(&mut levels).await?;
    configured.survives_a_broken_config(&mut levels).await?;
    cluster.destroy().await
}

// === impl Configured ===

impl Configured<'_> {
    /// Has both pools refer to one of each kind of configuration, and then start a machine.
    async fn begins(&self, levels: &Levels) -> Result<()> {
        self.apply(levels).await?;
        self.create_pool().await?;
        for pool in self.pools.names() {
            // Services of the cluster work on the nodes of the first pool, which also has a ConfigMap for that.
            let further = (pool != IN_PLACE).then_some("kube-proxy");
            let names = CONFIGURATION.into_iter().chain(further);
            let references: Vec<_> = names.map(|name| json!({ "name": name })).collect();
            let tuning = json!([{ "name": "node-tuning" }]);
            self.change(
                &pool,
                &json!({ "config": references, "tuningConfig": tuning }),
            )
            .await?;
            self.change(&pool, &json!({ "replicas": 1 })).await?;
        }
        self.pools.are_on_nodes(levels, &self.pools.names()).await?;
        self.pools.settle().await
    }

    /// Creates the pool that is upgraded where it is, without machines.
    async fn create_pool(&self) -> Result<()> {
        let network = &self.fixture.cloud.network;
        let words = [
            "create".to_owned(),
            "nodepool".to_owned(),
            "aws".to_owned(),
            format!("--name={IN_PLACE}"),
            format!("--cluster-name={}", self.cluster.name()),
            "--replicas=0".to_owned(),
            "--node-upgrade-type=InPlace".to_owned(),
            format!("--release-image={}", self.fixture.release.image),
            format!("--subnet-id={}", network.subnet),
            format!("--securitygroup-id={}", network.security_group),
            format!("--instance-profile={}-worker-profile", self.cluster.infra()),
        ];
        self.fixture.hcp(&words, &[]).await.map(drop)
    }

    async fn change(&self, pool: &str, spec: &Value) -> Result<()> {
        let path = NODE_POOLS.named(NAMESPACE, pool);
        let change = json!({ "spec": spec });
        let admin = &self.fixture.testbed.admin;
        admin.patch(&path, Patch::Merge, &change).await.map(drop)
    }

    /// Writes what the pools and the cluster refer to. The cluster has been created with the first level.
    async fn apply(&self, levels: &Levels) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let values = levels.values();
        let values = values.each_ref().map(|(key, value)| (*key, value.as_str()));
        let maps = fixtures::render("hosted_cluster/configuration", &values)?;
        admin.apply(&maps).await?;
        let path = self.cluster.path();
        if levels.mirrors > 1 {
            let mirrors =
                json!({ "spec": { "imageContentSources": levels.image_content_sources() } });
            admin.patch(&path, Patch::Merge, &mirrors).await?;
        }
        if levels.authorities > 1 {
            let name = format!("authorities-{}", levels.authorities);
            let map = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "namespace": NAMESPACE, "name": name },
                "data": { "ca-bundle.crt": self.pools.authorities(levels) },
            });
            admin.apply(&[map]).await?;
            let bundle = json!({ "spec": { "additionalTrustBundle": { "name": name } } });
            admin.patch(&path, Patch::Merge, &bundle).await?;
        }
        Ok(())
    }

    /// Waits until the nodes of both pools have a change.
    async fn rolls_out(&self, kind: &str, before: &[Seen; 2], levels: &Levels) -> Result<()> {
        self.pools.have_changed(kind, before).await?;
        // Settings of the cluster replace pods of its control plane, too, and its API server is used next.
        self.cluster.rolled_out().await?;
        let [replaced, _] = self.pools.names();
        self.pools.are_on_nodes(levels, &[replaced]).await?;
        let [replaced, in_place] = self.pools.seen().await?;
        let [old, stays] = before;
        ensure!(
            old.machines.is_disjoint(&replaced.machines),
            "{kind} has not replaced {:?}",
            old.machines
        );
        ensure!(
            stays.machines == in_place.machines,
            "{kind} has replaced {:?}",
            stays.machines
        );
        Ok(())
    }

    /// Equal content has equal hashes, whichever process computes them, and in whatever words.
    async fn stays_when_operators_restart(&self) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let before = (self.pools.made_of().await?, self.pools.seen().await?);
        let settings = CONFIG_MAPS.named(NAMESPACE, SETTINGS);
        let config = text(&admin.get(&settings).await?["data"]["config"]);
        self.rewrite(&format!("# The same in other words.\n{config}"))
            .await?;
        let operators = PODS.within(OPERATORS);
        let old = admin.list(&operators).await?;
        for pod in &old {
            let name = text(&pod["metadata"]["name"]);
            admin.delete(&PODS.named(OPERATORS, &name)).await?;
        }
        self.fixture
            .stage("other pods of the operators are ready", async || {
                let pods = admin.list(&operators).await?;
                let uid = |pod: &Value| text(&pod["metadata"]["uid"]);
                let is_old = |pod: &Value| old.iter().any(|it| uid(it) == uid(pod));
                ensure!(!pods.is_empty(), "there is none");
                let old = pods.iter().find(|pod| is_old(pod));
                ensure!(
                    old.is_none(),
                    "{} is there",
                    old.unwrap_or(&Value::Null)["metadata"]["name"]
                );
                pods.iter().try_for_each(|pod| condition(pod, "Ready"))
            })
            .await?;
        // It reaches machines only after a whole reconcile.
        for pool in self.pools.names() {
            self.change(&pool, &json!({ "nodeLabels": { LABEL: "true" } }))
                .await?;
        }
        self.fixture
            .stage("both pools have been reconciled again", async || {
                self.are_labelled().await
            })
            .await?;
        let after = (self.pools.made_of().await?, self.pools.seen().await?);
        ensure!(before == after, "{before:?} became {after:?}");
        Ok(())
    }

    /// Machines have the label where they are replaced, and where they stay, those that are still to be made.
    async fn are_labelled(&self) -> Result<()> {
        let label = format!("{MANAGED}{LABEL}");
        for machine in of_pool(self.cluster, &self.cluster.pool()).await? {
            let metadata = &machine["metadata"];
            let found = &metadata["labels"][&label];
            ensure!(
                *found == "true",
                "label {label} of machine {} is {found}",
                metadata["name"]
            );
        }
        let version = format!("{}/v1beta2", group::core(self.cluster.capi_types()));
        let sets = Resource::new(&version, "machinesets");
        let path = sets.named(&self.cluster.namespace(), IN_PLACE);
        let set = self.fixture.testbed.admin.get(&path).await?;
        let found = &set["spec"]["template"]["metadata"]["labels"][&label];
        ensure!(
            *found == "true",
            "label {label} in the MachineSet {IN_PLACE} is {found}"
        );
        Ok(())
    }

    /// Replaces the text of the MachineConfig.
    async fn rewrite(&self, config: &str) -> Result<()> {
        let path = CONFIG_MAPS.named(NAMESPACE, SETTINGS);
        let change = json!({ "data": { "config": config } });
        let admin = &self.fixture.testbed.admin;
        admin.patch(&path, Patch::Merge, &change).await.map(drop)
    }

    /// The tuning operator gets what the pools refer to, and no machine is replaced for it.
    async fn is_tuned(&self, levels: &mut Levels) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let before = self.pools.seen().await?;
        levels.tuning += 1;
        self.apply(levels).await?;
        let setting = format!("net.core.somaxconn={}\n", levels.queue());
        for pool in self.pools.names() {
            let name = format!("tuned-{pool}");
            let path = CONFIG_MAPS.named(&self.cluster.namespace(), &name);
            let what = format!("the tuning operator gets {name}");
            self.fixture
                .stage(&what, async || {
                    let tuned = text(&admin.get(&path).await?["data"]["tuning"]);
                    // It is a text in a text.
                    let lines = tuned.replace("\\n", "\n");
                    ensure!(lines.contains(setting.trim()), "{tuned}");
                    Ok(())
                })
                .await?;
        }
        let after = self.pools.seen().await?;
        ensure!(before == after, "{before:?} became {after:?}");
        Ok(())
    }

    /// A MachineConfig that the programs of the release refuse is reported, and nodes stay until it is corrected.
    async fn survives_a_broken_config(&self, levels: &mut Levels) -> Result<()> {
        let admin = &self.fixture.testbed.admin;
        let before = self.pools.seen().await?;
        let path = CONFIG_MAPS.named(NAMESPACE, SETTINGS);
        let config = text(&admin.get(&path).await?["data"]["config"]);
        let broken = config.replace("name: settings.service", "name: settings");
        ensure!(broken != config, "{config}");
        self.rewrite(&broken).await?;
        for pool in self.pools.names() {
            let path = NODE_POOLS.named(NAMESPACE, &pool);
            let what = format!("{pool} reports the field that is refused");
            self.fixture
                .stage(&what, async || {
                    let found = admin.get(&path).await?;
                    let valid = timeline::condition(&found, "ValidGeneratedPayload");
                    let message = text(&valid["message"]);
                    let field = "MachineConfig 99-settings: spec.config.systemd.units[0].name";
                    ensure!(
                        valid["status"] == "False" && message.contains(field),
                        "{valid}"
                    );
                    Ok(())
                })
                .await?;
        }
        wait::throughout("nodes of refused pools", WATCHED, async || {
            for (pool, before) in self.pools.names().iter().zip(&before) {
                let now = self.pools.seen_of(pool).await?;
                ensure!(now.machines.is_superset(&before.machines), "{now:?}");
            }
            let nodes = self.pools.guest.nodes().await?;
            ensure!(nodes.len() == 2, "there are {} nodes", nodes.len());
            nodes.iter().try_for_each(|node| condition(node, "Ready"))
        })
        .await?;
        levels.machine += 1;
        self.apply(levels).await?;
        self.rolls_out("MachineConfig", &before, levels).await
    }
}

/// The certificate of an authority, PEM.
fn authority() -> Result<String> {
    let made = rcgen::generate_simple_self_signed(["authority.example.com".to_owned()])?;
    Ok(made.cert.pem())
}

/// Writes a file for a command to read; gives its path.
fn file(fixture: &Fixture, name: &str, text: &str) -> Result<String> {
    let path = fixture.testbed.path().join(name);
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(path.display().to_string())
}
