//! Secrets: certificates with their keys, the kubeadmin password and the keys of login sessions. Each is created once.

use control_plane_component::{Context, Objects, Predicates};
use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use support::error::chain;

use super::error::Error;
use super::pass::{Pass, ReconcileScope};
use crate::components::oauth_openshift;
use crate::kubeadmin::{self, PasswordStep};
use crate::pki::CertificateSet;
use crate::{components, pki};

// === impl Pass ===

impl Pass<'_> {
    /// Issues the certificates of etcd first, because generating keys is slow, and etcd can start meanwhile.
    pub(super) async fn etcd_first(&mut self, scope: &mut ReconcileScope) -> Result<(), Error> {
        let context = scope.context(self.operator);
        if !pki::is_due(self.operator.components, &context, Timestamp::now()) {
            return Ok(());
        }
        self.certificates(scope, CertificateSet::Etcd).await?;
        if let Some(etcd) = components::etcd()
            && let Err(error) = self.component(etcd, scope).await
        {
            // It is reported when all components are reconciled below.
            tracing::debug!(problem = chain(&error), "Failed to apply etcd early");
        }
        Ok(())
    }

    /// Issues certificates that are due.
    pub(super) async fn certificates(
        &mut self,
        scope: &mut ReconcileScope,
        set: CertificateSet,
    ) -> Result<(), Error> {
        let now = Timestamp::now();
        let context = scope.context(self.operator);
        if pki::is_due(self.operator.components, &context, now) {
            // Read Secrets live, because the watch may lag, and no certificate must be issued twice.
            self.read_secrets(&mut scope.objects).await?;
        }
        let (hcp, infra, objects) = (
            scope.hcp.clone(),
            scope.infra.clone(),
            scope.objects.clone(),
        );
        let (releases, settings) = (scope.releases.clone(), self.operator.settings.clone());
        let components = self.operator.components;
        let issued = tokio::task::spawn_blocking(move || {
            let context = Context {
                hcp: &hcp,
                release: &releases.control_plane,
                user_release: &releases.user,
                infra: &infra,
                objects: &objects,
                settings: &settings,
                predicates: Predicates::Evaluated,
            };
            pki::objects(components, &context, set, now)
        });
        for object in issued.await?? {
            self.writer.apply(&object, &mut scope.objects).await?;
        }
        Ok(())
    }

    /// Reconciles the kubeadmin password. Secrets are read live before it is created, because the watch may lag.
    pub(super) async fn kubeadmin(&mut self, scope: &mut ReconcileScope) -> Result<(), Error> {
        if kubeadmin::next_step(&scope.context(self.operator)) == PasswordStep::Create {
            self.read_secrets(&mut scope.objects).await?;
        }
        match kubeadmin::next_step(&scope.context(self.operator)) {
            PasswordStep::Keep => {}
            PasswordStep::Create => {
                if let Some(secret) = kubeadmin::new_secret(&scope.context(self.operator)) {
                    self.writer.apply(&secret, &mut scope.objects).await?;
                }
            }
            PasswordStep::Delete(identity) => {
                self.writer.delete(&identity).await?;
                scope.objects.remove(&identity);
            }
        }
        Ok(())
    }

    /// Creates the keys of login sessions. Secrets are read live before, because the watch may lag.
    pub(super) async fn session_keys(&mut self, scope: &mut ReconcileScope) -> Result<(), Error> {
        if !oauth_openshift::needs_session_secret(&scope.context(self.operator)) {
            return Ok(());
        }
        self.read_secrets(&mut scope.objects).await?;
        let context = scope.context(self.operator);
        if oauth_openshift::needs_session_secret(&context)
            && let Some(secret) = oauth_openshift::new_session_secret(&context)
        {
            self.writer.apply(&secret, &mut scope.objects).await?;
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
