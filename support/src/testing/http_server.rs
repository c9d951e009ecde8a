//! A server of HTTP on loopback that answers requests in order and keeps them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A server. Without an answer left, it answers 404.
#[derive(Debug)]
pub struct HttpServer {
    /// Its URL, without a slash at the end.
    pub url: String,
    requests: Arc<Mutex<Vec<Request<Bytes>>>>,
}

/// An answer: status, headers, body.
pub type HttpAnswer = (u16, &'static [(&'static str, &'static str)], &'static str);

impl HttpServer {
    /// Serves these answers until the runtime ends.
    pub async fn start(answers: &[HttpAnswer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("invariant: loopback has free ports");
        let address = listener.local_addr();
        let address = address.expect("invariant: the listener is bound");
        let url = format!("http://{address}");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answers: VecDeque<HttpAnswer> = answers.iter().copied().collect();
        let (answers, kept) = (Arc::new(Mutex::new(answers)), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, kept) = (Arc::clone(&answers), Arc::clone(&kept));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answers, kept) = (Arc::clone(&answers), Arc::clone(&kept));
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body
                            .collect()
                            .await
                            .map(http_body_util::Collected::to_bytes);
                        let request = Request::from_parts(head, body.unwrap_or_default());
                        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                        kept.push(request);
                        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                        let answer = answers.pop_front();
                        Ok::<_, Infallible>(response(answer.unwrap_or((404, &[], ""))))
                    }
                });
                tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, requests }
    }

    /// The requests so far, as `METHOD PATH?QUERY`.
    pub fn lines(&self) -> Vec<String> {
        let line = |request: &Request<Bytes>| format!("{} {}", request.method(), request.uri());
        self.with(|requests| requests.iter().map(line).collect())
    }

    /// The body of a request.
    pub fn body(&self, index: usize) -> Bytes {
        self.with(|requests| requests[index].body().clone())
    }

    /// A header of a request.
    pub fn header(&self, index: usize, name: &str) -> Option<String> {
        self.with(|requests| {
            let value = requests[index].headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
    }

    fn with<T>(&self, read: impl FnOnce(&[Request<Bytes>]) -> T) -> T {
        read(&self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn response((status, headers, body): HttpAnswer) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response
        .body(Full::new(Bytes::from(body)))
        .expect("invariant: tests have valid statuses and headers")
}
