//! Status of the hosted cluster in the HostedControlPlane: nodes, release, and connectivity.
//!
//! What cannot be read leaves its part of the status as it is, and the rest is written: that the hosted cluster cannot be
//! reached is just what its conditions report.

mod connection;
mod mtu;
mod version;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use support::error::chain;
use support::reconcile::is_missing;
use tokio::time::timeout;

use self::connection::Connection;
use super::context::Context;
use super::control_plane;
use super::error::Error;

/// Timeout of the request for the ClusterVersion, so that an API server without answers is reported, too.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// What was found out about the hosted cluster.
struct Findings {
    /// The number of nodes.
    nodes: Result<usize, Error>,
    connection: Connection,
    cluster_version: Result<Option<DynamicObject>, Error>,
    /// The MTU, if it matters on this platform.
    mtu: Result<Option<u64>, Error>,
}

/// Updates the status.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    // Of any release, so that an upgrade is reported from its start.
    let Some(object) = ctx.any_control_plane().await? else {
        return Ok(());
    };
    let findings = Findings::of(&ctx.guest, &object, ctx.nodes().await).await;
    findings.report(&ctx.control_planes(), &object).await
}

// === impl Findings ===

impl Findings {
    async fn of(
        guest: &kube::Client,
        control_plane: &DynamicObject,
        nodes: Result<Vec<Arc<Node>>, Error>,
    ) -> Self {
        let connection = async {
            match &nodes {
                Ok(nodes) => connection::check(guest, nodes).await,
                Err(error) => Connection::NodesNotListed(chain(error)),
            }
        };
        let (connection, cluster_version, mtu) = tokio::join!(
            connection,
            cluster_version(guest),
            mtu::find(guest, control_plane)
        );
        Self {
            nodes: nodes.map(|nodes| nodes.len()),
            connection,
            cluster_version,
            mtu,
        }
    }

    /// Writes what was found out, and returns what was not.
    async fn report(
        self,
        api: &Api<DynamicObject>,
        control_plane: &DynamicObject,
    ) -> Result<(), Error> {
        let generation = control_plane.metadata.generation;
        let now = Timestamp::now();
        let written = control_plane::write(api, control_plane, |status| {
            self.set(status, generation, now);
        });
        let written = written.await;
        let failures = [
            written.err(),
            self.nodes.err(),
            self.cluster_version.err(),
            self.mtu.err(),
        ];
        let mut failures: Vec<_> = failures.into_iter().flatten().collect();
        match failures.pop() {
            None => Ok(()),
            Some(only) if failures.is_empty() => Err(only),
            Some(last) => {
                failures.push(last);
                Err(Error::Several(failures))
            }
        }
    }

    fn set(&self, status: &mut Value, generation: Option<i64>, now: Timestamp) {
        if let Ok(count) = &self.nodes {
            status["nodeCount"] = json!(count);
        }
        let mut conditions = Vec::new();
        if let Ok(found) = &self.cluster_version {
            let (versions, of_version) = version::of(status, found.as_ref(), generation);
            conditions.extend(of_version);
            if let Some(versions) = versions {
                status["versionStatus"] = versions;
            }
        }
        conditions.extend(self.connection.conditions(now));
        if let Ok(Some(mtu)) = &self.mtu {
            conditions.push(mtu::condition(*mtu));
        }
        control_plane::set(status, &conditions, generation, now);
    }
}

/// Returns the ClusterVersion of the hosted cluster, if it exists.
async fn cluster_version(guest: &kube::Client) -> Result<Option<DynamicObject>, Error> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusterversions");
    let api: Api<DynamicObject> = Api::all_with(guest.clone(), &resource);
    match timeout(VERSION_TIMEOUT, api.get_opt("version")).await {
        Err(_) => Err(Error::waiting("the answer to get ClusterVersion version")),
        Ok(Err(error)) if is_missing(&error) => Ok(None),
        Ok(found) => found.map_err(Error::client("get ClusterVersion version")),
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario, hung_client};

    use super::*;

    const ONE: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/a/hostedcontrolplanes/b";
    const VERSION: &str = "/apis/config.openshift.io/v1/clusterversions/version";
    const PODS: &str = "/api/v1/namespaces/kube-system/pods";
    const REPORT: &str =
        "/api/v1/namespaces/kube-system/configmaps/control-plane-connectivity-check";

    /// A control plane that was well when it was last looked at.
    fn control_plane() -> Value {
        let condition = |kind: &str| {
            json!({
                "type": kind, "status": "True", "reason": "AsExpected",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            })
        };
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
            "metadata": { "name": "b", "namespace": "a", "resourceVersion": "1" },
            "status": {
                "nodeCount": 1,
                "versionStatus": { "history": [{ "version": "4.22.0" }] },
                "conditions": [
                    condition("DataPlaneConnectionAvailable"),
                    condition("ControlPlaneConnectionAvailable"),
                ],
            },
        })
    }

    fn node() -> Arc<Node> {
        let node = json!({
            "metadata": { "name": "n" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        Arc::new(serde_json::from_value(node).unwrap())
    }

    /// Status and reason of a condition, as they are to be written.
    fn condition(kind: &str, (status, reason): (&str, &str)) -> Value {
        json!({ "type": kind, "status": status, "reason": reason })
    }

    /// Runs a pass with a hosted cluster that gives these answers; the status is written once.
    async fn reported(
        nodes: Result<Vec<Arc<Node>>, Error>,
        answers: Vec<Expect>,
        expected: Value,
    ) -> Error {
        let guest = Scenario::new([]).always(answers);
        let written = json!({ "metadata": { "resourceVersion": "1" }, "status": expected });
        let put = Expect::put(&format!("{ONE}/status")).body(written);
        let management = Scenario::new([put.answer(Answer::ok(&control_plane()))]);
        let known = serde_json::from_value(control_plane()).unwrap();
        let findings = Findings::of(&guest.client(), &known, nodes).await;
        let resource = control_plane::resource();
        let api = Api::namespaced_with(management.client(), "a", &resource);
        let error = findings.report(&api, &known).await.unwrap_err();
        management.finish();
        error
    }

    #[tokio::test]
    async fn connections_are_reported_without_a_cluster_version() {
        let failing = || Answer::error(500, "InternalError");
        let answers = vec![
            Expect::get(VERSION).answer(failing()),
            Expect::get(PODS).answer(failing()),
            Expect::get(REPORT).answer(failing()),
        ];
        let expected = json!({
            "nodeCount": 1,
            "versionStatus": { "history": [{ "version": "4.22.0" }] },
            "conditions": [
                condition("DataPlaneConnectionAvailable", ("False", "ReconciliationError")),
                condition("ControlPlaneConnectionAvailable", ("Unknown", "ReconcileError")),
            ],
        });
        let error = reported(Ok(vec![node()]), answers, expected).await;
        let text = error.to_string();
        assert_eq!(text, "failed to get ClusterVersion version");
    }

    #[tokio::test]
    async fn connections_are_unknown_without_a_list_of_nodes() {
        let answers = vec![Expect::get(VERSION).answer(Answer::error(404, "NotFound"))];
        let unknown = ("Unknown", "ReconcileError");
        let expected = json!({
            "nodeCount": 1,
            "conditions": [
                condition("DataPlaneConnectionAvailable", unknown),
                condition("ControlPlaneConnectionAvailable", unknown),
            ],
        });
        let nodes = Err(Error::waiting("the initial list of Nodes"));
        let error = reported(nodes, answers, expected).await;
        assert_eq!(error.to_string(), "waiting for the initial list of Nodes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hosted_cluster_without_answers_is_reported() {
        let known = serde_json::from_value(control_plane()).unwrap();
        let found = Findings::of(&hung_client(), &known, Ok(vec![node()])).await;
        let conditions = found.connection.conditions(Timestamp::UNIX_EPOCH);
        let states = conditions.map(|it| (it.status.as_str(), it.reason));
        let expected = [
            ("False", "ReconciliationError"),
            ("Unknown", "ReconcileError"),
        ];
        assert_eq!(states, expected);
        let error = found.cluster_version.unwrap_err().to_string();
        assert_eq!(
            error,
            "waiting for the answer to get ClusterVersion version"
        );
    }

    #[tokio::test]
    async fn all_failures_are_returned() {
        let answers = vec![Expect::get(VERSION).answer(Answer::error(500, "InternalError"))];
        let nodes = Err(Error::waiting("the initial list of Nodes"));
        let error = reported(nodes, answers, json!({ "nodeCount": 1 })).await;
        assert!(
            matches!(&error, Error::Several(failed) if failed.len() == 2),
            "{error}"
        );
    }
}
