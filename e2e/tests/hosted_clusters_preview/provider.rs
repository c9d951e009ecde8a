//! What a platform's provider is run with: the Deployment and the Role.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::ApiClient;

use crate::hosted_clusters_api::cluster::{Cluster, DEPLOYMENTS, ROLES};
use crate::hosted_clusters_api::expect::{fields, is, named};
use crate::hosted_clusters_preview::fixture::PROXY_IMAGE;

/// The container of the proxy for Cluster API.
const PROXY: &str = "kube-apiserver-proxy";
/// The groups of Cluster API's private types, without what they have in common.
const GROUPS: [&str; 7] = [
    "",
    "infrastructure.",
    "controlplane.",
    "bootstrap.",
    "addons.",
    "ipam.",
    "runtime.",
];

/// What the provider of a platform has.
pub(crate) struct Provider {
    /// The name of its image in the release.
    pub(crate) image: &'static str,
    pub(crate) args: Value,
    /// The processor and memory that it requests.
    pub(crate) requests: [&'static str; 2],
    /// Variables of its environment, beside those of every provider.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// The Secret with its credentials, and where it is mounted.
    pub(crate) credentials: Option<(&'static str, &'static str)>,
    /// Rules of its Role, beside those of every provider.
    pub(crate) rules: Vec<Value>,
}

// === impl Provider ===

impl Provider {
    /// Waits until its Deployment is there, and compares it and its Role; gives the specification of its pods.
    pub(crate) async fn is_made(&self, cluster: &Cluster, admin: &ApiClient) -> Result<Value> {
        let namespace = cluster.namespace();
        let path = DEPLOYMENTS.named(&namespace, "capi-provider");
        let args = "/spec/template/spec/containers/0/args";
        let mut deployment = is(admin, &path, args, &self.args).await?;
        let pod = deployment["spec"]["template"]["spec"].take();
        self.has_container(&pod)?;
        self.has_volumes(&pod)?;
        let common = json!({
            "automountServiceAccountToken": true,
            "serviceAccountName": "capi-provider",
            "terminationGracePeriodSeconds": 10,
        });
        fields("pod", &pod, &common)?;
        let proxy = named(&pod["initContainers"], PROXY).context("it has no proxy")?;
        ensure!(proxy["image"] == PROXY_IMAGE, "{}", proxy["image"]);
        let path = ROLES.named(&namespace, "capi-provider");
        is(admin, &path, "/rules", &self.all_rules()).await?;
        Ok(pod)
    }

    fn has_container(&self, pod: &Value) -> Result<()> {
        let manager = named(&pod["containers"], "manager").context("it has no manager")?;
        is_of_release(manager, self.image)?;
        let [cpu, memory] = self.requests;
        let resources = json!({ "requests": { "cpu": cpu, "memory": memory } });
        ensure!(
            manager["resources"] == resources,
            "{}",
            manager["resources"]
        );
        let field = json!({ "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } });
        let own = named(&manager["env"], "MY_NAMESPACE").context("no MY_NAMESPACE")?;
        fields("MY_NAMESPACE", own, &field)?;
        let kubeconfig = ("KUBECONFIG", "/etc/kube-apiserver-proxy/kubeconfig");
        for (name, expected) in self.environment.iter().chain([&kubeconfig]) {
            let variable = named(&manager["env"], name).with_context(|| format!("no {name}"))?;
            ensure!(variable["value"] == *expected, "{variable}");
        }
        Ok(())
    }

    /// The certificate of webhooks, and the credentials, if there are some.
    fn has_volumes(&self, pod: &Value) -> Result<()> {
        let certificates = "/tmp/k8s-webhook-server/serving-certs";
        is_mounted(pod, "capi-webhooks-tls", "capi-webhooks-tls", certificates)?;
        if let Some((secret, path)) = self.credentials {
            return is_mounted(pod, "credentials", secret, path);
        }
        let found = named(&pod["volumes"], "credentials");
        ensure!(found.is_none(), "it has {found:?}");
        Ok(())
    }

    fn all_rules(&self) -> Value {
        let groups = GROUPS.map(|group| format!("{group}cluster.hypershift.openshift.io"));
        let mut rules = vec![
            json!({ "apiGroups": groups, "resources": ["*"], "verbs": ["*"] }),
            json!({
                "apiGroups": ["hypershift.openshift.io"],
                "resources": ["*"],
                "verbs": ["get", "list", "watch"],
            }),
            json!({ "apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["*"] }),
            json!({
                "apiGroups": ["", "events.k8s.io"],
                "resources": ["events"],
                "verbs": ["create", "patch", "update"],
            }),
            json!({
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "verbs": ["*"],
            }),
        ];
        rules.extend(self.rules.iter().cloned());
        json!(rules)
    }
}

/// A container has an image of the release.
pub(crate) fn is_of_release(container: &Value, name: &str) -> Result<()> {
    let image = container["image"].as_str().unwrap_or_default();
    ensure!(image.contains(&format!("/{name}@")), "its image is {image}");
    Ok(())
}

/// The first container has a Secret in a volume, which its group may read.
fn is_mounted(pod: &Value, volume: &str, secret: &str, path: &str) -> Result<()> {
    let found = named(&pod["volumes"], volume).with_context(|| format!("no volume {volume}"))?;
    let expected = json!({ "secretName": secret, "defaultMode": 0o640 });
    ensure!(found["secret"] == expected, "{found}");
    let mounts = &pod["containers"][0]["volumeMounts"];
    let mount = named(mounts, volume).with_context(|| format!("{volume} is not mounted"))?;
    let expected = json!({ "mountPath": path, "readOnly": true });
    fields(volume, mount, &expected)
}
