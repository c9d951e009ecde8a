//! A platform's own Cluster API of another version: CRDs, its core manager, and a cluster that this one looks after.
//!
//! It is what an installation must never touch. So it is known byte for byte, and gets requests now and then.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::group::{CapiTypes, GroupTable};
use serde_json::json;

use crate::audit::AuditLog;
use crate::client::{ApiClient, Patch, Resource};
use crate::control_plane::ControlPlane;
use crate::etcd::Stored;
use crate::managers::Manager;
use crate::modules::Module;
use crate::service_account::ensure_namespace;
use crate::{capi_storage, crds, fixtures, wait};

/// The only manager that it has.
pub const MANAGER: Manager = Manager::PlatformCore;
/// Its cluster.
const NAME: &str = "its-own";
const MACHINES: Resource<'_> = Resource::new("cluster.x-k8s.io/v1beta1", "machines");
const MACHINE_DEPLOYMENTS: Resource<'_> =
    Resource::new("cluster.x-k8s.io/v1beta1", "machinedeployments");
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(2);
/// How long nothing may be written to believe that nothing more will be.
const CALM: Duration = Duration::from_secs(3);
/// The administrator.
const ADMINISTRATOR: &str = "testbed-admin";
/// Who says of a CRD that it is established.
const API_SERVER: &str = "system:apiserver";
/// Who empties a namespace that is deleted.
const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";

/// A platform's own Cluster API, and what etcd held of it when it was last requested something.
#[derive(Debug)]
pub struct Platform {
    namespace: String,
    /// The user name of its manager.
    manager: String,
    stored: Vec<Stored>,
}

/// The version that it has.
pub fn version() -> Result<String> {
    Module::Platform.version_of("sigs.k8s.io/cluster-api")
}

/// Installs its CRDs; gives how many there are.
pub async fn install_crds(admin: &ApiClient) -> Result<usize> {
    let crds = crds::platform().await?;
    crds::install(admin, &crds).await?;
    Ok(crds.len())
}

// === impl Platform ===

impl Platform {
    /// Creates its cluster, and waits until its manager, which is known as the user `manager`, has done its work.
    pub async fn create(
        admin: &ApiClient,
        control_plane: &ControlPlane,
        namespace: &str,
        manager: &str,
    ) -> Result<Self> {
        ensure_namespace(admin, namespace).await?;
        let values = [("NAMESPACE", namespace), ("NAME", NAME)];
        admin
            .apply(&fixtures::render("older-platform", &values)?)
            .await?;
        let mut platform = Self {
            namespace: namespace.to_owned(),
            manager: manager.to_owned(),
            stored: Vec::new(),
        };
        platform.settles(admin, control_plane, 2).await?;
        Ok(platform)
    }

    /// Requests so many machines, which only its manager creates.
    pub async fn scales(
        &mut self,
        admin: &ApiClient,
        control_plane: &ControlPlane,
        machines: usize,
    ) -> Result<()> {
        self.is_unchanged(control_plane).await?;
        let path = MACHINE_DEPLOYMENTS.named(&self.namespace, &format!("{NAME}-workers"));
        let change = json!({ "spec": { "replicas": machines } });
        admin.patch(&path, Patch::Merge, &change).await?;
        self.settles(admin, control_plane, machines).await
    }

    /// How many objects and CRDs it consists of.
    pub fn len(&self) -> usize {
        self.stored.len()
    }

    /// Whether it consists of nothing.
    pub fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Checks that each of its objects and CRDs is as it was, to the byte and to the revision.
    pub async fn is_unchanged(&self, control_plane: &ControlPlane) -> Result<()> {
        let now = capi_storage::stored(&control_plane.etcd, CapiTypes::Standard).await?;
        let changed: Vec<_> = now
            .iter()
            .filter(|one| !self.stored.contains(one))
            .collect();
        let keys: Vec<_> = changed.iter().map(|one| one.key.as_str()).collect();
        ensure!(
            changed.is_empty() && now.len() == self.stored.len(),
            "the platform had {} objects and has {}; new or changed are {keys:?}",
            self.stored.len(),
            now.len()
        );
        Ok(())
    }

    /// Checks by the audit log that only its own manager, and the administrator, have
    /// ever tried to write to a standard group or to its CRDs.
    pub fn is_its_own(&self, audit: &AuditLog) -> Result<()> {
        let table = GroupTable::default();
        let mut own = 0;
        for event in audit.all()? {
            let group = event.object_ref.group_of_definition();
            let found = table.find(group.as_bytes());
            if !event.is_write()
                || found.is_none_or(|(_, capi_types)| capi_types == CapiTypes::Private)
            {
                continue;
            }
            let user = event.user.username.as_str();
            // The deletion of a namespace deletes its content; the platform's stays.
            let emptied = event.verb == "deletecollection" && user == NAMESPACE_CONTROLLER;
            if emptied && event.object_ref.namespace != self.namespace {
                continue;
            }
            own += usize::from(user == self.manager);
            ensure!(
                [&self.manager, ADMINISTRATOR, API_SERVER].contains(&user),
                "{}",
                event.summary()
            );
        }
        ensure!(own > 0, "{} has written nothing", self.manager);
        Ok(())
    }

    async fn settles(
        &mut self,
        admin: &ApiClient,
        control_plane: &ControlPlane,
        machines: usize,
    ) -> Result<()> {
        wait::until("the platform's machines", WITHIN, async || {
            let found = admin.list(&MACHINES.within(&self.namespace)).await?;
            ensure!(found.len() == machines, "there are {}", found.len());
            let path = MACHINE_DEPLOYMENTS.named(&self.namespace, &format!("{NAME}-workers"));
            let status = admin.get(&path).await?["status"].take();
            ensure!(status["replicas"] == machines, "its status is {status}");
            Ok(())
        })
        .await?;
        self.stored = wait::until("the platform to become idle", WITHIN, async || {
            let before = capi_storage::stored(&control_plane.etcd, CapiTypes::Standard).await?;
            wait::throughout("calm", CALM, async || {
                let now = capi_storage::stored(&control_plane.etcd, CapiTypes::Standard).await?;
                ensure!(now == before, "still changing");
                Ok(())
            })
            .await?;
            Ok(before)
        })
        .await
        .context("the platform's own Cluster API")?;
        Ok(())
    }
}
