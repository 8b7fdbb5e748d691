//! Bodies that nobody read: a request that is refused before its body was needed.
//!
//! What is left of a body stands in front of the next request, so a connection can only go on once it has been read. A
//! small rest is; otherwise the answer says that the connection ends, so that no client sends its next request there.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream, Bytes, HttpBody},
    extract::Request,
    middleware::Next,
    response::Response,
};
use futures_core::Stream;
use http::{HeaderValue, header};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

/// How much of a body that nobody wants is read, and for how long.
const REST: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the rest of a body is left.
type Left = Arc<Mutex<Option<BodyDataStream>>>;

/// Answers a request, and reads what is left of its body or says that the connection ends.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // Whoever waits to be asked for the body is not asked.
    let waits = request.headers().contains_key(header::EXPECT);
    let left = Left::default();
    let request = request
        .map(|body| Body::from_stream(Kept { body: Some(body.into_data_stream()), left: left.clone() }));
    let mut response = next.run(request).await;
    let rest = left.lock().take();
    let closes = response.headers().contains_key(header::CONNECTION);
    if let Some(rest) = rest
        && !closes
        && (waits || !is_read(rest).await)
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Reads a body to its end, if that is near.
async fn is_read(mut rest: BodyDataStream) -> bool {
    if HttpBody::size_hint(&rest).lower() > REST as u64 {
        return false;
    }
    let until = Instant::now() + PATIENCE;
    let mut length = 0;
    while length <= REST {
        let next = std::future::poll_fn(|context| Pin::new(&mut rest).poll_next(context));
        match timeout_at(until, next).await {
            Ok(None) => return true,
            Ok(Some(Ok(piece))) => length += piece.len(),
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
    false
}

/// A body that is left to be finished when it is dropped before its end.
struct Kept {
    body: Option<BodyDataStream>,
    left: Left,
}

impl Stream for Kept {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let next = Pin::new(body).poll_next(context);
        // After its end and after an error there is nothing left.
        if matches!(next, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        next
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        *self.left.lock() = self.body.take();
    }
}
