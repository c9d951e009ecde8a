//! Opens connections for the clients of the proxies: decides the way ([`route`](super::route)), and takes it.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use support::error::chain;

use super::bypass::CloudApis;
use super::connect;
use super::dns;
use super::guest::GuestApi;
use super::health::State;
use super::http_proxy::{self, ProxyTls};
use super::proxies::{Proxies, Scheme};
use super::relay::AtEnd;
use super::resolver::{self, Family, Found, Lookups, Resolver, ServiceName};
use super::route::{self, Answer, Route};
use super::stream::{BoxedIo, tcp, within};
use super::target::{Host, Target};
use super::tunnel::{self, Tunnel};

/// Timeout of a TCP connection from the management cluster.
const DIRECT_TIMEOUT: Duration = Duration::from_mins(2);
/// Timeout of a lookup in DNS of the hosted cluster, after the connection to it.
const DNS_TIMEOUT: Duration = Duration::from_secs(10);
/// Port of DNS.
const DNS_PORT: u16 = 53;

/// Opens connections.
pub(crate) struct Dialer {
    pub(crate) cloud_apis: CloudApis,
    /// Proxies of the management cluster, for cloud APIs.
    pub(crate) management: Proxies,
    pub(crate) proxy_tls: ProxyTls,
    /// None if the other end of the tunnel resolves all names.
    pub(crate) resolver: Option<Resolver<Network>>,
    pub(crate) tunnel: Arc<Tunnel>,
}

/// An open connection.
pub(crate) struct Connection {
    pub(crate) io: BoxedIo,
    /// Whether it can be shut down in one direction only.
    pub(crate) at_end: AtEnd,
}

/// The lookups of the resolver, over the network.
pub(crate) struct Network {
    guest: GuestApi,
    tunnel: Arc<Tunnel>,
    family: Family,
    /// Cluster IP of the DNS server, while it can be reached there.
    dns_server: Mutex<Option<IpAddr>>,
}

/// A connection cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The host cannot be resolved.
    #[error(transparent)]
    Resolve(#[from] resolver::Error),
    /// Through the tunnel.
    #[error(transparent)]
    Tunnel(#[from] tunnel::Error),
    /// Through a proxy.
    #[error(transparent)]
    Proxy(#[from] http_proxy::Error),
    /// From the management cluster.
    #[error(
        "failed to connect to {target} from the management cluster: check that it is reachable from there"
    )]
    Direct { target: Target, source: io::Error },
    /// All addresses are those of the host that connects.
    #[error("refused to connect to {0}: it resolves to loopback or link-local addresses only")]
    Refused(Target),
}

/// Why a connection cannot be opened, as far as clients distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The host cannot be resolved.
    Unresolved,
    /// There is no way to the target at present.
    Unavailable,
    /// The target refused the connection, or is not reachable.
    Refused,
    /// No answer in time.
    TimedOut,
}

/// No DNS server, or no answer from it.
#[derive(Debug, thiserror::Error)]
#[error(
    "Service openshift-dns/dns-default of the hosted cluster does not exist or has no cluster IP"
)]
struct NoDnsServer;

// === impl Dialer ===

impl Dialer {
    /// Opens a connection.
    pub(crate) async fn dial(&self, target: &Target) -> Result<Connection, Error> {
        let answer = self.resolve(&target.host).await?;
        match route::decide(target, &self.cloud_apis, answer, self.guest_dns()) {
            Route::CloudApi => self.cloud_api(target).await,
            Route::Management => direct(target).await,
            Route::Tunnel(hosts) => self.first_reachable(target, hosts).await,
        }
    }

    /// Opens a connection in the network of the hosted cluster only, to an address that `is_allowed`: for targets that users
    /// choose, which must not be reached from the management cluster.
    pub(crate) async fn dial_inside(
        &self,
        target: &Target,
        is_allowed: fn(&IpAddr) -> bool,
    ) -> Result<Connection, Error> {
        let hosts = match self.resolve(&target.host).await? {
            Answer::Service(address) => vec![Host::Ip(address)],
            Answer::Addresses(mut found) => {
                found.retain(is_allowed);
                found.into_iter().map(Host::Ip).collect()
            }
            Answer::Unresolved => vec![target.host.clone()],
        };
        if hosts.is_empty() {
            return Err(Error::Refused(target.clone()));
        }
        self.first_reachable(target, hosts).await
    }

    async fn resolve(&self, host: &Host) -> Result<Answer, Error> {
        let is_cloud_api = self.cloud_apis.contains(host);
        match (host, &self.resolver) {
            (Host::Name(name), Some(resolver)) if !is_cloud_api => {
                Ok(resolver.resolve(name).await?)
            }
            _ => Ok(Answer::Unresolved),
        }
    }

    fn guest_dns(&self) -> State {
        let resolver = self.resolver.as_ref();
        resolver.map_or(State::Healthy, Resolver::guest_dns)
    }

    /// Tries the hosts in their order.
    async fn first_reachable(
        &self,
        target: &Target,
        hosts: Vec<Host>,
    ) -> Result<Connection, Error> {
        let mut hosts = hosts.into_iter().peekable();
        loop {
            let host = hosts.next().unwrap_or_else(|| target.host.clone());
            let candidate = Target::new(host, target.port);
            match self.tunnel.open(&candidate, &target.host).await {
                Ok(stream) => {
                    return Ok(Connection {
                        io: Box::new(stream),
                        at_end: AtEnd::KeepOpen,
                    });
                }
                Err(error) if error.is_of_target() && hosts.peek().is_some() => {
                    let error = chain(&error);
                    tracing::debug!(error, "Trying the next address");
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Cloud APIs honor the proxy of the management cluster.
    async fn cloud_api(&self, target: &Target) -> Result<Connection, Error> {
        let Some(proxy) = self.management.find(Scheme::Https, target) else {
            return direct(target).await;
        };
        let Connection { io, .. } = direct(&proxy.target).await?;
        Ok(Connection {
            io: self.proxy_tls.connect(io, proxy, target).await?,
            at_end: AtEnd::KeepOpen,
        })
    }
}

async fn direct(target: &Target) -> Result<Connection, Error> {
    match tcp(target, DIRECT_TIMEOUT).await {
        Ok(stream) => Ok(Connection {
            io: Box::new(stream),
            at_end: AtEnd::Shutdown,
        }),
        Err(source) => Err(Error::Direct {
            target: target.clone(),
            source,
        }),
    }
}

// === impl Network ===

impl Network {
    /// Lookups in the hosted cluster of this API and this tunnel.
    pub(crate) fn new(guest: GuestApi, tunnel: Arc<Tunnel>, family: Family) -> Self {
        Self {
            guest,
            tunnel,
            family,
            dns_server: Mutex::default(),
        }
    }

    /// The DNS server. Its address is kept until it cannot be reached there.
    async fn dns_server(&self) -> Result<IpAddr, Box<dyn std::error::Error + Send + Sync>> {
        if let Some(known) = *self.known_dns_server() {
            return Ok(known);
        }
        let service = ServiceName {
            name: "dns-default".to_owned(),
            namespace: "openshift-dns".to_owned(),
        };
        let found = self.guest.cluster_ip(&service).await?.ok_or(NoDnsServer)?;
        *self.known_dns_server() = Some(found);
        Ok(found)
    }

    fn known_dns_server(&self) -> std::sync::MutexGuard<'_, Option<IpAddr>> {
        self.dns_server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, server: IpAddr, name: &str) -> Found {
        let host = Host::Ip(server);
        let target = Target::new(host.clone(), DNS_PORT);
        let mut stream = self.tunnel.open(&target, &host).await?;
        let lookup = dns::lookup(&mut stream, name, self.family);
        Ok(within(DNS_TIMEOUT, lookup).await?)
    }
}

impl Lookups for Network {
    async fn service(&self, service: &ServiceName) -> Option<IpAddr> {
        match self.guest.cluster_ip(service).await {
            Ok(address) => address,
            Err(error) => {
                let error = chain(&error);
                tracing::debug!(error, "Skipping the lookup of a Service");
                None
            }
        }
    }

    async fn guest_dns(&self, name: &str) -> Found {
        let server = self.dns_server().await?;
        let found = self.ask(server, name).await;
        let is_answer = |error: &dns::Error| matches!(error, dns::Error::Code(_));
        if let Err(error) = &found
            && !error.downcast_ref().is_some_and(is_answer)
        {
            *self.known_dns_server() = None;
        }
        found
    }

    async fn management_dns(&self, name: &str) -> Found {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

// === impl Error ===

impl Error {
    /// The reason.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Resolve(_) => Reason::Unresolved,
            Self::Tunnel(tunnel::Error::Request { source, .. }) => match source {
                connect::Error::Status { status: 502, .. } => Reason::Refused,
                connect::Error::Status { status: 504, .. } => Reason::TimedOut,
                connect::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                    Reason::TimedOut
                }
                _ => Reason::Unavailable,
            },
            Self::Tunnel(tunnel::Error::Connect { .. } | tunnel::Error::Tls { .. }) => {
                Reason::Unavailable
            }
            Self::Proxy(_) | Self::Refused(_) => Reason::Refused,
            Self::Direct { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
                Reason::TimedOut
            }
            Self::Direct { .. } => Reason::Refused,
        }
    }
}
