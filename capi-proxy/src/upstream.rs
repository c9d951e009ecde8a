//! Requests to the API server: which connection they use, and when they are retried.
//!
//! - Each ordinary request has an HTTP/1.1 connection for its duration ([`http1`]).
//! - Watches share separate HTTP/2 connections ([`http2`]), so that they cannot block other requests.
//! - Each upgrade has a connection that is closed with it.
//!
//! A request is sent a second time in three cases only: the API server rejected a token that has been replaced since; a
//! pooled connection was closed before the request was written to it; or it was closed without a response to a request
//! that only reads.

mod connect;
mod http1;
mod http2;
mod outbound;
mod response;

pub(crate) use outbound::{Authorization, BrokenOff, Class, Outbound, Outgoing};
pub(crate) use response::{ResponseBody, ResponseBodyError};

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};

use crate::credentials::{Alpn, Identity, NotReady, Session, Store};
use crate::failure::Failure;
use connect::{ConnectError, Connected, Connector};

/// Interval at which idle connections are closed.
const SWEEP: Duration = Duration::from_secs(30);

/// Timeouts for the API server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For a connection, including TLS.
    pub(crate) connect: Duration,
    /// Interval of pings on HTTP/2 connections.
    pub(crate) ping: Duration,
    /// For the response to a ping.
    pub(crate) pong: Duration,
}

/// The connections of one thread to the API server.
#[derive(Debug)]
pub(crate) struct Upstream {
    store: Arc<Store>,
    connector: Connector,
    ours: Pools,
    bare: Pools,
}

#[derive(Debug, Default)]
struct Pools {
    unary: Arc<http1::Pool>,
    watches: http2::Pool,
    /// For a server that does not support HTTP/2.
    lone_watches: Arc<http1::Pool>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// There are no credentials.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// Nothing was sent.
    #[error("failed to connect to the API server at {server}")]
    Connect {
        server: String,
        source: ConnectError,
    },
    /// The request was sent; whether it was executed is unknown.
    #[error("the API server at {server} closed the connection before it responded")]
    Lost {
        server: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

// === impl Upstream ===

impl Upstream {
    /// Uses the credentials in `store`. Connections are opened when they are needed.
    pub(crate) fn new(store: Arc<Store>, limits: Limits) -> Self {
        Self {
            store,
            connector: Connector::new(limits),
            ours: Pools::default(),
            bare: Pools::default(),
        }
    }

    /// Sends a request and returns the response head.
    pub(crate) async fn send(
        &self,
        outbound: Outbound,
    ) -> Result<Response<ResponseBody>, SendError> {
        let session = self.store.session()?;
        let spare = match (&outbound.authorization, &session.token) {
            (Authorization::Ours, Some(_)) => outbound.replay(),
            _ => None,
        };
        let response = self.attempt(&session, outbound).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        match spare.and_then(|spare| Some((spare, self.store.after_refusal(&session)?))) {
            Some((spare, fresh)) => {
                drop(response);
                self.attempt(&fresh, spare).await
            }
            None => Ok(response),
        }
    }

    /// Sends an upgrade request on a separate connection.
    pub(crate) async fn upgrade(
        &self,
        outbound: Outbound,
    ) -> Result<Response<hyper::body::Incoming>, SendError> {
        let session = self.store.session()?;
        let identity = outbound.identity(&session);
        let connected = self.connect(&session, identity, Alpn::Http1).await?;
        http1::upgrade(connected, outbound.into_http1(&session))
            .await
            .map_err(|source| lost(&session, source))
    }

    /// Closes connections that have been idle for a while, until dropped.
    pub(crate) async fn close_idle_connections(&self) {
        let mut ticks = tokio::time::interval(SWEEP);
        loop {
            ticks.tick().await;
            let epoch = self.store.session().map(|session| session.epoch).ok();
            for pools in [&self.ours, &self.bare] {
                pools.unary.close_expired(epoch);
                pools.lone_watches.close_expired(epoch);
            }
        }
    }

    async fn attempt(
        &self,
        session: &Session,
        outbound: Outbound,
    ) -> Result<Response<ResponseBody>, SendError> {
        let pools = self.pools(outbound.identity(session));
        match outbound.class {
            Class::Unary => self.exclusive(session, &pools.unary, outbound).await,
            Class::Watch if pools.watches.is_http1(session) => {
                self.exclusive(session, &pools.lone_watches, outbound).await
            }
            Class::Watch => self.watch(session, pools, outbound).await,
        }
    }

    /// Sends a request on a connection that is not shared.
    async fn exclusive(
        &self,
        session: &Session,
        pool: &Arc<http1::Pool>,
        outbound: Outbound,
    ) -> Result<Response<ResponseBody>, SendError> {
        let identity = outbound.identity(session);
        let only_reads = outbound.method.is_safe();
        let mut request = outbound.into_http1(session);
        while let Some(connection) = pool.take(session.epoch) {
            let spare = if only_reads {
                outbound::replay_http1(&request)
            } else {
                None
            };
            match connection.send(request).await {
                Ok(response) => return Ok(response),
                Err(http1::SendError {
                    unsent: Some(unsent),
                    ..
                }) => request = *unsent,
                Err(http1::SendError { source, .. }) => {
                    request = spare.ok_or_else(|| lost(session, source))?;
                    break;
                }
            }
        }
        let connected = self.connect(session, identity, Alpn::Http1).await?;
        let connection = pool
            .open(connected, session.epoch)
            .await
            .map_err(|source| lost(session, source))?;
        connection
            .send(request)
            .await
            .map_err(|error| lost(session, error.source))
    }

    async fn watch(
        &self,
        session: &Session,
        pools: &Pools,
        outbound: Outbound,
    ) -> Result<Response<ResponseBody>, SendError> {
        let identity = outbound.identity(session);
        let connect = async || self.connect(session, identity, Alpn::Http2).await;
        let found = pools
            .watches
            .find(session, self.connector.limits().connect, connect)
            .await?;
        let http2::Found::Shared(permit) = found else {
            return self.begin_watch(session, pools, found, outbound).await;
        };
        let spare = outbound.replay();
        match (permit.send(session, outbound).await, spare) {
            (Ok(response), _) => Ok(response),
            // A shared connection may have been closing. A new one is not.
            (Err(_), Some(spare)) => {
                let found = pools.watches.open(session, connect().await?).await?;
                self.begin_watch(session, pools, found, spare).await
            }
            (Err(source), None) => Err(lost(session, source)),
        }
    }

    /// Sends a watch request on the connection.
    async fn begin_watch(
        &self,
        session: &Session,
        pools: &Pools,
        found: http2::Found,
        outbound: Outbound,
    ) -> Result<Response<ResponseBody>, SendError> {
        match found {
            http2::Found::Shared(permit) | http2::Found::New(permit) => permit
                .send(session, outbound)
                .await
                .map_err(|source| lost(session, source)),
            http2::Found::Http1(connected) => {
                let connection = pools.lone_watches.open(connected, session.epoch).await;
                let connection = connection.map_err(|source| lost(session, source))?;
                let request = outbound.into_http1(session);
                connection
                    .send(request)
                    .await
                    .map_err(|error| lost(session, error.source))
            }
        }
    }

    async fn connect(
        &self,
        session: &Session,
        identity: Identity,
        alpn: Alpn,
    ) -> Result<Connected, SendError> {
        let connected = self.connector.connect(session, identity, alpn).await;
        connected.map_err(|source| SendError::Connect {
            server: session.endpoint.to_string(),
            source,
        })
    }

    fn pools(&self, identity: Identity) -> &Pools {
        match identity {
            Identity::Ours => &self.ours,
            Identity::Bare => &self.bare,
        }
    }
}

fn lost(
    session: &Session,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> SendError {
    SendError::Lost {
        server: session.endpoint.to_string(),
        source: source.into(),
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let message = support::error::chain(&error);
        match error {
            SendError::NotReady(_) | SendError::Connect { .. } => Self::unavailable(message),
            SendError::Lost { .. } => Self::bad_gateway(message),
        }
    }
}
