//! An API server with HTTP/1.1; a test writes its responses byte by byte.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

/// The server. It runs on a thread of its own until the test's end.
pub(crate) struct Http1 {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A request as it arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The index of its connection, from zero.
    pub(crate) connection: usize,
    /// Whether the connection showed a client certificate.
    pub(crate) certified: bool,
}

/// A connection, to respond on.
pub(crate) struct Conn {
    stream: Box<dyn Stream>,
    buffer: Vec<u8>,
    number: usize,
    certified: bool,
    requests: usize,
    open: bool,
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

// === impl Http1 ===

impl Http1 {
    /// A server without TLS. `response` gets all requests but `/version`.
    pub(crate) fn plain<F>(response: F) -> Self
    where
        F: AsyncFn(Request, &mut Conn) + Send + 'static,
    {
        Self::start(None, response)
    }

    /// A server with TLS.
    pub(crate) fn tls<F>(config: Arc<ServerConfig>, response: F) -> Self
    where
        F: AsyncFn(Request, &mut Conn) + Send + 'static,
    {
        Self::start(Some(config), response)
    }

    /// A server that responds to all requests with one object.
    pub(crate) fn object(body: &'static str) -> Self {
        Self::plain(async move |_, conn| conn.json(200, body).await)
    }

    fn start<F>(tls: Option<Arc<ServerConfig>>, response: F) -> Self
    where
        F: AsyncFn(Request, &mut Conn) + Send + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            LocalSet::new().block_on(&runtime, accept(listener, tls, Rc::new(response), seen));
        });
        Self { address, requests }
    }

    /// Its address, for a kubeconfig.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same with TLS.
    pub(crate) fn secure_url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// What has arrived, without probes.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The only request that has arrived.
    #[track_caller]
    pub(crate) fn only(&self) -> Request {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        requests[0].clone()
    }
}

async fn accept<F>(
    listener: std::net::TcpListener,
    tls: Option<Arc<ServerConfig>>,
    response: Rc<F>,
    seen: Arc<Mutex<Vec<Request>>>,
) where
    F: AsyncFn(Request, &mut Conn) + 'static,
{
    let listener = TcpListener::from_std(listener).unwrap();
    for number in 0.. {
        let (tcp, _) = listener.accept().await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let (tls, response, seen) = (tls.clone(), Rc::clone(&response), Arc::clone(&seen));
        tokio::task::spawn_local(async move {
            let Some((stream, certified)) = begin(tcp, tls).await else {
                return;
            };
            let mut conn = Conn {
                stream,
                buffer: Vec::new(),
                number,
                certified,
                requests: 0,
                open: true,
            };
            while let Some(request) = conn.request().await {
                if request.path == "/version" {
                    conn.json(200, "{}").await;
                    continue;
                }
                seen.lock().unwrap().push(request.clone());
                response(request, &mut conn).await;
                conn.requests += 1;
                if !conn.open {
                    return;
                }
            }
        });
    }
}

async fn begin(tcp: TcpStream, tls: Option<Arc<ServerConfig>>) -> Option<(Box<dyn Stream>, bool)> {
    let Some(tls) = tls else {
        return Some((Box::new(tcp), false));
    };
    let stream = TlsAcceptor::from(tls).accept(tcp).await.ok()?;
    let certified = stream.get_ref().1.peer_certificates().is_some();
    Some((Box::new(stream), certified))
}

// === impl Request ===

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

// === impl Conn ===

impl Conn {
    /// Responds with a JSON body.
    pub(crate) async fn json(&mut self, status: u16, body: &str) {
        self.respond(
            status,
            "content-type: application/json\r\n",
            body.as_bytes(),
        )
        .await;
    }

    /// Responds with the headers `more`, each with its line end, and a body.
    pub(crate) async fn respond(&mut self, status: u16, more: &str, body: &[u8]) {
        let length = body.len();
        self.write(format!(
            "HTTP/1.1 {status} Status\r\n{more}content-length: {length}\r\n\r\n"
        ))
        .await;
        self.write(body).await;
    }

    /// Begins a response of unknown length.
    pub(crate) async fn begin(&mut self, status: u16) {
        let head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.write(head).await;
    }

    /// Sends a chunk of it; an empty one ends it.
    pub(crate) async fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.write(chunk).await;
    }

    /// Sends bytes as they are. A closed peer is not a failure here.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        if self.stream.write_all(bytes.as_ref()).await.is_err()
            || self.stream.flush().await.is_err()
        {
            self.open = false;
        }
    }

    /// Whether the peer is still writable, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// How many requests preceded this one on the connection.
    pub(crate) fn responded(&self) -> usize {
        self.requests
    }

    /// Reads what has come; empty at the end.
    pub(crate) async fn read(&mut self) -> Vec<u8> {
        if self.buffer.is_empty() && !self.more().await {
            self.open = false;
        }
        std::mem::take(&mut self.buffer)
    }

    /// Waits until the peer has closed the connection.
    pub(crate) async fn gone(&mut self) {
        while !self.read().await.is_empty() {}
    }

    /// Ends the connection when the response function returns.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Never responds.
    pub(crate) async fn hang(&mut self) {
        self.gone().await;
    }

    async fn more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..))
    }

    async fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self
                .buffer
                .windows(end.len())
                .position(|window| window == end)
            {
                return Some(self.buffer.drain(..at + end.len()).collect());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more().await {
                return None;
            }
        }
        Some(self.buffer.drain(..count).collect())
    }

    /// Reads a whole request; `None` at the end of the connection, also within a request.
    async fn request(&mut self) -> Option<Request> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap().split(' ').map(str::to_owned);
        let headers = lines.filter_map(|line| line.split_once(": "));
        let mut request = Request {
            method: words.next().unwrap(),
            path: words.next().unwrap(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
            body: Vec::new(),
            connection: self.number,
            certified: self.certified,
        };
        if let Some(length) = request.header("content-length") {
            request.body = self.exactly(length.parse().unwrap()).await?;
        } else if request.header("transfer-encoding").is_some() {
            request.body = self.chunked().await?;
        }
        Some(request)
    }

    async fn chunked(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = String::from_utf8(self.until(b"\r\n").await?).unwrap();
            let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
            let chunk = self.exactly(size + 2).await?;
            if size == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }
}
