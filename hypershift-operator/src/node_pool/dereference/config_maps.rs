//! Reads ConfigMaps: those that a pool refers to, and those of its control plane.

use api::annotations::node_pool::NODE_POOL;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use k8s_openapi::api::core::v1::{ConfigMap, LocalObjectReference};
use kube::ResourceExt as _;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;

use super::Reader;
use crate::names::node_pool as names;
use crate::node_pool::config::{self, Content, Source};
use crate::node_pool::error::Error;
use crate::node_pool::mirrored;
use crate::node_pool::tuning::{self, Role, Written};

/// A ConfigMap without its contents.
type Meta = PartialObjectMeta<ConfigMap>;

// === impl Reader ===

impl Reader<'_> {
    /// A key of ConfigMaps that a pool refers to.
    pub(super) async fn sources(
        &self,
        references: &[LocalObjectReference],
        key: &str,
    ) -> Result<Vec<Source>, Error> {
        let mut sources = Vec::new();
        for reference in references {
            let found = self.config_map(&reference.name).await?;
            let content = found.map_or(Content::Missing, |it| content(it, key));
            let name = reference.name.clone();
            sources.push(Source { name, content });
        }
        Ok(sources)
    }

    /// ConfigMaps of the control plane with this label.
    pub(super) async fn labelled(
        &self,
        label: &str,
        is_ours: impl Fn(&ConfigMap) -> bool,
    ) -> Result<Vec<Source>, Error> {
        let params = ListParams::default().labels(label);
        let listed = self.config_maps_in(&self.away).list(&params).await;
        let listed = listed.map_err(Error::read(format!("ConfigMaps with {label}")))?;
        let ours = listed.items.into_iter().filter(is_ours);
        Ok(ours
            .map(|it| Source {
                name: it.name_any(),
                content: content(it, config::KEY),
            })
            .collect())
    }

    /// All ConfigMaps of the control plane, without their contents.
    pub(super) async fn all_config_maps(&self) -> Result<Vec<Meta>, Error> {
        let api = self.config_maps_in(&self.away);
        let listed = api.list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(Error::read(format!("ConfigMaps of {}", self.away)))?;
        Ok(listed.items)
    }

    /// A ConfigMap of the control plane.
    async fn copy(&self, name: &str) -> Result<Option<ConfigMap>, Error> {
        let read = self.config_maps_in(&self.away).get_opt(name).await;
        read.map_err(Error::read(format!("ConfigMap {}/{name}", self.away)))
    }

    /// What the tuning operator is to get and reports, and which ConfigMaps are not the pool's tuning: names that users
    /// choose are in the names of those that are written.
    pub(super) async fn tuning(
        &self,
        pool: &NodePool,
        cluster: &HostedCluster,
        maps: &[Meta],
    ) -> Result<tuning::Observed, Error> {
        let mut observed = tuning::Observed::default();
        if !tuning::is_enabled(cluster) {
            return Ok(observed);
        }
        observed.sources = self.sources(&pool.spec.tuning_config, tuning::KEY).await?;
        for map in maps {
            let name = map.name_any();
            let role = tuning::role(&map.metadata, pool);
            match role {
                Role::Tuned | Role::Profile => observed.written.push(Written {
                    name,
                    is_profile: role == Role::Profile,
                }),
                Role::Report => {
                    let read = self.copy(&name).await?;
                    let content = read.map(|it| content(it, tuning::REPORT_KEY));
                    let source = content.map(|content| Source {
                        name: name.clone(),
                        content,
                    });
                    observed.reports.extend(source);
                    // It is the tuning operator's, and not to be written.
                    observed.others.insert(name);
                }
                Role::Other => {
                    observed.others.insert(name);
                }
            }
        }
        Ok(observed)
    }

    /// The copies of the pool's configuration, and the names that they cannot have.
    pub(super) async fn mirrored(
        &self,
        pool: &NodePool,
        maps: &[Meta],
    ) -> Result<mirrored::Observed, Error> {
        let mut observed = mirrored::Observed::default();
        for map in maps {
            let name = map.name_any();
            if !mirrored::is_copy(&map.metadata, pool) {
                observed.others.insert(name);
                continue;
            }
            let found = self.copy(&name).await?;
            observed.written.extend(found.map(|it| mirrored::Written {
                name,
                is_immutable: it.immutable == Some(true),
            }));
        }
        Ok(observed)
    }
}

fn content(map: ConfigMap, key: &str) -> Content {
    let text = map.data.and_then(|mut it| it.remove(key));
    text.map_or(Content::Empty, Content::Text)
}

pub(super) fn belongs(map: &ConfigMap, pool: &NodePool) -> bool {
    map.annotations().get(NODE_POOL.key()) == Some(&names::reference(pool))
}
