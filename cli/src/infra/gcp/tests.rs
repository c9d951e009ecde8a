//! What is created and destroyed, call by call, and what is left when a command is killed at any of them.

mod identity;
mod network;

use std::sync::LazyLock;

use fake_clouds::google_cloud::GoogleCloud as Cloud;
use fake_clouds::{Cloud as _, Fake, Fault};
use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::install::display::Display;

const PROJECT: &str = "project-1";
const NUMBER: &str = "12345";
const REGION: &str = "us-central1";
const KEYS: &str = r#"{"keys": [{"kty": "RSA", "kid": "1", "n": "a", "e": "AQAB"}]}"#;
const EMAILS: &str = "@project-1.iam.gserviceaccount.com";

fn scope() -> Scope {
    Scope::new("a-x1", PROJECT).unwrap()
}

/// A project that others use, too.
fn project() -> Fake<Cloud> {
    let mut cloud = Cloud::new(PROJECT, NUMBER);
    let network = json!({ "description": "Default network for the project" });
    cloud.compute.insert("global/networks/default", network);
    cloud.policy.bind("roles/owner", "user:owner@example.com");
    cloud.policy.bindings.push(json!({
        "role": "roles/storage.admin", "members": ["user:guest@example.com"],
        "condition": { "title": "expires", "expression": "request.time < timestamp('2030-01-01T00:00:00Z')" },
    }));
    Fake::new(cloud)
}

fn executor<'a>(fake: &'a Fake<Cloud>, scope: &'a Scope) -> Executor<'a, Fake<Cloud>> {
    static QUIET: LazyLock<Display> = LazyLock::new(|| Display::new(true));
    Executor {
        calls: fake,
        scope,
        display: &QUIET,
    }
}

fn network_request() -> NetworkRequest {
    NetworkRequest::new(REGION, CIDR).unwrap()
}

fn identity_request(scope: &Scope) -> IdentityRequest {
    IdentityRequest {
        issuer: issuer_of(scope, None).unwrap(),
        jwks: Some(Jwks::parse(KEYS).unwrap()),
    }
}

/// Creates all, as `create cluster gcp` does.
async fn create(
    fake: &Fake<Cloud>,
    scope: &Scope,
) -> anyhow::Result<(NetworkOutput, IdentityOutput)> {
    let executor = executor(fake, scope);
    let network = executor.create_network(&network_request()).await?;
    let identity = executor.create_identity(&identity_request(scope)).await?;
    Ok((network, identity))
}

/// Destroys all, as `destroy cluster gcp` does.
async fn destroy(fake: &Fake<Cloud>, scope: &Scope) -> anyhow::Result<()> {
    let executor = executor(fake, scope);
    executor.destroy_network(REGION).await?;
    executor.destroy_identity().await
}

/// The calls that write: methods with what follows the project in the URL, and documents. What is repeated is there once.
fn writes(fake: &Fake<Cloud>) -> Vec<(String, Value)> {
    let state = fake.state();
    let writes = state.calls.iter().filter(|call| {
        let reads = ["/wait", ":getIamPolicy"];
        call.method != Method::GET && !reads.iter().any(|end| call.path().ends_with(end))
    });
    let mut writes: Vec<_> = writes
        .map(|call| {
            let (_, rest) = call.url.split_once("/projects/project-1").unwrap();
            (format!("{} {rest}", call.method), call.body.clone())
        })
        .collect();
    writes.dedup_by(|one, other| one.0 == other.0);
    writes
}

fn lines(writes: Vec<(String, Value)>) -> Vec<String> {
    writes.into_iter().map(|(line, _)| line).collect()
}

/// What one who runs the next command by hand waits.
fn wait(fake: &Fake<Cloud>) {
    for _ in 0..5 {
        fake.state().cloud.pass_time();
    }
}

fn faults(count: usize) -> impl Iterator<Item = Fault> {
    (0..count).flat_map(|at| {
        [
            Fault::KilledBefore(at),
            Fault::KilledAfter(at),
            Fault::Lost(at),
        ]
    })
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_destruction_leaves_what_was_there() {
    let fake = project();
    let before = fake.snapshot();
    let first = create(&fake, &scope()).await.unwrap();
    let snapshot = fake.snapshot();
    assert_ne!(snapshot, before);
    fake.set_fault(None);
    assert_eq!(create(&fake, &scope()).await.unwrap(), first);
    assert_eq!(fake.snapshot(), snapshot);
    assert_eq!(lines(writes(&fake)), [""; 0]);
    destroy(&fake, &scope()).await.unwrap();
    assert_eq!(fake.snapshot(), before);
    fake.set_fault(None);
    destroy(&fake, &scope()).await.unwrap();
    assert_eq!(lines(writes(&fake)), [""; 0]);
}

/// Killed before or after any call, or with a lost response, and run again: the same state, and nothing twice.
#[tokio::test]
async fn creation_continues_where_it_was_interrupted() {
    let reference = project();
    let output = create(&reference, &scope()).await.unwrap();
    let expected = reference.snapshot();
    for fault in faults(reference.count()) {
        let fake = project();
        fake.set_fault(Some(fault));
        let killed = create(&fake, &scope()).await;
        assert!(
            killed.is_err() || matches!(fault, Fault::Lost(_)),
            "{fault:?}"
        );
        fake.set_fault(None);
        assert_eq!(create(&fake, &scope()).await.unwrap(), output, "{fault:?}");
        assert_eq!(fake.snapshot(), expected, "{fault:?}");
    }
}

/// The same of a destruction, and of one that follows an interrupted creation.
#[tokio::test]
async fn destruction_leaves_nothing_however_it_was_interrupted() {
    let reference = project();
    let before = reference.snapshot();
    create(&reference, &scope()).await.unwrap();
    let creation = reference.count();
    reference.set_fault(None);
    destroy(&reference, &scope()).await.unwrap();
    let destruction = reference.count();
    for fault in faults(destruction) {
        let fake = project();
        create(&fake, &scope()).await.unwrap();
        fake.set_fault(Some(fault));
        drop(destroy(&fake, &scope()).await);
        fake.set_fault(None);
        destroy(&fake, &scope()).await.unwrap();
        assert_eq!(fake.snapshot(), before, "{fault:?}");
    }
    for fault in faults(creation) {
        let fake = project();
        fake.set_fault(Some(fault));
        drop(create(&fake, &scope()).await);
        fake.set_fault(None);
        wait(&fake);
        destroy(&fake, &scope()).await.unwrap();
        assert_eq!(fake.snapshot(), before, "{fault:?}");
    }
}

#[tokio::test]
async fn clusters_of_one_project_do_not_touch_each_other() {
    let other = Scope::new("a-x10", PROJECT).unwrap();
    let alone = project();
    create(&alone, &other).await.unwrap();
    let fake = project();
    create(&fake, &scope()).await.unwrap();
    create(&fake, &other).await.unwrap();
    destroy(&fake, &scope()).await.unwrap();
    assert_eq!(fake.snapshot(), alone.snapshot());
    destroy(&fake, &other).await.unwrap();
    assert_eq!(fake.snapshot(), project().snapshot());
}

/// Names of a deleted pool and its provider stay reserved for a while.
#[tokio::test]
async fn an_infrastructure_can_be_created_again() {
    let fake = project();
    let output = create(&fake, &scope()).await.unwrap();
    let expected = fake.snapshot();
    destroy(&fake, &scope()).await.unwrap();
    fake.set_fault(None);
    assert_eq!(create(&fake, &scope()).await.unwrap(), output);
    assert_eq!(fake.snapshot(), expected);
    let restored = lines(writes(&fake));
    let restored = restored.iter().filter(|line| line.ends_with(":undelete"));
    assert_eq!(restored.count(), 2);
}

#[tokio::test]
async fn reports_change_nothing() {
    let (fake, scope) = (project(), scope());
    let executor = executor(&fake, &scope);
    let request = identity_request(&scope);
    for _ in 0..2 {
        executor.report_network(&network_request()).await.unwrap();
        executor.report_identity(&request).await.unwrap();
        executor.report_network_destruction(REGION).await.unwrap();
        executor.report_identity_destruction().await.unwrap();
        assert_eq!(lines(writes(&fake)), [""; 0]);
        create(&fake, &scope).await.unwrap();
        fake.set_fault(None);
    }
}

/// The files are those of other HyperShift command lines.
#[tokio::test]
async fn outputs_have_the_fields_that_others_read() {
    let (network, identity) = create(&project(), &scope()).await.unwrap();
    let link = "https://www.googleapis.com/compute/v1/projects/project-1";
    let expected = json!({
        "region": REGION,
        "projectId": PROJECT,
        "infraId": "a-x1",
        "networkName": "a-x1-network",
        "networkSelfLink": format!("{link}/global/networks/a-x1-network"),
        "subnetName": "a-x1-subnet",
        "subnetSelfLink": format!("{link}/regions/us-central1/subnetworks/a-x1-subnet"),
        "subnetCidr": "10.0.0.0/24",
        "routerName": "a-x1-router",
        "natName": "a-x1-nat",
        "firewallRuleName": "a-x1-allow-kubelet",
    });
    assert_eq!(serde_json::to_value(&network).unwrap(), expected);
    let email = |name: &str| format!("a-x1-{name}{EMAILS}");
    let expected = json!({
        "projectId": PROJECT,
        "projectNumber": NUMBER,
        "infraId": "a-x1",
        "workloadIdentityPool": {
            "poolId": "a-x1-wi-pool",
            "providerId": "a-x1-k8s-provider",
            "audience": "//iam.googleapis.com/projects/12345/locations/global/workloadIdentityPools/a-x1-wi-pool/\
                         providers/a-x1-k8s-provider",
        },
        "serviceAccounts": {
            "nodepool-mgmt": email("nodepool-mgmt"),
            "ctrlplane-op": email("ctrlplane-op"),
            "cloud-controller": email("cloud-controller"),
            "gcp-pd-csi": email("gcp-pd-csi"),
            "image-registry": email("image-registry"),
            "cloud-network": email("cloud-network"),
        },
        "issuerUrl": "https://hypershift-a-x1-oidc",
    });
    let mut found = serde_json::to_value(&identity).unwrap();
    assert_eq!(found, expected);
    // Files of others lack the issuer.
    found.as_object_mut().unwrap().remove("issuerUrl");
    let read: IdentityOutput = serde_json::from_value(found).unwrap();
    assert_eq!(read.issuer_url, "");
}
