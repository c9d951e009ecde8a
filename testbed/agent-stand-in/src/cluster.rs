//! `AgentCluster`s: each is registered at the Agent service, with the place where its hosts find their configuration.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::objects::{
    has_finalizer, is_going, name, owner, with_finalizer, within, without_finalizer,
};
use crate::provider::Provider;

const FINALIZER: &str = "agentclustercapi-provider.agent-install.openshift.io/deprovision";
const DEPLOYMENTS: (&str, &str) = ("hive.openshift.io/v1", "clusterdeployments");
const INSTALLS: (&str, &str) = (
    "extensions.hive.openshift.io/v1beta1",
    "agentclusterinstalls",
);
/// By the contract of Cluster API, a provider ignores what another program creates.
const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";

/// Reconciles one, and returns its progress.
pub(crate) async fn look(provider: &Provider, cluster: &Value) -> Result<String> {
    let path = format!("{}/{}", provider.own("agentclusters"), name(cluster));
    let objects = &provider.objects;
    if is_going(cluster) {
        return end(provider, cluster, &path).await;
    }
    if is_external(cluster) {
        return Ok("is external: another program reconciles it".to_owned());
    }
    if !has_finalizer(cluster, FINALIZER) {
        objects
            .merge(&path, &with_finalizer(cluster, FINALIZER))
            .await?;
        return Ok("has its finalizer".to_owned());
    }
    if deployment(cluster).is_some() {
        return become_ready(provider, cluster, &path).await;
    }
    let Some(deployment) = desired_deployment(provider, cluster).await? else {
        return Ok("waits for its Cluster and its control plane".to_owned());
    };
    let own = |(api_version, plural)| within(api_version, &provider.namespace, plural);
    objects.ensure(&own(DEPLOYMENTS), &deployment).await?;
    objects.ensure(&own(INSTALLS), &install(cluster)?).await?;
    let reference = json!({ "namespace": provider.namespace, "name": name(cluster) });
    let status = json!({ "status": { "clusterDeploymentRef": reference } });
    objects.merge(&format!("{path}/status"), &status).await?;
    Ok("is registered at the Agent service".to_owned())
}

/// Its machines are created once it is ready: the Agent service knows it, and its API server has an address.
async fn become_ready(provider: &Provider, cluster: &Value, path: &str) -> Result<String> {
    if !has_endpoint(cluster) {
        return Ok("waits for the address of its API server".to_owned());
    }
    if cluster["status"]["ready"] != true {
        let status = json!({ "status": { "ready": true } });
        let path = format!("{path}/status");
        provider.objects.merge(&path, &status).await?;
    }
    Ok("is ready".to_owned())
}

fn is_external(cluster: &Value) -> bool {
    !cluster["metadata"]["annotations"][MANAGED_BY].is_null()
}

fn has_endpoint(cluster: &Value) -> bool {
    let endpoint = &cluster["spec"]["controlPlaneEndpoint"];
    let host = endpoint["host"].as_str().unwrap_or_default();
    !host.is_empty() && endpoint["port"].as_u64().unwrap_or_default() != 0
}

/// The name under which the Agent service knows it.
pub(crate) fn deployment(cluster: &Value) -> Option<&Value> {
    let reference = &cluster["status"]["clusterDeploymentRef"];
    reference["name"]
        .as_str()
        .filter(|name| !name.is_empty())
        .map(|_| reference)
}

async fn end(provider: &Provider, cluster: &Value, path: &str) -> Result<String> {
    let mut all_gone = true;
    for (api_version, plural) in [INSTALLS, DEPLOYMENTS] {
        let all = within(api_version, &provider.namespace, plural);
        let path = format!("{all}/{}", name(cluster));
        all_gone &= provider.objects.delete(&path).await?;
    }
    if all_gone && has_finalizer(cluster, FINALIZER) {
        let change = without_finalizer(cluster, FINALIZER);
        provider.objects.merge(path, &change).await?;
    }
    Ok("is forgotten by the Agent service".to_owned())
}

/// What is registered at the Agent service, once everything that it refers to is there.
async fn desired_deployment(provider: &Provider, cluster: &Value) -> Result<Option<Value>> {
    let Some((api_version, owner)) = owner(cluster, "Cluster") else {
        return Ok(None);
    };
    let path = format!("{}/{owner}", provider.core(api_version, "clusters")?);
    let Some(found) = provider.objects.find(&path).await? else {
        return Ok(None);
    };
    let control_plane = &found["spec"]["controlPlaneRef"];
    let group = group(control_plane).context("its Cluster has no control plane")?;
    let all = within(
        &format!("{group}/v1beta1"),
        &provider.namespace,
        "hostedcontrolplanes",
    );
    let control_plane = control_plane["name"].as_str().unwrap_or_default();
    let Some(found) = provider
        .objects
        .find(&format!("{all}/{control_plane}"))
        .await?
    else {
        return Ok(None);
    };
    Ok(deployment_of(cluster, &found))
}

/// The group of a reference, of which older versions write more.
fn group(reference: &Value) -> Option<&str> {
    let older = reference["apiVersion"].as_str();
    let older = older.and_then(|version| version.split('/').next());
    reference["apiGroup"].as_str().or(older)
}

fn deployment_of(cluster: &Value, control_plane: &Value) -> Option<Value> {
    let (spec, status) = (&control_plane["spec"], &control_plane["status"]);
    let domain = spec["dns"]["baseDomain"].as_str()?;
    let pull_secret = spec["pullSecret"]["name"].as_str()?;
    let kubeconfig = status["kubeConfig"]["name"].as_str()?;
    let identity = &cluster["metadata"]["ownerReferences"][0]["uid"];
    Some(json!({
        "apiVersion": DEPLOYMENTS.0,
        "kind": "ClusterDeployment",
        "metadata": metadata(cluster),
        "spec": {
            "installed": true,
            "clusterName": name(control_plane),
            "baseDomain": domain,
            "platform": { "agentBareMetal": {} },
            "pullSecretRef": { "name": pull_secret },
            "clusterInstallRef": {
                "group": "extensions.hive.openshift.io",
                "version": "v1beta1",
                "kind": "AgentClusterInstall",
                "name": name(cluster),
            },
            "clusterMetadata": {
                "clusterID": identity,
                "infraID": identity,
                "adminKubeconfigSecretRef": { "name": kubeconfig },
            },
        },
    }))
}

/// Where hosts find their configuration. The service adds the last part of the address itself.
fn install(cluster: &Value) -> Result<Value> {
    let endpoint = &cluster["spec"]["ignitionEndpoint"];
    let url = endpoint["url"].as_str().unwrap_or_default();
    let (url, _) = url
        .rsplit_once('/')
        .context("it has no ignition endpoint")?;
    Ok(json!({
        "apiVersion": INSTALLS.0,
        "kind": "AgentClusterInstall",
        "metadata": metadata(cluster),
        "spec": {
            "clusterDeploymentRef": { "name": name(cluster) },
            "provisionRequirements": { "controlPlaneAgents": 3 },
            "networking": { "userManagedNetworking": true },
            "ignitionEndpoint": {
                "url": url,
                "caCertificateReference": endpoint["caCertificateReference"],
            },
        },
    }))
}

fn metadata(cluster: &Value) -> Value {
    json!({
        "namespace": cluster["metadata"]["namespace"],
        "name": name(cluster),
        "labels": { "agentClusterRef": name(cluster) },
        "ownerReferences": [{
            "apiVersion": cluster["apiVersion"],
            "kind": cluster["kind"],
            "name": name(cluster),
            "uid": cluster["metadata"]["uid"],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Value {
        json!({
            "apiVersion": "p/v1", "kind": "AgentCluster",
            "metadata": { "namespace": "ns", "name": "a", "uid": "u", "ownerReferences": [{ "uid": "c" }] },
            "spec": { "ignitionEndpoint": {
                "url": "https://192.0.2.1:30443/ignition", "caCertificateReference": { "name": "ca" },
            } },
        })
    }

    #[test]
    fn the_place_of_the_configuration_is_registered() {
        let install = install(&cluster()).unwrap();
        let endpoint = &install["spec"]["ignitionEndpoint"];
        assert_eq!(endpoint["url"], "https://192.0.2.1:30443");
        assert_eq!(endpoint["caCertificateReference"]["name"], "ca");
    }

    #[test]
    fn nothing_is_registered_without_a_control_plane() {
        let whole = json!({
            "metadata": { "name": "a" },
            "spec": { "dns": { "baseDomain": "test" }, "pullSecret": { "name": "pull" } },
            "status": { "kubeConfig": { "name": "admin" } },
        });
        let reported = deployment_of(&cluster(), &whole).unwrap();
        assert_eq!(reported["spec"]["clusterMetadata"]["clusterID"], "c");
        for part in ["spec", "status"] {
            let mut half = whole.clone();
            half[part] = Value::Null;
            assert_eq!(deployment_of(&cluster(), &half), None, "{part}");
        }
    }

    #[test]
    fn clusters_of_other_programs_are_external() {
        let mut cluster = cluster();
        assert!(!is_external(&cluster));
        for value in ["external", ""] {
            cluster["metadata"]["annotations"] = json!({ MANAGED_BY: value });
            assert!(is_external(&cluster), "{value}");
        }
    }

    #[test]
    fn a_cluster_is_ready_with_an_address_only() {
        for (endpoint, expected) in [
            (Value::Null, false),
            (json!({ "host": "", "port": 6443 }), false),
            (json!({ "host": "192.0.2.1", "port": 0 }), false),
            (json!({ "host": "192.0.2.1", "port": 6443 }), true),
        ] {
            let mut cluster = cluster();
            cluster["spec"]["controlPlaneEndpoint"] = endpoint.clone();
            assert_eq!(has_endpoint(&cluster), expected, "{endpoint}");
        }
    }

    #[test]
    fn groups_are_read_in_either_form() {
        assert_eq!(group(&json!({ "apiGroup": "g" })), Some("g"));
        assert_eq!(group(&json!({ "apiVersion": "g/v1" })), Some("g"));
    }
}
