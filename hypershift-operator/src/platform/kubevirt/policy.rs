//! The NetworkPolicy of virtual machines on another infrastructure cluster, and the networks there that they may not reach.

use std::net::IpAddr;

use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{ApiResource, GetParams, Patch, PatchParams};
use serde_json::Value;
use support::reconcile::is_missing;

use super::client::{InfraCluster, LONGEST_BODY, describe};
use super::machines::INFRA_ID_LABEL;

/// OpenShift's Network.
const NETWORKS: &str = "/apis/config.openshift.io/v1/networks";
/// Field manager.
const MANAGER: &str = "hypershift-operator";
/// The most ranges that are taken from a user's server.
const MOST: usize = 64;

/// Address ranges of pods and Services.
pub(crate) async fn networks(infra: &InfraCluster) -> Result<Vec<String>, String> {
    let request = kube::core::Request::new(NETWORKS).get("cluster", &GetParams::default());
    let found: Result<Value, _> = infra.send(request, LONGEST_BODY).await;
    let found = found.map_err(|error| describe(&error))?;
    let list = |field: &str| found["spec"][field].as_array().into_iter().flatten();
    let pods = list("clusterNetwork").map(|it| &it["cidr"]);
    let ranges = pods.chain(list("serviceNetwork"));
    let ranges = ranges.filter_map(Value::as_str).filter(|it| is_range(it));
    Ok(ranges.take(MOST).map(str::to_owned).collect())
}

/// Applies the policy. One of its name that is not labelled as this cluster's is left alone.
pub(crate) async fn apply(
    infra: &InfraCluster,
    infra_id: &str,
    policy: &Value,
) -> Result<(), String> {
    let name = policy["metadata"]["name"].as_str().unwrap_or_default();
    let found: kube::Result<Value> = infra
        .send(
            infra.requests(&resource()).get(name, &GetParams::default()),
            LONGEST_BODY,
        )
        .await;
    match found {
        Ok(found) if found["metadata"]["labels"][INFRA_ID_LABEL] != infra_id => {
            return Err("it exists, and is not of this cluster: delete it".to_owned());
        }
        Err(error) if !is_missing(&error) => return Err(describe(&error)),
        Ok(_) | Err(_) => {}
    }
    let params = PatchParams::apply(MANAGER).force();
    let request = infra
        .requests(&resource())
        .patch(name, &params, &Patch::Apply(policy));
    let applied: kube::Result<Value> = infra.send(request, LONGEST_BODY).await;
    applied.map(drop).map_err(|error| describe(&error))
}

/// Deletes the policy of this cluster. One of its name that is not labelled as this cluster's is left alone.
pub(crate) async fn delete(infra: &InfraCluster, infra_id: &str, name: &str) -> Result<(), String> {
    let get = infra.requests(&resource()).get(name, &GetParams::default());
    let found: Value = match infra.send(get, LONGEST_BODY).await {
        Ok(found) => found,
        Err(error) if is_missing(&error) => return Ok(()),
        Err(error) => return Err(describe(&error)),
    };
    if found["metadata"]["labels"][INFRA_ID_LABEL] != infra_id {
        return Ok(());
    }
    let uid = found["metadata"]["uid"].as_str();
    let deleted = infra.delete(&infra.requests(&resource()), name, uid).await;
    deleted.map_err(|error| describe(&error))
}

fn is_range(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn resource() -> ApiResource {
    ApiResource::erase::<NetworkPolicy>(&())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const POLICY: &str =
        "/apis/networking.k8s.io/v1/namespaces/machines/networkpolicies/virt-launcher-one-x7k2p";

    #[tokio::test]
    async fn networks_of_users_servers_are_ranges() {
        let network = json!({ "spec": {
            "clusterNetwork": [{ "cidr": "10.128.0.0/14" }, { "cidr": "x" }, { "cidr": "10.0.0.0/33" }, {}],
            "serviceNetwork": ["172.30.0.0/16", "fd02::/112", 7],
        } });
        for (answer, expected) in [
            (
                Answer::ok(&network),
                Ok(vec!["10.128.0.0/14", "172.30.0.0/16", "fd02::/112"]),
            ),
            (
                Answer::error(403, "Forbidden"),
                Err("it responds with status 403"),
            ),
            (
                Answer::error(404, "NotFound"),
                Err("it responds with status 404"),
            ),
        ] {
            let path = format!("{NETWORKS}/cluster");
            let scenario = Scenario::new([Expect::get(&path).answer(answer)]);
            let infra = InfraCluster::local(scenario.client(), "machines");
            let found = networks(&infra).await;
            let found = found
                .as_ref()
                .map(|it| it.iter().map(String::as_str).collect());
            assert_eq!(found.map_err(String::as_str), expected);
            scenario.finish();
        }
    }

    /// Check T01: another cluster may have the same infrastructure namespace.
    #[tokio::test]
    async fn policies_of_others_are_not_deleted() {
        let live = |infra_id: &str| {
            let metadata = json!({ "uid": "u", "labels": { INFRA_ID_LABEL: infra_id } });
            Answer::ok(&json!({ "metadata": metadata }))
        };
        for (answer, is_deleted, is_ok) in [
            (live("one-x7k2p"), true, true),
            (live("two-x7k2p"), false, true),
            (Answer::error(404, "NotFound"), false, true),
            (Answer::error(403, "Forbidden"), false, false),
        ] {
            let delete = Expect::delete(POLICY).body(json!({ "preconditions": { "uid": "u" } }));
            let calls = [Expect::get(POLICY).answer(answer)].into_iter();
            let scenario = Scenario::new(calls.chain(is_deleted.then_some(delete)));
            let infra = InfraCluster::local(scenario.client(), "machines");
            let deleted = super::delete(&infra, "one-x7k2p", "virt-launcher-one-x7k2p").await;
            assert_eq!(deleted.is_ok(), is_ok, "{deleted:?}");
            scenario.finish();
        }
    }

    /// Check T01: another cluster may have the same infrastructure namespace.
    #[tokio::test]
    async fn policies_of_others_are_not_overwritten() {
        let policy = json!({ "metadata": { "name": "virt-launcher-one-x7k2p" }, "spec": {} });
        let live = |infra_id: &str| {
            Answer::ok(&json!({ "metadata": { "labels": { INFRA_ID_LABEL: infra_id } } }))
        };
        for (answer, is_applied) in [
            (live("one-x7k2p"), true),
            (live("two-x7k2p"), false),
            (Answer::error(404, "NotFound"), true),
            (Answer::error(403, "Forbidden"), false),
        ] {
            let patch = Expect::patch(POLICY).body(policy.clone());
            let calls = [Expect::get(POLICY).answer(answer)].into_iter();
            let scenario = Scenario::new(calls.chain(is_applied.then_some(patch)));
            let infra = InfraCluster::local(scenario.client(), "machines");
            let applied = apply(&infra, "one-x7k2p", &policy).await;
            assert_eq!(applied.is_ok(), is_applied, "{applied:?}");
            scenario.finish();
        }
    }
}
