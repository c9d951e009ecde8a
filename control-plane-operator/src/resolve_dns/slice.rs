//! The EndpointSlice of one pod. Its service account may only get, create and update it, so server-side apply is not
//! used.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::PostParams;

/// Value of the managed-by label, so that the built-in controller does not delete the slice.
const MANAGER: &str = "control-plane-operator";
/// Ports of an etcd member.
const PORTS: [(&str, i32); 2] = [("peer", 2380), ("etcd-client", 2379)];

/// A pod of a headless Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pod: String,
    pub(super) service: String,
    pub(super) namespace: String,
    pub(super) address: IpAddr,
}

// === impl Entry ===

impl Entry {
    /// Parses POD.SERVICE.NAMESPACE.svc, with an optional suffix.
    pub(super) fn new(name: &str, address: IpAddr) -> Result<Self, String> {
        let mut labels = name.split('.');
        let mut next = || labels.next().filter(|label| !label.is_empty());
        match (next(), next(), next(), next()) {
            (Some(pod), Some(service), Some(namespace), Some("svc")) => Ok(Self {
                pod: pod.to_owned(),
                service: service.to_owned(),
                namespace: namespace.to_owned(),
                address,
            }),
            _ => Err(format!(
                "invalid pod name {name:?}: --self-register requires POD.SERVICE.NAMESPACE.svc"
            )),
        }
    }

    fn slice(&self, pod: &Pod) -> EndpointSlice {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        EndpointSlice {
            metadata: ObjectMeta {
                name: Some(format!("{}-{}", self.service, self.pod)),
                namespace: Some(self.namespace.clone()),
                labels: Some(self.labels()),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Pod".to_owned(),
                    name: self.pod.clone(),
                    uid: uid.clone(),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            address_type: if self.address.is_ipv4() {
                "IPv4"
            } else {
                "IPv6"
            }
            .to_owned(),
            endpoints: vec![self.endpoint(uid)],
            ports: Some(PORTS.map(port).to_vec()),
        }
    }

    fn labels(&self) -> std::collections::BTreeMap<String, String> {
        [
            ("kubernetes.io/service-name", self.service.as_str()),
            ("endpointslice.kubernetes.io/managed-by", MANAGER),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    fn endpoint(&self, uid: String) -> Endpoint {
        Endpoint {
            addresses: vec![self.address.to_string()],
            hostname: Some(self.pod.clone()),
            conditions: Some(EndpointConditions {
                ready: Some(true),
                ..EndpointConditions::default()
            }),
            target_ref: Some(ObjectReference {
                kind: Some("Pod".to_owned()),
                name: Some(self.pod.clone()),
                namespace: Some(self.namespace.clone()),
                uid: Some(uid),
                ..ObjectReference::default()
            }),
            ..Endpoint::default()
        }
    }
}

fn port((name, port): (&str, i32)) -> EndpointPort {
    EndpointPort {
        name: Some(name.to_owned()),
        port: Some(port),
        protocol: Some("TCP".to_owned()),
        ..EndpointPort::default()
    }
}

/// Creates or updates the slice, if it differs.
pub(super) async fn write(client: &kube::Client, entry: &Entry) -> kube::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &entry.namespace);
    let pod = pods.get(&entry.pod).await?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), &entry.namespace);
    let mut desired = entry.slice(&pod);
    let name = desired.metadata.name.clone().unwrap_or_default();
    let params = PostParams::default();
    let Some(found) = slices.get_opt(&name).await? else {
        return slices.create(&params, &desired).await.map(drop);
    };
    if is_same(&found, &desired) {
        return Ok(());
    }
    if found.address_type != desired.address_type {
        tracing::warn!(name, "EndpointSlice has another address family");
    }
    desired.metadata.resource_version = found.metadata.resource_version;
    slices.replace(&name, &params, &desired).await.map(drop)
}

fn is_same(found: &EndpointSlice, desired: &EndpointSlice) -> bool {
    found.endpoints == desired.endpoints
        && found.ports == desired.ports
        && found.metadata.labels == desired.metadata.labels
        && found.metadata.owner_references == desired.metadata.owner_references
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/c-d/endpointslices";

    fn entry() -> Entry {
        let address = "10.0.0.7".parse().unwrap();
        Entry::new("etcd-0.etcd-discovery.c-d.svc", address).unwrap()
    }

    fn pod() -> Value {
        json!({ "metadata": { "name": "etcd-0", "uid": "u" } })
    }

    #[test]
    fn pod_dns_names_are_parsed() {
        let address = "10.0.0.7".parse().unwrap();
        assert_eq!(entry().service, "etcd-discovery");
        assert!(Entry::new("a.b.c.svc.cluster.local", address).is_ok());
        for name in ["", "a", "a.b.c", "a.b.c.d", ".b.c.svc"] {
            assert!(Entry::new(name, address).is_err(), "{name}");
        }
    }

    #[tokio::test]
    async fn slices_are_created_updated_or_unchanged() {
        let ready: Pod = serde_json::from_value(pod()).unwrap();
        let slice = serde_json::to_value(entry().slice(&ready)).unwrap();
        let mut of_before = slice.clone();
        of_before["metadata"]["resourceVersion"] = json!("5");
        of_before["endpoints"][0]["addresses"][0] = json!("10.0.0.6");
        let one = format!("{SLICES}/etcd-discovery-etcd-0");
        let get_pod =
            || Expect::get("/api/v1/namespaces/c-d/pods/etcd-0").answer(Answer::ok(&pod()));
        let scenario = Scenario::new([
            get_pod(),
            Expect::get(&one).answer(Answer::error(404, "NotFound")),
            Expect::post(SLICES)
                .body(json!({ "endpoints": [{ "addresses": ["10.0.0.7"], "hostname": "etcd-0" }] }))
                .answer(Answer::ok(&slice)),
            get_pod(),
            Expect::get(&one).answer(Answer::ok(&slice)),
            get_pod(),
            Expect::get(&one).answer(Answer::ok(&of_before)),
            Expect::put(&one)
                .body(json!({ "metadata": { "resourceVersion": "5", "ownerReferences": [{ "uid": "u" }] } }))
                .answer(Answer::ok(&slice)),
        ]);
        for _ in 0..3 {
            write(&scenario.client(), &entry()).await.unwrap();
        }
        scenario.finish();
    }
}
