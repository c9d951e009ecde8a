//! What the machine-config-daemon needs in the hosted cluster: the payload, and itself where its image is known.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::Api;
use kube::api::ApiResource;
use serde_json::{Value, json};

use super::super::context::Context;
use super::super::error::Error;
use super::plan::{Plan, Pool};

/// The payload's ConfigMap, and the account of the daemon.
const NAME: &str = "machine-config-daemon";

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
    let api: Api<Pod> = Api::namespaced(ctx.guest.clone(), &pool.namespace());
    for (resource, object) in rights(pool) {
        ctx.applier.apply_value(&resource, object).await?;
    }
    for node in plan.begin.iter().chain(&plan.going_on) {
        let name = format!("{NAME}-{node}");
        let found = api.get_metadata_opt(&name).await;
        if found
            .map_err(Error::client(format!("read pod {name}")))?
            .is_none()
        {
            ctx.applier.apply(&pod(pool, node, image)?).await?;
        }
    }
    Ok(())
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
        "metadata": { "namespace": pool.namespace(), "name": format!("{NAME}-{node}"), "labels": { "app": NAME } },
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
                "securityContext": { "privileged": true },
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
}
