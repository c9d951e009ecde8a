//! Reads all inputs of a pool. The only part that knows where they are.

mod config_maps;
mod releases;

use std::collections::BTreeMap;

use api::annotations::node_pool::NODE_POOL;
use api::group::CapiTypes;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use api::hypershift::v1beta1::platform::PlatformType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use payload::pull_secret;
use support::reconcile::is_missing;

use super::capacity;
use super::config;
use super::error::Error;
use super::facts::Facts;
use super::observed::{
    Machine, ObservedCondition, PlatformMachine, Template, Workload, observed_condition,
    reported_condition,
};
use super::workload;
use crate::capi::Capi;
use crate::context::Context;
use crate::control_plane_namespace::Namespace;
use crate::names::node_pool as names;
use crate::platform::capacity::Known;
use crate::platform::machines;

/// ConfigMaps from the control plane for every pool.
const CORE: &str = "hypershift.openshift.io/core-ignition-config=true";
/// ConfigMaps that the tuning operator made.
const TUNING: &str = "hypershift.openshift.io/nto-generated-machine-config=true";
/// The Secret with the certificate authority of the ignition server.
const IGNITION_CA: &str = "ignition-server-ca-cert";
/// The condition of a virtual machine that can move to another host while it runs.
const LIVE_MIGRATABLE: &str = "VMLiveMigratable";

/// All facts of a pool of a cluster of these types.
pub(crate) async fn facts(
    pool: NodePool,
    cluster: HostedCluster,
    types: CapiTypes,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Facts, Error> {
    let reader = Reader {
        ctx,
        home: cluster.namespace().unwrap_or_default(),
        away: namespace.name().to_owned(),
        capi: Capi::new(types),
    };
    let pull_secret = reader.pull_secret(&cluster).await?;
    let images = reader.images(&pool, &cluster, pull_secret.as_deref()).await;
    let infra_id = cluster.spec.infra_id.clone().unwrap_or_default();
    let label = names::generation(&infra_id, &pool.spec.cluster_name, names::of(&pool));
    let machines: Vec<_> = reader.list(&reader.capi.machine(), Some(&label)).await?;
    let kind = workload::kind(reader.capi, pool.spec.management.upgrade_type);
    let sets: Vec<_> = reader.list(&reader.capi.machine_set(), None).await?;
    let (tokens, user_data) = reader.secrets(&pool).await?;
    let maps = reader.all_config_maps().await?;
    let facts = Facts {
        release: images.release,
        cluster_version: images.cluster_version,
        capabilities: images.capabilities,
        operator_image: images.operator,
        pull_secret: pull_secret.unwrap_or_default(),
        trust_bundle: reader.trust_bundle(&cluster).await?,
        cloud_config: reader.cloud_config(&cluster).await?,
        ssh_key: reader.ssh_key(&cluster).await?,
        own: reader.sources(&pool.spec.config, config::KEY).await?,
        core: reader.labelled(CORE, |_| true).await?,
        tuning: reader
            .labelled(TUNING, |it| config_maps::belongs(it, &pool))
            .await?,
        tuning_inputs: reader.tuning(&pool, &cluster, &maps).await?,
        mirrored: reader.mirrored(&pool, &maps).await?,
        ignition_ca: reader.key(&reader.away, IGNITION_CA, "tls.crt").await?,
        tokens,
        user_data,
        platform_machines: reader.platform_machines(&pool, &machines).await?,
        machines: reader.machines(&pool, &machines).await?,
        machine_sets: sets.iter().map(Workload::read).collect(),
        workload: reader
            .get(&kind, names::of(&pool))
            .await?
            .as_ref()
            .map(Workload::read),
        templates: reader.templates(&pool).await?,
        capacity: reader.capacity(&pool, &cluster).await,
        remediation: reader.remediation(&pool).await?,
        now: Timestamp::now(),
        namespace: reader.away,
        owned: namespace.owned().cloned(),
        types,
        features: ctx.cloud.features,
        pool,
        cluster,
    };
    Ok(facts)
}

/// The shared inputs of all reads.
struct Reader<'a> {
    ctx: &'a Context,
    /// Where the HostedCluster is, and where its control plane is.
    home: String,
    away: String,
    capi: Capi,
}

// === impl Reader ===

impl Reader<'_> {
    fn secrets_in(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.ctx.client.clone(), namespace)
    }

    fn config_maps_in(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.ctx.client.clone(), namespace)
    }

    fn api(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.ctx.client.clone(), &self.away, kind)
    }

    /// A key of a Secret.
    async fn key(&self, namespace: &str, name: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let read = self.secrets_in(namespace).get_opt(name).await;
        let secret = read.map_err(Error::read(format!("Secret {namespace}/{name}")))?;
        Ok(secret.and_then(|it| it.data?.remove(key)).map(|it| it.0))
    }

    async fn config_map(&self, name: &str) -> Result<Option<ConfigMap>, Error> {
        let read = self.config_maps_in(&self.home).get_opt(name).await;
        read.map_err(Error::read(format!("ConfigMap {}/{name}", self.home)))
    }

    async fn pull_secret(&self, cluster: &HostedCluster) -> Result<Option<Vec<u8>>, Error> {
        let name = &cluster.spec.pull_secret.name;
        self.key(&self.home, name, pull_secret::KEY).await
    }

    async fn ssh_key(&self, cluster: &HostedCluster) -> Result<Option<String>, Error> {
        let Some(reference) = &cluster.spec.ssh_key else {
            return Ok(None);
        };
        let key = self.key(&self.home, &reference.name, "id_rsa.pub").await?;
        Ok(key.and_then(|it| String::from_utf8(it).ok()))
    }

    /// The ConfigMap of the control plane from which the payload gets the configuration of the cloud provider.
    async fn cloud_config(
        &self,
        cluster: &HostedCluster,
    ) -> Result<BTreeMap<String, String>, Error> {
        let Some(name) = cluster.spec.platform.type_.cloud_config_map() else {
            return Ok(BTreeMap::new());
        };
        let read = self.config_maps_in(&self.away).get_opt(name).await;
        let object = format!("ConfigMap {}/{name}", self.away);
        let found = read.map_err(Error::read(object))?;
        Ok(found.and_then(|it| it.data).unwrap_or_default())
    }

    async fn trust_bundle(&self, cluster: &HostedCluster) -> Result<Option<String>, Error> {
        let Some(reference) = &cluster.spec.additional_trust_bundle else {
            return Ok(None);
        };
        let found = self.config_map(&reference.name).await?;
        Ok(found.and_then(|it| it.data?.remove("ca-bundle.crt")))
    }

    /// The Secrets of the pool: tokens whole, and of user data the names.
    async fn secrets(&self, pool: &NodePool) -> Result<(Vec<Secret>, Vec<String>), Error> {
        let api = self.secrets_in(&self.away);
        let listed = api.list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(Error::read(format!("Secrets of {}", self.away)))?;
        let reference = names::reference(pool);
        let ours = listed
            .items
            .iter()
            .filter(|it| it.annotations().get(NODE_POOL.key()) == Some(&reference));
        let (mut tokens, mut user_data) = (Vec::new(), Vec::new());
        for name in ours.map(kube::ResourceExt::name_any) {
            if name.starts_with("user-data-") {
                user_data.push(name);
            } else if name.starts_with("token-") {
                let read = api
                    .get_opt(&name)
                    .await
                    .map_err(Error::read(format!("Secret {name}")))?;
                tokens.extend(read);
            }
        }
        Ok((tokens, user_data))
    }

    async fn get(&self, kind: &ApiResource, name: &str) -> Result<Option<DynamicObject>, Error> {
        let read = self.api(kind).get_opt(name).await;
        read.map_err(Error::read(format!("{} {}/{name}", kind.kind, self.away)))
    }

    /// All objects of a kind, or those with a label. None if the kind is not served.
    async fn list(
        &self,
        kind: &ApiResource,
        label: Option<&str>,
    ) -> Result<Vec<DynamicObject>, Error> {
        let mut params = ListParams::default();
        if let Some(label) = label {
            params = params.labels(&format!("{label}={label}"));
        }
        match self.api(kind).list(&params).await {
            Ok(listed) => Ok(listed.items),
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            Err(source) => Err(Error::read(format!("{} in {}", kind.plural, self.away))(
                source,
            )),
        }
    }

    async fn templates(&self, pool: &NodePool) -> Result<Vec<Template>, Error> {
        let Some(kind) = machines::template_kind(self.capi, pool.spec.platform.type_) else {
            return Ok(Vec::new());
        };
        let reference = names::reference(pool);
        let listed = self.list(&kind, None).await?;
        let ours = listed
            .iter()
            .filter(|it| it.annotations().get(NODE_POOL.key()) == Some(&reference));
        Ok(ours.map(Template::read).collect())
    }

    /// The machines, and what is known of them as virtual machines.
    async fn machines(
        &self,
        pool: &NodePool,
        found: &[DynamicObject],
    ) -> Result<Vec<Machine>, Error> {
        let mut machines: Vec<_> = found.iter().map(Machine::read).collect();
        if pool.spec.platform.type_ != PlatformType::KubeVirt || machines.is_empty() {
            return Ok(machines);
        }
        let listed = self.list(&self.capi.kubevirt_machine(), None).await?;
        let reports = listed.iter().filter_map(|it| {
            let report = reported_condition(&it.data, LIVE_MIGRATABLE)?;
            Some((it.name_any(), report))
        });
        let mut reports: BTreeMap<String, ObservedCondition> = reports.collect();
        for machine in &mut machines {
            machine.live_migration = reports.remove(&machine.infrastructure);
        }
        Ok(machines)
    }

    /// Only where something of them is changed while they run.
    async fn platform_machines(
        &self,
        pool: &NodePool,
        machines: &[DynamicObject],
    ) -> Result<Vec<PlatformMachine>, Error> {
        if pool.spec.platform.type_ != PlatformType::Aws || machines.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = machines
            .iter()
            .map(|it| Machine::read(it).infrastructure)
            .collect();
        let listed = self.list(&self.capi.aws_machine(), None).await?;
        let ours = listed
            .into_iter()
            .filter(|it| names.contains(&it.name_any()));
        let ours = ours.filter(|it| it.metadata.deletion_timestamp.is_none());
        Ok(ours
            .map(|it| PlatformMachine {
                name: it.name_any(),
                uid: it.uid(),
                spec: it.data["spec"].clone(),
            })
            .collect())
    }

    /// What the cloud says a machine has. It is cached, and a cloud that does not respond delays no other pool for long.
    async fn capacity(&self, pool: &NodePool, cluster: &HostedCluster) -> Option<Known> {
        let provider = self.ctx.capacity.as_ref()?;
        let question = capacity::question(pool, cluster)?;
        provider.capacity(question).await
    }

    async fn remediation(&self, pool: &NodePool) -> Result<Option<ObservedCondition>, Error> {
        if !pool.spec.management.auto_repair {
            return Ok(None);
        }
        let check = self
            .get(&self.capi.machine_health_check(), names::of(pool))
            .await?;
        Ok(check.map(|it| observed_condition(&it.data, "RemediationAllowed")))
    }
}
