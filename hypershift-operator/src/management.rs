//! Properties of the management cluster, cached because they hardly change.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Endpoints;
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
/// Group of OpenShift's configuration.
const CONFIG: &str = "config.openshift.io";
/// API group of SCCs, which assign user IDs on OpenShift.
const SECURITY: &str = "security.openshift.io";

/// The last result.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    cached: Mutex<Option<(Instant, Management)>>,
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
}
