//! Writes the ConfigMaps of a pool: its tuning, and copies of its configuration.

use api::hypershift::v1beta1::node_pool::NodePool;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;

use super::Writer;
use crate::control_plane_namespace::{ControlPlaneNamespace, Namespace};
use crate::node_pool::error::Error;
use crate::node_pool::facts::Facts;
use crate::node_pool::{mirrored, tuning};

// === impl Writer ===

impl Writer {
    /// Last, so that a ConfigMap that cannot be written delays no machine.
    pub(super) async fn tuning(
        &self,
        namespace: &Namespace,
        facts: &Facts,
        maps: &tuning::Maps,
    ) -> Result<(), Error> {
        for map in &maps.desired {
            self.config_map(namespace, facts, map, tuning::may_write)
                .await?;
        }
        let kind = ApiResource::erase::<ConfigMap>(&());
        for name in &maps.obsolete {
            self.delete(namespace, &facts.pool, &kind, name).await?;
        }
        Ok(())
    }

    /// Writes the copies of the configuration.
    pub(crate) async fn mirror(
        &self,
        namespace: &ControlPlaneNamespace,
        facts: &Facts,
        maps: &mirrored::Maps,
    ) -> Result<(), Error> {
        let namespace = &Namespace::Owned(namespace.clone());
        let kind = ApiResource::erase::<ConfigMap>(&());
        for name in maps.immutable.iter().chain(&maps.obsolete) {
            self.delete(namespace, &facts.pool, &kind, name).await?;
        }
        for map in &maps.desired {
            self.config_map(namespace, facts, map, mirrored::is_copy)
                .await?;
        }
        Ok(())
    }

    /// Writes a ConfigMap of the control plane namespace, unless one that may not be written has its name: another object may
    /// have got it since the ConfigMaps were listed, and the next reconcile reports it.
    async fn config_map(
        &self,
        namespace: &Namespace,
        facts: &Facts,
        map: &ConfigMap,
        may_write: fn(&ObjectMeta, &NodePool) -> bool,
    ) -> Result<(), Error> {
        let kind = ApiResource::erase::<ConfigMap>(&());
        let name = map.metadata.name.as_deref().unwrap_or_default();
        let api = self.objects(&kind, namespace.name());
        let found = api.get_metadata_opt(name).await;
        let what = format!("ConfigMap {}/{name}", namespace.name());
        let found = found.map_err(Error::read(what))?;
        if found.is_none_or(|it| may_write(&it.metadata, &facts.pool)) {
            self.applier.ensure(map).await?;
        }
        Ok(())
    }
}
