//! What the console shows while it happens: new activity, and the progress of long work.
//!
//! Both are streams of events with HTML that the console renders, so a stream shows what the page would show when it is
//! loaded again. Whoever looks is checked again and again: a session that has ended ends its streams.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Extension,
    extract::{Request, State},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_core::Stream;
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use shelf_base::{CallContext, Kind, Progress};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{Instant, sleep},
};

use super::{
    Shared,
    console::{Desk, SignedIn, console_request, signed_in},
    rest,
};
use crate::app::Work;

/// Streams of activity that may be open at once.
const MOST: usize = 256;
/// How often the journal is looked at for something new.
const LOOK: Duration = Duration::from_millis(400);
/// How often whoever looks is checked again when nothing happens.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often a quiet stream says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that may wait to be sent.
const WAITING: usize = 16;
/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(200);

/// How many streams may be open, and how much long work may be done at once.
pub(crate) struct Places {
    activity: Arc<Semaphore>,
    work: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self { activity: Arc::new(Semaphore::new(MOST)), work: Arc::new(Semaphore::new(1)) }
    }
}

/// What is said when there is no room for another stream.
fn no_room(what: &str) -> Response {
    rest::error(Kind::Busy, what, &[])
}

/// New rows of the journal, as soon as they are there.
pub(super) async fn activity(
    State(shared): State<Shared>,
    Extension(_): Extension<SignedIn>,
    request: Request,
) -> Response {
    let Ok(place) = shared.live.activity.clone().try_acquire_owned() else {
        return no_room("too many pages follow the activity; close some of them");
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    let (headers, query) = (request.headers().clone(), request.uri().query().unwrap_or_default().to_owned());
    let base_url = console_request(&request).base_url;
    tokio::spawn(follow(shared, headers, query, base_url, sender));
    stream(receiver, place)
}

async fn follow(
    shared: Shared,
    headers: HeaderMap,
    query: String,
    base_url: String,
    sender: mpsc::Sender<Event>,
) {
    let newest = |shared: &Shared| {
        let (app, call) = (shared.app.clone(), shared.app.new_call());
        async move { app.blocking(Work::Check, call, |app| app.library.last_event().ok()).await.ok().flatten() }
    };
    let Some(mut last) = newest(&shared).await else { return };
    let mut checked = Instant::now();
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = sender.closed() => return,
            () = sleep(LOOK) => {}
        }
        let Some(now) = newest(&shared).await else { continue };
        if now <= last && checked.elapsed() < LOOK_AGAIN {
            continue;
        }
        let Ok(Some(found)) = signed_in(&shared, &headers).await else { return };
        checked = Instant::now();
        if now <= last {
            continue;
        }
        let query = format!("{query}&part=rows&after={last}");
        let asked = shelf_console::Request::new(
            shelf_console::Method::Get,
            "/activity",
            Some(&query),
            base_url.clone(),
        );
        let call = shared.app.new_call();
        let own = call.clone();
        let render = move |app: &Arc<crate::App>| {
            shelf_console::respond(&Desk { app, found: &found, call: &own }, &asked)
        };
        let Ok(reply) = shared.app.blocking(Work::Read, call, render).await else { continue };
        last = now;
        let rows = String::from_utf8(reply.body).unwrap_or_default();
        if reply.status == 200 && rows.contains("<tr") && sender.send(html(rows)).await.is_err() {
            return;
        }
    }
}

/// Long work of an administrator, with its progress. Closing the stream stops the work.
pub(super) async fn work(
    State(shared): State<Shared>,
    Extension(found): Extension<SignedIn>,
    request: Request,
) -> Response {
    let Ok(place) = shared.live.work.clone().try_acquire_owned() else {
        return no_room("such work is being done already; wait until it has ended");
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    let asked = console_request(&request);
    let query = format!("run={}&part=run", asked.query("run").unwrap_or_default());
    let asked =
        shelf_console::Request::new(shelf_console::Method::Get, "/admin", Some(&query), asked.base_url);
    // Reading everything takes as long as it takes: whoever started it can stop it.
    let call = CallContext::new().reporting_to(Arc::new(Told::new(sender.clone())));
    tokio::spawn(async move {
        let own = call.clone();
        let app = shared.app.clone();
        let render = move |app: &Arc<crate::App>| {
            shelf_console::respond(&Desk { app, found: &found, call: &own }, &asked)
        };
        tokio::select! {
            () = shared.stop.cancelled() => call.cancel(),
            () = sender.closed() => call.cancel(),
            done = app.blocking(Work::Read, call.clone(), render) => {
                let body = done.map_or_else(|_| Vec::new(), |reply| reply.body);
                let text = String::from_utf8(body).unwrap_or_default();
                let _ = sender.send(html(text).event("done")).await;
            }
        }
    });
    stream(receiver, place)
}

fn html(text: String) -> Event {
    // A line end inside the data would begin another line of the event, which is fine, but a lone CR is not allowed.
    Event::default().data(text.replace('\r', " "))
}

/// Progress that is told to a browser, now and then.
struct Told {
    sender: mpsc::Sender<Event>,
    last: parking_lot::Mutex<Option<Instant>>,
}

impl Told {
    const fn new(sender: mpsc::Sender<Event>) -> Self {
        Self { sender, last: parking_lot::const_mutex(None) }
    }
}

impl Progress for Told {
    fn report(&self, done: u64, total: Option<u64>, message: &str) {
        let mut last = self.last.lock();
        if last.is_some_and(|last| last.elapsed() < PROGRESS) {
            return;
        }
        *last = Some(Instant::now());
        let data = json!({ "done": done, "total": total, "message": message }).to_string();
        // A browser that reads slowly misses some.
        let _ = self.sender.try_send(Event::default().event("progress").data(data));
    }
}

/// Events as a response, for as long as the client listens.
fn stream(receiver: mpsc::Receiver<Event>, place: OwnedSemaphorePermit) -> Response {
    let events = Events { receiver, _place: place };
    let stream = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    let mut response = stream.into_response();
    // Proxies that gather an answer before they pass it on would show nothing.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Events {
    receiver: mpsc::Receiver<Event>,
    _place: OwnedSemaphorePermit,
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context).map(|event| event.map(Ok))
    }
}
