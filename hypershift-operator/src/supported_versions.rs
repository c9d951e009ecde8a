//! The `ConfigMap` `supported-versions` in the namespace of this operator: which minor versions of OpenShift it supports, and
//! of which commit it is. `hypershift version`, `create cluster --release-stream` and consoles read it.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use payload::Minor;
use serde_json::{Value, json};
use support::controller::{DEADLINE, Manager};
use support::error::chain;
use support::reconcile::{Report, Retry, client_reason};
use support::shutdown::Drain;

use crate::names::FIELD_MANAGER;

/// Its name, and the key with the versions.
const NAME: &str = "supported-versions";
/// The key with the commit.
const COMMIT_KEY: &str = "server-version";
/// Label by which it is found.
const LABEL: &str = "hypershift.openshift.io/supported-versions";
/// Set when a release is built.
const COMMIT: Option<&str> = option_env!("HYPERSHIFT_COMMIT");
/// The commit of other builds, as in HyperShift.
const UNKNOWN: &str = "<unknown>";
/// How often it is checked.
const INTERVAL: Duration = Duration::from_mins(10);
/// After a failure.
const RETRY: Duration = Duration::from_secs(30);

/// A failure, which is retried.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("failed to get ConfigMap {namespace}/supported-versions")]
    Get {
        namespace: String,
        source: kube::Error,
    },
    #[error("failed to apply ConfigMap {namespace}/supported-versions")]
    Apply {
        namespace: String,
        source: kube::Error,
    },
}

/// Keeps it up to date, until the shutdown begins.
pub(crate) async fn run(
    client: &kube::Client,
    namespace: &str,
    manager: &Manager,
    mut drain: Drain,
) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    loop {
        let write = async {
            let written = reconcile(&api, namespace).await;
            written.inspect_err(|error| log(namespace, error))
        };
        let written = manager.pass("supported-versions", DEADLINE, write).await;
        let pause = if written.is_ok() { INTERVAL } else { RETRY };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = drain.begun() => return,
        }
    }
}

fn log(namespace: &str, error: &Error) {
    tracing::warn!(
        namespace,
        error = chain(error),
        "Failed to publish the supported versions"
    );
}

/// Writes it if it differs. The operator of another HyperShift may have written it before.
async fn reconcile(api: &Api<ConfigMap>, namespace: &str) -> Result<(), Error> {
    let found = api.get_opt(NAME).await.map_err(|source| Error::Get {
        namespace: namespace.to_owned(),
        source,
    })?;
    let desired = desired(namespace);
    if found.is_some_and(|found| is_current(&found, &desired)) {
        return Ok(());
    }
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(NAME, &params, &Patch::Apply(&desired)).await;
    applied.map(drop).map_err(|source| Error::Apply {
        namespace: namespace.to_owned(),
        source,
    })
}

fn desired(namespace: &str) -> Value {
    let commit = COMMIT.filter(|it| !it.is_empty()).unwrap_or(UNKNOWN);
    let versions = json!({ "versions": Minor::supported() }).to_string();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": { LABEL: "true" },
        },
        "data": { NAME: versions, COMMIT_KEY: commit },
    })
}

fn is_current(found: &ConfigMap, desired: &Value) -> bool {
    let labels = found.metadata.labels.as_ref();
    let is_labeled = labels.is_some_and(|it| it.get(LABEL).is_some_and(|it| it == "true"));
    let data = found.data.as_ref();
    let is_same = |key: &str| {
        let text = data.and_then(|it| it.get(key)).map(String::as_str);
        text == desired["data"][key].as_str()
    };
    is_labeled && is_same(NAME) && is_same(COMMIT_KEY)
}

// === impl Error ===

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Get { source, .. } | Self::Apply { source, .. } => client_reason(source),
        }
    }

    fn retry(&self) -> Retry {
        Retry::Backoff
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const PATH: &str = "/api/v1/namespaces/hypershift/configmaps/supported-versions";

    async fn assert_written(found: Answer, is_written: bool) {
        let get = Expect::get(PATH).answer(found);
        let patch = Expect::patch(PATH)
            .body(desired("hypershift"))
            .answer(Answer::ok(&desired("hypershift")));
        let scenario = Scenario::new([get].into_iter().chain(is_written.then_some(patch)));
        let api = Api::namespaced(scenario.client(), "hypershift");
        reconcile(&api, "hypershift").await.unwrap();
        scenario.finish();
    }

    #[tokio::test]
    async fn missing_or_different_config_map_is_written() {
        assert_written(Answer::error(404, "NotFound"), true).await;
        let mut other = desired("hypershift");
        other["data"][NAME] = json!("{\"versions\":[\"4.13\"]}");
        assert_written(Answer::ok(&other), true).await;
        let mut unlabeled = desired("hypershift");
        unlabeled["metadata"]["labels"] = json!({});
        assert_written(Answer::ok(&unlabeled), true).await;
        assert_written(Answer::ok(&desired("hypershift")), false).await;
    }

    #[test]
    fn versions_are_listed_newest_first() {
        let desired = desired("hypershift");
        let text = desired["data"][NAME].as_str().unwrap();
        let listed: Value = serde_json::from_str(text).unwrap();
        assert_eq!(listed["versions"][0], Minor::NEWEST.to_string());
        assert_eq!(listed["versions"], json!(Minor::supported()));
    }
}
