//! Resolves the host of a connection: Services of the hosted cluster first, then DNS. The lookups themselves are behind
//! [`Lookups`].

use std::error::Error as StdError;
use std::net::IpAddr;

use support::error::chain;
use tokio::time::Instant;

use super::health::{Attempt, Health, State};
use super::route::Answer;

/// Addresses of one family that are tried.
const MAX_ADDRESSES: usize = 2;

/// The lookups of a resolver.
pub(crate) trait Lookups: Send + Sync {
    /// The cluster IP of a Service of the hosted cluster; none if there is none, or if it cannot be read.
    fn service(&self, service: &ServiceName) -> impl Future<Output = Option<IpAddr>> + Send;

    /// Resolves a name with DNS of the hosted cluster.
    fn guest_dns(&self, name: &str) -> impl Future<Output = Found> + Send;

    /// Resolves a name with DNS of the management cluster.
    fn management_dns(&self, name: &str) -> impl Future<Output = Found> + Send;
}

/// The result of a lookup.
pub(crate) type Found = Result<Vec<IpAddr>, Box<dyn StdError + Send + Sync>>;

/// Name and namespace of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceName {
    pub(crate) name: String,
    pub(crate) namespace: String,
}

/// Which DNS servers are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dns {
    /// Those of the management cluster.
    Management,
    /// Those of the hosted cluster.
    Guest,
    /// Those of the hosted cluster; while they fail, those of the management cluster.
    GuestThenManagement,
}

/// What happens to a name that DNS of the hosted cluster does not resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// The management cluster resolves it, because the caller needs an address.
    Resolve,
    /// It goes through the tunnel, and the agent resolves it.
    Keep,
}

/// Which addresses are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// All.
    Any,
    /// IPv4; others only from DNS of the management cluster, and last.
    Ipv4,
}

/// How names are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) dns: Dns,
    pub(crate) unresolved: Unresolved,
    pub(crate) family: Family,
}

/// Resolves names.
#[derive(Debug)]
pub(crate) struct Resolver<L> {
    settings: Settings,
    health: Health,
    lookups: L,
}

/// A name cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// By the hosted cluster.
    #[error(
        "failed to resolve {name} with DNS of the hosted cluster: check that the name exists there, and that the pods \
         of DaemonSet openshift-dns/dns-default are ready"
    )]
    Guest {
        name: String,
        source: Box<dyn StdError + Send + Sync>,
    },
    /// By the management cluster.
    #[error(
        "failed to resolve {name} with DNS of the management cluster: check that the name exists"
    )]
    Management {
        name: String,
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// DNS has no address of the wanted family.
#[derive(Debug, thiserror::Error)]
#[error("no usable address found")]
struct NoAddress;

// === impl ServiceName ===

impl ServiceName {
    /// The Service that a DNS name may be of: `NAME.NAMESPACE`, whatever follows.
    pub(crate) fn of(host: &str) -> Option<Self> {
        let mut labels = host.split('.');
        let (name, namespace) = (labels.next()?, labels.next()?);
        let is_label = |label: &str| {
            let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let inner = label.strip_prefix(|c: char| c.is_ascii_alphanumeric());
            inner.is_some() && label.bytes().all(|byte| is_inner(byte) || byte == b'-')
        };
        (is_label(name) && is_label(namespace)).then(|| Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        })
    }
}

// === impl Resolver ===

impl<L: Lookups> Resolver<L> {
    /// A resolver.
    pub(crate) fn new(settings: Settings, lookups: L) -> Self {
        Self {
            settings,
            health: Health::default(),
            lookups,
        }
    }

    /// The state of DNS of the hosted cluster.
    pub(crate) fn guest_dns(&self) -> State {
        self.health.state()
    }

    /// Resolves a name.
    pub(crate) async fn resolve(&self, name: &str) -> Result<Answer, Error> {
        if let Some(service) = ServiceName::of(name)
            && let Some(address) = self.lookups.service(&service).await
        {
            return Ok(Answer::Service(address));
        }
        if self.settings.dns == Dns::Management {
            return self.management(name).await.map(Answer::Addresses);
        }
        let Some(attempt) = self.health.attempt(Instant::now()) else {
            return self.without_guest(name).await;
        };
        match self.guest(name).await {
            Ok(found) => {
                if attempt.succeeded() {
                    tracing::info!("DNS of the hosted cluster works again");
                }
                Ok(Answer::Addresses(found))
            }
            Err(error) => self.after_failure(name, attempt, error).await,
        }
    }

    /// DNS of the hosted cluster has failed only if the management cluster resolves the name.
    async fn after_failure(
        &self,
        name: &str,
        attempt: Attempt<'_>,
        error: Error,
    ) -> Result<Answer, Error> {
        if self.settings.dns == Dns::Guest {
            return Err(error);
        }
        let found = self.management(name).await;
        if found.is_ok() && attempt.failed(Instant::now()) {
            let error = chain(&error);
            tracing::warn!(
                error,
                "DNS of the hosted cluster failed, using the management cluster"
            );
        }
        match (self.settings.unresolved, found) {
            (Unresolved::Keep, _) => Ok(Answer::Unresolved),
            (Unresolved::Resolve, Ok(found)) => Ok(Answer::Addresses(found)),
            (Unresolved::Resolve, Err(_)) => Err(error),
        }
    }

    async fn without_guest(&self, name: &str) -> Result<Answer, Error> {
        match self.settings.unresolved {
            Unresolved::Keep => Ok(Answer::Unresolved),
            Unresolved::Resolve => self.management(name).await.map(Answer::Addresses),
        }
    }

    async fn guest(&self, name: &str) -> Result<Vec<IpAddr>, Error> {
        let found = self.lookups.guest_dns(name).await;
        let usable = found.and_then(|mut found| {
            if self.settings.family == Family::Ipv4 {
                found.retain(IpAddr::is_ipv4);
            }
            some(first_of_each_family(found))
        });
        usable.map_err(|source| Error::Guest {
            name: name.to_owned(),
            source,
        })
    }

    async fn management(&self, name: &str) -> Result<Vec<IpAddr>, Error> {
        let found = self.lookups.management_dns(name).await;
        let usable = found.and_then(|mut found| {
            if self.settings.family == Family::Ipv4 {
                found.sort_by_key(IpAddr::is_ipv6);
            }
            some(first_of_each_family(found))
        });
        usable.map_err(|source| Error::Management {
            name: name.to_owned(),
            source,
        })
    }
}

fn some(found: Vec<IpAddr>) -> Found {
    if found.is_empty() {
        return Err(Box::new(NoAddress));
    }
    Ok(found)
}

/// The first addresses of each family, in their order. Trying all addresses of a name could take minutes.
fn first_of_each_family(found: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut kept: Vec<IpAddr> = Vec::new();
    for address in found {
        let of_family = |kept: &&IpAddr| kept.is_ipv4() == address.is_ipv4();
        if !kept.contains(&address) && kept.iter().filter(of_family).count() < MAX_ADDRESSES {
            kept.push(address);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
