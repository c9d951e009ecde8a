//! KubeVirt of the infrastructure cluster: the management cluster, or another one that a user's kubeconfig names.

use api::hypershift::v1beta1::platform::PlatformType;
use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;
use support::reconcile::is_missing;
use tokio::time::{Instant, timeout_at};

use super::client::{Given, LONGEST_BODY, REQUEST_TIMEOUT, Recent, connect, describe, given, send};
use super::infrastructure::external;
use crate::facts::{Facts, InfraPolicy, Virtualization};

/// The longest version that is reported.
const LONGEST: usize = 64;
/// The API group of KubeVirt with its version.
const KUBEVIRT: &str = "/apis/subresources.kubevirt.io";

/// Results of requests to infrastructure clusters.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    versions: Recent<Virtualization>,
    /// The names of copies of boot images, or why there is none.
    pub(crate) copies: Recent<Result<String, String>>,
    /// The domains of infrastructure clusters, or why they are not known.
    pub(super) domains: Recent<Result<String, String>>,
    /// NetworkPolicies on infrastructure clusters.
    pub(crate) policies: Recent<InfraPolicy>,
    /// Deletions of these. A failure was logged.
    pub(crate) deletions: Recent<()>,
    /// Rights that users do not have on infrastructure clusters, or why they are not known.
    pub(super) rights: Recent<Result<Vec<String>, String>>,
}

/// KubeVirt of the infrastructure cluster. If its kubeconfig is missing, no request is made: that is reported with all
/// references.
pub(crate) async fn find(facts: &Facts, client: &Client, cache: &Cache) -> Option<Virtualization> {
    if facts.cluster.spec.platform.type_ != PlatformType::KubeVirt {
        return None;
    }
    let given = match external(facts) {
        None => None,
        Some(_) => Some(given(facts)?),
    };
    let Some(user) = given else {
        if let Some(cached) = cache.versions.get(&None).await {
            return Some(cached);
        }
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let silence = format!("no response within {REQUEST_TIMEOUT:?}");
        let found = virtualization(client, deadline, &silence).await;
        // Only success is cached, so that fixes are noticed at once.
        if matches!(found, Virtualization::Found { .. }) {
            cache.versions.insert(None, found.clone()).await;
        }
        return Some(found);
    };
    let (home, place) = (&facts.id.namespace, Some(user.place.clone()));
    let request = |deadline| of_kubeconfig(&user, deadline);
    let versions = &cache.versions;
    let found = versions.once(home, place, &facts.infra_time, request).await;
    Some(found.unwrap_or_else(|| Virtualization::Unreachable(user.silence())))
}

/// Another cluster's, by a kubeconfig.
async fn of_kubeconfig(user: &Given<'_>, deadline: Instant) -> Virtualization {
    let deadline = deadline.min(Instant::now() + REQUEST_TIMEOUT);
    match connect(user.kubeconfig).await {
        Ok(client) => virtualization(&client, deadline, &user.silence()).await,
        Err(why) => Virtualization::Unusable(why),
    }
}

/// Requests the versions of a cluster until the deadline. After it, the silence is reported.
async fn virtualization(client: &Client, deadline: Instant, silence: &str) -> Virtualization {
    match timeout_at(deadline, request_versions(client)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Virtualization::Unreachable(describe(&error)),
        Err(_) => Virtualization::Unreachable(silence.to_owned()),
    }
}

async fn request_versions(client: &Client) -> kube::Result<Virtualization> {
    let kubernetes = get::<Info>(client, "/version").await?.git_version;
    let group = match get::<APIGroup>(client, KUBEVIRT).await {
        Ok(group) => group,
        Err(error) if is_missing(&error) => return Ok(Virtualization::Absent),
        Err(error) => return Err(error),
    };
    let version = group
        .preferred_version
        .or_else(|| group.versions.into_iter().next());
    let Some(version) = version else {
        return Ok(Virtualization::Absent);
    };
    let path = format!("/apis/{}/version", version.group_version);
    let response: Value = get(client, &path).await?;
    let kubevirt = response["gitVersion"].as_str().unwrap_or_default();
    Ok(Virtualization::Found {
        kubernetes: cut(&kubernetes),
        kubevirt: cut(kubevirt),
    })
}

/// Truncates a version, which is untrusted.
fn cut(version: &str) -> String {
    version.chars().take(LONGEST).collect()
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> kube::Result<T> {
    let request = Request::get(path).body(Body::empty());
    let request = request.map_err(kube::Error::HttpError)?;
    send(client, request, LONGEST_BODY).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const VERSION: &str = "/apis/subresources.kubevirt.io/v1/version";

    /// A Kubernetes API server with this response about KubeVirt.
    async fn results(calls: Vec<Expect>) -> Virtualization {
        let version = json!({
            "major": "1", "minor": "33", "gitVersion": "v1.33.5", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        });
        let server = Expect::get("/version").answer(Answer::ok(&version));
        let scenario = Scenario::new([server].into_iter().chain(calls));
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let found = virtualization(&scenario.client(), deadline, "no response").await;
        scenario.finish();
        found
    }

    #[tokio::test]
    async fn versions_are_those_reported_by_the_servers() {
        let version = json!({ "groupVersion": "subresources.kubevirt.io/v1", "version": "v1" });
        let group = json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": "subresources.kubevirt.io",
            "versions": [version],
            "preferredVersion": version,
        });
        let group = || Expect::get(KUBEVIRT).answer(Answer::ok(&group));
        let own = Expect::get(VERSION).answer(Answer::ok(&json!({ "gitVersion": "v1.6.0" })));
        let found = Virtualization::Found {
            kubernetes: "v1.33.5".to_owned(),
            kubevirt: "v1.6.0".to_owned(),
        };
        assert_eq!(results(vec![group(), own]).await, found);
        let missing = Expect::get(KUBEVIRT).answer(Answer::error(404, "NotFound"));
        assert_eq!(results(vec![missing]).await, Virtualization::Absent);
        for (code, reason) in [(403, "Forbidden"), (503, "ServiceUnavailable")] {
            let refused = Expect::get(VERSION).answer(Answer::error(code, reason));
            let found = results(vec![group(), refused]).await;
            let expected = format!("it responds with status {code}");
            assert_eq!(found, Virtualization::Unreachable(expected));
        }
    }

    #[tokio::test]
    async fn long_responses_are_not_read_to_the_end() {
        let endless = "x".repeat(LONGEST_BODY);
        let long = json!({ "kind": "APIGroup", "name": endless, "versions": [] });
        let long = Expect::get(KUBEVIRT).answer(Answer::ok(&long));
        let Virtualization::Unreachable(message) = results(vec![long]).await else {
            panic!("it was read");
        };
        assert!(message.contains("length limit exceeded"), "{message}");
        assert!(message.len() < 200, "{message}");
    }
}
