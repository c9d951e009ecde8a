//! Break-glass certificates of a real control plane: its pods, its nodes' copies of the bundle, and its permissions.
//!
//! A revocation takes as long as kubelets take to copy the bundle, so a scenario begins it and goes on meanwhile.

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Resource, status_code};
use testbed::hosted::{Cluster, Fixture, Guest, PODS, SECRETS};

const REVOCATIONS: Resource<'_> = Resource::new(
    "certificates.hypershift.openshift.io/v1alpha1",
    "certificaterevocationrequests",
);
const SECRET: &str = "customer-system-admin-client-cert-key";
const NAME: &str = "revoke";
const REVOKED: &str = "PreviousCertificatesRevoked";
/// A name in the serving certificate of every API server.
const SERVER: &str = "kube-apiserver";

/// A revocation that has begun.
pub(crate) struct Revocation(User);

/// A user with a break-glass certificate, as kubeconfig.
struct User(Value);

/// The certificate of customers logs in, and is revoked from now on.
pub(crate) async fn begins(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
) -> Result<Revocation> {
    let what = format!("{}: a break-glass certificate logs in", cluster.name());
    let user = fixture
        .stage(&what, async || logs_in(fixture, cluster, guest).await)
        .await?;
    let request = json!({
        "apiVersion": REVOCATIONS.api_version,
        "kind": "CertificateRevocationRequest",
        "metadata": { "namespace": cluster.namespace(), "name": NAME },
        "spec": { "signerClass": "customer-break-glass" },
    });
    let path = REVOCATIONS.within(&cluster.namespace());
    fixture.testbed.admin.create(&path, &request).await?;
    Ok(Revocation(user))
}

/// Every API server refuses the revoked certificate and accepts a new one. Gives the number of API servers.
pub(crate) async fn ends(
    fixture: &Fixture,
    cluster: &Cluster<'_>,
    guest: &Guest,
    revocation: Revocation,
) -> Result<usize> {
    let path = REVOCATIONS.named(&cluster.namespace(), NAME);
    let what = format!("{}: break-glass certificates are revoked", cluster.name());
    fixture
        .stage(&what, async || {
            let request = fixture.testbed.admin.get(&path).await?;
            let conditions = &request["status"]["conditions"];
            let mut all = conditions.as_array().into_iter().flatten();
            let is_complete = all.any(|it| it["type"] == REVOKED && it["status"] == "True");
            ensure!(is_complete, "{conditions}");
            Ok(())
        })
        .await?;
    let new = logs_in(fixture, cluster, guest).await?;
    let servers = servers(fixture, cluster).await?;
    for server in &servers {
        let code = revocation.0.response(Some(server)).await?;
        ensure!(code == 401, "{server}: the revoked certificate gets {code}");
        let code = new.response(Some(server)).await?;
        ensure!(code == 200, "{server}: the new certificate gets {code}");
    }
    Ok(servers.len())
}

/// The user of the certificate that the Secret has, who may do everything.
async fn logs_in(fixture: &Fixture, cluster: &Cluster<'_>, guest: &Guest) -> Result<User> {
    let path = SECRETS.named(&cluster.namespace(), SECRET);
    let value = async |key| fixture.testbed.admin.secret_value(&path, key).await;
    let text = std::fs::read_to_string(&guest.kubeconfig)?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&text)?;
    let user = kubeconfig.pointer_mut("/users/0/user").context("no user")?;
    *user = json!({
        "client-certificate-data": STANDARD.encode(value("tls.crt").await?),
        "client-key-data": STANDARD.encode(value("tls.key").await?),
    });
    let user = User(kubeconfig);
    let code = user.response(None).await?;
    ensure!(code == 200, "the certificate gets {code}");
    Ok(user)
}

/// The addresses of all API servers of the cluster.
async fn servers(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<Vec<String>> {
    let path = PODS.within(&cluster.namespace());
    let mut pods = fixture.testbed.admin.list(&path).await?;
    pods.retain(|pod| {
        let metadata = &pod["metadata"];
        metadata["labels"]["app"] == SERVER && metadata["deletionTimestamp"].is_null()
    });
    ensure!(!pods.is_empty(), "there is no API server");
    pods.iter().map(server).collect()
}

fn server(pod: &Value) -> Result<String> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|it| it["ports"].as_array().into_iter().flatten());
    let port = ports.find(|port| port["name"] == "client");
    let port = port.context("no port")?["containerPort"].clone();
    let address = pod["status"]["podIP"].as_str().context("no address")?;
    Ok(format!("https://{address}:{port}"))
}

// === impl User ===

impl User {
    /// The status code of a request, on a new connection: to one API server, or to where the API is published.
    async fn response(&self, server: Option<&str>) -> Result<u16> {
        let mut kubeconfig = self.0.clone();
        if let Some(server) = server {
            let cluster = kubeconfig.pointer_mut("/clusters/0/cluster");
            let cluster = cluster.context("no cluster")?;
            cluster["server"] = json!(server);
            cluster["tls-server-name"] = json!(SERVER);
        }
        let client = ApiClient::from_text(&kubeconfig.to_string()).await?;
        match client.list("/api/v1/namespaces").await {
            Ok(_) => Ok(200),
            Err(error) => match status_code(&error) {
                Some(code) => Ok(code),
                None => Err(error).with_context(|| format!("no response of {server:?}")),
            },
        }
    }
}
