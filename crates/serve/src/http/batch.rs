//! Batches of messages, which revision 2025-03-26 of the protocol has and those after it have not.
//!
//! Each message is carried out as if it had come alone, one after the other, and the replies go back in one array. They
//! are gathered in memory, so all of them together are bounded like a single request.

use axum::{
    Json,
    body::{Body, to_bytes},
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use serde_json::{Value, value::RawValue};
use shelf_base::bounds::REQUEST_BYTES;

use super::message::Called;
use crate::envelope::{self, MessageError};

/// Most messages of a batch.
const MOST: usize = 64;
/// The revision that has batches. It has no header for its name yet, so a client that names none may be of it.
const REVISION: &str = "2025-03-26";

/// Whether a body is a batch of a client that may send one.
pub(super) fn is_batch(headers: &HeaderMap, body: &[u8]) -> bool {
    let revision = headers.get("mcp-protocol-version");
    envelope::is_batch(body) && revision.is_none_or(|revision| revision == REVISION)
}

/// Carries out the messages of a batch; an answer without content when none of them is a request.
pub(super) async fn run(parts: Parts, body: &[u8], next: Next) -> Response {
    let messages = match envelope::split(body, MOST) {
        Ok(messages) => messages,
        Err(fault) => return (StatusCode::BAD_REQUEST, Json(fault.message())).into_response(),
    };
    let (mut replies, mut room) = (Vec::with_capacity(messages.len()), REQUEST_BYTES);
    for message in messages {
        if let Some(reply) = one(&parts, &message, next.clone(), room).await {
            room = room.saturating_sub(reply.len());
            replies.push(reply);
        }
    }
    if replies.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], format!("[{}]", replies.join(","))).into_response()
}

/// The reply to one message; `None` for a notification, and for a reply to a request that this server never sent.
async fn one(parts: &Parts, message: &RawValue, next: Next, room: usize) -> Option<String> {
    let text = message.get().as_bytes();
    if let Err(fault) = envelope::check(text) {
        return Some(fault.message().to_string());
    }
    let (method, id) = (envelope::method(text)?, envelope::id(text));
    let refused = |why: &str| Some(MessageError::in_batch(why, id.clone()).message().to_string());
    if method == "initialize" {
        return refused("initialize must not be part of a batch");
    }
    let mut parts = parts.clone();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.extensions.insert(Called(method));
    let body = Body::from(envelope::keep_text(text.to_vec()));
    let response = next.run(Request::from_parts(parts, body)).await;
    id.as_ref()?;
    let is_stream = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let Ok(bytes) = to_bytes(response.into_body(), room).await else {
        return refused("the replies to this batch are too large: send fewer messages at once");
    };
    let reply = String::from_utf8_lossy(&bytes);
    let reply = if is_stream { last_reply(&reply) } else { is_reply(&reply).then(|| reply.into_owned()) };
    reply.or_else(|| refused("the message was not carried out: send it alone to learn why"))
}

/// The reply at the end of a stream of events, whose notifications have no place in a batch.
fn last_reply(events: &str) -> Option<String> {
    let mut data = events.lines().filter_map(|line| line.strip_prefix("data:").map(str::trim));
    data.rfind(|data| is_reply(data)).map(str::to_owned)
}

fn is_reply(text: &str) -> bool {
    let message: Option<Value> = serde_json::from_str(text).ok();
    message.is_some_and(|message| message.get("jsonrpc").is_some() && message.get("method").is_none())
}
