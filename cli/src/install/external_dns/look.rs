//! Reads what ExternalDNS depends on, and never writes.

use serde_json::Value;

use super::{DnsSurroundings, NAME};
use crate::install::cluster::Cluster;
use crate::install::kind::{Kind, text};
use crate::install::object::Id;

/// Its UID is the same as long as there is the cluster.
const OLDEST_NAMESPACE: &str = "/api/v1/namespaces/kube-system";
const PROXY: &str = "/apis/config.openshift.io/v1/proxies/cluster";
const ROUTES: &str = "/apis/route.openshift.io/v1";
const ENDPOINTS: &str = "/apis/externaldns.k8s.io/v1alpha1";
/// Fields of OpenShift's proxy, and the variables by which programs know it.
const VARIABLES: [(&str, &str); 3] = [
    ("/status/httpProxy", "HTTP_PROXY"),
    ("/status/httpsProxy", "HTTPS_PROXY"),
    ("/status/noProxy", "NO_PROXY"),
];

/// What ExternalDNS depends on in this cluster.
pub(in crate::install) async fn surroundings(
    cluster: &Cluster,
    namespace: &str,
) -> kube::Result<DnsSurroundings> {
    let deployment = Id {
        kind: Kind::Deployment,
        namespace: Some(namespace.to_owned()),
        name: NAME.to_owned(),
    };
    let deployment = cluster.find(&deployment.path()).await?;
    let owner = match deployment.as_ref().and_then(owner_of) {
        Some(owner) => Some(owner),
        None => cluster.find(OLDEST_NAMESPACE).await?.as_ref().and_then(uid),
    };
    let proxy = cluster.find(PROXY).await?.unwrap_or_default();
    Ok(DnsSurroundings {
        routes: serves(cluster, ROUTES, "routes").await?,
        endpoints: serves(cluster, ENDPOINTS, "dnsendpoints").await?,
        owner,
        proxy: variables(&proxy),
    })
}

/// The owner that a Deployment gives to DNS records, one of HyperShift included: with another one they would be orphaned.
pub(super) fn owner_of(deployment: &Value) -> Option<String> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
    let mut arguments = containers
        .iter()
        .filter_map(|container| container["args"].as_array())
        .flatten()
        .filter_map(Value::as_str);
    let owner = arguments.find_map(|argument| argument.strip_prefix("--txt-owner-id="))?;
    (!owner.is_empty()).then(|| owner.to_owned())
}

fn uid(object: &Value) -> Option<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

/// The variables of a proxy of OpenShift. Those that it does not set are left out.
pub(super) fn variables(proxy: &Value) -> Vec<(&'static str, String)> {
    let fields = VARIABLES.into_iter();
    let fields = fields.map(|(pointer, name)| (name, text(proxy, pointer).to_owned()));
    fields.filter(|(_, value)| !value.is_empty()).collect()
}

async fn serves(cluster: &Cluster, version: &str, plural: &str) -> kube::Result<bool> {
    let served = cluster.find(version).await?.unwrap_or_default();
    let mut resources = served["resources"].as_array().into_iter().flatten();
    Ok(resources.any(|resource| resource["name"] == plural))
}
