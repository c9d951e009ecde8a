//! What the operator may do in a control plane's namespace while it migrates it, and not a moment longer: a Role that
//! it gives itself. To have these rights everywhere for ever would be far more.

use std::time::Duration;

use api::group::{GroupTable, Side};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ApiResource, PostParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::mark::MANAGER;
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::error::Error;
use support::apply::Applier;

/// Name of the Role and of its binding. The operator may bind Roles of this name only.
const NAME: &str = "private-capi-migration";
/// How often it is asked whether the rights hold, and how long it waits in between.
const LOOKS: usize = 50;
const PAUSE: Duration = Duration::from_millis(200);

/// Takes the rights, and waits until they hold.
pub(super) async fn take(ctx: &Context, namespace: &ControlPlaneNamespace) -> Result<(), Error> {
    let applier = Applier::new(ctx.client.clone(), MANAGER);
    let role = json!({
        "metadata": { "namespace": &**namespace, "name": NAME },
        "rules": rules(&ctx.migrations.settings.groups),
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
        // The Role is for nobody then. Why it could not be bound is what has to be told, whatever becomes of it.
        let role = ApiResource::erase::<Role>(&());
        drop(applier.delete(&role, Some(namespace), NAME).await);
        return Err(error.into());
    }
    for _ in 0..LOOKS {
        if hold(ctx, namespace).await? {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Gives them back.
pub(super) async fn give_back(
    ctx: &Context,
    namespace: &ControlPlaneNamespace,
) -> Result<(), Error> {
    let applier = Applier::new(ctx.client.clone(), MANAGER);
    let kinds = [
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Role>(&()),
    ];
    for kind in kinds {
        applier.delete(&kind, Some(namespace), NAME).await?;
    }
    Ok(())
}

/// All that is moved, and what belongs to it: anything may be owned by an object of Cluster API.
fn rules(table: &GroupTable) -> Vec<Value> {
    let pairs = table.pairs().iter();
    let groups: Vec<_> = pairs
        .flat_map(|pair| [Side::Standard, Side::Private].map(|side| pair.name(side).to_owned()))
        .collect();
    vec![
        json!({
            "apiGroups": groups,
            "resources": ["*"],
            "verbs": ["get", "list", "create", "update", "patch", "delete"],
        }),
        // Owner references, and the finalizers of those that are owners.
        json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "update", "patch"] }),
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

/// The name that the API server knows this operator by.
async fn own_name(ctx: &Context) -> Result<String, Error> {
    let api: Api<SelfSubjectReview> = Api::all(ctx.client.clone());
    let asked = api
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await;
    let answer = asked.map_err(|source| Error::Read {
        what: "this operator's own name".to_owned(),
        source,
    })?;
    let user = answer.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}

async fn hold(ctx: &Context, namespace: &str) -> Result<bool, Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(ctx.client.clone());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some("delete".to_owned()),
                group: Some(api::group::core(Side::Standard)),
                resource: Some("machines".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let asked = api.create(&PostParams::default(), &review).await;
    let answer = asked.map_err(|source| Error::Read {
        what: "this operator's own rights".to_owned(),
        source,
    })?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_what_is_moved_can_be_made_or_deleted_at_will() {
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
