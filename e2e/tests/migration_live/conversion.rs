//! Every version of the platform's own Cluster API, as a platform has them: a stock manager in a pod converts.
//!
//! The stock provider for KubeVirt requests `v1beta1` of Cluster API's kinds, and another version is stored. For
//! private types, the installation has a webhook that converts; standard ones are not its own.

use anyhow::{Context, Result, ensure};
use api::group::{self, CapiTypes};
use serde_json::{Value, json};
use testbed::certs::encoded;
use testbed::client::Resource;
use testbed::crds;
use testbed::hosted::{DEPLOYMENTS, Fixture};
use testbed::node::condition;
use testbed::service_account::ensure_namespace;

const NAMESPACE: &str = "capi-system";
/// The name of the Deployment, and of all that belongs to it.
const NAME: &str = "capi-webhook";
/// The image of a release with the stock manager that converts Cluster API's own kinds.
const CONVERTS: &str = "cluster-capi-controllers";
/// How the groups begin whose kinds it converts.
const CONVERTED: [&str; 4] = ["addons.", "cluster.", "ipam.", "runtime."];
/// Where it finds its certificate.
const CERTIFICATES: &str = "/etc/webhook";
/// The port of its webhook, and that of its probes.
const PORT: u16 = 9443;
const HEALTH_PORT: u16 = 9440;

/// Has the API server serve every version of the standard kinds. Their CRDs are there, and those of their providers.
pub(crate) async fn serve_every_version(fixture: &Fixture) -> Result<()> {
    let testbed = &fixture.testbed;
    let admin = &testbed.admin;
    let image = fixture.pushed.components.get(CONVERTS);
    let image = image.with_context(|| format!("the release has no {CONVERTS}"))?;
    let authority = &testbed.control_plane.authority;
    let certificate = authority.server_at(NAME, &[format!("{NAME}.{NAMESPACE}.svc")])?;
    ensure_namespace(admin, NAMESPACE).await?;
    admin.apply(&rights()).await?;
    admin
        .apply(&[
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": metadata(),
                "type": "kubernetes.io/tls",
                "data": {
                    "tls.crt": encoded(&certificate.certificate)?,
                    "tls.key": encoded(&certificate.key)?,
                },
            }),
            service(),
            deployment(image),
        ])
        .await?;
    let path = DEPLOYMENTS.named(NAMESPACE, NAME);
    fixture
        .stage("the platform's manager is ready to convert", async || {
            condition(&admin.get(&path).await?, "Available")
        })
        .await?;
    let bundle = encoded(&authority.certificate())?;
    let mut all = crds::cluster_api(CapiTypes::Standard).await?;
    all.retain(|crd| is_converted(crd["spec"]["group"].as_str().unwrap_or_default()));
    for crd in &mut all {
        crd["spec"]["conversion"] = conversion(&bundle);
    }
    crds::install(admin, &all).await?;
    converts(fixture).await
}

/// Waits until an object is read at a version that is not stored, and has what only a conversion gives it: a reference
/// with the version of the provider's kind.
async fn converts(fixture: &Fixture) -> Result<()> {
    let admin = &fixture.testbed.admin;
    let core = group::core(CapiTypes::Standard);
    let infrastructure = group::infrastructure(CapiTypes::Standard);
    let path = |version: &str| {
        Resource::new(&format!("{core}/{version}"), "clusters").named(NAMESPACE, NAME)
    };
    let probe = json!({
        "apiVersion": format!("{core}/v1beta2"),
        "kind": "Cluster",
        "metadata": metadata(),
        "spec": {
            "paused": true,
            "infrastructureRef": {
                "apiGroup": infrastructure,
                "kind": "KubevirtCluster",
                "name": NAME,
            },
        },
    });
    admin.apply(&[probe]).await?;
    fixture
        .stage("the platform's objects are converted", async || {
            let found = admin.get(&path("v1beta1")).await?;
            let reference = &found["spec"]["infrastructureRef"];
            ensure!(
                reference["apiVersion"] == format!("{infrastructure}/v1alpha1"),
                "a reference is {reference}"
            );
            Ok(())
        })
        .await?;
    admin.delete(&path("v1beta2")).await
}

/// Whether the manager converts kinds of a group.
fn is_converted(group: &str) -> bool {
    CONVERTED.iter().any(|prefix| group.starts_with(prefix))
}

/// What makes the API server have objects converted.
fn conversion(bundle: &str) -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": { "namespace": NAMESPACE, "name": NAME, "path": "/convert" },
                "caBundle": bundle,
            },
            "conversionReviewVersions": ["v1"],
        },
    })
}

/// Who it is, and what it reads: what it looks references up in, and what it indexes before it serves anything.
/// Without a right to its Lease, it never leads, so that it does nothing else.
fn rights() -> Vec<Value> {
    let role = format!("platform-{NAME}");
    let read = ["list", "watch"];
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata() }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": role },
            "rules": [
                {
                    "apiGroups": ["apiextensions.k8s.io"],
                    "resources": ["customresourcedefinitions"],
                    "verbs": read,
                },
                {
                    "apiGroups": [group::core(CapiTypes::Standard)],
                    "resources": ["clusters", "machinepools", "machines"],
                    "verbs": read,
                },
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": role },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{ "kind": "ServiceAccount", "namespace": NAMESPACE, "name": NAME }],
        }),
    ]
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(),
        "spec": {
            "selector": { "app": NAME },
            "ports": [{ "port": 443, "targetPort": PORT }],
        },
    })
}

fn deployment(image: &str) -> Value {
    let mut args: Vec<String> = cli::install::conversion::FLAGS
        .iter()
        .map(|&flag| flag.to_owned())
        .collect();
    args.extend([
        format!("--namespace={NAMESPACE}"),
        format!("--webhook-port={PORT}"),
        format!("--webhook-cert-dir={CERTIFICATES}"),
        format!("--health-addr=:{HEALTH_PORT}"),
    ]);
    json!({
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": "Deployment",
        "metadata": metadata(),
        "spec": {
            "selector": { "matchLabels": { "app": NAME } },
            "template": {
                "metadata": { "labels": { "app": NAME } },
                "spec": {
                    "serviceAccountName": NAME,
                    "containers": [{
                        "name": "manager",
                        "image": image,
                        "args": args,
                        "readinessProbe": {
                            "httpGet": { "path": "/readyz", "port": HEALTH_PORT },
                            "periodSeconds": 1,
                        },
                        "volumeMounts": [{
                            "name": "certificates",
                            "mountPath": CERTIFICATES,
                            "readOnly": true,
                        }],
                    }],
                    "volumes": [{ "name": "certificates", "secret": { "secretName": NAME } }],
                },
            },
        },
    })
}

fn metadata() -> Value {
    json!({ "namespace": NAMESPACE, "name": NAME })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_other_managers_are_not_converted() {
        for (group, expected) in [
            ("cluster.x-k8s.io", true),
            ("addons.cluster.x-k8s.io", true),
            ("ipam.cluster.x-k8s.io", true),
            ("runtime.cluster.x-k8s.io", true),
            ("bootstrap.cluster.x-k8s.io", false),
            ("controlplane.cluster.x-k8s.io", false),
            ("infrastructure.cluster.x-k8s.io", false),
        ] {
            assert_eq!(is_converted(group), expected, "{group}");
        }
    }
}
