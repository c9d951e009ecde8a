//! A token of a service account.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use support::reconcile::{is_conflict, is_missing};

use crate::error::Failure;

/// Key of the kubeconfig in its Secret.
const KEY: &str = "kubeconfig";
/// Minimum renewal interval.
const MIN_RENEWAL: Duration = Duration::from_secs(10);

/// A service account, and the audience of its token.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) audience: String,
    pub(crate) lifetime: Duration,
}

/// A token and its remaining lifetime.
pub(crate) struct Token {
    pub(crate) token: String,
    pub(crate) lifetime: Duration,
}

/// The `TokenRequest` has no token in its status.
#[derive(Debug, thiserror::Error)]
#[error("the API server returned no token")]
struct NoToken;

/// A Secret contains no kubeconfig.
#[derive(Debug, thiserror::Error)]
#[error("Secret {namespace}/{name} has no valid kubeconfig in key {KEY}")]
struct NoKubeconfig {
    namespace: String,
    name: String,
}

/// Returns when to renew a token: after 80% of its lifetime.
pub(crate) fn renewal(lifetime: Duration) -> Duration {
    (lifetime * 4 / 5).max(MIN_RENEWAL)
}

/// Reads the kubeconfig of the hosted cluster from a Secret in the management cluster.
pub(crate) async fn config_of_secret(namespace: &str, name: &str) -> Result<kube::Config, Failure> {
    let client = support::client::connect(&support::client::infer().await?)?;
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    config_of(&secrets.get(name).await?).await
}

/// The kubeconfig of the hosted cluster in a Secret.
pub(crate) async fn config_of(secret: &Secret) -> Result<kube::Config, Failure> {
    let metadata = &secret.metadata;
    let unusable = || NoKubeconfig {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    let data = secret.data.as_ref();
    let text = data.and_then(|it| it.get(KEY)).ok_or_else(unusable)?;
    let text = std::str::from_utf8(&text.0).map_err(|_| unusable())?;
    // The parser's error is dropped, because it would quote the file.
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| unusable())?;
    let options = KubeConfigOptions::default();
    Ok(support::client::from_kubeconfig(kubeconfig, &options).await?)
}

// === impl Account ===

impl Account {
    /// Requests a token; creates the service account if it does not exist.
    pub(crate) async fn mint(&self, client: &kube::Client) -> Result<Token, Failure> {
        match self.request(client).await {
            Err(error) if is_missing(&error) => self.create(client).await?,
            response => return Ok(token(response?)?),
        }
        Ok(token(self.request(client).await?)?)
    }

    async fn request(&self, client: &kube::Client) -> kube::Result<TokenRequest> {
        let api: Api<ServiceAccount> = Api::namespaced(client.clone(), &self.namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![self.audience.clone()],
                expiration_seconds: i64::try_from(self.lifetime.as_secs()).ok(),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        api.create_token_request(&self.name, &params, &request)
            .await
    }

    async fn create(&self, client: &kube::Client) -> kube::Result<()> {
        let api: Api<ServiceAccount> = Api::namespaced(client.clone(), &self.namespace);
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        match api.create(&PostParams::default(), &account).await {
            // Another process has created it.
            Err(error) if is_conflict(&error) => Ok(()),
            made => made.map(drop),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn token(response: TokenRequest) -> Result<Token, NoToken> {
    let status = response.status.ok_or(NoToken)?;
    if status.token.is_empty() {
        return Err(NoToken);
    }
    let left = status
        .expiration_timestamp
        .0
        .duration_since(Timestamp::now());
    Ok(Token {
        token: status.token,
        lifetime: left.try_into().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    #[test]
    fn tokens_are_renewed_before_expiry() {
        assert_eq!(renewal(Duration::from_hours(1)), Duration::from_mins(48));
        assert_eq!(renewal(Duration::ZERO), MIN_RENEWAL);
    }

    #[tokio::test]
    async fn missing_service_accounts_are_created() {
        let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
        let request = format!("{accounts}/capa/token");
        let response = json!({
            "metadata": {},
            "spec": { "audiences": ["openshift"] },
            "status": { "token": "t", "expirationTimestamp": "2999-01-01T00:00:00Z" },
        });
        let scenario = Scenario::new([
            Expect::post(&request).answer(Answer::error(404, "NotFound")),
            Expect::post(accounts)
                .body(json!({ "metadata": { "name": "capa" } }))
                .answer(Answer::ok(&json!({ "metadata": { "name": "capa" } }))),
            Expect::post(&request)
                .body(json!({ "spec": { "audiences": ["openshift"], "expirationSeconds": 3600 } }))
                .answer(Answer::ok(&response)),
        ]);
        let account = Account {
            namespace: "kube-system".into(),
            name: "capa".into(),
            audience: "openshift".into(),
            lifetime: Duration::from_hours(1),
        };
        let token = account.mint(&scenario.client()).await.unwrap();
        assert_eq!(token.token, "t");
        assert!(token.lifetime > Duration::from_hours(1));
        scenario.finish();
    }
}
