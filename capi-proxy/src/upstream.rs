//! The way to the API server: which connection a request takes, and what is done when that fails.
//!
//! - Ordinary requests each have an HTTP/1.1 connection to themselves while they last ([`http1`]).
//! - Watches share HTTP/2 connections of their own ([`http2`]), so that no number of them can starve the others.
//! - Upgrades have a connection that dies with them.
//!
//! A request is sent a second time in three cases only: a token that the API server refused has been replaced by
//! another; a pooled connection was closed before the request was written to it; or was closed without an answer to a
//! request that only reads.

mod answer;
mod connect;
mod http1;
mod http2;
mod outbound;

pub(crate) use answer::{Answer, AnswerError};
pub(crate) use outbound::{Authorization, BrokenOff, Class, Outbound, Outgoing};

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};

use crate::credentials::{Alpn, Identity, NotReady, Session, Store};
use crate::failure::Failure;
use connect::{ConnectError, Connected, Connector};

/// How often idle connections are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// How long the API server may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// To accept a connection, with TLS.
    pub(crate) connect: Duration,
    /// Between two questions whether an HTTP/2 connection is alive.
    pub(crate) ping: Duration,
    /// To answer that question.
    pub(crate) pong: Duration,
}

/// One thread's connections to the API server.
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

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// There is nothing to send a request with.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// Nothing was sent.
    #[error("cannot connect to the API server at {server}")]
    Connect {
        server: String,
        source: ConnectError,
    },
    /// The request was sent; whether it was heard is not known.
    #[error("the API server at {server} closed the connection before it answered")]
    Lost {
        server: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

// === impl Upstream ===

impl Upstream {
    /// Connections with the credentials in `store`; none is opened yet.
    pub(crate) fn new(store: Arc<Store>, limits: Limits) -> Self {
        Self {
            store,
            connector: Connector::new(limits),
            ours: Pools::default(),
            bare: Pools::default(),
        }
    }

    /// Sends a request and returns the head of the answer.
    pub(crate) async fn send(&self, outbound: Outbound) -> Result<Response<Answer>, SendError> {
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

    /// Sends a request that asks for another protocol, on a connection of its own.
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

    /// Closes connections that have not been used for a while, until dropped.
    pub(crate) async fn keep_tidy(&self) {
        let mut ticks = tokio::time::interval(SWEEP);
        loop {
            ticks.tick().await;
            let epoch = self.store.session().map(|session| session.epoch).ok();
            for pools in [&self.ours, &self.bare] {
                pools.unary.sweep(epoch);
                pools.lone_watches.sweep(epoch);
            }
        }
    }

    async fn attempt(
        &self,
        session: &Session,
        outbound: Outbound,
    ) -> Result<Response<Answer>, SendError> {
        let pools = self.pools(outbound.identity(session));
        match outbound.class {
            Class::Unary => self.exclusive(session, &pools.unary, outbound).await,
            Class::Watch if pools.watches.is_http1(session) => {
                self.exclusive(session, &pools.lone_watches, outbound).await
            }
            Class::Watch => self.watch(session, pools, outbound).await,
        }
    }

    /// Sends a request on a connection that is used for nothing else until it is answered.
    async fn exclusive(
        &self,
        session: &Session,
        pool: &Arc<http1::Pool>,
        outbound: Outbound,
    ) -> Result<Response<Answer>, SendError> {
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
    ) -> Result<Response<Answer>, SendError> {
        let identity = outbound.identity(session);
        let connect = async || self.connect(session, identity, Alpn::Http2).await;
        let found = pools
            .watches
            .find(session, self.connector.limits().connect, connect)
            .await?;
        let http2::Found::Shared(lease) = found else {
            return self.begin_watch(session, pools, found, outbound).await;
        };
        let spare = outbound.replay();
        match (lease.send(session, outbound).await, spare) {
            (Ok(response), _) => Ok(response),
            // A connection that others use may have been on its way out. A fresh one has no such excuse.
            (Err(_), Some(spare)) => {
                let found = pools.watches.open(session, connect().await?).await?;
                self.begin_watch(session, pools, found, spare).await
            }
            (Err(source), None) => Err(lost(session, source)),
        }
    }

    /// Sends a request on a connection that was found or opened for it.
    async fn begin_watch(
        &self,
        session: &Session,
        pools: &Pools,
        found: http2::Found,
        outbound: Outbound,
    ) -> Result<Response<Answer>, SendError> {
        match found {
            http2::Found::Shared(lease) | http2::Found::Fresh(lease) => lease
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
