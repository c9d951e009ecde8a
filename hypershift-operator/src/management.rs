//! Properties of the management cluster, cached because they hardly change.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Node};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::Error;
use crate::facts::Management;

/// How long a result is cached.
const CACHE_DURATION: Duration = Duration::from_mins(1);
/// Group of OpenShift's routes.
const ROUTES: &str = "route.openshift.io";
/// Group of the Prometheus operator.
const MONITORING: &str = "monitoring.coreos.com";
/// Group of OpenShift's configuration.
const CONFIG: &str = "config.openshift.io";
/// The networks of pods that are excepted are at least as large as this where they are private, so that they include those
/// of later nodes: prefix lengths of both families.
const POD_NETWORKS: (u8, u8) = (16, 48);
/// API group of SCCs, which assign user IDs on OpenShift.
const SECURITY: &str = "security.openshift.io";

/// The last results.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    cached: Mutex<Option<(Instant, Management)>>,
    pods: Mutex<Option<(Instant, Vec<String>)>>,
}

// === impl Cache ===

impl Cache {
    /// Properties of the management cluster.
    pub(crate) async fn get(&self, client: &kube::Client) -> Result<Management, Error> {
        let mut cached = self.cached.lock().await;
        if let Some((at, known)) = &*cached
            && at.elapsed() < CACHE_DURATION
        {
            return Ok(known.clone());
        }
        let known = read(client).await?;
        *cached = Some((Instant::now(), known.clone()));
        Ok(known)
    }

    /// Address ranges of pods, by the nodes. What may not be read is left out. OpenShift's Network has them, too.
    pub(crate) async fn pod_networks(&self, client: &kube::Client) -> Result<Vec<String>, Error> {
        let mut cached = self.pods.lock().await;
        if let Some((at, known)) = &*cached
            && at.elapsed() < CACHE_DURATION
        {
            return Ok(known.clone());
        }
        let api: Api<Node> = Api::all(client.clone());
        let known = match api.list(&ListParams::default()).await {
            Ok(list) => pod_ranges(&list.items),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                tracing::warn!(
                    error = status.message,
                    "Failed to list nodes, so virtual machines can reach pods: run `hypershift install` again"
                );
                Vec::new()
            }
            Err(source) => return Err(Error::list("nodes".to_owned())(source)),
        };
        *cached = Some((Instant::now(), known.clone()));
        Ok(known)
    }
}

async fn read(client: &kube::Client) -> Result<Management, Error> {
    let groups = client
        .list_api_groups()
        .await
        .map_err(|source| Error::Read {
            what: "the API groups of the management cluster".to_owned(),
            source,
        })?;
    let has = |name: &str| groups.groups.iter().any(|group| group.name == name);
    Ok(Management {
        routes: has(ROUTES),
        monitors: has(MONITORING),
        chooses_users: has(SECURITY),
        api_server: api_server(client).await?,
        networks: networks(client, has(CONFIG)).await?,
    })
}

/// Addresses of the API server of the management cluster.
async fn api_server(client: &kube::Client) -> Result<Vec<String>, Error> {
    let api: Api<Endpoints> = Api::namespaced(client.clone(), "default");
    let found = api.get_opt("kubernetes").await;
    let found = found.map_err(|source| Error::Read {
        what: "Endpoints default/kubernetes".to_owned(),
        source,
    })?;
    let subsets = found.and_then(|it| it.subsets).into_iter().flatten();
    let addresses = subsets.filter_map(|it| it.addresses).flatten();
    let mut addresses: Vec<_> = addresses.map(|it| it.ip).collect();
    addresses.sort();
    Ok(addresses)
}

/// Address ranges of pods and Services: of OpenShift's Network, else of the ServiceCIDRs. What may not be read, or is not
/// served, is left out.
async fn networks(client: &kube::Client, is_openshift: bool) -> Result<Vec<String>, Error> {
    let kind = if is_openshift {
        GroupVersionKind::gvk(CONFIG, "v1", "Network")
    } else {
        GroupVersionKind::gvk("networking.k8s.io", "v1", "ServiceCIDR")
    };
    let mut resource = ApiResource::from_gvk(&kind);
    if !is_openshift {
        "servicecidrs".clone_into(&mut resource.plural);
    }
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(ranges(list.items.iter().map(|it| &it.data["spec"]))),
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(Vec::new()),
        Err(source) => Err(Error::list(resource.plural)(source)),
    }
}

fn pod_ranges(nodes: &[Node]) -> Vec<String> {
    let specs = nodes.iter().filter_map(|it| it.spec.as_ref());
    let ranges = specs.filter_map(|it| it.pod_cidrs.as_ref()).flatten();
    let ranges: BTreeSet<_> = ranges.filter_map(|it| widened(it)).collect();
    ranges.into_iter().collect()
}

/// The range that includes another one and those of other nodes beside it.
fn widened(range: &str) -> Option<String> {
    let (address, length) = range.split_once('/')?;
    let length: u8 = length.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(it) if it.is_private() && length > POD_NETWORKS.0 => {
            let wide = u32::from(it) & (u32::MAX << (32 - POD_NETWORKS.0));
            Some(format!(
                "{}/{}",
                std::net::Ipv4Addr::from(wide),
                POD_NETWORKS.0
            ))
        }
        IpAddr::V6(it) if it.is_unique_local() && length > POD_NETWORKS.1 => {
            let wide = u128::from(it) & (u128::MAX << (128 - POD_NETWORKS.1));
            Some(format!(
                "{}/{}",
                std::net::Ipv6Addr::from(wide),
                POD_NETWORKS.1
            ))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => Some(range.to_owned()),
    }
}

fn ranges<'a>(specs: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut ranges = BTreeSet::new();
    for spec in specs {
        let list = |field: &str| spec[field].as_array().into_iter().flatten();
        let pods = list("clusterNetwork").map(|it| &it["cidr"]);
        let services = list("serviceNetwork").chain(list("cidrs"));
        let texts = pods.chain(services).filter_map(Value::as_str);
        ranges.extend(texts.map(str::to_owned));
    }
    ranges.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[tokio::test]
    async fn networks_are_the_pod_and_service_cidrs() {
        let openshift = "/apis/config.openshift.io/v1/networks";
        let kubernetes = "/apis/networking.k8s.io/v1/servicecidrs";
        let network = json!({ "metadata": { "name": "cluster" }, "spec": {
            "clusterNetwork": [{ "cidr": "10.128.0.0/14", "hostPrefix": 23 }],
            "serviceNetwork": ["172.30.0.0/16"],
        } });
        let services = json!({ "metadata": { "name": "kubernetes" }, "spec": {
            "cidrs": ["10.96.0.0/16", "fd02::/112"],
        } });
        for (is_openshift, path, response, expected) in [
            (
                true,
                openshift,
                Answer::list(&[network]),
                vec!["10.128.0.0/14", "172.30.0.0/16"],
            ),
            (
                false,
                kubernetes,
                Answer::list(&[services]),
                vec!["10.96.0.0/16", "fd02::/112"],
            ),
            (true, openshift, Answer::error(403, "Forbidden"), vec![]),
            (false, kubernetes, Answer::error(404, "NotFound"), vec![]),
        ] {
            let scenario = Scenario::new([Expect::get(path).answer(response)]);
            let found = networks(&scenario.client(), is_openshift).await.unwrap();
            assert_eq!(found, expected);
            scenario.finish();
        }
    }
    #[tokio::test]
    async fn pod_networks_include_those_of_later_nodes() {
        let node = |ranges: &Value| json!({ "metadata": {}, "spec": { "podCIDRs": ranges } });
        let nodes = [
            node(&json!(["10.244.3.0/24", "fd00:10:244:3::/64"])),
            node(&json!(["10.244.4.0/24"])),
            node(&json!(["10.8.0.0/14", "198.51.100.0/24", "not a range"])),
            json!({ "metadata": {}, "spec": {} }),
        ];
        let path = "/api/v1/nodes";
        let expected = [
            "10.244.0.0/16",
            "10.8.0.0/14",
            "198.51.100.0/24",
            "fd00:10:244::/48",
        ];
        for (answer, expected) in [
            (Answer::list(&nodes), &expected[..]),
            (Answer::error(403, "Forbidden"), &[]),
        ] {
            let scenario = Scenario::new([Expect::get(path).answer(answer)]);
            let cache = Cache::default();
            let client = scenario.client();
            for _ in 0..2 {
                assert_eq!(cache.pod_networks(&client).await.unwrap(), expected);
            }
            scenario.finish();
        }
    }
}
