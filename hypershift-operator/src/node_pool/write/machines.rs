//! Writes the objects of Cluster API: the template, the workload with its replicas, health checks, and running machines.

use api::annotations::node_pool::{CURRENT_CONFIG_VERSION, TARGET_CONFIG_VERSION};
use api::hypershift::v1beta1::node_pool::UpgradeType;
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::Writer;
use crate::control_plane_namespace::Namespace;
use crate::node_pool::error::Error;
use crate::node_pool::facts::Facts;
use crate::node_pool::plan::{Machines, Running};

// === impl Writer ===

impl Writer {
    /// Writes the template before its references, and deletes those that nothing refers to any more.
    pub(super) async fn machines(
        &self,
        namespace: &Namespace,
        facts: &Facts,
        machines: &Machines,
    ) -> Result<(), Error> {
        let Machines {
            boot_image,
            template: (template_kind, template),
            outdated_templates,
            running,
        } = machines;
        if let Some((kind, image)) = boot_image {
            self.boot_image(namespace, facts, kind, image).await?;
        }
        self.applier
            .ensure_value(template_kind, template.object.clone())
            .await?;
        self.running(namespace, facts, running).await?;
        for name in outdated_templates {
            self.delete(namespace, &facts.pool, template_kind, name)
                .await?;
        }
        Ok(())
    }

    /// Writes what needs no new template.
    pub(super) async fn running(
        &self,
        namespace: &Namespace,
        facts: &Facts,
        running: &Running,
    ) -> Result<(), Error> {
        let Running {
            workload: (kind, workload),
            replicas,
            is_resumed,
            health_checks,
            obsolete_health_checks,
            patches,
        } = running;
        self.workload(facts, kind, workload, *replicas).await?;
        self.resumed(facts, kind, *is_resumed).await?;
        self.health_checks(namespace, facts, health_checks, obsolete_health_checks)
            .await?;
        self.patches(facts, patches).await
    }

    /// Ends the pause of the workload.
    async fn resumed(
        &self,
        facts: &Facts,
        kind: &ApiResource,
        is_resumed: bool,
    ) -> Result<(), Error> {
        if !is_resumed {
            return Ok(());
        }
        let uid = facts.workload.as_ref().and_then(|it| it.uid.as_deref());
        self.resume(kind, &facts.namespace, facts.name(), uid).await
    }

    async fn health_checks(
        &self,
        namespace: &Namespace,
        facts: &Facts,
        desired: &[Value],
        obsolete: &[String],
    ) -> Result<(), Error> {
        let check = facts.capi().machine_health_check();
        for desired in desired {
            self.applier.ensure_value(&check, desired.clone()).await?;
        }
        for name in obsolete {
            self.delete(namespace, &facts.pool, &check, name).await?;
        }
        Ok(())
    }

    /// Changes machines that run.
    async fn patches(
        &self,
        facts: &Facts,
        patches: &[(ApiResource, String, Value)],
    ) -> Result<(), Error> {
        for (kind, name, patch) in patches {
            self.patch(kind, &facts.namespace, name, patch).await?;
        }
        Ok(())
    }

    /// The replicas have a field manager of their own from the start, so that the autoscaler can take them over and no
    /// later apply resets them. A number that grows is written after the template: otherwise machines are added of the
    /// old one, and a MachineSet without nodes counts as upgraded before the first of them has joined.
    pub(super) async fn workload(
        &self,
        facts: &Facts,
        kind: &ApiResource,
        workload: &Value,
        replicas: Option<i32>,
    ) -> Result<(), Error> {
        let is_new = facts.workload.is_none();
        if is_new {
            let mut created = workload.clone();
            created["spec"]["replicas"] = json!(replicas.unwrap_or_default());
            self.applier.apply_value(kind, created).await?;
        }
        let now = facts.workload.as_ref().and_then(|it| it.desired);
        let first = replicas.map(|desired| now.map_or(desired, |now| now.min(desired)));
        if let Some(first) = first {
            self.scale(facts, kind, first).await?;
        }
        self.applier.ensure_value(kind, workload.clone()).await?;
        if let Some(desired) = replicas.filter(|_| replicas != first) {
            self.scale(facts, kind, desired).await?;
        }
        self.first_version(facts, kind, workload).await
    }

    /// Sets the number of machines, and nothing else.
    async fn scale(&self, facts: &Facts, kind: &ApiResource, replicas: i32) -> Result<(), Error> {
        let metadata = json!({ "namespace": facts.namespace, "name": facts.name() });
        let scale = json!({ "metadata": metadata, "spec": { "replicas": replicas } });
        self.scaler.ensure_value(kind, scale).await?;
        Ok(())
    }

    /// Machines of a new MachineSet have its target version; later the in-place upgrade records their version.
    async fn first_version(
        &self,
        facts: &Facts,
        kind: &ApiResource,
        workload: &Value,
    ) -> Result<(), Error> {
        let key = CURRENT_CONFIG_VERSION.key();
        let is_known = facts
            .workload
            .as_ref()
            .is_some_and(|it| it.annotations.contains_key(key));
        if facts.upgrade_type() != UpgradeType::InPlace || is_known {
            return Ok(());
        }
        let target = TARGET_CONFIG_VERSION.key();
        let target = &workload["metadata"]["annotations"][target];
        // One that another operator has just created may have none yet.
        if target.is_null() {
            return Ok(());
        }
        let mut metadata = json!({ "annotations": { key: target } });
        // A new one has not been read.
        if let Some(workload) = &facts.workload {
            metadata["uid"] = json!(workload.uid);
        }
        self.change(kind, &facts.namespace, facts.name(), metadata)
            .await
    }
}
