//! Sessions of Streamable HTTP before 2026-07-28. Every request stands alone and needs none; what a session is for is to be
//! told of changes: subscriptions are its only state, and they leave by the stream that `GET` opens.
//!
//! So a session costs nothing until somebody subscribes or listens, a request with the id of a session that this process
//! never knew is answered like any other, and only what concerns subscriptions asks for a session that is there. A
//! session belongs to the identity that uses it; with another one it is not found.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_core::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use serde_json::json;
use shelf_base::Kind;
use shelf_engine::Pass;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Shared, message::Called, rest};
use crate::{App, mcp::Admitted, stdio::Identity, subscriptions::Subscriber};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// How long subscriptions are kept for a client that does not listen.
const KEPT: Duration = Duration::from_secs(300);
/// Sessions that were ended by their clients and are remembered, to say so.
const ENDED: usize = 1_024;
/// Messages that may wait on a stream; what changes meanwhile is one more message at most for each resource.
const WAITING: usize = 16;
/// How often a quiet stream says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The sessions of a server that subscribed or listen.
pub(crate) struct Sessions {
    /// What the ids of this process begin with.
    prefix: String,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<String, Session>,
    ended: VecDeque<String>,
}

struct Session {
    client: Arc<Subscriber>,
    /// Ends the stream on which the client listens.
    stream: Option<CancellationToken>,
    used: Instant,
}

/// Why a request has no session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionError {
    /// It names none.
    None,
    /// It is over, or somebody else's, or of a process that is gone.
    Ended,
    /// There are too many.
    TooMany,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { prefix: uuid::Uuid::new_v4().simple().to_string()[..8].to_owned(), table: Mutex::default() }
    }
}

impl Session {
    fn is_used(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| !stream.is_cancelled()) || self.used.elapsed() < KEPT
    }
}

impl Sessions {
    fn new_id(&self) -> String {
        format!("{}{}", self.prefix, uuid::Uuid::new_v4().simple())
    }

    /// The session that a request names.
    pub(crate) fn id_of<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        headers.get(SESSION_ID)?.to_str().ok()
    }

    fn is_ended(&self, id: &str) -> bool {
        self.table.lock().ended.iter().any(|ended| ended == id)
    }

    /// The subscriptions of a session, which begins with them.
    pub(crate) fn subscriber(
        &self,
        app: &App,
        id: Option<&str>,
        pass: &Pass,
    ) -> Result<Arc<Subscriber>, SessionError> {
        let id = id.ok_or(SessionError::None)?;
        if !id.starts_with(&self.prefix) || id.len() != self.prefix.len() + 32 || self.is_ended(id) {
            return Err(SessionError::Ended);
        }
        let mut table = self.table.lock();
        table.open.retain(|_, session| session.is_used());
        if let Some(session) = table.open.get_mut(id) {
            session.used = Instant::now();
            let is_own = *session.client.pass() == *pass;
            return is_own.then(|| session.client.clone()).ok_or(SessionError::Ended);
        }
        let client = app.subscriptions.join(pass).ok_or(SessionError::TooMany)?;
        let session = Session { client: client.clone(), stream: None, used: Instant::now() };
        table.open.insert(id.to_owned(), session);
        Ok(client)
    }

    /// Makes `stream` the one on which a session listens; an earlier one ends.
    fn listen(&self, id: &str, stream: CancellationToken) {
        if let Some(session) = self.table.lock().open.get_mut(id)
            && let Some(earlier) = session.stream.replace(stream)
        {
            earlier.cancel();
        }
    }

    fn left(&self, id: &str) {
        if let Some(session) = self.table.lock().open.get_mut(id) {
            session.used = Instant::now();
        }
    }

    /// Ends a session; `false` when it is none of the caller's.
    fn end(&self, id: &str, pass: &Pass) -> bool {
        let mut table = self.table.lock();
        let is_other = table.open.get(id).is_some_and(|session| session.client.pass() != pass);
        if is_other || !id.starts_with(&self.prefix) || table.ended.iter().any(|ended| ended == id) {
            return false;
        }
        if let Some(stream) = table.open.remove(id).and_then(|session| session.stream) {
            stream.cancel();
        }
        table.ended.push_back(id.to_owned());
        if table.ended.len() > ENDED {
            table.ended.pop_front();
        }
        true
    }
}

/// Gives a session to a client that initializes, opens and ends sessions, and lets all other messages through.
pub(super) async fn attend(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let id = shared.sessions.id_of(request.headers()).map(str::to_owned);
    let called = request.extensions().get::<Called>().map(|called| called.0.clone()).unwrap_or_default();
    match (request.method(), id) {
        (&Method::GET, Some(id)) if wants_stream(request.headers()) => open(&shared, &id, &request),
        (&Method::DELETE, Some(id)) => {
            let pass = request.extensions().get::<Admitted>().map(|admitted| &admitted.caller.pass);
            let is_ended = pass.is_some_and(|pass| shared.sessions.end(&id, pass));
            if is_ended { StatusCode::NO_CONTENT.into_response() } else { not_found() }
        }
        (_, Some(id)) if shared.sessions.is_ended(&id) => not_found(),
        (_, Some(id)) if called.starts_with("resources/") && called.ends_with("subscribe") => {
            if id.starts_with(&shared.sessions.prefix) { next.run(request).await } else { not_found() }
        }
        _ if called == "initialize" => {
            let mut response = next.run(request).await;
            if let (true, Ok(id)) =
                (response.status().is_success(), HeaderValue::from_str(&shared.sessions.new_id()))
            {
                response.headers_mut().insert(SESSION_ID, id);
            }
            response
        }
        _ => next.run(request).await,
    }
}

/// Streams of sessions are of the revisions before 2026-07-28.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let revision = headers.get("mcp-protocol-version").and_then(|revision| revision.to_str().ok());
    accepts.contains("text/event-stream") && revision.is_none_or(|revision| revision < "2026-07-28")
}

fn not_found() -> Response {
    let hints = ["send initialize again without Mcp-Session-Id, then subscribe again".to_owned()];
    rest::error(Kind::NotFound, "no such session", &hints)
}

/// Opens the stream of a session: from now on its client is told what changed.
fn open(shared: &Shared, id: &str, request: &Request) -> Response {
    let extensions = request.extensions();
    let (Some(admitted), Some(identity)) = (extensions.get::<Admitted>(), extensions.get::<Identity>())
    else {
        return not_found();
    };
    let client = match shared.sessions.subscriber(&shared.app, Some(id), &admitted.caller.pass) {
        Ok(client) => client,
        Err(SessionError::None | SessionError::Ended) => return not_found(),
        // By this a server says that it offers no stream; clients go on without one.
        Err(SessionError::TooMany) => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
    };
    let stop = shared.stop.child_token();
    shared.sessions.listen(id, stop.clone());
    let (events, messages) = mpsc::channel(WAITING);
    let (app, identity, ended) = (shared.app.clone(), identity.clone(), stop.clone());
    tokio::spawn(async move {
        let send = |uri: String| {
            let params = json!({ "uri": uri });
            let message =
                json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params });
            let events = events.clone();
            async move { events.send(message.to_string()).await.is_ok() }
        };
        tokio::select! {
            () = client.tell(&app, &identity, send) => {}
            () = ended.cancelled() => {}
        }
    });
    let sessions = shared.sessions.clone();
    let messages = Messages { messages, id: id.to_owned(), sessions, _stop: stop.drop_guard() };
    let mut response = Sse::new(messages).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // Proxies that gather an answer before they pass it on would make the client wait for ever.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The messages of a stream. Its end leaves the subscriptions in place for a while, so that a client can come back.
struct Messages {
    messages: mpsc::Receiver<String>,
    id: String,
    sessions: Arc<Sessions>,
    _stop: DropGuard,
}

impl Stream for Messages {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.messages.poll_recv(context);
        next.map(|message| message.map(|message| Ok(Event::default().event("message").data(message))))
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.sessions.left(&self.id);
    }
}
