//! An API server with HTTP/2 for watches, and HTTP/1.1 for clients that negotiate it.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

/// The server. It runs on a thread of its own until the test's end.
pub(crate) struct Http2 {
    pub(crate) address: String,
    state: Arc<State>,
}

/// What is known of it.
#[derive(Default)]
struct State {
    requests: Mutex<Vec<Request<()>>>,
    /// Streams open now, and the most that ever were, of each connection.
    streams: Mutex<Vec<(usize, usize)>>,
    open: AtomicUsize,
}

/// A watch that the test sends events on.
pub(crate) struct Watch {
    stream: SendStream<Bytes>,
    goaway: Rc<Notify>,
}

// === impl Http2 ===

impl Http2 {
    /// A server that allows `limit` streams a connection. `response` sends the events of each watch; when it returns, the
    /// watch ends.
    pub(crate) fn watches<F>(config: Arc<ServerConfig>, limit: u32, response: F) -> Self
    where
        F: AsyncFn(Request<()>, &mut Watch) + Send + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State::default());
        let known = Arc::clone(&state);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            LocalSet::new().block_on(
                &runtime,
                accept(listener, config, limit, Rc::new(response), known),
            );
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The watches that were requested.
    pub(crate) fn requests(&self) -> Vec<Request<()>> {
        self.state.requests.lock().unwrap().clone()
    }

    /// How many watches are open.
    pub(crate) fn open(&self) -> usize {
        self.state.open.load(Ordering::Relaxed)
    }

    /// The most watches that were open at a time, of each connection that had one.
    pub(crate) fn peaks(&self) -> Vec<usize> {
        let streams = self.state.streams.lock().unwrap();
        streams
            .iter()
            .map(|(_, peak)| *peak)
            .filter(|peak| *peak > 0)
            .collect()
    }
}

async fn accept<F>(
    listener: std::net::TcpListener,
    config: Arc<ServerConfig>,
    limit: u32,
    response: Rc<F>,
    state: Arc<State>,
) where
    F: AsyncFn(Request<()>, &mut Watch) + 'static,
{
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let (config, response, state) = (
            Arc::clone(&config),
            Rc::clone(&response),
            Arc::clone(&state),
        );
        tokio::task::spawn_local(async move {
            let Ok(stream) = TlsAcceptor::from(config).accept(tcp).await else {
                return;
            };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                multiplexed(stream, limit, response, state).await;
            } else {
                simple(stream).await;
            }
        });
    }
}

/// Responds to every request with an empty object.
async fn simple(stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = stream;
    let mut buffer = Vec::new();
    loop {
        while let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            buffer.drain(..end + 4);
            let response =
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
            if stream.write_all(response).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
        if !matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {
            return;
        }
    }
}

async fn multiplexed<F>(
    stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
    limit: u32,
    response: Rc<F>,
    state: Arc<State>,
) where
    F: AsyncFn(Request<()>, &mut Watch) + 'static,
{
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(limit);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else {
        return;
    };
    let number = {
        let mut streams = state.streams.lock().unwrap();
        streams.push((0, 0));
        streams.len() - 1
    };
    let goaway = Rc::new(Notify::new());
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = goaway.notified() => {
                connection.graceful_shutdown();
                continue;
            }
        };
        let Some(Ok((request, respond))) = accepted else {
            return;
        };
        let (response, state, goaway) =
            (Rc::clone(&response), Arc::clone(&state), Rc::clone(&goaway));
        tokio::task::spawn_local(async move {
            let _counted = Counted::new(&state, number);
            one(request, respond, &*response, &state, goaway).await;
        });
    }
}

async fn one<F>(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    response: &F,
    state: &State,
    goaway: Rc<Notify>,
) where
    F: AsyncFn(Request<()>, &mut Watch),
{
    let request = request.map(|_| ());
    state.requests.lock().unwrap().push(request.clone());
    let head = Response::builder()
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    let Ok(stream) = respond.send_response(head, false) else {
        return;
    };
    let mut watch = Watch { stream, goaway };
    response(request, &mut watch).await;
    // It fails if the peer has closed the connection.
    let _ = watch.stream.send_data(Bytes::new(), true);
}

/// Counts a stream while it is open.
struct Counted<'a> {
    state: &'a State,
    number: usize,
}

impl<'a> Counted<'a> {
    fn new(state: &'a State, number: usize) -> Self {
        let mut streams = state.streams.lock().unwrap();
        let (open, peak) = &mut streams[number];
        *open += 1;
        *peak = (*peak).max(*open);
        state.open.fetch_add(1, Ordering::Relaxed);
        Self { state, number }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.state.streams.lock().unwrap()[self.number].0 -= 1;
        self.state.open.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl Watch ===

impl Watch {
    /// Sends bytes as one frame, as soon as the peer's window allows it; whether it is still there.
    pub(crate) async fn send(&mut self, bytes: impl Into<Bytes>) -> bool {
        let mut bytes = bytes.into();
        while !bytes.is_empty() {
            self.stream.reserve_capacity(bytes.len());
            let Some(Ok(room)) = std::future::poll_fn(|cx| self.stream.poll_capacity(cx)).await
            else {
                return false;
            };
            let part = bytes.split_to(room.min(bytes.len()));
            if self.stream.send_data(part, false).is_err() {
                return false;
            }
        }
        true
    }

    /// Lets the connection take no new watches.
    pub(crate) fn goaway(&self) {
        self.goaway.notify_one();
    }

    /// Stays open until the peer closes the connection.
    pub(crate) async fn wait(&mut self) {
        let _ = std::future::poll_fn(|cx| self.stream.poll_reset(cx)).await;
    }
}
