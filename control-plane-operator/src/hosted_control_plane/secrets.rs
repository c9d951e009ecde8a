//! What is secret: certificates with their keys, and the password of the first user. Each is made once.

use control_plane_component::{Context, Objects, Predicates};
use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use support::error::chain;

use super::error::Error;
use super::pass::{Pass, World};
use crate::kubeadmin::{self, Due};
use crate::pki::Scope;
use crate::{components, pki};

// === impl Pass ===

impl Pass<'_> {
    /// Keys take long to make: etcd, for which nearly all others wait, starts while theirs are made.
    pub(super) async fn etcd_first(&mut self, world: &mut World) -> Result<(), Error> {
        let context = world.context(self.operator);
        if !pki::is_due(self.operator.components, &context, Timestamp::now()) {
            return Ok(());
        }
        self.certificates(world, Scope::Etcd).await?;
        if let Some(etcd) = components::first()
            && let Err(error) = self.component(etcd, world).await
        {
            // It is reported when all components are reconciled.
            tracing::debug!(problem = chain(&error), "etcd cannot be written yet");
        }
        Ok(())
    }

    /// Makes what is due.
    pub(super) async fn certificates(
        &mut self,
        world: &mut World,
        scope: Scope,
    ) -> Result<(), Error> {
        let now = Timestamp::now();
        let context = world.context(self.operator);
        if pki::is_due(self.operator.components, &context, now) {
            // The watch may lag behind what the last pass wrote: no certificate is made twice.
            self.read_secrets(&mut world.objects).await?;
        }
        let (hcp, infra, objects) = (
            world.hcp.clone(),
            world.infra.clone(),
            world.objects.clone(),
        );
        let (releases, settings) = (world.releases.clone(), self.operator.settings.clone());
        let components = self.operator.components;
        let made = tokio::task::spawn_blocking(move || {
            let context = Context {
                hcp: &hcp,
                release: &releases.control_plane,
                user_release: &releases.user,
                infra: &infra,
                objects: &objects,
                settings: &settings,
                predicates: Predicates::Asked,
            };
            pki::objects(components, &context, scope, now)
        });
        for object in made.await?? {
            self.writer.apply(&object, &mut world.objects).await?;
        }
        Ok(())
    }

    /// The password of the user `kubeadmin`. It is made once: the watch may lag behind what the last pass wrote.
    pub(super) async fn kubeadmin(&mut self, world: &mut World) -> Result<(), Error> {
        if kubeadmin::due(&world.context(self.operator)) == Due::Make {
            self.read_secrets(&mut world.objects).await?;
        }
        match kubeadmin::due(&world.context(self.operator)) {
            Due::Nothing => {}
            Due::Make => {
                if let Some(secret) = kubeadmin::made(&world.context(self.operator)) {
                    self.writer.apply(&secret, &mut world.objects).await?;
                }
            }
            Due::Delete(which) => {
                self.writer.delete(&which).await?;
                world.objects.remove(&which);
            }
        }
        Ok(())
    }

    async fn read_secrets(&self, objects: &mut Objects) -> Result<(), Error> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
        let namespace = &self.operator.namespace;
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.operator.client.clone(), namespace, &resource);
        let secrets = api
            .list(&ListParams::default())
            .await
            .map_err(|source| Error::List {
                namespace: namespace.clone(),
                source,
            })?;
        for secret in &secrets.items {
            objects.insert(control_plane_component::write::value(&resource, secret));
        }
        Ok(())
    }
}
