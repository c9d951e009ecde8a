//! The checks that a component can wait for.

use std::fmt;
use std::str::FromStr;

use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Api;
use kube::api::ListParams;
use kube::client::Body;
use serde_json::Value;
use support::error::chain;
use support::reconcile::is_missing;

/// Path of the cluster's Infrastructure.
const INFRASTRUCTURE: &str = "/apis/config.openshift.io/v1/infrastructures/cluster";

/// A check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// A kind is served.
    Api(RequiredApi),
    /// The Infrastructure `cluster` exists.
    Infrastructure,
    /// Pods are deleted.
    PodsGone(LabeledPods),
    /// A ClusterRoleBinding exists.
    ClusterRoleBinding(String),
}

/// A kind of an API group, written `GROUP,VERSION,KIND`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredApi {
    group: String,
    version: String,
    kind: String,
}

/// Pods with a label, written `NAMESPACE/KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabeledPods {
    namespace: String,
    label: String,
}

/// Checks that a URL responds with a 2xx status.
pub(super) async fn probe_url(client: &kube::Client, path: &str) -> Result<(), String> {
    let request = Request::get(path)
        .body(Body::empty())
        .map_err(|error| error.to_string())?;
    match client.send(request).await {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(format!("HTTP status {}", response.status())),
        Err(error) => Err(chain(&error)),
    }
}

// === impl RequiredApi ===

impl RequiredApi {
    fn path(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() {
            return format!("/api/{version}");
        }
        format!("/apis/{group}/{version}")
    }

    fn is_in(&self, list: &APIResourceList) -> bool {
        // Subresources have a slash in their name, and often the kind of their resource.
        let resources = list.resources.iter();
        resources
            .filter(|resource| !resource.name.contains('/'))
            .any(|resource| resource.kind == self.kind)
    }
}

impl FromStr for RequiredApi {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split(',').collect();
        match parts.as_slice() {
            [group, version, kind] if !version.is_empty() && !kind.is_empty() => Ok(Self {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                kind: (*kind).to_owned(),
            }),
            _ => Err("expected GROUP,VERSION,KIND; GROUP is empty for the core group".to_owned()),
        }
    }
}

impl FromStr for LabeledPods {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, label)) if !namespace.is_empty() && !label.is_empty() => Ok(Self {
                namespace: namespace.to_owned(),
                label: label.to_owned(),
            }),
            _ => Err("expected NAMESPACE/KEY=VALUE".to_owned()),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(RequiredApi {
                group,
                version,
                kind,
            }) => write!(f, "kind {kind} of {group}/{version}"),
            Self::Infrastructure => f.write_str("Infrastructure cluster"),
            Self::PodsGone(LabeledPods { namespace, label }) => {
                write!(
                    f,
                    "deletion of pods with label {label} in namespace {namespace}"
                )
            }
            Self::ClusterRoleBinding(name) => write!(f, "ClusterRoleBinding {name}"),
        }
    }
}

// === impl Check ===

impl Check {
    /// Runs the check; the error says what is missing.
    pub(super) async fn run(&self, client: &kube::Client) -> Result<(), String> {
        match self {
            Self::Api(api) => api_is_served(client, api).await,
            Self::Infrastructure => check_exists(get::<Value>(client, INFRASTRUCTURE).await),
            Self::PodsGone(pods) => pods_are_gone(client, pods).await,
            Self::ClusterRoleBinding(name) => {
                let api: Api<ClusterRoleBinding> = Api::all(client.clone());
                check_exists(api.get_metadata(name).await)
            }
        }
    }
}

async fn api_is_served(client: &kube::Client, api: &RequiredApi) -> Result<(), String> {
    let list = get::<APIResourceList>(client, &api.path()).await;
    match list {
        Ok(list) if api.is_in(&list) => Ok(()),
        Ok(_) => Err("not served yet".to_owned()),
        Err(error) => check_exists::<()>(Err(error)),
    }
}

async fn pods_are_gone(client: &kube::Client, pods: &LabeledPods) -> Result<(), String> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pods.namespace);
    let params = ListParams::default().labels(&pods.label);
    let list = api.list_metadata(&params).await;
    let left = list.map_err(|error| chain(&error))?.items.len();
    if left == 0 {
        return Ok(());
    }
    Err(format!("{left} pods still exist"))
}

async fn get<T: serde::de::DeserializeOwned>(client: &kube::Client, path: &str) -> kube::Result<T> {
    let request = Request::get(path)
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

fn check_exists<T>(response: kube::Result<T>) -> Result<(), String> {
    match response {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Err(StatusCode::NOT_FOUND.to_string()),
        Err(error) => Err(chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    fn api(text: &str) -> Check {
        Check::Api(text.parse().unwrap())
    }

    #[test]
    fn check_flags_are_validated() {
        for text in ["a.b,v1,C", ",v1,Pod"] {
            assert!(text.parse::<RequiredApi>().is_ok(), "{text}");
        }
        for text in ["", "a.b,v1", "a.b,v1,C,D", "a.b,,C"] {
            assert!(text.parse::<RequiredApi>().is_err(), "{text}");
        }
        for text in ["", "a", "/a=b", "a/"] {
            assert!(text.parse::<LabeledPods>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn checks_query_the_cluster() {
        let networks = json!({ "groupVersion": "a.b/v1", "resources": [
            { "name": "networks", "kind": "Network", "namespaced": false, "singularName": "", "verbs": [] },
            { "name": "networks/status", "kind": "Status", "namespaced": false, "singularName": "", "verbs": [] },
        ]});
        let binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/x";
        let pod = json!({ "metadata": { "name": "p" } });
        for (check, path, response, expected) in [
            (
                api("a.b,v1,Network"),
                "/apis/a.b/v1",
                Answer::ok(&networks),
                true,
            ),
            (
                api("a.b,v1,Status"),
                "/apis/a.b/v1",
                Answer::ok(&networks),
                false,
            ),
            (
                api("a.b,v1,Network"),
                "/apis/a.b/v1",
                Answer::error(404, "NotFound"),
                false,
            ),
            (
                Check::Infrastructure,
                INFRASTRUCTURE,
                Answer::ok(&json!({})),
                true,
            ),
            (
                Check::Infrastructure,
                INFRASTRUCTURE,
                Answer::error(404, "NotFound"),
                false,
            ),
            (
                Check::PodsGone("n/k=v".parse().unwrap()),
                "/api/v1/namespaces/n/pods?labelSelector=k%3Dv",
                Answer::list(&[]),
                true,
            ),
            (
                Check::PodsGone("n/k=v".parse().unwrap()),
                "/api/v1/namespaces/n/pods",
                Answer::list(&[pod]),
                false,
            ),
            (
                Check::ClusterRoleBinding("x".into()),
                binding,
                Answer::ok(&json!({ "metadata": {} })),
                true,
            ),
            (
                Check::ClusterRoleBinding("x".into()),
                binding,
                Answer::error(403, "Forbidden"),
                false,
            ),
        ] {
            let scenario = Scenario::new([Expect::get(path).answer(response)]);
            let requested = check.run(&scenario.client()).await;
            assert_eq!(requested.is_ok(), expected, "{check}: {requested:?}");
            scenario.finish();
        }
    }

    #[tokio::test]
    async fn target_check_requires_a_success_status() {
        for (response, expected) in [
            (Answer::ok(&json!({})), true),
            (Answer::error(500, "InternalError"), false),
        ] {
            let scenario = Scenario::new([Expect::get("/readyz").answer(response)]);
            let requested = probe_url(&scenario.client(), "/readyz").await;
            assert_eq!(requested.is_ok(), expected, "{requested:?}");
        }
    }
}
