//! Tables of requests, and approvals against a mock API server.

use k8s_openapi::ByteString;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::karpenter_operator::fixtures;

const INFRA: &str = "one-x7k2p";
const NEW: &str = "ip-10-0-0-9.ec2.internal";
const OLD: &str = "ip-10-0-0-1.ec2.internal";

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn node(name: &str, addresses: &[&str]) -> Node {
    let entry = |address: &&str| json!({ "type": "InternalIP", "address": address });
    let addresses: Vec<_> = addresses.iter().map(entry).collect();
    let node = json!({ "metadata": { "name": name }, "status": { "addresses": addresses } });
    serde_json::from_value(node).unwrap()
}

fn claim(instance: &str, node: Option<&str>) -> Claim {
    Claim {
        instance: Some(instance.to_owned()),
        node: node.map(str::to_owned),
        ..Claim::default()
    }
}

fn client() -> Request {
    Request {
        signer: CLIENT.to_owned(),
        username: BOOTSTRAPPER.to_owned(),
        groups: strings(&["system:serviceaccounts"]),
        usages: strings(&["digital signature", "client auth"]),
        common_name: format!("system:node:{NEW}"),
        organizations: strings(&[NODES]),
        ..Request::default()
    }
}

fn serving() -> Request {
    Request {
        signer: SERVING.to_owned(),
        username: format!("system:node:{OLD}"),
        groups: strings(&[NODES, "system:authenticated"]),
        usages: strings(&["digital signature", "server auth"]),
        common_name: format!("system:node:{OLD}"),
        organizations: strings(&[NODES]),
        names: strings(&[OLD]),
        addresses: vec!["10.0.0.1".parse().unwrap()],
        has_unsupported: false,
    }
}

/// What the cluster has: a node, and an instance whose node has not joined.
struct Cluster {
    claims: Vec<Claim>,
    nodes: Vec<Node>,
    instances: Vec<Instance>,
}

impl Cluster {
    fn new() -> Self {
        Self {
            claims: vec![claim("i-1", Some(OLD)), claim("i-9", None)],
            nodes: vec![
                node(OLD, &["10.0.0.1", "10.0.0.5"]),
                node("n-2", &["10.0.0.2", "10.0.0.5"]),
            ],
            instances: vec![Instance::for_tests("i-9", NEW, INFRA)],
        }
    }

    fn evaluate(&self, request: &Request) -> Decision {
        let inventory = Inventory {
            infra_id: INFRA,
            claims: &self.claims,
            nodes: &self.nodes,
            instances: &self.instances,
        };
        inventory.evaluate(request)
    }
}

type Change = fn(&mut Cluster, &mut Request);

/// A machine of another cluster does not join this one, and a machine of this one gets its own name only.
#[test]
fn client_certificates_are_for_instances_of_this_cluster_that_wait() {
    let changes: [(&str, Change, bool); 15] = [
        ("its own", |_, _| {}, true),
        (
            "an instance of another tenant",
            |it, _| {
                it.instances = vec![Instance::for_tests("i-9", NEW, "two-abcde")];
            },
            false,
        ),
        (
            "an instance of a cluster with a longer name",
            |it, _| {
                it.instances = vec![Instance::for_tests("i-9", NEW, "one-x7k2p-2")];
            },
            false,
        ),
        (
            "the name of another node",
            |_, it| it.common_name = "system:node:n-9".into(),
            false,
        ),
        (
            "a part of the name",
            |_, it| it.common_name = "system:node:ip-10-0-0-9".into(),
            false,
        ),
        (
            "the name of a node that is there",
            |_, it| {
                it.common_name = format!("system:node:{OLD}");
            },
            false,
        ),
        ("no instance", |it, _| it.instances.clear(), false),
        (
            "an instance that has ended",
            |it, _| it.instances[0].is_alive = false,
            false,
        ),
        ("no claim", |it, _| it.claims.clear(), false),
        (
            "a claim with another instance",
            |it, _| it.claims = vec![claim("i-8", None)],
            false,
        ),
        (
            "a claim that has its node",
            |it, _| it.claims = vec![claim("i-9", Some("n"))],
            false,
        ),
        (
            "a claim that is deleted",
            |it, _| it.claims[1].is_deleted = true,
            false,
        ),
        (
            "another requestor",
            |_, it| it.username = "system:anonymous".into(),
            false,
        ),
        (
            "administrators",
            |_, it| it.organizations = vec!["system:masters".into()],
            false,
        ),
        (
            "a server's usage",
            |_, it| it.usages.push("server auth".into()),
            false,
        ),
    ];
    for (name, change, expected) in changes {
        let (mut cluster, mut request) = (Cluster::new(), client());
        change(&mut cluster, &mut request);
        let decision = cluster.evaluate(&request);
        assert_eq!(decision.is_ok(), expected, "{name}: {decision:?}");
    }
}

#[test]
fn serving_certificates_are_for_own_names_of_nodes_with_a_claim() {
    let changes: [(&str, Change, bool); 13] = [
        ("its own", |_, _| {}, true),
        ("only an address", |_, it| it.names.clear(), true),
        (
            "nothing",
            |_, it| {
                it.names.clear();
                it.addresses.clear();
            },
            false,
        ),
        ("no claim", |it, _| it.claims.clear(), false),
        (
            "a claim of another node",
            |it, _| it.claims[0].node = Some("n-2".into()),
            false,
        ),
        ("a node that is not there", |it, _| it.nodes.clear(), false),
        (
            "another node asks",
            |_, it| it.username = "system:node:n-2".into(),
            false,
        ),
        ("not as a node", |_, it| it.groups.clear(), false),
        (
            "the name of another node",
            |_, it| it.names.push("n-2".into()),
            false,
        ),
        (
            "a name of the control plane",
            |_, it| {
                it.names.push("kubernetes.default.svc".into());
            },
            false,
        ),
        (
            "the address of another node",
            |_, it| {
                it.addresses.push("10.0.0.2".parse().unwrap());
            },
            false,
        ),
        (
            "an address that two nodes report",
            |_, it| {
                it.addresses.push("10.0.0.5".parse().unwrap());
            },
            false,
        ),
        (
            "another signer",
            |_, it| it.signer = "kubernetes.io/kube-apiserver-client".into(),
            false,
        ),
    ];
    for (name, change, expected) in changes {
        let (mut cluster, mut request) = (Cluster::new(), serving());
        change(&mut cluster, &mut request);
        let decision = cluster.evaluate(&request);
        assert_eq!(decision.is_ok(), expected, "{name}: {decision:?}");
    }
}

#[test]
fn ec2_is_asked_when_a_node_wants_to_join() {
    let claims = Cluster::new().claims;
    let mut renewal = client();
    renewal.username = format!("system:node:{OLD}");
    for (requests, expected) in [
        (vec![client(), serving()], vec!["i-9"]),
        (vec![serving(), renewal], Vec::new()),
    ] {
        assert_eq!(wanted(requests.iter(), &claims), expected);
    }
}

/// A request as a kubelet makes it.
fn object() -> Value {
    let mut params = CertificateParams::new(vec![OLD.to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in [
        (DnType::OrganizationName, NODES.to_owned()),
        (DnType::CommonName, format!("system:node:{OLD}")),
    ] {
        params.distinguished_name.push(kind, value);
    }
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": { "name": "csr-1", "resourceVersion": "9" },
        "spec": {
            "request": ByteString(pem.into_bytes()), "signerName": SERVING,
            "username": format!("system:node:{OLD}"),
            "groups": [NODES], "usages": ["digital signature", "server auth"],
        },
    })
}

#[tokio::test]
async fn a_pass_approves_what_is_pending_once() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": "a" }, "status": { "nodeName": OLD },
    });
    let node = json!(node(OLD, &["10.0.0.1"]));
    let one = format!("{REQUESTS}/csr-1/approval");
    let hcp =
        "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
    let control_plane = || Expect::get(hcp).answer(Answer::ok(&json!(fixtures::control_plane())));
    let (pending, mut approved) = (object(), object());
    approved["status"] = json!({ "conditions": [{ "type": "Approved", "status": "True" }] });
    let part = json!({
        "metadata": { "resourceVersion": "9" },
        "status": { "conditions": [{ "type": "Approved", "reason": "KarpenterCSRApprove" }] },
    });
    let scenario = Scenario::new([
        control_plane(),
        Expect::get(REQUESTS).answer(Answer::list(&[pending])),
        Expect::get("/apis/karpenter.sh/v1/nodeclaims").answer(Answer::list(&[claim])),
        Expect::get("/api/v1/nodes").answer(Answer::list(&[node])),
        Expect::patch(&one)
            .body(part)
            .answer(Answer::error(409, "Conflict")),
        control_plane(),
        Expect::get(REQUESTS).answer(Answer::list(&[approved])),
    ]);
    let ctx = fixtures::context(&scenario);
    for _ in 0..2 {
        let action = pass(&ctx).await.unwrap();
        assert_eq!(action, Action::await_change());
    }
    scenario.finish();
}
