//! Permissions that a migration has left behind: its operator was killed after the end of the migration had been recorded and
//! before it revoked them, or the API server did not answer then. No further migration of the cluster would revoke them.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use ownership::MigrationState;
use serde::de::DeserializeOwned;

use super::candidate::Candidate;
use super::permissions::{self, NAME};
use crate::cluster_ref::Id;
use crate::context::Context;
use crate::control_plane_namespace;
use crate::error::Error;
use crate::handover::FIELD_MANAGER;

/// What this operator is doing with a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// It migrates it.
    Migrating,
    /// It has just migrated it, and its state may be from before the end.
    Resting,
    Nothing,
}

/// What is done about the permissions in the namespace of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Revoke,
    /// They may have been left behind: this is decided after the next evaluation.
    Wait,
    /// A migration needs them, and revokes them at its end.
    Keep,
}

/// Revokes what was left behind in namespaces of clusters that are not being migrated. Returns whether this is to be done
/// again, because it is not known yet whether some clusters are being migrated.
pub(super) async fn revoke(
    ctx: &Context,
    candidates: &[Candidate],
    activity: impl Fn(&Id) -> Activity,
) -> Result<bool, Error> {
    let mut namespaces = namespaces::<RoleBinding>(ctx, "RoleBindings").await?;
    namespaces.append(&mut self::namespaces::<Role>(ctx, "Roles").await?);
    let mut waits = false;
    for namespace in namespaces {
        let mut candidates = candidates.iter();
        let candidate = candidates.find(|it| it.id.control_plane_namespace() == namespace);
        let Some(candidate) = candidate else {
            continue;
        };
        let id = &candidate.id;
        match verdict(candidate.state, activity(id)) {
            Verdict::Keep => {}
            Verdict::Wait => waits = true,
            Verdict::Revoke => {
                let found =
                    control_plane_namespace::find(&ctx.client, &id.namespace, &id.name).await?;
                let Some(owned) = found.owned() else {
                    continue;
                };
                permissions::revoke(ctx, owned).await?;
                tracing::info!(
                    namespace = id.namespace,
                    name = id.name,
                    "Revoked permissions that a migration had left behind"
                );
            }
        }
    }
    Ok(waits)
}

fn verdict(state: MigrationState, activity: Activity) -> Verdict {
    match (state, activity) {
        (_, Activity::Migrating) | (MigrationState::Active, _) => Verdict::Keep,
        (_, Activity::Resting) => Verdict::Wait,
        (_, Activity::Nothing) => Verdict::Revoke,
    }
}

/// Namespaces with an object of a kind that this operator has created for a migration. Others may have the same name.
async fn namespaces<K>(ctx: &Context, kind: &str) -> Result<BTreeSet<String>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let api: Api<K> = Api::all(ctx.client.clone());
    let selector = ListParams::default().fields(&format!("metadata.name={NAME}"));
    let list = api.list(&selector).await.map_err(|source| Error::List {
        what: format!("{kind} with the name {NAME}"),
        source,
    })?;
    let ours = list.items.iter().filter(|it| is_ours(it.meta()));
    Ok(ours.filter_map(ResourceExt::namespace).collect())
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    let mut entries = metadata.managed_fields.iter().flatten();
    entries.any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER))
}

#[cfg(test)]
mod tests {
    use payload::Releases;
    use prometheus_client::registry::Registry;
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::super::candidate::Attempts;
    use super::*;
    use crate::config::Config;
    use crate::metrics::Metrics;

    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    const NAMED: &str = "fieldSelector=metadata.name%3Dprivate-capi-migration";

    fn candidate(name: &str, state: MigrationState) -> Candidate {
        Candidate {
            id: Id {
                namespace: "clusters".to_owned(),
                name: name.to_owned(),
            },
            created: None,
            state,
            failure: None,
            attempts: Attempts::default(),
            is_consistent: true,
            is_deleting: false,
            is_held: false,
            is_rollback_requested: false,
        }
    }

    fn object(namespace: &str, manager: &str) -> Value {
        json!({ "metadata": {
            "namespace": namespace,
            "name": NAME,
            "uid": "u",
            "managedFields": [{ "manager": manager, "operation": "Apply" }],
        }, "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME } })
    }

    fn lists(bindings: &[Value], roles: &[Value]) -> [Expect; 2] {
        [("rolebindings", bindings), ("roles", roles)].map(|(plural, items)| {
            Expect::get(&format!("{RBAC}/{plural}?{NAMED}")).answer(Answer::list(items))
        })
    }

    /// The calls that revoke them.
    fn revoked(name: &str) -> Vec<Expect> {
        let namespace = format!("clusters-{name}");
        let owner = format!("clusters/{name}");
        let read = json!({ "metadata": {
            "name": namespace,
            "annotations": { "hypershift.openshift.io/cluster": owner },
        } });
        let read =
            Expect::get(&format!("/api/v1/namespaces/{namespace}")).answer(Answer::ok(&read));
        let deleted = ["rolebindings", "roles"].into_iter().flat_map(|plural| {
            let path = format!("{RBAC}/namespaces/{namespace}/{plural}/{NAME}");
            [
                Expect::get(&path).answer(Answer::ok(&object(&namespace, FIELD_MANAGER))),
                Expect::delete(&path).body(json!({ "preconditions": { "uid": "u" } })),
            ]
        });
        std::iter::once(read).chain(deleted).collect()
    }

    async fn revoke_with(
        expected: impl IntoIterator<Item = Expect>,
        candidates: &[Candidate],
        activity: Activity,
    ) -> bool {
        let scenario = Scenario::new(expected);
        let config = Config::for_tests(ownership::Scope::Private);
        let releases = Releases::new(config.releases.clone()).unwrap();
        let metrics = Metrics::new(&mut Registry::default());
        let ctx = Context::for_tests(&config, scenario.client(), releases, &metrics);
        let waits = revoke(&ctx, candidates, |_| activity).await.unwrap();
        scenario.finish();
        waits
    }

    #[test]
    fn permissions_are_revoked_unless_a_migration_needs_them() {
        use MigrationState::{Active, Done, Failed, Pending};
        for (state, activity, expected) in [
            (Done, Activity::Nothing, Verdict::Revoke),
            (Failed, Activity::Nothing, Verdict::Revoke),
            // Killed before it locked the cluster.
            (Pending, Activity::Nothing, Verdict::Revoke),
            (Active, Activity::Nothing, Verdict::Keep),
            (Done, Activity::Resting, Verdict::Wait),
            (Pending, Activity::Resting, Verdict::Wait),
            (Active, Activity::Resting, Verdict::Keep),
            (Pending, Activity::Migrating, Verdict::Keep),
            (Done, Activity::Migrating, Verdict::Keep),
        ] {
            assert_eq!(verdict(state, activity), expected, "{state:?} {activity:?}");
        }
    }

    #[tokio::test]
    async fn what_a_killed_operator_left_is_revoked() {
        let candidates = [
            candidate("done", MigrationState::Done),
            candidate("half", MigrationState::Failed),
            candidate("active", MigrationState::Active),
        ];
        let bindings = ["clusters-done", "clusters-active"].map(|it| object(it, FIELD_MANAGER));
        // In one of the namespaces, the binding has been deleted already.
        let roles = ["clusters-done", "clusters-half", "clusters-active"];
        let lists = lists(&bindings, &roles.map(|it| object(it, FIELD_MANAGER)));
        let expected = [Vec::from(lists), revoked("done"), revoked("half")].concat();
        assert!(!revoke_with(expected, &candidates, Activity::Nothing).await);
    }

    /// T01: an object is asked whose it is, and so is its namespace.
    #[tokio::test]
    async fn objects_of_others_are_not_deleted() {
        let candidates = [candidate("one", MigrationState::Done)];
        let theirs = lists(&[object("clusters-one", "kubectl")], &[]);
        assert!(!revoke_with(theirs, &candidates, Activity::Nothing).await);
        // No HostedCluster belongs to the namespace.
        let elsewhere = lists(&[object("clusters-x", FIELD_MANAGER)], &[]);
        assert!(!revoke_with(elsewhere, &candidates, Activity::Nothing).await);
        // Another one does.
        let namespace = json!({ "metadata": {
            "name": "clusters-one",
            "annotations": { "hypershift.openshift.io/cluster": "other/one" },
        } });
        let lists = lists(&[object("clusters-one", FIELD_MANAGER)], &[]);
        let namespace =
            Expect::get("/api/v1/namespaces/clusters-one").answer(Answer::ok(&namespace));
        let expected = lists.into_iter().chain([namespace]);
        assert!(!revoke_with(expected, &candidates, Activity::Nothing).await);
    }

    #[tokio::test]
    async fn what_may_be_outdated_is_looked_at_again() {
        let candidates = [candidate("one", MigrationState::Pending)];
        let found = || lists(&[object("clusters-one", FIELD_MANAGER)], &[]);
        assert!(revoke_with(found(), &candidates, Activity::Resting).await);
        assert!(!revoke_with(found(), &candidates, Activity::Migrating).await);
        assert!(!revoke_with(lists(&[], &[]), &candidates, Activity::Resting).await);
    }
}
