//! A network between the proxy and the API server that can be slow, or break without notice.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The network.
pub(crate) struct Relay {
    pub(crate) address: String,
    state: watch::Sender<State>,
    server: watch::Sender<String>,
}

#[derive(Clone, Copy)]
struct State {
    frozen: bool,
    delay: Duration,
    /// Every so many pieces one is as late as if it had been lost and sent again.
    lost: Option<usize>,
}

// === impl Relay ===

impl Relay {
    /// A network that does nothing to what it carries.
    pub(crate) async fn to(server: &str) -> Self {
        Self::start(
            server,
            State {
                frozen: false,
                delay: Duration::ZERO,
                lost: None,
            },
        )
        .await
    }

    /// One on which everything takes `delay`, and every `lost`th piece twice as long.
    pub(crate) async fn slow(server: &str, delay: Duration, lost: usize) -> Self {
        Self::start(
            server,
            State {
                frozen: false,
                delay,
                lost: Some(lost),
            },
        )
        .await
    }

    async fn start(server: &str, state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = watch::Sender::new(state);
        let seen = state.subscribe();
        let server = watch::Sender::new(server.to_owned());
        let target = server.subscribe();
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let address = target.borrow().clone();
                let Ok(far) = TcpStream::connect(address).await else {
                    continue;
                };
                near.set_nodelay(true).unwrap();
                far.set_nodelay(true).unwrap();
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = far.into_split();
                let mut moved = target.clone();
                moved.mark_unchanged();
                let (there, back) = (
                    carry(near_read, far_write, seen.clone()),
                    carry(far_read, near_write, seen.clone()),
                );
                tokio::spawn(async move {
                    tokio::select! {
                        _ = async { tokio::join!(there, back) } => {}
                        _ = moved.changed() => {}
                    }
                });
            }
        });
        Self {
            address,
            state,
            server,
        }
    }

    /// Leads elsewhere from now on. What leads to the old place is cut.
    pub(crate) fn redirect(&self, server: &str) {
        self.server.send_replace(server.to_owned());
    }

    /// Carries nothing any more, and says nothing about it.
    pub(crate) fn freeze(&self) {
        self.state.send_modify(|state| state.frozen = true);
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) {
    let (sender, mut pieces) = tokio::sync::mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let mut reading = state.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 16 * 1024];
        let mut count = 0;
        while let Ok(size @ 1..) = from.read(&mut buffer).await {
            let State { delay, lost, .. } = *reading.borrow_and_update();
            count += 1;
            let late = lost.is_some_and(|lost| count % lost == 0);
            let due = Instant::now() + if late { delay * 2 } else { delay };
            if sender.send((due, buffer[..size].to_vec())).is_err() {
                return;
            }
        }
    });
    // In order, as TCP delivers it.
    while let Some((due, bytes)) = pieces.recv().await {
        sleep_until(due).await;
        if state.borrow().frozen {
            // The connection stays open for as long as the relay does.
            let _ = state.wait_for(|state| !state.frozen).await;
        }
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
