//! Networks: the calls that make them, and what is refused.

use super::*;

const ROUTER: &str = "regions/us-central1/routers/a-x1-router";
const SUBNET: &str = "regions/us-central1/subnetworks/a-x1-subnet";
/// The resources, in the order of their creation.
const PATHS: [&str; 4] = [
    "global/networks/a-x1-network",
    "global/firewalls/a-x1-allow-kubelet",
    SUBNET,
    ROUTER,
];

fn link(path: &str) -> String {
    format!("https://www.googleapis.com/compute/v1/projects/project-1/{path}")
}

#[tokio::test]
async fn a_network_is_created_by_these_calls() {
    let (fake, scope) = (project(), scope());
    let executor = executor(&fake, &scope);
    executor.create_network(&network_request()).await.unwrap();
    let description = "HyperShift cluster a-x1";
    let network = link("global/networks/a-x1-network");
    let expected = [
        (
            "POST /global/networks",
            json!({
                "name": "a-x1-network", "description": description, "autoCreateSubnetworks": false,
            }),
        ),
        (
            "POST /global/firewalls",
            json!({
                "name": "a-x1-allow-kubelet", "description": description, "network": network,
                "direction": "INGRESS", "allowed": [{ "IPProtocol": "tcp", "ports": ["10250"] }],
                "sourceRanges": ["10.0.0.0/8"],
            }),
        ),
        (
            "POST /regions/us-central1/subnetworks",
            json!({
                "name": "a-x1-subnet", "description": description, "network": network,
                "ipCidrRange": "10.0.0.0/24", "privateIpGoogleAccess": true,
            }),
        ),
        (
            "POST /regions/us-central1/routers",
            json!({ "name": "a-x1-router", "description": description, "network": network }),
        ),
        (
            "PATCH /regions/us-central1/routers/a-x1-router",
            json!({ "nats": [{
                "name": "a-x1-nat", "natIpAllocateOption": "AUTO_ONLY",
                "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
                "subnetworks": [{ "name": link(SUBNET), "sourceIpRangesToNat": ["ALL_IP_RANGES"] }],
            }] }),
        ),
    ];
    let expected = expected.map(|(line, body)| (line.to_owned(), body));
    assert_eq!(writes(&fake), expected);
    // Each operation is waited for by the server, where its resource is.
    let state = fake.state();
    let waits = state
        .calls
        .iter()
        .filter(|call| call.path().ends_with("/wait"));
    let mut waits: Vec<_> = waits
        .map(|call| (call.path().to_owned(), call.method.clone()))
        .collect();
    waits.dedup();
    let places = [
        "global",
        "global",
        "regions/us-central1",
        "regions/us-central1",
        "regions/us-central1",
    ];
    assert_eq!(waits.len(), places.len());
    for ((path, method), place) in waits.iter().zip(places) {
        let begin = format!("/compute/v1/projects/project-1/{place}/operations/");
        assert!(
            path.starts_with(&begin) && *method == Method::POST,
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn a_network_is_destroyed_by_these_calls() {
    let (fake, scope) = (project(), scope());
    let executor = executor(&fake, &scope);
    executor.create_network(&network_request()).await.unwrap();
    {
        let mut state = fake.state();
        let router = state.cloud.compute.resources.get_mut(ROUTER).unwrap();
        let nats = router["nats"].as_array_mut().unwrap();
        nats.push(json!({ "name": "other" }));
    }
    fake.set_fault(None);
    executor.destroy_network(REGION).await.unwrap();
    let writes = writes(&fake);
    assert_eq!(writes[0].1, json!({ "nats": [{ "name": "other" }] }));
    let expected = [
        format!("PATCH /{ROUTER}"),
        format!("DELETE /{ROUTER}"),
        format!("DELETE /{SUBNET}"),
        format!("DELETE /{}", PATHS[1]),
        format!("DELETE /{}", PATHS[0]),
    ];
    assert_eq!(lines(writes), expected);
}

#[tokio::test]
async fn what_belongs_to_something_else_is_neither_used_nor_deleted() {
    for path in PATHS {
        for description in ["HyperShift cluster b-x2", ""] {
            let (fake, scope) = (project(), scope());
            let foreign = json!({ "description": description });
            fake.state().cloud.compute.insert(path, foreign);
            let before = fake.snapshot();
            let executor = executor(&fake, &scope);
            let refused = executor.create_network(&network_request()).await;
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("belongs to something else"), "{error}");
            assert!(error.contains("--infra-id"), "{error}");
            executor.destroy_network(REGION).await.unwrap();
            assert_eq!(lines(writes(&fake)), [""; 0], "{path}");
            assert_eq!(fake.snapshot(), before);
        }
    }
}

#[tokio::test]
async fn a_subnet_with_another_range_is_refused() {
    let (fake, scope) = (project(), scope());
    let executor = executor(&fake, &scope);
    executor.create_network(&network_request()).await.unwrap();
    fake.set_fault(None);
    let request = NetworkRequest::new(REGION, "10.1.0.0/16").unwrap();
    let error = executor
        .create_network(&request)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("--vpc-cidr 10.0.0.0/24"), "{error}");
    assert_eq!(lines(writes(&fake)), [""; 0]);
}

#[tokio::test]
async fn a_failed_operation_is_an_error_and_can_be_repeated() {
    let (fake, scope) = (project(), scope());
    let executor = executor(&fake, &scope);
    fake.state().cloud.compute.failing.push(PATHS[0].to_owned());
    let refused = executor.create_network(&network_request()).await;
    let error = format!("{:#}", refused.unwrap_err());
    assert!(
        error.contains("failed to create network a-x1-network"),
        "{error}"
    );
    assert!(error.contains("QUOTA_EXCEEDED"), "{error}");
    fake.state().cloud.compute.failing.clear();
    executor.create_network(&network_request()).await.unwrap();
}

#[tokio::test]
async fn what_others_use_is_waited_for_and_named() {
    let (fake, scope) = (project(), scope());
    let executor = executor(&fake, &scope);
    executor.create_network(&network_request()).await.unwrap();
    let rule = "regions/us-central1/forwardingRules/other";
    let body = json!({ "subnetwork": link(SUBNET) });
    fake.state().cloud.compute.insert(rule, body);
    let refused = executor.destroy_network(REGION).await;
    let error = format!("{:#}", refused.unwrap_err());
    assert!(
        error.contains("failed to delete subnet a-x1-subnet"),
        "{error}"
    );
    assert!(error.contains(rule), "{error}");
    fake.state().cloud.compute.resources.remove(rule);
    executor.destroy_network(REGION).await.unwrap();
    assert_eq!(fake.snapshot(), project().snapshot());
}
