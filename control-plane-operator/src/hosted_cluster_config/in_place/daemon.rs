//! Objects of the machine-config-daemon in the hosted cluster: its payload, and its pods if the image is set.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::{ApiResource, ListParams, ObjectMeta};
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::error::Error;
use super::plan::{Plan, Pool};

/// Name of the payload's ConfigMap, and of the daemon's service account.
const NAME: &str = "machine-config-daemon";
/// Label of a daemon's pod: the target of its node.
const TARGET: &str = "hypershift.openshift.io/target-config-version";

/// Applies the objects.
pub(super) async fn prepare(
    ctx: &Context,
    pool: &Pool,
    payload: Vec<u8>,
    plan: &Plan,
) -> Result<(), Error> {
    let payload = String::from_utf8(payload).map_err(|_| Error::Form {
        object: format!("Secret {}", pool.token_name()),
        problem: "payload is not UTF-8".to_owned(),
    })?;
    ctx.applier.apply(&namespace(pool)?).await?;
    ctx.applier.apply(&config(pool, &payload)?).await?;
    let Some(image) = &ctx.daemon_image else {
        return Ok(());
    };
    for (resource, object) in rbac_objects(pool) {
        ctx.applier.apply_value(&resource, object).await?;
    }
    let api: Api<Pod> = Api::namespaced(ctx.guest.clone(), &pool.namespace());
    let existing = api.list_metadata(&ListParams::default()).await;
    let existing = existing.map_err(Error::client(format!(
        "list Pods of namespace {}",
        pool.namespace()
    )))?;
    let existing: Vec<_> = existing.items.iter().map(|pod| &pod.metadata).collect();
    let PodChanges { create, delete } = change(pool, plan, &existing);
    let resource = ApiResource::erase::<Pod>(&());
    for name in delete {
        ctx.applier
            .delete(&resource, Some(&pool.namespace()), &name)
            .await?;
    }
    for node in create {
        ctx.applier.apply(&pod(pool, node, image)?).await?;
    }
    Ok(())
}

/// Daemon pods to create, by node, and to delete, by name.
#[derive(Debug, PartialEq, Eq)]
struct PodChanges<'a> {
    create: Vec<&'a str>,
    delete: Vec<String>,
}

/// Returns the changes: one pod per node that is being upgraded. A pod with another target is replaced, because it
/// reads its payload only at start.
fn change<'a>(pool: &Pool, plan: &'a Plan, existing: &[&ObjectMeta]) -> PodChanges<'a> {
    let nodes: Vec<&str> = plan
        .start
        .iter()
        .chain(&plan.in_progress)
        .map(String::as_str)
        .collect();
    let is_of_target = |it: &ObjectMeta| {
        let target = it.labels.as_ref().and_then(|labels| labels.get(TARGET));
        target == Some(&pool.target)
    };
    let named = |name: &str| existing.iter().any(|it| it.name.as_deref() == Some(name));
    let mut create = nodes.clone();
    create.retain(|node| !named(&pod_name(node)));
    let others = existing.iter().filter(|it| {
        let name = it.name.as_deref().unwrap_or_default();
        let is_needed = nodes.iter().any(|node| pod_name(node) == name);
        !is_needed || !is_of_target(it)
    });
    PodChanges {
        create,
        delete: others.filter_map(|it| it.name.clone()).collect(),
    }
}

fn pod_name(node: &str) -> String {
    format!("{NAME}-{node}")
}

/// Removes the objects once the pool is upgraded.
pub(super) async fn remove(ctx: &Context, pool: &Pool) -> Result<(), Error> {
    let resource = ApiResource::erase::<Namespace>(&());
    ctx.applier
        .delete(&resource, None, &pool.namespace())
        .await?;
    Ok(())
}

fn namespace(pool: &Pool) -> Result<Namespace, Error> {
    read(json!({ "metadata": {
        "name": pool.namespace(),
        "labels": {
            "pod-security.kubernetes.io/enforce": "privileged",
            "security.openshift.io/scc.podSecurityLabelSync": "false",
        },
    } }))
}

fn config(pool: &Pool, payload: &str) -> Result<ConfigMap, Error> {
    read(json!({
        "metadata": { "namespace": pool.namespace(), "name": NAME },
        "data": { "config": payload, "hash": pool.target },
    }))
}

/// RBAC of the daemon: it reads its payload and annotates its Node.
fn rbac_objects(pool: &Pool) -> Vec<(ApiResource, Value)> {
    use k8s_openapi::api::core::v1::ServiceAccount;
    use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
    let namespace = pool.namespace();
    let role = "hypershift-machine-config-daemon";
    vec![
        (
            ApiResource::erase::<ServiceAccount>(&()),
            json!({ "metadata": { "namespace": namespace, "name": NAME } }),
        ),
        (
            ApiResource::erase::<ClusterRole>(&()),
            json!({ "metadata": { "name": role }, "rules": [
                { "apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch", "update"] },
                { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"] },
                { "apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"] },
            ] }),
        ),
        (
            ApiResource::erase::<ClusterRoleBinding>(&()),
            json!({
                "metadata": { "name": format!("{role}-{}", pool.name) },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
                "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": NAME }],
            }),
        ),
    ]
}

/// A privileged pod on the node, which tolerates the drain.
fn pod(pool: &Pool, node: &str, image: &str) -> Result<Pod, Error> {
    let args = [
        "start".to_owned(),
        format!("--node-name={node}"),
        "--root-mount=/rootfs".to_owned(),
        "--kubeconfig=/var/lib/kubelet/kubeconfig".to_owned(),
        "--desired-configmap=/etc/machine-config-daemon-desired-config".to_owned(),
    ];
    read(json!({
        "metadata": { "namespace": pool.namespace(), "name": pod_name(node), "labels": { "app": NAME, TARGET: pool.target } },
        "spec": {
            "nodeName": node,
            "hostPID": true,
            "hostNetwork": true,
            "restartPolicy": "OnFailure",
            "serviceAccountName": NAME,
            "priorityClassName": "system-node-critical",
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{
                "name": NAME,
                "image": image,
                "command": ["/usr/bin/machine-config-daemon"],
                "args": args,
                "securityContext": { "privileged": true, "runAsUser": 0 },
                "volumeMounts": [
                    { "name": "rootfs", "mountPath": "/rootfs", "mountPropagation": "HostToContainer" },
                    { "name": "kubelet", "mountPath": "/var/lib/kubelet", "readOnly": true },
                    { "name": "desired", "mountPath": "/etc/machine-config-daemon-desired-config", "readOnly": true },
                ],
            }],
            "volumes": [
                { "name": "rootfs", "hostPath": { "path": "/" } },
                { "name": "kubelet", "hostPath": { "path": "/var/lib/kubelet" } },
                { "name": "desired", "configMap": { "name": NAME } },
            ],
        },
    }))
}

fn read<T: serde::de::DeserializeOwned>(object: Value) -> Result<T, Error> {
    serde_json::from_value(object).map_err(|error| Error::Form {
        object: "object of the machine-config-daemon".to_owned(),
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemon_objects_deserialize() {
        let pool = Pool {
            name: "workers".to_owned(),
            target: "new".to_owned(),
            current: None,
            max_unavailable: 1,
        };
        assert_eq!(
            namespace(&pool).unwrap().metadata.name.as_deref(),
            Some("workers-inplace-upgrade")
        );
        assert_eq!(config(&pool, "x").unwrap().data.unwrap()["hash"], "new");
        let pod = pod(&pool, "n-1", "images.example.com/mcd").unwrap();
        assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("n-1"));
        assert_eq!(rbac_objects(&pool).len(), 3);
    }

    #[test]
    fn upgrading_nodes_have_one_daemon_for_the_target() {
        let pool = Pool {
            name: "workers".to_owned(),
            target: "new".to_owned(),
            current: None,
            max_unavailable: 1,
        };
        let existing = |node: &str, target: &str| ObjectMeta {
            name: Some(pod_name(node)),
            labels: Some([(TARGET.to_owned(), target.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let mut plan = Plan::default();
        plan.start.push("a".to_owned());
        plan.in_progress.push("b".to_owned());
        for (name, existing, create, delete) in [
            ("none is there", vec![], vec!["a", "b"], vec![]),
            (
                "one is there",
                vec![existing("b", "new")],
                vec!["a"],
                vec![],
            ),
            (
                "one is for another target",
                vec![existing("b", "old")],
                vec!["a"],
                vec!["b"],
            ),
            (
                "one is done",
                vec![existing("b", "new"), existing("c", "new")],
                vec!["a"],
                vec!["c"],
            ),
        ] {
            let existing: Vec<_> = existing.iter().collect();
            let delete = delete.into_iter().map(pod_name).collect();
            assert_eq!(
                change(&pool, &plan, &existing),
                PodChanges { create, delete },
                "{name}"
            );
        }
    }
}
