//! Tokens of service accounts of a hosted cluster, for clouds that trust its issuer.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use support::error::chain;
use tokio::time::{Instant, timeout};

use crate::error::Failure;
use crate::token_minter::mint::{Account, config_of};

/// How long a kubeconfig is used that does not work.
const READ_AGAIN_AFTER: Duration = Duration::from_mins(5);
/// The Secret with the kubeconfig of the hosted cluster.
const KUBECONFIG: &str = "service-network-admin-kubeconfig";
/// The namespace of the service accounts.
const NAMESPACE: &str = "kube-system";
/// The audience that clouds trust.
const AUDIENCE: &str = "openshift";
/// The service account that the identity of the control-plane-operator trusts.
pub(crate) const OPERATOR: &str = "control-plane-operator";
/// How long tokens are valid, and how long they are used.
const LIFETIME: Duration = Duration::from_hours(1);
pub(crate) const RENEWED_AFTER: Duration = Duration::from_mins(45);
/// How long the API server of the hosted cluster has for a token.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no token.
#[derive(Debug)]
pub(crate) enum NoToken {
    /// There is no kubeconfig of the hosted cluster.
    NoKubeconfig,
    /// The hosted cluster gives no token.
    Refused(String),
}

/// Issues tokens.
pub(crate) struct Tokens {
    client: kube::Client,
    namespace: String,
    /// The hosted API server, and when its kubeconfig was read.
    guest: Option<(kube::Client, Instant)>,
}

// === impl Tokens ===

impl Tokens {
    pub(crate) fn new(client: kube::Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            guest: None,
        }
    }

    /// A token of a service account.
    pub(crate) async fn mint(&mut self, account: &str) -> Result<String, NoToken> {
        match timeout(PATIENCE, self.request(account)).await {
            Ok(Ok(Some(token))) => Ok(token),
            Ok(Ok(None)) => Err(NoToken::NoKubeconfig),
            Ok(Err(error)) => Err(NoToken::Refused(chain(error.as_ref()))),
            Err(_) => Err(NoToken::Refused(format!(
                "the API server did not respond within {PATIENCE:?}"
            ))),
        }
    }

    /// A token of a service account, if there is a kubeconfig.
    async fn request(&mut self, account: &str) -> Result<Option<String>, Failure> {
        let (guest, read) = match &self.guest {
            Some((guest, read)) => (guest.clone(), *read),
            None => match self.connect().await? {
                Some(guest) => (guest, Instant::now()),
                None => return Ok(None),
            },
        };
        self.guest = Some((guest.clone(), read));
        let account = Account {
            namespace: NAMESPACE.to_owned(),
            name: account.to_owned(),
            audience: AUDIENCE.to_owned(),
            lifetime: LIFETIME,
        };
        let minted = account.mint(&guest).await;
        if minted.is_err() && read.elapsed() >= READ_AGAIN_AFTER {
            // Its certificates may have been renewed.
            self.guest = None;
        }
        Ok(Some(minted?.token))
    }

    /// A client of the hosted API server, if there is a kubeconfig.
    async fn connect(&self) -> Result<Option<kube::Client>, Failure> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let Some(secret) = secrets.get_opt(KUBECONFIG).await? else {
            return Ok(None);
        };
        Ok(Some(support::client::connect(&config_of(&secret).await?)?))
    }
}
