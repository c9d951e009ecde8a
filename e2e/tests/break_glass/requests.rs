//! `CertificateSigningRequests` with and without approval, of the own cluster and of another one.

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use testbed::client::{Resource, status_code};
use testbed::wait;

use crate::break_glass::client::Credentials;
use crate::break_glass::fixture::{Fixture, NAMESPACE, OTHER};
use crate::break_glass::{CUSTOMER, WITHIN};

const REQUESTS: Resource<'_> =
    Resource::new("certificates.k8s.io/v1", "certificatesigningrequests");
const APPROVALS: Resource<'_> = Resource::new(
    "certificates.hypershift.openshift.io/v1alpha1",
    "certificatesigningrequestapprovals",
);

/// Creates a request of a user; gives the key.
async fn request(fixture: &Fixture, name: &str, namespace: &str, user: &str) -> Result<KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    params.distinguished_name.push(DnType::CommonName, user);
    let key = KeyPair::generate()?;
    let pem = params.serialize_request(&key)?.pem()?;
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": { "name": name },
        "spec": {
            "request": STANDARD.encode(pem),
            "signerName": format!("hypershift.openshift.io/{namespace}.{CUSTOMER}"),
            "usages": ["client auth"],
            "expirationSeconds": 3600,
        },
    });
    fixture
        .admin
        .create(REQUESTS.all().as_str(), &object)
        .await?;
    Ok(key)
}

async fn approve(fixture: &Fixture, name: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "certificates.hypershift.openshift.io/v1alpha1",
        "kind": "CertificateSigningRequestApproval",
        "metadata": { "namespace": NAMESPACE, "name": name },
    });
    fixture
        .admin
        .create(&APPROVALS.within(NAMESPACE), &object)
        .await?;
    Ok(())
}

fn path(name: &str) -> String {
    format!("{}/{name}", REQUESTS.all())
}

/// Has a certificate signed for a user of the class, which logs in.
pub(crate) async fn signed(fixture: &Fixture, name: &str) -> Result<Credentials> {
    let key = request(
        fixture,
        name,
        NAMESPACE,
        &format!("system:{CUSTOMER}:{name}"),
    )
    .await?;
    approve(fixture, name).await?;
    wait::until("the certificate to be signed", WITHIN, async || {
        let object = fixture.admin.get(&path(name)).await?;
        let certificate = object["status"]["certificate"]
            .as_str()
            .context("not signed")?;
        let credentials = Credentials {
            certificate: STANDARD.decode(certificate)?,
            key: key.serialize_pem().into_bytes(),
        };
        let codes = fixture.hosted.answers(&credentials).await?;
        ensure!(codes == [201, 201], "{codes:?}");
        Ok(credentials)
    })
    .await
}

/// A request for another name is approved, because an approval exists, and fails.
pub(crate) async fn is_refused(fixture: &Fixture) -> Result<()> {
    request(fixture, "mallory", NAMESPACE, "system:admin").await?;
    approve(fixture, "mallory").await?;
    wait::until("the request to fail", WITHIN, async || {
        let object = fixture.admin.get(&path("mallory")).await?;
        let conditions = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let failed = conditions
            .iter()
            .find(|it| it["type"] == "Failed")
            .context("not failed")?;
        ensure!(failed["reason"] == "SignerValidationFailure", "{failed}");
        ensure!(object["status"]["certificate"].is_null(), "it is signed");
        Ok(())
    })
    .await
}

/// An approval in the own namespace for a request of another tenant has no effect.
pub(crate) async fn of_another_cluster_is_not_touched(fixture: &Fixture) -> Result<()> {
    request(
        fixture,
        "theirs",
        OTHER,
        &format!("system:{CUSTOMER}:theirs"),
    )
    .await?;
    approve(fixture, "theirs").await?;
    // A later one is complete, so the operator has seen both.
    signed(fixture, "later").await?;
    let object = fixture.admin.get(&path("theirs")).await?;
    ensure!(
        object["status"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty),
        "{object}"
    );
    Ok(())
}

/// What a stolen token of the operator could do: nothing for another tenant's signer, and it sees no list.
pub(crate) async fn permissions_end_at_the_own_signers(fixture: &Fixture) -> Result<()> {
    let mut theirs = fixture.admin.get(&path("theirs")).await?;
    theirs["status"] = json!({ "conditions": [{
        "type": "Approved", "status": "True", "reason": "a", "message": "b",
    }] });
    let approved = fixture
        .own
        .replace(&format!("{}/approval", path("theirs")), &theirs)
        .await;
    is_forbidden("approve", approved)?;
    let listed = fixture.own.list(&REQUESTS.all()).await.map(|_| Value::Null);
    is_forbidden("list", listed)?;
    // The API server reads the certificate before it asks who may write it.
    let certificate = rcgen::generate_simple_self_signed(["a.example.com".to_owned()])?;
    let certificate = STANDARD.encode(certificate.cert.pem());
    let status = json!({ "status": { "certificate": certificate } });
    let signed = fixture
        .own
        .patch(
            &format!("{}/status", path("theirs")),
            testbed::client::Patch::Merge,
            &status,
        )
        .await;
    is_forbidden("sign", signed)?;
    let secrets = Resource::new("v1", "secrets");
    is_forbidden(
        "read",
        fixture
            .own
            .list(&secrets.within(OTHER))
            .await
            .map(|_| Value::Null),
    )
}

fn is_forbidden(what: &str, outcome: Result<Value>) -> Result<()> {
    match outcome {
        Ok(_) => anyhow::bail!("{what} is allowed"),
        Err(error) => {
            ensure!(status_code(&error) == Some(403), "{what}: {error:#}");
            Ok(())
        }
    }
}
