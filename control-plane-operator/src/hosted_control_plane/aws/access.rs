//! Credentials of roles of a cluster: the token service issues them for tokens of the hosted cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::hypershift::v1beta1::platform::aws::AwsPlatformSpec;
use support::aws::credentials::{assume_role, token_service};
use support::aws::{self, Client, Credentials, Source};
use support::error::chain;
use support::outbound::Http;
use tokio::time::Instant;

use crate::hosted_control_plane::tokens::{NoToken, OPERATOR, RENEWED_AFTER, Tokens};

/// The name of the session of a role.
const SESSION: &str = "control-plane-operator";

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
    pub(crate) http: Http,
    tokens: Tokens,
    known: BTreeMap<Role, Known>,
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

impl From<NoToken> for NoAccess {
    fn from(no_token: NoToken) -> Self {
        match no_token {
            NoToken::NoKubeconfig => Self::NoKubeconfig,
            NoToken::Refused(problem) => Self::NoToken(problem),
        }
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
            http: Http::new(),
            tokens: Tokens::new(client, namespace),
            known: BTreeMap::new(),
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
        let token = self.tokens.mint(role.account).await?;
        let sts = token_service(&role.region, &variable);
        let assumed = assume_role(&self.http, &sts, SESSION, &role.arn, &token).await;
        assumed.map_err(|error| NoAccess::of(&error))
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
