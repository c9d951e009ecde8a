//! What the machine-config-daemon needs in the hosted cluster: the payload, and itself where its image is known.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::{ApiResource, ListParams, ObjectMeta};
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::error::Error;
use super::plan::{Plan, Pool};

/// The payload's ConfigMap, and the account of the daemon.
const NAME: &str = "machine-config-daemon";
/// On a daemon's pod: what it brings its node to.
const TARGET: &str = "hypershift.openshift.io/target-config-version";

/// Has all of it be there.
pub(super) async fn prepare(
    ctx: &Context,
    pool: &Pool,
    payload: Vec<u8>,
    plan: &Plan,
) -> Result<(), Error> {
    let payload = String::from_utf8(payload).map_err(|_| Error::Form {
        object: format!("Secret {}", pool.token_name()),
        problem: "its payload is no text".to_owned(),
    })?;
    ctx.applier.apply(&namespace(pool)?).await?;
    ctx.applier.apply(&config(pool, &payload)?).await?;
    let Some(image) = &ctx.daemon_image else {
        return Ok(());
    };
    for (resource, object) in rights(pool) {
        ctx.applier.apply_value(&resource, object).await?;
    }
    let api: Api<Pod> = Api::namespaced(ctx.guest.clone(), &pool.namespace());
    let there = api.list_metadata(&ListParams::default()).await;
    let there = there.map_err(Error::client(format!("list pods of {}", pool.namespace())))?;
    let there: Vec<_> = there.items.iter().map(|pod| &pod.metadata).collect();
    let Change { create, delete } = change(pool, plan, &there);
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

/// Which pods of daemons come, by their nodes, and which go.
#[derive(Debug, PartialEq, Eq)]
struct Change<'a> {
    create: Vec<&'a str>,
    delete: Vec<String>,
}

/// One for each node that is being upgraded. One that was there for another target has read what it was for.
fn change<'a>(pool: &Pool, plan: &'a Plan, there: &[&ObjectMeta]) -> Change<'a> {
    let nodes: Vec<&str> = plan
        .begin
        .iter()
        .chain(&plan.going_on)
        .map(String::as_str)
        .collect();
    let is_of_target = |it: &ObjectMeta| {
        let target = it.labels.as_ref().and_then(|labels| labels.get(TARGET));
        target == Some(&pool.target)
    };
    let named = |name: &str| there.iter().any(|it| it.name.as_deref() == Some(name));
    let mut create = nodes.clone();
    create.retain(|node| !named(&pod_name(node)));
    let others = there.iter().filter(|it| {
        let name = it.name.as_deref().unwrap_or_default();
        let is_needed = nodes.iter().any(|node| pod_name(node) == name);
        !is_needed || !is_of_target(it)
    });
    Change {
        create,
        delete: others.filter_map(|it| it.name.clone()).collect(),
    }
}

fn pod_name(node: &str) -> String {
    format!("{NAME}-{node}")
}

/// Takes it away once the pool is upgraded.
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

/// The daemon reads its payload and says on its Node how far it is.
fn rights(pool: &Pool) -> Vec<(ApiResource, Value)> {
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

/// It works on the node itself, and survives its being drained.
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
        object: "what the daemon needs".to_owned(),
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_has_the_form_of_its_kind() {
        let pool = Pool {
            name: "workers".to_owned(),
            target: "new".to_owned(),
            current: None,
            most_at_once: 1,
        };
        assert_eq!(
            namespace(&pool).unwrap().metadata.name.as_deref(),
            Some("workers-inplace-upgrade")
        );
        assert_eq!(config(&pool, "x").unwrap().data.unwrap()["hash"], "new");
        let pod = pod(&pool, "n-1", "images.example.com/mcd").unwrap();
        assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("n-1"));
        assert_eq!(rights(&pool).len(), 3);
    }

    #[test]
    fn a_node_at_work_has_one_daemon_for_the_target() {
        let pool = Pool {
            name: "workers".to_owned(),
            target: "new".to_owned(),
            current: None,
            most_at_once: 1,
        };
        let there = |node: &str, target: &str| ObjectMeta {
            name: Some(pod_name(node)),
            labels: Some([(TARGET.to_owned(), target.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let mut plan = Plan::default();
        plan.begin.push("a".to_owned());
        plan.going_on.push("b".to_owned());
        for (name, there, create, delete) in [
            ("none is there", vec![], vec!["a", "b"], vec![]),
            ("one is there", vec![there("b", "new")], vec!["a"], vec![]),
            (
                "one is for another target",
                vec![there("b", "old")],
                vec!["a"],
                vec!["b"],
            ),
            (
                "one is done",
                vec![there("b", "new"), there("c", "new")],
                vec!["a"],
                vec!["c"],
            ),
        ] {
            let there: Vec<_> = there.iter().collect();
            let delete = delete.into_iter().map(pod_name).collect();
            assert_eq!(
                change(&pool, &plan, &there),
                Change { create, delete },
                "{name}"
            );
        }
    }
}
