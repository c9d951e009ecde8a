//! Permissions of the operator in a control plane namespace during its migration only: a Role that
//! it grants to itself, so that it does not need them cluster-wide.

use std::time::Duration;

use api::group::{CapiTypes, GroupTable};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ApiResource, PostParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::error::Error;
use crate::handover::FIELD_MANAGER;
use support::apply::Applier;

/// Name of the Role and of its binding. The operator may bind Roles of this name only.
pub(super) const NAME: &str = "private-capi-migration";
/// How often the permissions are checked, and the interval between checks.
const CHECKS: usize = 50;
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Grants the permissions, and waits until they are effective.
pub(super) async fn grant(
    ctx: &Context,
    groups: &GroupTable,
    namespace: &ControlPlaneNamespace,
) -> Result<(), Error> {
    let applier = Applier::new(ctx.client.clone(), FIELD_MANAGER);
    let role = json!({
        "metadata": { "namespace": &**namespace, "name": NAME },
        "rules": rules(groups),
    });
    let binding = json!({
        "metadata": { "namespace": &**namespace, "name": NAME },
        "roleRef": { "apiGroup": Role::group(&()), "kind": "Role", "name": NAME },
        "subjects": [{ "apiGroup": Role::group(&()), "kind": "User", "name": own_name(ctx).await? }],
    });
    applier
        .apply_value(&ApiResource::erase::<Role>(&()), role)
        .await?;
    let bound = applier
        .apply_value(&ApiResource::erase::<RoleBinding>(&()), binding)
        .await;
    if let Err(error) = bound {
        // The Role is unused then. The error of the binding is returned, whatever the deletion returns.
        let role = ApiResource::erase::<Role>(&());
        drop(applier.delete(&role, Some(namespace), NAME).await);
        return Err(error.into());
    }
    for _ in 0..CHECKS {
        if are_effective(ctx, namespace).await? {
            return Ok(());
        }
        sleep(RETRY_INTERVAL).await;
    }
    Ok(())
}

/// Revokes them.
pub(super) async fn revoke(ctx: &Context, namespace: &ControlPlaneNamespace) -> Result<(), Error> {
    let applier = Applier::new(ctx.client.clone(), FIELD_MANAGER);
    let kinds = [
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Role>(&()),
    ];
    for kind in kinds {
        applier.delete(&kind, Some(namespace), NAME).await?;
    }
    Ok(())
}

/// All migrated kinds, and their dependents: any object may be owned by a Cluster API object.
fn rules(table: &GroupTable) -> Vec<Value> {
    let pairs = table.pairs().iter();
    let groups: Vec<_> = pairs
        .flat_map(|pair| {
            [CapiTypes::Standard, CapiTypes::Private].map(|types| pair.name(types).to_owned())
        })
        .collect();
    vec![
        json!({
            "apiGroups": groups,
            "resources": ["*"],
            "verbs": ["get", "list", "create", "update", "patch", "delete"],
        }),
        // Owner references, and the finalizers of those that are owners.
        json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "update", "patch"] }),
        // An API server refuses an owner for an object that the writer may not delete. Of the kinds that Cluster API's
        // objects own, this operator may delete these only while it migrates.
        json!({
            "apiGroups": ["capi-provider.agent-install.openshift.io"],
            "resources": ["agentclusters", "agentmachines"],
            "verbs": ["delete"],
        }),
        json!({
            "apiGroups": [""],
            "resources": ["configmaps", "serviceaccounts"],
            "verbs": ["create", "delete"],
        }),
        json!({
            "apiGroups": ["apps", "rbac.authorization.k8s.io"],
            "resources": ["deployments", "roles", "rolebindings"],
            "verbs": ["create", "delete"],
        }),
    ]
}

/// The user name of this operator.
async fn own_name(ctx: &Context) -> Result<String, Error> {
    let api: Api<SelfSubjectReview> = Api::all(ctx.client.clone());
    let created = api
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await;
    let review = created.map_err(|source| Error::Read {
        what: "the user name of this operator".to_owned(),
        source,
    })?;
    let user = review.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}

async fn are_effective(ctx: &Context, namespace: &str) -> Result<bool, Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(ctx.client.clone());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some("delete".to_owned()),
                group: Some(api::group::core(CapiTypes::Standard)),
                resource: Some("machines".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let created = api.create(&PostParams::default(), &review).await;
    let review = created.map_err(|source| Error::Read {
        what: "the permissions of this operator".to_owned(),
        source,
    })?;
    Ok(review.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_allows_create_and_delete_of_moved_kinds_only() {
        for rule in rules(&GroupTable::default()) {
            let verbs = rule["verbs"].as_array().unwrap();
            let deletes = verbs
                .iter()
                .any(|verb| verb == "delete" || verb == "create");
            let everything = rule["apiGroups"] == json!(["*"]);
            assert!(!(deletes && everything), "{rule}");
            assert!(!verbs.iter().any(|verb| verb == "*"), "{rule}");
        }
    }
}
