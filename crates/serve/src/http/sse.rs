//! The HTTP+SSE transport of 2024-11-05, for clients that know no other: a stream at `/sse` that begins with the path
//! to post messages to, and answers that come down the stream.
//!
//! A small adapter: behind each stream stands the same handler as behind stdio, and every posted message is checked at
//! the authentication of any other request. A message counts only when it comes from exactly the identity that opened the
//! stream, so a token that was revoked, or one that is somebody else's, reaches nothing.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Extension,
    body::Bytes,
    extract::{Query, State},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_core::Stream;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use rmcp::{ServiceExt, transport::async_rw::AsyncRwTransport};
use serde::Deserialize;
use shelf_base::Kind;
use shelf_engine::Door;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Shared, auth, rest};
use crate::{
    backlog::{Backlog, Message},
    lines::{LineReader, LineSender},
    mcp::{Admitted, Handler, Who},
    stdio::Identity,
};

/// Streams that may be open at once.
const MOST: usize = 1_024;
/// Streams that one identity may have open at once.
const MOST_OF_ONE: usize = 32;
/// How often the identity behind a stream is checked again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Messages of one stream that may wait for the handler.
const WAITING: usize = 16;
/// Requests of one stream that may be unanswered.
const MOST_UNANSWERED: usize = 64;
/// How often a quiet stream says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The open streams by their id.
#[derive(Default)]
pub(crate) struct Streams(Mutex<HashMap<String, SseSession>>);

/// One open stream: who opened it, and the way to its handler.
struct SseSession {
    admitted: Admitted,
    inbox: mpsc::Sender<Vec<u8>>,
    backlog: Arc<Backlog>,
}

/// Opens a stream.
pub(super) async fn open(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
) -> Response {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let (inbox, requests) = mpsc::channel(WAITING);
    let (outgoing, lines) = mpsc::unbounded_channel::<Vec<u8>>();
    let backlog = Arc::new(Backlog::of(MOST_UNANSWERED));
    {
        let mut streams = shared.streams.0.lock();
        let own =
            streams.values().filter(|session| session.admitted.caller.pass == admitted.caller.pass).count();
        if streams.len() >= MOST || own >= MOST_OF_ONE {
            return rest::error(Kind::Busy, "too many streams are open; close some, or try again later", &[]);
        }
        streams
            .insert(id.clone(), SseSession { admitted: admitted.clone(), inbox, backlog: backlog.clone() });
    }
    let stop = shared.stop.child_token();
    let added = backlog.clone();
    let writer = LineSender::new(move |line| {
        added.add(&line);
        outgoing.send(line).is_ok()
    });
    let transport =
        AsyncRwTransport::new_server(LineReader::new(requests), writer).with_max_line_length(usize::MAX);
    tokio::spawn(watch(shared.clone(), admitted.clone(), headers, stop.clone()));
    let handler =
        Handler::new(shared.app.clone(), Who::Stream(admitted, identity)).with_backlog(backlog.clone());
    tokio::spawn(run(handler, transport, stop.clone()));
    let first = format!("/messages?session_id={id}");
    let events = Events {
        first: Some(first),
        lines,
        backlog,
        _gone: Gone { id, streams: shared.streams },
        _stop: stop.drop_guard(),
    };
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    let mut response = stream.into_response();
    // Proxies that gather an answer before they pass it on would make the client wait for ever.
    response.headers_mut().insert("x-accel-buffering", http::HeaderValue::from_static("no"));
    response
}

async fn run<R, W>(
    handler: Handler,
    transport: AsyncRwTransport<rmcp::RoleServer, R, W>,
    stop: CancellationToken,
) where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    match handler.serve_with_ct(transport, stop).await {
        Ok(running) => drop(running.waiting().await),
        Err(error) => tracing::debug!(%error, "a stream ended before it began"),
    }
}

/// Ends the stream of an identity that is no longer what it was: revoked, closed, or of other rights.
async fn watch(shared: Shared, admitted: Admitted, headers: HeaderMap, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
        let still = auth::pass_of(&shared, &headers, Door::Protocol).await;
        if !still.is_ok_and(|pass| pass == admitted.caller.pass) {
            stop.cancel();
            return;
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Address {
    #[serde(alias = "sessionId")]
    session_id: Option<String>,
}

/// Takes a message for a stream; its answer comes down the stream.
pub(super) async fn receive(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    Query(address): Query<Address>,
    body: Bytes,
) -> Response {
    let found = {
        let streams = shared.streams.0.lock();
        let found = address.session_id.as_ref().and_then(|id| streams.get(id));
        // A stream of somebody else's is no stream.
        found
            .filter(|session| session.admitted == admitted)
            .map(|session| (session.inbox.clone(), session.backlog.clone()))
    };
    let unknown = || {
        let hints = ["open a stream with GET /sse; its first event names the path to post to".to_owned()];
        rest::error(Kind::NotFound, "no such session", &hints)
    };
    let Some((inbox, backlog)) = found else { return unknown() };
    let message = Message::of(&body);
    if message.is_request() && backlog.is_full() {
        let mut busy = rest::error(Kind::Busy, "read the answers on the stream first; try again in 2 s", &[]);
        busy.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("2"));
        return busy;
    }
    backlog.took(&message);
    // One message is one line to the handler; a message may be written over several.
    let mut line: Vec<u8> =
        body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    match inbox.send(line).await {
        Ok(()) => (StatusCode::ACCEPTED, "Accepted").into_response(),
        Err(_) => unknown(),
    }
}

/// Takes the stream off the list when its client goes.
struct Gone {
    id: String,
    streams: Arc<Streams>,
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.streams.0.lock().remove(&self.id);
    }
}

/// The events of a stream: the path first, then every message of the handler.
struct Events {
    first: Option<String>,
    lines: mpsc::UnboundedReceiver<Vec<u8>>,
    backlog: Arc<Backlog>,
    _gone: Gone,
    _stop: DropGuard,
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(path) = self.first.take() {
            return Poll::Ready(Some(Ok(Event::default().event("endpoint").data(path))));
        }
        let next = self.lines.poll_recv(context);
        next.map(|line| {
            line.map(|line| {
                self.backlog.taken(line.len());
                let text = String::from_utf8_lossy(&line);
                Ok(Event::default().event("message").data(text.trim_end()))
            })
        })
    }
}
