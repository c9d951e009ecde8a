//! Credentials of roles of a cluster: the token service issues them for tokens of the hosted cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::platform::aws::AwsPlatformSpec;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use support::aws::credentials::{assume_role, token_service};
use support::aws::{self, Client, Credentials, Source};
use support::error::chain;
use support::outbound::Http;
use tokio::time::{Instant, timeout};

use crate::error::Failure;
use crate::token_minter::mint::{Account, config_of};

/// How long a kubeconfig is used that does not work.
const READ_AGAIN_AFTER: Duration = Duration::from_mins(5);
/// The Secret with the kubeconfig of the hosted cluster.
const KUBECONFIG: &str = "service-network-admin-kubeconfig";
/// The namespace of the service accounts.
const NAMESPACE: &str = "kube-system";
/// The audience that roles trust.
const AUDIENCE: &str = "openshift";
/// The service account that the role of the control-plane-operator trusts.
const OPERATOR: &str = "control-plane-operator";
/// The name of the session of a role.
const SESSION: &str = "control-plane-operator";
/// How long tokens and credentials are valid, and how long they are used.
const LIFETIME: Duration = Duration::from_hours(1);
const RENEWED_AFTER: Duration = Duration::from_mins(45);
/// How long the API server of the hosted cluster has for a token.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there are no credentials.
#[derive(Debug)]
pub(crate) enum NoAccess {
    /// There is no kubeconfig of the hosted cluster.
    NoKubeconfig,
    /// The hosted cluster gives no token.
    NoToken(String),
    /// The token service does not accept the token for the role. It has the code.
    Refused(String),
    /// The token service cannot be used.
    Unavailable(String),
}

/// A role, and who assumes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Role {
    /// The service account.
    pub(crate) account: &'static str,
    pub(crate) arn: String,
    /// Where the token service is asked.
    pub(crate) region: String,
}

/// What is known of a role.
struct Known {
    /// When its credentials were issued.
    issued: Instant,
    credentials: Credentials,
    /// Clients with them, by the further role that they assume. They go with the credentials.
    clients: BTreeMap<Option<String>, Arc<Client>>,
}

/// Gives credentials and clients, and keeps them.
pub(crate) struct Access {
    client: kube::Client,
    namespace: String,
    pub(crate) http: Http,
    known: BTreeMap<Role, Known>,
    /// The hosted API server, and when its kubeconfig was read.
    guest: Option<(kube::Client, Instant)>,
}

// === impl NoAccess ===

impl NoAccess {
    fn of(error: &aws::Error) -> Self {
        let is_refused = error.status().is_some_and(|it| (400..500).contains(&it));
        if is_refused && !error.is_throttled() {
            return Self::Refused(error.code().to_owned());
        }
        let problem = chain(error);
        tracing::warn!(problem, "The token service of AWS cannot be used");
        Self::Unavailable("the token service of AWS cannot be used".to_owned())
    }
}

// === impl Role ===

impl Role {
    /// The role of the control-plane-operator.
    pub(crate) fn of_operator(aws: &AwsPlatformSpec) -> Self {
        Self {
            account: OPERATOR,
            arn: aws.roles_ref.control_plane_operator_arn.clone(),
            region: aws.region.clone(),
        }
    }
}

// === impl Access ===

impl Access {
    pub(crate) fn new(client: kube::Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            http: Http::new(),
            known: BTreeMap::new(),
            guest: None,
        }
    }

    /// The credentials of a role.
    pub(crate) async fn credentials(&mut self, role: &Role) -> Result<Credentials, NoAccess> {
        Ok(self.known(role).await?.credentials.clone())
    }

    /// A client with the credentials of a role, or with those of a further role that it assumes.
    pub(crate) async fn client(
        &mut self,
        role: &Role,
        further: Option<&str>,
    ) -> Result<Arc<Client>, NoAccess> {
        let Known {
            credentials,
            clients,
            ..
        } = self.known(role).await?;
        let further = further.map(str::to_owned);
        let client = clients.entry(further.clone()).or_insert_with(|| {
            let source = Source::Static(credentials.clone());
            let client = Client::new(source, further, &role.region, SESSION, &variable);
            Arc::new(client)
        });
        Ok(Arc::clone(client))
    }

    async fn known(&mut self, role: &Role) -> Result<&mut Known, NoAccess> {
        self.known
            .retain(|_, it| it.issued.elapsed() < RENEWED_AFTER);
        let known = match self.known.remove(role) {
            Some(known) => known,
            None => Known {
                credentials: self.assume(role).await?,
                issued: Instant::now(),
                clients: BTreeMap::new(),
            },
        };
        Ok(self.known.entry(role.clone()).or_insert(known))
    }

    /// New credentials of a role.
    async fn assume(&mut self, role: &Role) -> Result<Credentials, NoAccess> {
        if !aws::is_region(&role.region) {
            // It becomes a part of a host name.
            let problem = format!("{:?} is not a region of AWS", role.region);
            return Err(NoAccess::Unavailable(problem));
        }
        let token = match timeout(PATIENCE, self.token(role.account)).await {
            Ok(Ok(Some(token))) => token,
            Ok(Ok(None)) => return Err(NoAccess::NoKubeconfig),
            Ok(Err(error)) => return Err(NoAccess::NoToken(chain(error.as_ref()))),
            Err(_) => {
                let problem = format!("the API server did not respond within {PATIENCE:?}");
                return Err(NoAccess::NoToken(problem));
            }
        };
        let sts = token_service(&role.region, &variable);
        let assumed = assume_role(&self.http, &sts, SESSION, &role.arn, &token).await;
        assumed.map_err(|error| NoAccess::of(&error))
    }

    /// A token of a service account, if there is a kubeconfig.
    async fn token(&mut self, account: &str) -> Result<Option<String>, Failure> {
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
        Ok(Some(support::client::connect(config_of(&secret).await?)?))
    }
}

pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use support::aws::refused;

    use super::*;

    #[test]
    fn only_refusals_of_the_token_are_refusals() {
        for (status, code, expected) in [
            (400, "InvalidIdentityToken", Some("InvalidIdentityToken")),
            (403, "AccessDenied", Some("AccessDenied")),
            (400, "Throttling", None),
            (429, "TooManyRequests", None),
            (503, "ServiceUnavailable", None),
        ] {
            let body = format!("<Error><Code>{code}</Code></Error>");
            let status = StatusCode::from_u16(status).unwrap();
            let error = refused("AssumeRoleWithWebIdentity".to_owned(), status, &body);
            let found = match NoAccess::of(&error) {
                NoAccess::Refused(code) => Some(code),
                NoAccess::Unavailable(_) => None,
                other => panic!("{code}: {other:?}"),
            };
            assert_eq!(found.as_deref(), expected, "{code}");
        }
    }
}
