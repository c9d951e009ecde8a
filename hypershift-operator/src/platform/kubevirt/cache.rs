//! Copies of boot images: a pool whose `cacheStrategy` is `PVC` has one, and the disks of its machines are clones of it.
//!
//! A copy belongs to the pool with the UID in its label. It is created before the template that names it.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::node_pool::{KubevirtCaching, NodePool};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use kube::api::{ApiResource, ListParams, PostParams};
use serde::Deserialize;
use serde_json::{Value, json};
use support::reconcile::is_missing;

use super::client::{InfraCluster, LONGEST_BODY, describe, is_name};
use super::disk::{self, OPERATING_SYSTEM};
use crate::names::node_pool as names;
use crate::platform::machines::Inputs;

/// The beginning of the name of a copy.
const PREFIX: &str = "kv-boot-image-cache-";
/// Label with the purpose of a copy, and its value.
const ROLE_LABEL: &str = "hypershift.openshift.io/kubevirt-boot-image-role";
const ROLE: &str = "kv-boot-image-cache";
/// Label with the UID of the pool that a copy belongs to.
const POOL_LABEL: &str = "hypershift.openshift.io/nodepool-uid";
/// Annotation with the SHA-256 of the image.
const HASH: &str = "hypershift.openshift.io/kubevirt-boot-image-hash";
/// Annotations for the importer: it begins at once, and the `DataVolume` stays.
const IMMEDIATE: &str = "cdi.kubevirt.io/storage.bind.immediate.requested";
const DELETED_AFTER: &str = "cdi.kubevirt.io/storage.deleteAfterCompletion";
/// The most copies of a pool that are looked at: it has one, and during an update two.
const MOST: u32 = 20;
/// The longest list of them, in bytes.
const LONGEST_LIST: usize = 4 * LONGEST_BODY;

/// The copy that a pool needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    hash: String,
    spec: Value,
}

/// What is to be done with the copies that a pool has.
#[derive(Debug, PartialEq)]
struct Choice<'a> {
    used: Option<&'a str>,
    outdated: Vec<&'a ObjectMeta>,
}

/// A list of objects, of which only the metadata is read.
#[derive(Deserialize)]
struct List {
    /// API servers write `null` if there are none.
    items: Option<Vec<Listed>>,
}

#[derive(Deserialize)]
struct Listed {
    metadata: ObjectMeta,
}

// === impl Wanted ===

impl Wanted {
    /// The copy that the pool of these inputs needs, if it wants one, and its image can be copied.
    pub(crate) fn of(inputs: &Inputs<'_>) -> Option<Self> {
        let kubevirt = inputs.pool.spec.platform.kubevirt.as_ref()?;
        // The template has the same problem, and reports it.
        let (image, hash) = disk::cached(inputs, kubevirt).ok()??;
        let spec = json!({
            "preallocation": true,
            "source": image.source,
            "storage": disk::storage(kubevirt),
        });
        Some(Self { hash, spec })
    }

    /// The SHA-256 of the image.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }
}

/// The name of the copy, which is created if the pool has none. Copies of other images are deleted. An error says what
/// failed.
pub(crate) async fn ensure(
    infra: &InfraCluster,
    pool: &NodePool,
    wanted: &Wanted,
) -> Result<String, String> {
    let copies = list(infra, pool).await.map_err(|error| {
        let problem = if is_missing(&error) {
            "it does not serve DataVolumes: install the Containerized Data Importer".to_owned()
        } else {
            describe(&error)
        };
        failed("list DataVolumes", infra, &problem)
    })?;
    let recorded = recorded(pool);
    let Choice { used, outdated } = choose(&copies, recorded, &wanted.hash);
    let used = match used {
        Some(name) => name.to_owned(),
        None => create(infra, pool, wanted).await?,
    };
    for copy in outdated {
        if let Err(error) = remove(infra, copy).await {
            let problem = describe(&error);
            let (namespace, name) = (pool.namespace(), names::of(pool));
            tracing::warn!(namespace, name, error = problem, "Boot image not deleted");
        }
    }
    Ok(used)
}

/// Deletes the copies of a pool.
pub(crate) async fn delete(infra: &InfraCluster, pool: &NodePool) -> kube::Result<()> {
    let copies = match list(infra, pool).await {
        Err(error) if is_missing(&error) => return Ok(()),
        found => found?,
    };
    for copy in &copies {
        remove(infra, copy).await?;
    }
    Ok(())
}

/// Whether a pool may have copies.
pub(crate) fn may_have_copies(pool: &NodePool) -> bool {
    let kubevirt = pool.spec.platform.kubevirt.as_ref();
    let strategy = kubevirt.and_then(|it| it.root_volume.cache_strategy.as_ref());
    strategy.is_some_and(|it| it.type_ == KubevirtCaching::Pvc) || recorded(pool).is_some()
}

fn recorded(pool: &NodePool) -> Option<&str> {
    let platform = pool.status.as_ref()?.platform.as_ref()?;
    platform.kube_virt.as_ref()?.cache_name.as_deref()
}

/// The recorded copy if it has the image, or else the first one that has. Machines are clones, so others are not needed.
fn choose<'a>(copies: &'a [ObjectMeta], recorded: Option<&str>, hash: &str) -> Choice<'a> {
    let mut names: Vec<_> = copies
        .iter()
        .filter(|it| it.deletion_timestamp.is_none())
        .filter(|it| value(it.annotations.as_ref(), HASH) == Some(hash))
        .filter_map(|it| it.name.as_deref())
        .collect();
    names.sort_unstable();
    let kept = names.iter().find(|name| Some(**name) == recorded);
    let used = kept.or(names.first()).copied();
    let outdated = copies.iter();
    let outdated =
        outdated.filter(|it| it.deletion_timestamp.is_none() && it.name.as_deref() != used);
    Choice {
        used,
        outdated: outdated.collect(),
    }
}

/// The copies of a pool. A user's server may return anything.
async fn list(infra: &InfraCluster, pool: &NodePool) -> kube::Result<Vec<ObjectMeta>> {
    let uid = pool.uid().unwrap_or_default();
    let params = ListParams::default()
        .labels(&format!("{ROLE_LABEL}={ROLE},{POOL_LABEL}={uid}"))
        .limit(MOST);
    let request = infra.requests(&resource()).list_metadata(&params);
    let listed: List = infra.send(request, LONGEST_LIST).await?;
    let copies = listed.items.into_iter().flatten().map(|it| it.metadata);
    let copies = copies.filter(|it| it.name.as_deref().is_some_and(is_name) && is_of(it, &uid));
    Ok(copies.collect())
}

/// Whether a `DataVolume` is a copy of the pool with this UID.
fn is_of(copy: &ObjectMeta, uid: &str) -> bool {
    let labels = copy.labels.as_ref();
    let is = |key: &str, expected: &str| value(labels, key) == Some(expected);
    !uid.is_empty() && is(ROLE_LABEL, ROLE) && is(POOL_LABEL, uid)
}

async fn create(infra: &InfraCluster, pool: &NodePool, wanted: &Wanted) -> Result<String, String> {
    let resource = resource();
    let copy = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "generateName": PREFIX,
            "namespace": infra.namespace(),
            "labels": {
                OPERATING_SYSTEM: "true",
                ROLE_LABEL: ROLE,
                POOL_LABEL: pool.uid().unwrap_or_default(),
            },
            "annotations": {
                HASH: wanted.hash,
                IMMEDIATE: "true",
                DELETED_AFTER: "false",
            },
        },
        "spec": wanted.spec,
    });
    let request = infra
        .requests(&resource)
        .create(&PostParams::default(), copy.to_string().into_bytes());
    let failed = |problem: &str| failed("create a DataVolume for the boot image", infra, problem);
    let created: kube::Result<Listed> = infra.send(request, LONGEST_BODY).await;
    let created = created.map_err(|error| failed(&describe(&error)))?;
    let name = created.metadata.name.filter(|name| is_name(name));
    name.ok_or_else(|| failed("its response has no valid name"))
}

async fn remove(infra: &InfraCluster, copy: &ObjectMeta) -> kube::Result<()> {
    let name = copy.name.as_deref().unwrap_or_default();
    let uid = copy.uid.as_deref();
    infra.delete(&infra.requests(&resource()), name, uid).await
}

fn failed(what: &str, infra: &InfraCluster, problem: &str) -> String {
    let namespace = infra.namespace();
    format!("failed to {what} in namespace {namespace} of the infrastructure cluster: {problem}")
}

fn resource() -> ApiResource {
    ApiResource {
        group: "cdi.kubevirt.io".to_owned(),
        version: "v1beta1".to_owned(),
        api_version: "cdi.kubevirt.io/v1beta1".to_owned(),
        kind: "DataVolume".to_owned(),
        plural: "datavolumes".to_owned(),
    }
}

fn value<'a>(map: Option<&'a BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    map?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests;
