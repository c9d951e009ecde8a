//! The handover of a hosted cluster to a migration: the operator that owns it acknowledges the lock once none of its
//! reconciles is in progress any more.

use std::collections::BTreeMap;

use api::annotations::{MIGRATION_ACKNOWLEDGED, Protocol};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::DynamicObject;
use ownership::Scope;

use crate::cluster_ref::{Id, protocol};
use crate::context::Context;
use crate::error::Error;

/// Field manager of the migration.
pub(crate) const FIELD_MANAGER: &str = "hypershift-operator-migration";

/// Acknowledges the migration lock once no reconcile of the cluster is in progress, if this operator is the owner.
pub(crate) async fn acknowledge(
    ctx: &Context,
    id: &Id,
    metadata: &ObjectMeta,
) -> Result<(), Error> {
    if !is_to_acknowledge(ctx.scope, &protocol(metadata), is_acknowledged(metadata)) {
        return Ok(());
    }
    ctx.in_flight.ended(id).await;
    let annotations = BTreeMap::from([(MIGRATION_ACKNOWLEDGED, "true")]);
    let api: Api<DynamicObject> = ctx.hosted_clusters(id);
    // A conflict means that the object has changed: the next reconcile decides again.
    support::apply::annotate(&api, metadata, &annotations, FIELD_MANAGER)
        .await
        .map_err(|source| Error::Annotate {
            object: id.to_string(),
            source,
        })?;
    tracing::info!(
        namespace = id.namespace,
        name = id.name,
        "Acknowledged the migration lock"
    );
    Ok(())
}

/// Only operator-legacy has to: the operator of private types runs the migration itself.
fn is_to_acknowledge(scope: Scope, protocol: &Protocol, is_acknowledged: bool) -> bool {
    let is_owner = scope == Scope::Legacy && protocol.legacy && !protocol.private;
    is_owner && protocol.in_progress && !is_acknowledged
}

pub(crate) fn is_acknowledged(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|it| {
        it.get(MIGRATION_ACKNOWLEDGED)
            .is_some_and(|it| it == "true")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_former_owner_acknowledges_a_lock_and_once() {
        let locked = Protocol {
            legacy: true,
            in_progress: true,
            ..Protocol::default()
        };
        assert!(is_to_acknowledge(Scope::Legacy, &locked, false));
        assert!(!is_to_acknowledge(Scope::Legacy, &locked, true));
        assert!(!is_to_acknowledge(Scope::Private, &locked, false));
        assert!(!is_to_acknowledge(Scope::All, &locked, false));
        let committed = Protocol {
            private: true,
            legacy: false,
            ..locked.clone()
        };
        assert!(!is_to_acknowledge(Scope::Legacy, &committed, false));
        let unlocked = Protocol {
            in_progress: false,
            ..locked
        };
        assert!(!is_to_acknowledge(Scope::Legacy, &unlocked, false));
    }
}
