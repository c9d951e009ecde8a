use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::super::super::cache::testing::Contents;
use super::super::super::fixtures::{bundle, client, context, secret, signer};
use super::*;

const NAMESPACE: &str = "/api/v1/namespaces/clusters-a";
const HCP: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-a/hostedcontrolplanes/a";

fn path(kind: &str, name: &str) -> String {
    format!("{NAMESPACE}/{kind}/{name}")
}

fn hcp() -> HostedControlPlane {
    let spec = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
        "metadata": { "name": "a", "namespace": "clusters-a" },
        "spec": {
            "releaseImage": "r", "pullSecret": { "name": "p" }, "platform": { "type": "None" }, "services": [],
            "issuerURL": "https://i", "infraID": "i", "etcd": { "managementType": "Managed" }, "dns": { "baseDomain": "d" },
            "sshKey": { "name": "" },
        },
    });
    serde_json::from_value(spec).unwrap()
}

fn answer<T: serde::Serialize>(object: Option<&T>) -> Answer {
    match object {
        Some(object) => Answer::ok(&serde_json::to_value(object).unwrap()),
        None => Answer::error(404, "NotFound"),
    }
}

/// The reads of a class.
fn reads(
    signer: Option<&Secret>,
    bundle: Option<&ConfigMap>,
    client: Option<&Secret>,
) -> [Expect; 3] {
    let class = Class::Customer;
    [
        Expect::get(&path("secrets", &class.signer())).answer(answer(signer)),
        Expect::get(&path("configmaps", &class.bundle())).answer(answer(bundle)),
        Expect::get(&path("secrets", &class.client())).answer(answer(client)),
    ]
}

fn reported(condition: &Value) -> [Expect; 2] {
    let hcp = serde_json::to_value(hcp()).unwrap();
    [
        Expect::get(HCP).answer(Answer::ok(&hcp)),
        Expect::patch(&format!("{HCP}/status"))
            .body(json!({ "status": { "conditions": [condition] } }))
            .answer(Answer::ok(&hcp)),
    ]
}

async fn reconciled(scenario: &Scenario, contents: Contents, key: &str) -> Result<Action, Error> {
    let controller = Controller::new(context(scenario, contents), &hcp());
    let key = ObjectKey::new("clusters-a", key);
    let result = controller.reconcile(&key).await;
    if let Err(error) = result {
        let failure = Failure::Error(error);
        controller.failed(&key, &failure).await;
        let Failure::Error(error) = failure else {
            panic!("not an error")
        };
        return Err(error);
    }
    result
}

fn all() -> (Secret, ConfigMap, Secret) {
    let pair = signer(now());
    let bundle = bundle(
        &Class::Customer.bundle(),
        std::slice::from_ref(&pair.certificate),
    );
    (
        secret(Kind::Signer, &pair),
        bundle,
        secret(Kind::Client, &client(&pair, now())),
    )
}

/// Each step is decided from what is stored, and not from the cache, which is behind.
#[tokio::test]
async fn signer_bundle_and_client_certificate_are_created_in_this_order() {
    let (signer, bundle, client) = all();
    let owner = json!({ "kind": "HostedControlPlane", "name": "a", "uid": "hcp" });
    let created = |name: &str| json!({ "metadata": { "name": name, "ownerReferences": [owner] } });
    let secrets = format!("{NAMESPACE}/secrets");
    let mut calls = Vec::new();
    calls.extend(reads(None, None, None));
    calls.push(
        Expect::post(&secrets)
            .body(created("customer-system-admin-signer"))
            .answer(answer(Some(&signer))),
    );
    calls.extend(reads(Some(&signer), None, None));
    calls.push(
        Expect::post(&format!("{NAMESPACE}/configmaps"))
            .body(created("customer-system-admin-signer-ca"))
            .answer(answer(Some(&bundle))),
    );
    calls.extend(reads(Some(&signer), Some(&bundle), None));
    calls.push(
        Expect::post(&secrets)
            .body(created("customer-system-admin-client-cert-key"))
            .answer(answer(Some(&client))),
    );
    calls.extend(reads(Some(&signer), Some(&bundle), Some(&client)));
    let condition =
        json!({ "type": "CertRotation_CustomerAdminKubeconfigSigner_Degraded", "status": "False" });
    calls.extend(reported(&condition));
    let scenario = Scenario::new(calls);
    let action = reconciled(&scenario, Contents::default(), "customer-break-glass")
        .await
        .unwrap();
    scenario.finish();
    assert_eq!(action, Action::requeue(Duration::from_secs(1)));
}

#[tokio::test]
async fn a_lost_label_does_not_replace_the_signer() {
    let (signer, bundle, client) = all();
    let mut hidden = signer.clone();
    hidden.metadata.labels = None;
    let label = json!({ "auth.openshift.io/managed-certificate-type": "signer" });
    let mut calls = Vec::new();
    calls.extend(reads(Some(&hidden), Some(&bundle), Some(&client)));
    calls.push(
        Expect::put(&path("secrets", "customer-system-admin-signer"))
            .body(json!({ "metadata": { "resourceVersion": "7", "labels": label }, "data": signer.data }))
            .answer(answer(Some(&signer))),
    );
    calls.extend(reads(Some(&signer), Some(&bundle), Some(&client)));
    calls.extend(reported(&json!({ "status": "False" })));
    let scenario = Scenario::new(calls);
    let contents = Contents {
        secrets: vec![client],
        bundles: vec![bundle],
        ..Contents::default()
    };
    reconciled(&scenario, contents, "customer-break-glass")
        .await
        .unwrap();
    scenario.finish();
}

#[tokio::test]
async fn failures_are_reported_in_the_hosted_control_plane() {
    let refused = Expect::get(&path("secrets", "customer-system-admin-signer"))
        .answer(Answer::error(500, "InternalError"));
    let condition = json!({
        "type": "CertRotation_CustomerAdminKubeconfigSigner_Degraded", "status": "True", "reason": "RotationError",
    });
    let scenario = Scenario::new([refused].into_iter().chain(reported(&condition)));
    reconciled(&scenario, Contents::default(), "customer-break-glass")
        .await
        .unwrap_err();
    scenario.finish();
}

#[tokio::test]
async fn the_bundle_of_both_classes_is_written_if_it_differs() {
    let (_, bundle_of_class, _) = all();
    let trusted = objects::bundle(Some(&bundle_of_class));
    let total = bundle(TOTAL_CLIENT_CA, &trusted);
    let contents = |total: Option<&ConfigMap>| Contents {
        bundles: vec![bundle_of_class.clone()],
        total: total.cloned(),
        ..Contents::default()
    };
    let condition = json!({ "type": "TargetConfigControllerDegraded", "status": "False" });
    // Nothing differs.
    let scenario = Scenario::new(reported(&condition));
    reconciled(&scenario, contents(Some(&total)), TOTAL_CLIENT_CA)
        .await
        .unwrap();
    scenario.finish();
    let mut calls = vec![
        Expect::get(&path("configmaps", "customer-system-admin-signer-ca"))
            .answer(answer(Some(&bundle_of_class))),
        Expect::get(&path("configmaps", "sre-system-admin-signer-ca"))
            .answer(Answer::error(404, "NotFound")),
        Expect::get(&path("configmaps", TOTAL_CLIENT_CA)).answer(Answer::error(404, "NotFound")),
        Expect::post(&format!("{NAMESPACE}/configmaps"))
            .body(json!({ "metadata": { "name": TOTAL_CLIENT_CA }, "data": total.data }))
            .answer(answer(Some(&total))),
    ];
    calls.extend(reported(&condition));
    let scenario = Scenario::new(calls);
    reconciled(&scenario, contents(None), TOTAL_CLIENT_CA)
        .await
        .unwrap();
    scenario.finish();
}
