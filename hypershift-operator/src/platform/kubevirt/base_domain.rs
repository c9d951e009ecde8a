//! The domain of a hosted cluster with `baseDomainPassthrough` and no domain of its own: that of the infrastructure
//! cluster's Routes.
//!
//! A Route without a host gets one in this domain. It is created to see which, and deleted again. A Route of this name that
//! is not labelled as this cluster's is left alone.

use api::hypershift::v1beta1::platform::PlatformType;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{GetParams, PostParams};
use serde::Deserialize;
use serde_json::json;
use support::reconcile::{is_conflict, is_missing};

use super::client::{InfraCluster, LONGEST_BODY, describe, given, is_name};
use super::infrastructure::external;
use super::machines::INFRA_ID_LABEL;
use super::virtualization::Cache;
use crate::facts::Facts;
use crate::kinds;

/// The Route, and the Service that it names, which does not have to exist.
const ROUTE: &str = "kubevirt-infra-temp-route";
const SERVICE: &str = "kubevirt-infra-fake-service";
const FIELD: &str = "spec.dns.baseDomain";

#[derive(Deserialize)]
struct Route {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: RouteSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RouteSpec {
    host: String,
}

/// The domain, or why it is not known. Nothing if the cluster needs none.
pub(crate) async fn of(
    facts: &Facts,
    client: &Client,
    cache: &Cache,
) -> Option<Result<String, String>> {
    if !is_wanted(facts) {
        return None;
    }
    let home = &facts.id.namespace;
    if external(facts).is_none() {
        let infra = InfraCluster::local(client.clone(), home);
        return Some(find(&infra, facts.infra_id()).await);
    }
    let user = given(facts)?;
    let user = &user;
    let request = |deadline| async move {
        let infra = InfraCluster::of(facts, user, deadline).await?;
        find(&infra, facts.infra_id()).await
    };
    // Two clusters may have the same kubeconfig.
    let (secret, version) = &user.place;
    let place = (format!("{secret}/{}", facts.infra_id()), version.clone());
    let domains = &cache.domains;
    let found = domains.once(home, Some(place), &facts.infra_time, request);
    let found = found.await;
    Some(found.unwrap_or_else(|| Err(unknown(&user.silence()))))
}

fn unknown(problem: &str) -> String {
    format!(
        "{FIELD} is empty, and the domain of the infrastructure cluster is not known: {problem}, or set {FIELD}"
    )
}

/// Whether the cluster's domain is that of the infrastructure cluster, and not known yet.
fn is_wanted(facts: &Facts) -> bool {
    let spec = &facts.cluster.spec;
    let kubevirt = spec.platform.kubevirt.as_ref();
    let is_passed_through = kubevirt.and_then(|it| it.base_domain_passthrough);
    let dns = spec.dns.as_ref();
    spec.platform.type_ == PlatformType::KubeVirt
        && is_passed_through == Some(true)
        && dns.is_none_or(|it| it.base_domain.is_empty())
}

/// The domain, or why it is not known.
async fn find(infra: &InfraCluster, infra_id: &str) -> Result<String, String> {
    let route = match create(infra, infra_id).await {
        Err(error) if is_conflict(&error) => {
            get(infra).await.map_err(|error| failed(infra, &error))?
        }
        created => created.map_err(|error| failed(infra, &error))?,
    };
    let namespace = infra.namespace();
    let label = route.metadata.labels.as_ref();
    if label
        .and_then(|it| it.get(INFRA_ID_LABEL))
        .map(String::as_str)
        != Some(infra_id)
    {
        return Err(format!(
            "{FIELD} is empty, and Route {namespace}/{ROUTE} of the infrastructure cluster, which would show it, is not of \
             this cluster: delete the Route, or set {FIELD}"
        ));
    }
    let domain = domain(&route.spec.host).map(str::to_owned);
    if domain.is_some() || !route.spec.host.is_empty() {
        let uid = route.metadata.uid.as_deref();
        let deleted = infra
            .delete(&infra.requests(&kinds::route()), ROUTE, uid)
            .await;
        deleted.map_err(|error| failed(infra, &error))?;
    }
    domain.ok_or_else(|| {
        format!(
            "{FIELD} is empty, and Route {namespace}/{ROUTE} of the infrastructure cluster has no host that shows it: set \
             {FIELD}"
        )
    })
}

/// What follows the first part of a host name.
fn domain(host: &str) -> Option<&str> {
    let (_, domain) = host.split_once('.')?;
    Some(domain).filter(|it| is_name(it))
}

async fn create(infra: &InfraCluster, infra_id: &str) -> kube::Result<Route> {
    let resource = kinds::route();
    let route = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": ROUTE,
            "namespace": infra.namespace(),
            "labels": { INFRA_ID_LABEL: infra_id },
        },
        "spec": { "to": { "kind": "Service", "name": SERVICE } },
    });
    let body = route.to_string().into_bytes();
    let request = infra
        .requests(&resource)
        .create(&PostParams::default(), body);
    infra.send(request, LONGEST_BODY).await
}

async fn get(infra: &InfraCluster) -> kube::Result<Route> {
    let request = infra
        .requests(&kinds::route())
        .get(ROUTE, &GetParams::default());
    infra.send(request, LONGEST_BODY).await
}

fn failed(infra: &InfraCluster, error: &kube::Error) -> String {
    let namespace = infra.namespace();
    let problem = if is_missing(error) {
        "it serves no Routes, or has no such namespace".to_owned()
    } else {
        describe(error)
    };
    format!(
        "{FIELD} is empty, and Route {namespace}/{ROUTE} of the infrastructure cluster cannot show it: {problem}: set {FIELD}"
    )
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const ROUTES: &str = "/apis/route.openshift.io/v1/namespaces/clusters/routes";

    fn route(host: &str, infra_id: &str) -> Answer {
        Answer::ok(&json!({
            "metadata": { "name": ROUTE, "uid": "u", "labels": { INFRA_ID_LABEL: infra_id } },
            "spec": { "host": host },
        }))
    }

    async fn found(calls: Vec<Expect>) -> Result<String, String> {
        let scenario = Scenario::new(calls);
        let infra = InfraCluster::local(scenario.client(), "clusters");
        let found = find(&infra, "one-x7k2p").await;
        scenario.finish();
        found
    }

    #[tokio::test]
    async fn the_domain_is_that_of_a_route() {
        let host = "kubevirt-infra-temp-route-clusters.apps.example.com";
        let post = || {
            let labels = json!({ INFRA_ID_LABEL: "one-x7k2p" });
            let body = json!({ "metadata": { "name": ROUTE, "labels": labels } });
            Expect::post(ROUTES).body(body)
        };
        let path = format!("{ROUTES}/{ROUTE}");
        let remove = || Expect::delete(&path).body(json!({ "preconditions": { "uid": "u" } }));
        let conflict = || post().answer(Answer::error(409, "Conflict"));
        let get = |answer| Expect::get(&path).answer(answer);
        let created = vec![post().answer(route(host, "one-x7k2p")), remove()];
        assert_eq!(found(created).await.unwrap(), "apps.example.com");
        let left = vec![conflict(), get(route(host, "one-x7k2p")), remove()];
        assert_eq!(found(left).await.unwrap(), "apps.example.com");
        for (calls, expected) in [
            (
                vec![conflict(), get(route(host, "two-x7k2p"))],
                "is not of this cluster",
            ),
            (vec![post().answer(route("", "one-x7k2p"))], "has no host"),
            (
                vec![post().answer(route("host", "one-x7k2p")), remove()],
                "has no host",
            ),
            (
                vec![post().answer(route("a.b/c", "one-x7k2p")), remove()],
                "has no host",
            ),
            (
                vec![post().answer(Answer::error(404, "NotFound"))],
                "serves no Routes",
            ),
            (
                vec![post().answer(Answer::error(403, "Forbidden"))],
                "status 403",
            ),
        ] {
            let problem = found(calls).await.unwrap_err();
            assert!(problem.contains(expected), "{problem}");
            assert!(problem.contains("set spec.dns.baseDomain"), "{problem}");
        }
    }
}
