//! Break-glass certificates on real API servers: two replicas of a hosted one, which load a changed client CA bundle at
//! different times, and control-plane-pki-operator with the permissions that it is installed with.
//!
//! The test does what nodes and CPO do: it has pods for the replicas, and copies the bundle to them.

mod client;
mod fixture;
mod hosted;
mod requests;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use testbed::wait;

use crate::break_glass::client::{Credentials, Watcher};
use crate::break_glass::fixture::{Fixture, NAMESPACE};

const WITHIN: Duration = Duration::from_mins(2);
const CUSTOMER: &str = "customer-break-glass";
const SRE: &str = "sre-break-glass";
/// The conditions of a revocation, in their order.
const CONDITIONS: [&str; 5] = [
    "SignerClassValid",
    "RootCertificatesRegenerated",
    "NewCertificatesTrusted",
    "LeafCertificatesRegenerated",
    "PreviousCertificatesRevoked",
];

/// Finding T15: a revocation was accepted, and ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn break_glass_certificates_are_signed_and_revoked() -> Result<()> {
    let testbed = Testbed::start("break-glass", Progress::detect()).await?;
    let outcome = scenario(&testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &Testbed) -> Result<()> {
    let mut fixture = Fixture::start(testbed).await?;
    let step = testbed
        .progress
        .step("certificates of both classes log in at every API server");
    let old = fixture
        .logs_in("customer-system-admin-client-cert-key", CUSTOMER)
        .await?;
    let others = fixture
        .logs_in("sre-system-admin-client-cert-key", SRE)
        .await?;
    step.done();

    let step = testbed
        .progress
        .step("requests are approved, signed and refused");
    let signed = requests::signed(&fixture, "alice").await?;
    requests::is_refused(&fixture).await?;
    requests::of_another_cluster_is_not_touched(&fixture).await?;
    requests::permissions_end_at_the_own_signers(&fixture).await?;
    step.done();

    let step = testbed
        .progress
        .step("a revocation, with clients that never stop");
    let administrator = fixture.hosted.administrator()?;
    let watcher = Watcher::start(&fixture, vec![administrator, others.clone()]);
    let order = revoke(&fixture, "revoke-customer").await?;
    ensure!(
        order == CONDITIONS,
        "conditions became true in the order {order:?}"
    );
    for (name, revoked) in [
        ("client certificate", &old),
        ("signed certificate", &signed),
    ] {
        for (replica, code) in fixture.hosted.answers(revoked).await?.iter().enumerate() {
            ensure!(
                *code == 401,
                "replica {replica} answers {code} to the revoked {name}"
            );
        }
    }
    let new = fixture
        .logs_in("customer-system-admin-client-cert-key", CUSTOMER)
        .await?;
    ensure!(new != old, "the client certificate is the old one");
    let again = requests::signed(&fixture, "bob").await?;
    let seen = watcher.finish().await?;
    step.done_with(&format!("{seen} requests without a failure"));

    let step = testbed
        .progress
        .step("the other class is revoked while no operator runs, and then");
    fixture.operator.stop().await?;
    create(&fixture, "revoke-sre", SRE).await?;
    fixture.operator.start().await?;
    completes(&fixture, "revoke-sre").await?;
    for credentials in [&new, &again] {
        ensure!(
            fixture.hosted.answers(credentials).await? == [201, 201],
            "another class was revoked"
        );
    }
    ensure!(
        fixture.hosted.answers(&others).await? == [401, 401],
        "the revoked certificate logs in"
    );
    fixture
        .logs_in("sre-system-admin-client-cert-key", SRE)
        .await?;
    step.done();
    Ok(())
}

async fn create(fixture: &Fixture, name: &str, class: &str) -> Result<()> {
    let request = json!({
        "apiVersion": "certificates.hypershift.openshift.io/v1alpha1",
        "kind": "CertificateRevocationRequest",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "signerClass": class },
    });
    fixture
        .admin
        .create(&fixture::REVOCATIONS.within(NAMESPACE), &request)
        .await?;
    Ok(())
}

/// Revokes the certificates of customers; gives the conditions in the order in which they became true.
async fn revoke(fixture: &Fixture, name: &str) -> Result<Vec<String>> {
    create(fixture, name, CUSTOMER).await?;
    let mut order: Vec<String> = Vec::new();
    wait::until("the revocation to complete", WITHIN, async || {
        let conditions = conditions(fixture, name).await?;
        for condition in conditions.iter().filter(|it| it["status"] == "True") {
            let type_ = condition["type"].as_str().unwrap_or_default().to_owned();
            if !order.contains(&type_) {
                order.push(type_);
            }
        }
        ensure!(order.len() == CONDITIONS.len(), "{conditions:#?}");
        Ok(())
    })
    .await?;
    Ok(order)
}

async fn completes(fixture: &Fixture, name: &str) -> Result<()> {
    wait::until("the revocation to complete", WITHIN, async || {
        let conditions = conditions(fixture, name).await?;
        let mut all = conditions.iter();
        let is_complete = all.any(|it| it["type"] == CONDITIONS[4] && it["status"] == "True");
        ensure!(is_complete, "{conditions:#?}");
        Ok(())
    })
    .await
}

async fn conditions(fixture: &Fixture, name: &str) -> Result<Vec<Value>> {
    let request = fixture
        .admin
        .get(&fixture::REVOCATIONS.named(NAMESPACE, name))
        .await?;
    let conditions = request["status"]["conditions"].as_array();
    conditions.cloned().context("no conditions")
}

impl Fixture {
    /// Waits until the certificate of a Secret is accepted by every API server as an administrator of the class.
    async fn logs_in(&self, secret: &str, class: &str) -> Result<Credentials> {
        wait::until("the certificate to log in", WITHIN, async || {
            let credentials = self.credentials(secret).await?;
            let reviews = self.hosted.reviews(&credentials).await?;
            for review in reviews {
                let user = &review["status"]["userInfo"];
                let name = user["username"].as_str().unwrap_or_default();
                ensure!(name.starts_with(&format!("system:{class}:")), "{user}");
                let groups = user["groups"].as_array().cloned().unwrap_or_default();
                ensure!(groups.contains(&json!("system:masters")), "{user}");
                ensure!(
                    user["uid"].as_str().is_some_and(|uid| !uid.is_empty()),
                    "{user}"
                );
            }
            Ok(credentials)
        })
        .await
        .with_context(|| format!("Secret {secret}"))
    }
}
