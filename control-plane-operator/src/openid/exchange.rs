//! One HTTP exchange over a stream that is open already. Nothing is followed, and the response is limited.

use std::pin::pin;

use bytes::Bytes;
use futures::future::{Either, select};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::Builder;
use hyper_util::rt::TokioIo;

use super::error::Error;
use crate::konnectivity::stream::Io;
use crate::konnectivity::target::Target;

/// The largest body. Discovery documents have a few thousand bytes.
pub(super) const MAX_BODY: usize = 128 << 10;
/// The largest head.
const MAX_HEAD: usize = 32 << 10;

/// Sends a request, and reads the whole response.
pub(super) async fn send(
    io: impl Io + 'static,
    target: &Target,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, Error> {
    let failed = |source| Error::Http {
        target: target.clone(),
        source,
    };
    let mut builder = Builder::new();
    builder.max_header_size(MAX_HEAD);
    let (mut sender, connection) = builder.handshake(TokioIo::new(io)).await.map_err(failed)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(failed)?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await;
        let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
            Ok(error) => failed(*error),
            Err(_) => Error::TooLarge(target.clone()),
        })?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    };
    // The connection ends with the exchange; when it ends earlier, the rest of the response has arrived.
    match select(pin!(exchange), pin!(connection)).await {
        Either::Left((response, _)) => response,
        Either::Right((_, exchange)) => exchange.await,
    }
}
