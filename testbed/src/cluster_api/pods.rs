//! A Cluster API installation as pods of a testbed with nodes: as a management cluster runs it.
//!
//! With private types, each manager has the sidecar that the product adds, and roles that name private groups only. On
//! the standard types a manager is alone in its pod.

use std::time::Duration;

use anyhow::{Context, Result};
use api::group::CapiTypes;
use control_plane_component::sidecar::{Sidecar, config_map};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::Plan;
use crate::binaries::Binaries;
use crate::certs::encoded;
use crate::client::Resource;
use crate::images::{Archive, Contents, File, Image};
use crate::managers::Manager;
use crate::node::{NodeTestbed, condition};
use crate::service_account::Reach;
use crate::wait;

const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
/// Secret with the certificate of the managers' webhook server, which nothing calls.
const CERTIFICATE: &str = "webhook";
const CERTIFICATE_PATH: &str = "/etc/webhook";
const HEALTH_PORT: u16 = 9440;
/// The first start unpacks images.
const AVAILABLE_WITHIN: Duration = Duration::from_mins(3);
const RBAC: &str = "rbac.authorization.k8s.io";

/// Runs the managers of a plan as pods and waits until they are available. Their CRDs have to be there.
pub async fn deploy(testbed: &NodeTestbed, plan: &Plan) -> Result<()> {
    let binaries = Binaries::ensure(&plan.programs(), &testbed.progress).await?;
    testbed.admin.apply(&fixture(testbed, plan)?).await?;
    for &manager in &plan.managers {
        let image = push(testbed, &binaries, manager).await?;
        testbed.admin.apply(&rights(manager, plan).await?).await?;
        let deployment = with_sidecar(deployment(manager, plan, &image), testbed, plan)?;
        testbed.admin.apply(&[deployment]).await?;
    }
    for manager in &plan.managers {
        let path = DEPLOYMENTS.named(&plan.namespace, manager.name());
        let what = format!("{} to be available", manager.name());
        wait::until(&what, AVAILABLE_WITHIN, async || {
            condition(&testbed.admin.get(&path).await?, "Available")
        })
        .await?;
    }
    Ok(())
}

async fn push(testbed: &NodeTestbed, binaries: &Binaries, manager: Manager) -> Result<String> {
    let image = Archive::of(&Contents {
        entrypoint: "/manager".to_owned(),
        command: &[],
        files: vec![File::program("/manager", binaries.path(manager.binary())?)],
    })?;
    testbed.registry.push(manager.name(), &image).await
}

/// The namespace, and what all managers in it share.
fn fixture(testbed: &NodeTestbed, plan: &Plan) -> Result<Vec<Value>> {
    let namespace = plan.namespace.as_str();
    let issued = testbed
        .control_plane
        .authority
        .server(&format!("{namespace}-webhook"))?;
    let mut objects = vec![
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": namespace,
                "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": { "namespace": namespace, "name": CERTIFICATE },
            "data": {
                "tls.crt": encoded(&issued.certificate)?,
                "tls.key": encoded(&issued.key)?,
            },
        }),
    ];
    if plan.capi_types == CapiTypes::Private {
        let mut kubeconfig = serde_json::to_value(config_map(namespace))?;
        kubeconfig["apiVersion"] = json!("v1");
        kubeconfig["kind"] = json!("ConfigMap");
        objects.push(kubeconfig);
    }
    Ok(objects)
}

/// A manager's service account, with the roles that it has as a process, too.
async fn rights(manager: Manager, plan: &Plan) -> Result<Vec<Value>> {
    let (namespace, account) = (plan.namespace.as_str(), manager.name());
    let mut objects = vec![json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "namespace": namespace, "name": account },
    })];
    for role in manager.roles(plan.capi_types).await? {
        let name = role["metadata"]["name"]
            .as_str()
            .context("a role has no name")?;
        let mut binding = json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{namespace}-{name}") },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": account }],
        });
        if plan.reach != Reach::Cluster && !name.ends_with("-cluster") {
            binding["kind"] = json!("RoleBinding");
            binding["metadata"]["namespace"] = json!(namespace);
        }
        objects.extend([role, binding]);
    }
    Ok(objects)
}

fn deployment(manager: Manager, plan: &Plan, image: &str) -> Value {
    let name = manager.name();
    let labels = json!({ "app": name });
    json!({
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": "Deployment",
        "metadata": { "namespace": plan.namespace, "name": name },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": name,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [container(plan, image)],
                    "volumes": [
                        { "name": CERTIFICATE, "secret": { "secretName": CERTIFICATE } },
                        { "name": "scratch", "emptyDir": {} },
                    ],
                },
            },
        },
    })
}

fn container(plan: &Plan, image: &str) -> Value {
    let mut args = vec![
        format!("--webhook-cert-dir={CERTIFICATE_PATH}"),
        format!("--health-addr=:{HEALTH_PORT}"),
        // Not the proxy's port.
        "--diagnostics-address=:9090".to_owned(),
    ];
    args.extend(Manager::flags(plan.capi_types, &plan.reach));
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    json!({
        "name": "manager",
        "image": image,
        "args": args,
        "env": [
            field("POD_NAMESPACE", "metadata.namespace"),
            field("POD_NAME", "metadata.name"),
            field("POD_UID", "metadata.uid"),
            field("POD_IP", "status.podIP"),
        ],
        "readinessProbe": {
            "httpGet": { "path": "/readyz", "port": HEALTH_PORT },
            "periodSeconds": 1,
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "volumeMounts": [
            { "name": CERTIFICATE, "mountPath": CERTIFICATE_PATH, "readOnly": true },
            // The development provider does not start without one.
            { "name": "scratch", "mountPath": "/tmp" },
        ],
    })
}

/// Adds what the product adds.
fn with_sidecar(deployment: Value, testbed: &NodeTestbed, plan: &Plan) -> Result<Value> {
    if plan.capi_types == CapiTypes::Standard {
        return Ok(deployment);
    }
    let mut typed: Deployment = serde_json::from_value(deployment)?;
    let image = testbed.image(Image::CapiProxy)?.to_owned();
    Sidecar { image }.add_to(&mut typed)?;
    let mut deployment = serde_json::to_value(typed)?;
    deployment["apiVersion"] = json!(DEPLOYMENTS.api_version);
    deployment["kind"] = json!("Deployment");
    Ok(deployment)
}
