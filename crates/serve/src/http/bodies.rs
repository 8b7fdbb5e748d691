//! Bodies in memory: what is sent, and what goes back. All large ones together stay within a budget; each has a time by
//! which it must have arrived.
//!
//! A body is read here, after the caller is known, so that nobody makes the server hold megabytes without a token.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, BodyDataStream, Bytes, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use futures_core::Stream;
use http::{HeaderValue, StatusCode, header};
use shelf_base::{Kind, bounds::REQUEST_BYTES};
use shelf_tools::Tool;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::{Shared, message, rest};

/// Bytes of large requests that are in memory at once. While one is worked on it takes a few times its size.
const REQUESTS: usize = 40 << 20;
/// Bytes of large answers that wait to be read.
const ANSWERS: usize = 48 << 20;
/// Bodies up to this size are not counted: the number of connections bounds them.
const SMALL: usize = 64 << 10;
/// The largest body of somebody who has not been identified.
const STRANGER: usize = 64 << 10;
/// How long a large request waits for its turn.
const TURN: Duration = Duration::from_secs(10);
/// How long a body may take to arrive, and the pace from which on it may take longer.
const ARRIVAL: Duration = Duration::from_secs(20);
const BYTES_PER_SECOND: u64 = 1 << 20;
/// How long a body may pause.
const PAUSE: Duration = Duration::from_secs(10);
/// Memory is taken so much at a time, as the body arrives.
const STEP: usize = 1 << 20;
/// How much of a body that is too large is listened to, and for how long.
const IGNORED: usize = 64 << 20;
const FAREWELL: Duration = Duration::from_secs(5);
/// Pieces in which a large answer goes out.
const PIECE: usize = 64 << 10;

/// The budget of a server.
pub(crate) struct Memory {
    requests: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { requests: Arc::new(Semaphore::new(REQUESTS)), answers: Arc::new(Semaphore::new(ANSWERS)) }
    }
}

/// Reads the body of somebody who is known.
pub(super) async fn admit(state: State<Shared>, request: Request, next: Next) -> Response {
    let tool = request.uri().path().strip_prefix("/api/v1/tools/").and_then(shelf_tools::find);
    let outcome = within(state, REQUEST_BYTES, request, next).await;
    outcome.unwrap_or_else(|refusal| refusal.answer(REQUEST_BYTES, tool))
}

/// The same for messages of the protocol, which are refused in its own words where it has some.
pub(super) async fn admit_message(state: State<Shared>, request: Request, next: Next) -> Response {
    within(state, REQUEST_BYTES, request, next).await.unwrap_or_else(|refusal| match refusal {
        BodyError::TooLarge => message::too_large(),
        other => other.answer(REQUEST_BYTES, None),
    })
}

/// Reads the body of somebody who is not.
pub(super) async fn admit_stranger(state: State<Shared>, request: Request, next: Next) -> Response {
    within(state, STRANGER, request, next).await.unwrap_or_else(|refusal| refusal.answer(STRANGER, None))
}

async fn within(
    State(shared): State<Shared>,
    most: usize,
    request: Request,
    next: Next,
) -> Result<Response, BodyError> {
    let (parts, body) = request.into_parts();
    let (bytes, held) = read(&shared.memory.requests, most, &parts.headers, body).await?;
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    drop(held);
    Ok(bounded(&shared.memory.answers, response))
}

enum BodyError {
    TooLarge,
    TooSlow,
    NoRoom,
    Broken,
}

impl BodyError {
    fn answer(self, most: usize, tool: Option<&Tool>) -> Response {
        let error = |kind: Kind, message: &str| match tool {
            Some(tool) => rest::unreadable(tool, kind, message),
            None => rest::error(kind, message, &[]),
        };
        let (mut response, again) = match self {
            Self::TooLarge => {
                let limit = if most < 1 << 20 {
                    format!("{} KiB", most >> 10)
                } else {
                    format!("{} MiB", most >> 20)
                };
                (error(Kind::TooLarge, &format!("the body is larger than {limit}")), false)
            }
            Self::TooSlow => {
                let mut response = error(Kind::TimedOut, "the body did not arrive in time");
                *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
                (response, false)
            }
            Self::NoRoom => (error(Kind::Busy, "too many large requests at once; try again in 5 s"), true),
            Self::Broken => (error(Kind::Invalid, "the body ended early"), false),
        };
        // What is left of the body is not read.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        if again {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

type Read = (Bytes, Option<OwnedSemaphorePermit>);

/// Reads a body whole, with the memory that it takes.
async fn read(
    memory: &Arc<Semaphore>,
    most: usize,
    headers: &http::HeaderMap,
    body: Body,
) -> Result<Read, BodyError> {
    let told =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let expected = told.or_else(|| body.size_hint().exact()).unwrap_or(0);
    if expected > most as u64 {
        listen_on(body.into_data_stream()).await;
        return Err(BodyError::TooLarge);
    }
    let mut held: Option<OwnedSemaphorePermit> = None;
    let mut until = Instant::now() + ARRIVAL + Duration::from_secs(expected / BYTES_PER_SECOND);
    let mut stream = body.into_data_stream();
    let mut whole: Vec<u8> = Vec::with_capacity((expected as usize).min(SMALL));
    loop {
        let next = std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context));
        let piece = match timeout_at(until.min(Instant::now() + PAUSE), next).await {
            Err(_) => return Err(BodyError::TooSlow),
            Ok(None) => return Ok((whole.into(), held)),
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(piece))) => piece,
        };
        let length = whole.len() + piece.len();
        if length > most {
            drop((whole, held));
            listen_on(stream).await;
            return Err(BodyError::TooLarge);
        }
        // Whoever announces much and sends little takes little from the others.
        while length > held.as_ref().map_or(SMALL, OwnedSemaphorePermit::num_permits) {
            let waited = tokio::time::timeout(TURN, memory.clone().acquire_many_owned(STEP as u32)).await;
            let more = waited.ok().and_then(Result::ok).ok_or(BodyError::NoRoom)?;
            match &mut held {
                Some(held) => held.merge(more),
                None => held = Some(more),
            }
            if told.is_none() {
                until += Duration::from_secs(STEP as u64 / BYTES_PER_SECOND);
            }
        }
        whole.extend_from_slice(&piece);
    }
}

/// Listens to a body that is refused without keeping it, for a while: most clients read an answer only when they have
/// sent everything.
pub(super) async fn listen_on(mut stream: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin) {
    let until = Instant::now() + FAREWELL;
    let mut left = IGNORED;
    while left > 0 {
        let next = std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context));
        match timeout_at(until, next).await {
            Ok(Some(Ok(piece))) => left = left.saturating_sub(piece.len()),
            _ => return,
        }
    }
}

/// Counts a large answer until its client has read it; when there is no room for it, the client is asked to come again.
fn bounded(memory: &Arc<Semaphore>, response: Response) -> Response {
    let Some(length) = response.body().size_hint().exact().filter(|length| *length > SMALL as u64) else {
        return response;
    };
    let permits = u32::try_from(length).unwrap_or(u32::MAX).min(ANSWERS as u32);
    let Ok(permit) = memory.clone().try_acquire_many_owned(permits) else {
        let message = "too many large answers are waiting to be read; try again in 5 s";
        let mut busy = rest::error(Kind::Busy, message, &[]);
        busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        return busy;
    };
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(header::CONTENT_LENGTH, length.into());
    let pieces = Pieces { body: body.into_data_stream(), piece: Bytes::new(), _permit: permit };
    Response::from_parts(parts, Body::from_stream(pieces))
}

/// An answer in small pieces, so that what a client has not read stays here and is counted, not in a buffer behind.
struct Pieces {
    body: BodyDataStream,
    piece: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl Stream for Pieces {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.piece.is_empty() {
            match Pin::new(&mut self.body).poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => self.piece = piece,
                other => return other,
            }
        }
        let length = self.piece.len().min(PIECE);
        Poll::Ready(Some(Ok(self.piece.split_to(length))))
    }
}
