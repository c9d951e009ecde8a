//! Serves SOCKS5 clients.

use std::sync::Arc;
use std::time::Duration;

use support::error::chain;
use support::shutdown::Drain;
use tokio::net::{TcpListener, TcpStream};

use super::protocol::{self, Reply};
use crate::konnectivity::dialer::Dialer;
use crate::konnectivity::relay::relay;
use crate::konnectivity::server::{self, Failures};
use crate::konnectivity::stream::within;

/// Timeout of the greeting and the request.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The proxy.
pub(super) struct Proxy {
    dialer: Dialer,
    failures: Failures,
}

// === impl Proxy ===

impl Proxy {
    /// A proxy that connects with this dialer.
    pub(super) fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            failures: Failures::default(),
        }
    }

    /// Serves clients until the shutdown.
    pub(super) async fn run(self, listener: TcpListener, drain: Drain) {
        let proxy = Arc::new(self);
        server::run(listener, drain, |stream, slot| {
            let proxy = Arc::clone(&proxy);
            async move {
                proxy.serve(stream).await;
                drop(slot);
            }
        })
        .await;
    }

    async fn serve(&self, mut client: TcpStream) {
        // Errors of clients are not logged, because clients can cause them at will.
        let Ok(target) = within(HANDSHAKE_TIMEOUT, protocol::accept(&mut client)).await else {
            return;
        };
        let connection = match self.dialer.dial(&target).await {
            Ok(connection) => connection,
            Err(error) => {
                self.failures.log(&chain(&error));
                // A client that has gone needs no reply.
                let _ = Reply::of(error.reason()).write(&mut client).await;
                return;
            }
        };
        if Reply::Succeeded.write(&mut client).await.is_ok() {
            // Either side may close the connection at any time.
            let _ = relay(client, connection.io, connection.at_end).await;
        }
    }
}
