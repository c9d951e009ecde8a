//! The accept loop of a server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pause after a failed accept, for instance without a free file descriptor.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Something that accepts connections.
pub trait Accept {
    /// A connection.
    type Connection;

    /// The next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

/// Accepts connections until `shutdown` completes, and passes each to `serve`, which spawns its task.
///
/// With `permits`, no connection is accepted without a permit; the task of the connection holds it until it ends. Those
/// that exceed the limit wait in the backlog of the kernel.
pub async fn run<L: Accept>(
    listener: L,
    permits: Option<Arc<Semaphore>>,
    shutdown: impl Future<Output = ()>,
    mut serve: impl FnMut(L::Connection, Option<OwnedSemaphorePermit>),
) {
    let accepting = async {
        loop {
            let permit = match &permits {
                Some(permits) => Arc::clone(permits).acquire_owned().await.ok(),
                None => None,
            };
            match listener.accept().await {
                Ok(connection) => serve(connection, permit),
                Err(error) => {
                    tracing::warn!(%error, "Failed to accept connection");
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = shutdown => {}
    }
}

impl Accept for TcpListener {
    type Connection = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        Ok(TcpListener::accept(self).await?.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::mpsc;

    use super::*;

    /// Fails first, then accepts for ever.
    struct Flaky(AtomicUsize);

    impl Accept for Flaky {
        type Connection = usize;

        async fn accept(&self) -> io::Result<usize> {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => Err(io::Error::other("no file descriptor")),
                number => Ok(number),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_accept_is_retried_and_permits_limit_connections() {
        let begun = tokio::time::Instant::now();
        let (sender, mut accepted) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(2));
        let (signal, mut drain) = crate::shutdown::channel();
        let permits_of_loop = Some(Arc::clone(&permits));
        let accepting = tokio::spawn(async move {
            let shutdown = async move { drain.begun().await };
            run(
                Flaky(AtomicUsize::new(0)),
                permits_of_loop,
                shutdown,
                |it, permit| {
                    sender.send((it, permit)).unwrap();
                },
            )
            .await;
        });
        let first = accepted.recv().await.unwrap();
        let second = accepted.recv().await.unwrap();
        assert_eq!((first.0, second.0), (1, 2));
        assert_eq!(begun.elapsed(), RETRY_INTERVAL);
        tokio::task::yield_now().await;
        assert!(accepted.try_recv().is_err(), "both permits are in use");
        drop(first);
        assert_eq!(accepted.recv().await.unwrap().0, 3);
        signal.begin();
        accepting.await.unwrap();
    }
}
