//! A server of HTTP on loopback that answers requests in order and keeps them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A server. Without an answer left, it answers 404.
pub(crate) struct Server {
    /// Its URL, without a slash at the end.
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request<Bytes>>>>,
}

/// An answer: status, headers, body.
pub(crate) type Answer = (u16, &'static [(&'static str, &'static str)], &'static str);

impl Server {
    pub(crate) async fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answers: VecDeque<Answer> = answers.iter().copied().collect();
        let (answers, kept) = (Arc::new(Mutex::new(answers)), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, kept) = (Arc::clone(&answers), Arc::clone(&kept));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answers, kept) = (Arc::clone(&answers), Arc::clone(&kept));
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        kept.lock().unwrap().push(Request::from_parts(head, body));
                        let answer = answers.lock().unwrap().pop_front();
                        Ok::<_, Infallible>(response(answer.unwrap_or((404, &[], ""))))
                    }
                });
                tokio::spawn(Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, requests }
    }

    /// The requests so far, as `METHOD PATH?QUERY`.
    pub(crate) fn lines(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let line = |request: &Request<Bytes>| format!("{} {}", request.method(), request.uri());
        requests.iter().map(line).collect()
    }

    /// The body of a request.
    pub(crate) fn body(&self, index: usize) -> Bytes {
        self.requests.lock().unwrap()[index].body().clone()
    }

    /// A header of a request.
    pub(crate) fn header(&self, index: usize, name: &str) -> Option<String> {
        let requests = self.requests.lock().unwrap();
        let value = requests[index].headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }
}

fn response((status, headers, body): Answer) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::new(Bytes::from(body))).unwrap()
}
