//! What the pools of a configured cluster have: their configuration, their machines, and what is on the nodes.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use api::annotations::node_pool::CURRENT_CONFIG_VERSION;
use api::group;
use serde_json::Value;
use testbed::client::Resource;
use testbed::conditions;
use testbed::hosted::{Cluster, Fixture, Guest, NAMESPACE, NODE_POOLS};
use testbed::node::condition;

use crate::hosted_cluster::configured_files::Levels;
use crate::hosted_cluster::pools::of_pool;
use crate::hosted_cluster::spot::instance;
use crate::hosted_cluster::timeline;

/// The pool that keeps its machine.
pub(crate) const IN_PLACE: &str = "demo-in-place";
/// What a unit of a MachineConfig copies when a machine boots.
const APPLIED: &str = "/etc/settings.d/applied";

/// A cluster with a pool whose machine is replaced, and one whose machine stays.
pub(crate) struct Pools<'a> {
    pub(crate) fixture: &'a Fixture,
    pub(crate) cluster: &'a Cluster<'a>,
    pub(crate) guest: &'a Guest,
    /// Certificates that the cluster trusts: at first, and later.
    pub(crate) authorities: [String; 2],
}

/// What the machines of a pool have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The hash of their configuration.
    pub(crate) hash: String,
    /// Their UIDs.
    pub(crate) machines: BTreeSet<String>,
}

// === impl Pools ===

impl Pools<'_> {
    /// The pool whose machines are replaced, and the one whose machine stays.
    pub(crate) fn names(&self) -> [String; 2] {
        [self.cluster.pool(), IN_PLACE.to_owned()]
    }

    /// The certificates that the cluster trusts.
    pub(crate) fn authorities(&self, levels: &Levels) -> &str {
        let [first, later] = &self.authorities;
        if levels.authorities == 1 {
            first
        } else {
            later
        }
    }

    pub(crate) async fn seen(&self) -> Result<[Seen; 2]> {
        let [replaced, in_place] = self.names();
        Ok([
            self.seen_of(&replaced).await?,
            self.seen_of(&in_place).await?,
        ])
    }

    pub(crate) async fn seen_of(&self, pool: &str) -> Result<Seen> {
        let found = self.get(pool).await?;
        let hash = &found["metadata"]["annotations"][CURRENT_CONFIG_VERSION.key()];
        let machines = of_pool(self.cluster, pool).await?;
        let uids = machines.iter().map(|it| text(&it["metadata"]["uid"]));
        Ok(Seen {
            hash: text(hash),
            machines: uids.collect(),
        })
    }

    /// What machines of both pools are made of: names that contain hashes.
    pub(crate) async fn made_of(&self) -> Result<[Value; 2]> {
        let version = format!("{}/v1beta2", group::core(self.cluster.capi_types()));
        let namespace = self.cluster.namespace();
        let [replaced, in_place] = self.names();
        let deployments = Resource::new(&version, "machinedeployments");
        let sets = Resource::new(&version, "machinesets");
        let admin = &self.fixture.testbed.admin;
        let deployment = admin.get(&deployments.named(&namespace, &replaced)).await?;
        let set = admin.get(&sets.named(&namespace, &in_place)).await?;
        Ok([deployment, set].map(|mut it| it["spec"]["template"]["spec"].take()))
    }

    /// Waits until nothing is being rolled out: the machines have the configuration of new ones. Nodes may have all files
    /// before that.
    pub(crate) async fn settle(&self) -> Result<()> {
        let what = "both pools say that their machines have the newest configuration";
        self.fixture
            .stage(what, async || {
                let (all_made_of, all_seen) = (self.made_of().await?, self.seen().await?);
                let pairs = all_made_of.iter().zip(&all_seen);
                for (pool, (made_of, seen)) in self.names().iter().zip(pairs) {
                    let user_data = text(&made_of["bootstrap"]["dataSecretName"]);
                    let found = self.get(pool).await?;
                    let untrue = conditions::untrue(&found);
                    ensure!(
                        user_data.ends_with(&format!("-{}", seen.hash)),
                        "{pool} has {:?}, and new machines get {user_data}; {untrue}",
                        seen.hash
                    );
                    is_updated(&found).with_context(|| pool.clone())?;
                }
                Ok(())
            })
            .await
    }

    /// Waits until both pools have another configuration than before.
    pub(crate) async fn have_changed(&self, kind: &str, before: &[Seen; 2]) -> Result<()> {
        for (pool, before) in self.names().iter().zip(before) {
            let what = format!("{pool} has another {kind}");
            self.fixture
                .stage(&what, async || {
                    let found = self.get(pool).await?;
                    let seen = self.seen_of(pool).await?;
                    ensure!(
                        seen.hash != before.hash,
                        "it still has {}; {}",
                        seen.hash,
                        conditions::untrue(&found)
                    );
                    is_updated(&found)
                })
                .await?;
        }
        Ok(())
    }

    /// Reads all files of both nodes. Those of pools that have just `booted` have run the unit.
    pub(crate) async fn are_on_nodes(&self, levels: &Levels, booted: &[String]) -> Result<()> {
        self.cluster.has_workers(self.guest, 2).await?;
        let cloud = &self.fixture.cloud;
        for pool in self.names() {
            let machines = of_pool(self.cluster, &pool).await?;
            let [machine] = machines.as_slice() else {
                let names: Vec<_> = machines.iter().map(|it| &it["metadata"]["name"]).collect();
                bail!("{pool} has the machines {names:?}");
            };
            let (instance, node) = (instance(machine), &machine["status"]["nodeRef"]["name"]);
            let path = format!("/api/v1/nodes/{}", text(node));
            let what = format!("{pool}: all files of {instance} are as configured");
            self.fixture
                .stage(&what, async || {
                    let file = |path: &str| cloud.file(&instance, path);
                    levels.are_on(self.authorities(levels), file)?;
                    if booted.contains(&pool) {
                        let (level, applied) = (file("/etc/settings.d/level"), file(APPLIED));
                        ensure!(
                            level == applied,
                            "the unit has not run: {APPLIED} has {applied:?} and not {level:?}"
                        );
                    }
                    let node = self.guest.client.get(&path).await?;
                    let pods = &node["status"]["capacity"]["pods"];
                    let expected = levels.pods().to_string();
                    ensure!(
                        *pods == expected,
                        "it has room for {pods} pods and not {expected}: the kubelet has not read its file"
                    );
                    condition(&node, "Ready")
                })
                .await?;
        }
        Ok(())
    }

    async fn get(&self, pool: &str) -> Result<Value> {
        let path = NODE_POOLS.named(NAMESPACE, pool);
        self.fixture.testbed.admin.get(&path).await
    }
}

fn is_updated(pool: &Value) -> Result<()> {
    let updating = timeline::condition(pool, "UpdatingConfig");
    ensure!(
        updating["status"] == "False" && updating["reason"] == "AsExpected",
        "UpdatingConfig is {updating}"
    );
    Ok(())
}

/// The text of a field.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
