//! Tokens of an external provider: which the API server of the hosted cluster accepts, and as whom.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{Request, StatusCode, header};
use serde_json::{Value, json};
use testbed::client::{Patch, Resource};
use testbed::dex::{Config, Dex, GROUP, USER};
use testbed::hosted::{Cluster, DEPLOYMENTS, Guest, NAMESPACE, PODS};
use testbed::raw::RawClient;
use testbed::wait;

const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// The client whose tokens are for the hosted cluster, and one whose tokens are not.
const CLIENTS: [&str; 2] = ["cluster", "other"];
/// How long tokens are valid: longer than a request on a busy machine.
const VALID: &str = "30s";
/// Generous, for tokens that expire.
const WITHIN: Duration = Duration::from_mins(2);
const CONFIG: Config<'_> = Config {
    name: "dex",
    port: 5557,
    issuer_port: 5557,
    tokens_valid_for: VALID,
    clients: &CLIENTS,
};

/// Where the API server is published. Each request has a connection of its own: during a rollout, the previous API server
/// keeps its connections for more than a minute.
struct Server {
    url: String,
    authority: PathBuf,
}

/// Users of the provider are accepted with their names and groups; other tokens are refused.
pub(crate) async fn users_log_in(cluster: &Cluster<'_>, guest: &Guest) -> Result<()> {
    let testbed = &cluster.fixture().testbed;
    let dex = Dex::start(testbed, CONFIG).await?;
    // With the name of the other one, and with keys of its own.
    let impostor = Config {
        name: "dex-impostor",
        port: 5558,
        ..CONFIG
    };
    let impostor = Dex::start(testbed, impostor).await?;
    let server = Server::of(cluster, guest)?;
    let before = server.review(&dex.log_in("cluster").await?).await?;
    ensure!(
        before.is_none(),
        "accepted before it is configured: {before:?}"
    );
    configure(cluster, &dex).await?;
    let fixture = cluster.fixture();
    let user = fixture
        .stage("the API server accepts users of the provider", async || {
            let token = dex.log_in("cluster").await?;
            server.review(&token).await?.context("refused")
        })
        .await?;
    is_mapped(&user)?;
    cluster.available(&DEPLOYMENTS, "kube-apiserver").await?;
    previous_server_has_ended(cluster).await?;
    let step = testbed.progress.step("other tokens are refused");
    let token = dex.log_in("cluster").await?;
    ensure!(server.review(&token).await?.is_some(), "refused");
    for (what, token) in [
        ("another audience", dex.log_in("other").await?),
        ("another key", impostor.log_in("cluster").await?),
        ("another signature", tampered(&token)?),
        ("no signature", unsigned(&token)?),
    ] {
        let user = server.review(&token).await?;
        ensure!(user.is_none(), "{what}: accepted as {user:?}");
    }
    step.done();
    let step = testbed.progress.step("a token expires");
    wait::until("the token's end", WITHIN, async || {
        let user = server.review(&token).await?;
        ensure!(user.is_none(), "accepted as {user:?}");
        Ok(())
    })
    .await?;
    // The server itself still accepts users.
    let token = dex.log_in("cluster").await?;
    ensure!(server.review(&token).await?.is_some(), "refused");
    step.done();
    Ok(())
}

/// A replaced API server responds for more than a minute after its successor is ready, and refuses users of the provider.
async fn previous_server_has_ended(cluster: &Cluster<'_>) -> Result<()> {
    let fixture = cluster.fixture();
    let pods = PODS.within(&cluster.namespace());
    let servers = format!("{pods}?labelSelector=app%3Dkube-apiserver");
    fixture
        .stage("the previous API server has ended", async || {
            let found = fixture.testbed.admin.list(&servers).await?;
            ensure!(found.len() == 1, "there are {} API servers", found.len());
            Ok(())
        })
        .await
}

/// Configures the provider, as users do.
async fn configure(cluster: &Cluster<'_>, dex: &Dex) -> Result<()> {
    let admin = &cluster.fixture().testbed.admin;
    let authority = std::fs::read_to_string(dex.authority())?;
    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": "dex-ca" },
        "data": { "ca-bundle.crt": authority },
    });
    admin
        .patch(
            &CONFIG_MAPS.named(NAMESPACE, "dex-ca"),
            Patch::Apply,
            &config_map,
        )
        .await?;
    let provider = json!({
        "name": "dex",
        "issuer": {
            "issuerURL": dex.issuer(),
            "audiences": ["cluster"],
            "issuerCertificateAuthority": { "name": "dex-ca" },
        },
        "claimMappings": {
            "username": { "claim": "email", "prefixPolicy": "Prefix", "prefix": { "prefixString": "dex-user:" } },
            "groups": { "claim": "groups", "prefix": "dex-group:" },
        },
    });
    let authentication = json!({ "type": "OIDC", "oidcProviders": [provider] });
    let patch = json!({ "spec": { "configuration": { "authentication": authentication } } });
    admin.patch(&cluster.path(), Patch::Merge, &patch).await?;
    Ok(())
}

fn is_mapped(user: &Value) -> Result<()> {
    let (name, group) = (format!("dex-user:{USER}"), format!("dex-group:{GROUP}"));
    ensure!(user["username"] == name.as_str(), "{user}");
    let groups = user["groups"].as_array().context("no groups")?;
    let mut groups: Vec<_> = groups.iter().filter_map(Value::as_str).collect();
    groups.sort_unstable();
    ensure!(groups == [&group, "system:authenticated"], "{user}");
    ensure!(
        user["uid"].as_str().is_some_and(|uid| !uid.is_empty()),
        "{user}"
    );
    Ok(())
}

/// The token with another signature.
fn tampered(token: &str) -> Result<String> {
    let (rest, signature) = token.rsplit_once('.').context("not a token")?;
    let reversed: String = signature.chars().rev().collect();
    Ok(format!("{rest}.{reversed}"))
}

/// The token as one that needs no signature.
fn unsigned(token: &str) -> Result<String> {
    let claims = token.split('.').nth(1).context("not a token")?;
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    Ok(format!("{head}.{claims}."))
}

// === impl Server ===

impl Server {
    fn of(cluster: &Cluster<'_>, guest: &Guest) -> Result<Self> {
        let text = std::fs::read_to_string(&guest.kubeconfig)?;
        let kubeconfig: Value = serde_saphyr::from_str(&text)?;
        let server = &kubeconfig["clusters"][0]["cluster"];
        let authority = server["certificate-authority-data"].as_str();
        let authority = authority.context("the kubeconfig has no authority")?;
        let file = cluster.fixture().testbed.path().join("guest-ca.crt");
        std::fs::write(&file, decoded(authority)?)?;
        let url = server["server"].as_str().context("no server")?;
        Ok(Self {
            url: url.to_owned(),
            authority: file,
        })
    }

    /// Who the user of a token is; none if it is refused.
    async fn review(&self, token: &str) -> Result<Option<Value>> {
        let review =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let request = Request::post(REVIEWS)
            .header(header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())?;
        let client = RawClient::new(&self.url, Some(&self.authority))?;
        let response = client.with_token(token)?.send(request).await?;
        let status = response.status;
        let body = response.bytes().await?;
        if status == StatusCode::UNAUTHORIZED {
            return Ok(None);
        }
        ensure!(
            status == StatusCode::CREATED,
            "{status}: {}",
            String::from_utf8_lossy(&body)
        );
        let review: Value = serde_json::from_slice(&body)?;
        Ok(Some(review["status"]["userInfo"].clone()))
    }
}

fn decoded(text: &str) -> Result<Vec<u8>> {
    Ok(STANDARD.decode(text)?)
}
