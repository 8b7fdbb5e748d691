//! Messages that are no messages: answered in JSON-RPC, where the MCP library would answer in prose.

use axum::{
    Json,
    body::{Body, to_bytes},
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{Method, StatusCode, header};
use shelf_base::bounds::REQUEST_BYTES;

use super::batch;
use crate::envelope;

/// The method that a message calls, if it calls one.
#[derive(Clone)]
pub(super) struct Called(pub String);

/// The answer to a message that is too large to be read.
pub(super) fn too_large() -> Response {
    let fault = envelope::MessageError::too_large();
    let mut response = (StatusCode::PAYLOAD_TOO_LARGE, Json(fault.message())).into_response();
    // What is left of the body is not read.
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

/// Reads the body of a POST and lets only well-formed messages through.
pub(super) async fn check(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, REQUEST_BYTES).await else { return too_large() };
    if batch::is_batch(&parts.headers, &bytes) {
        return batch::run(parts, &bytes, next).await;
    }
    if let Err(fault) = envelope::check(&bytes) {
        return (StatusCode::BAD_REQUEST, Json(fault.message())).into_response();
    }
    if let Some(method) = envelope::method(&bytes) {
        parts.extensions.insert(Called(method));
    }
    #[cfg(feature = "conformance")]
    crate::mcp::fixture::heard(&parts.headers, &bytes);
    let message = envelope::keep_text(bytes.into());
    // A length that was told for the body as it came need not be that of the body as it goes on.
    parts.headers.remove(header::CONTENT_LENGTH);
    next.run(Request::from_parts(parts, Body::from(message))).await
}
