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
/// No token is renewed more often.
const LEAST: Duration = Duration::from_secs(10);

/// Whose token, and for whom.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) audience: String,
    pub(super) lifetime: Duration,
}

/// A token, and how long it is good for.
pub(super) struct Token {
    pub(super) token: String,
    pub(super) lifetime: Duration,
}

/// The API server gave no token.
#[derive(Debug, thiserror::Error)]
#[error("the API server answers without a token")]
struct NoToken;

/// A Secret holds no kubeconfig.
#[derive(Debug, thiserror::Error)]
#[error("Secret {namespace}/{name} has no usable key {KEY}")]
struct NoKubeconfig {
    namespace: String,
    name: String,
}

/// How long to wait before the next one: four fifths of its life.
pub(super) fn renewal(lifetime: Duration) -> Duration {
    (lifetime * 4 / 5).max(LEAST)
}

/// The way to the hosted cluster by a Secret of the management cluster.
pub(super) async fn config_of_secret(namespace: &str, name: &str) -> Result<kube::Config, Failure> {
    let client = support::client::connect(kube::Config::infer().await?)?;
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    let secret = secrets.get(name).await?;
    let unusable = || NoKubeconfig {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let data = secret.data.unwrap_or_default();
    let text = data.get(KEY).ok_or_else(unusable)?;
    let text = std::str::from_utf8(&text.0).map_err(|_| unusable())?;
    // The parser's own error would quote the file.
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| unusable())?;
    let options = KubeConfigOptions::default();
    Ok(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?)
}

// === impl Account ===

impl Account {
    /// Asks for a token; makes the account when that is what is missing.
    pub(super) async fn mint(&self, client: &kube::Client) -> Result<Token, Failure> {
        match self.request(client).await {
            Err(error) if is_missing(&error) => self.create(client).await?,
            answer => return Ok(token(answer?)?),
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

fn token(answer: TokenRequest) -> Result<Token, NoToken> {
    let status = answer.status.ok_or(NoToken)?;
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
    fn tokens_are_renewed_before_they_end() {
        assert_eq!(renewal(Duration::from_hours(1)), Duration::from_mins(48));
        assert_eq!(renewal(Duration::ZERO), LEAST);
    }

    #[tokio::test]
    async fn a_missing_account_is_made() {
        let accounts = "/api/v1/namespaces/kube-system/serviceaccounts";
        let request = format!("{accounts}/capa/token");
        let answer = json!({
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
                .answer(Answer::ok(&answer)),
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
