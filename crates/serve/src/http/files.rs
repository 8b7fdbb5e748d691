//! Files of books over plain HTTP: assets and archives to be had, uploads to be sent. Who has the address needs no token:
//! the address itself is the proof.

use std::{
    fs::File,
    future::Future,
    io,
    os::unix::fs::FileExt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, Query, Request, State, rejection::QueryRejection},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, put},
};
use futures_core::Stream;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use shelf_base::{ErrorInfo, Kind};
use shelf_engine::{BookError, Error, Library, OpenAsset, OpenFile};
use shelf_tools::Family;

use super::{Shared, ranges, rest, uploads};
use crate::{App, app::Work};

/// Bytes that are read, and wait to be sent, at once.
const PIECE: u64 = 256 << 10;

/// The routes of files.
pub(super) fn router() -> Router<Shared> {
    Router::new()
        .route("/cdn/books/{book}/{*path}", get(asset))
        .route("/archives/{name}", get(archive))
        .route("/evidence/{name}", get(evidence))
        .layer(middleware::map_request(whole_for_head))
        .route("/uploads/{ticket}", put(uploads::take))
}

/// A part is only ever asked for with GET.
async fn whole_for_head(mut request: Request) -> Request {
    if request.method() == Method::HEAD {
        request.headers_mut().remove(header::RANGE);
    }
    request
}

/// What the query of an address proves, as far as it can be read.
type Given = Result<Query<Proof>, QueryRejection>;

#[derive(Deserialize)]
struct Proof {
    k: Option<String>,
}

/// Where the bytes come from.
enum Source {
    Asset(OpenAsset),
    File(File),
}

/// What is sent, and what is said of it.
struct Download {
    source: Source,
    size: u64,
    mime: String,
    tag: String,
    name: String,
    is_attachment: bool,
    cache: &'static str,
    /// What a browser that opens it may do with it.
    policy: &'static str,
}

/// Whatever an agent has uploaded must not act as a page of this server.
const POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// Sends a document, as a file to be kept or as what it is.
pub(super) fn document(
    app: Arc<App>,
    headers: &HeaderMap,
    document: OpenAsset,
    is_attachment: bool,
    policy: &'static str,
) -> Response {
    let download = Download {
        size: document.size,
        tag: format!("\"{}\"", document.hash),
        name: document.name.clone(),
        is_attachment,
        mime: document.mime.clone(),
        cache: "private, no-cache",
        policy,
        source: Source::Asset(document),
    };
    let mut response = answer(app, headers, download);
    let headers = response.headers_mut();
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    response
}

async fn asset(
    State(shared): State<Shared>,
    Path((book, path)): Path<(String, String)>,
    proof: Given,
    headers: HeaderMap,
) -> Response {
    let meant = format!("books/{book}/{path}");
    let Ok(Query(proof)) = proof else { return Side::Books.wrong_query(meant) };
    let look = move |app: &Arc<App>| app.library.open_asset(&book, &path, proof.k.as_deref());
    let found = match shared.app.blocking(Work::Read, shared.app.new_call(), look).await {
        Ok(found) => found,
        Err(_) => return Side::Books.failed(meant, Error::Busy("the server is busy".into())),
    };
    match found {
        Ok(Some(asset)) => {
            let download = Download {
                size: asset.size,
                tag: format!("\"{}\"", asset.hash),
                name: asset.name.clone(),
                is_attachment: !is_shown(&asset.mime),
                mime: asset.mime.clone(),
                // The content at an address can change, but is the same as long as its tag is.
                cache: if asset.is_public { "public, no-cache" } else { "private, no-cache" },
                policy: POLICY,
                source: Source::Asset(asset),
            };
            answer(shared.app, &headers, download)
        }
        Ok(None) => Side::Books.shut(meant, "there is no such asset, or the address does not open it", None),
        Err(error) => Side::Books.failed(meant, error),
    }
}

async fn archive(state: State<Shared>, name: Path<String>, proof: Given, headers: HeaderMap) -> Response {
    file(state, name, proof, headers, Library::open_archive, Side::Books).await
}

async fn evidence(state: State<Shared>, name: Path<String>, proof: Given, headers: HeaderMap) -> Response {
    file(state, name, proof, headers, Library::open_evidence, Side::Citations).await
}

/// Sends a file whose address proves the right to it.
async fn file(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    proof: Given,
    headers: HeaderMap,
    open: fn(&Library, &str) -> Result<Option<OpenFile>, Error>,
    side: Side,
) -> Response {
    let meant = format!("archives/{name}");
    let Ok(Query(proof)) = proof else { return side.wrong_query(meant) };
    let look = move |app: &Arc<App>| proof.k.map_or(Ok(None), |proof| open(&app.library, &proof));
    let found = match shared.app.blocking(Work::Read, shared.app.new_call(), look).await {
        Ok(found) => found,
        Err(_) => return side.failed(meant, Error::Busy("the server is busy".into())),
    };
    // An address works as it was given: under another name the file would be saved as something it is not.
    match found.map(|found| found.filter(|found| found.name == name)) {
        Ok(Some(found)) => {
            let download = Download {
                source: Source::File(found.file),
                size: found.size,
                tag: format!("\"{}\"", found.state),
                name,
                is_attachment: !is_shown(&found.mime),
                mime: found.mime,
                cache: "private, no-cache",
                policy: POLICY,
            };
            answer(shared.app, &headers, download)
        }
        Ok(None) => {
            let tool = match side {
                Side::Books => "get_book_archive",
                Side::Citations => "resolve",
            };
            side.shut(meant, "this URL is not valid or has expired", Some(format!("ask {tool} for another")))
        }
        Err(error) => side.failed(meant, error),
    }
}

/// Whose address it is, and so in which form an error is told.
#[derive(Clone, Copy)]
enum Side {
    Books,
    Citations,
}

impl Side {
    /// The address opens nothing. `path` is what it seems to mean.
    fn shut(self, path: String, message: &str, hint: Option<String>) -> Response {
        match self {
            Self::Citations => rest::error(Kind::NotFound, message, &Vec::from_iter(hint)),
            Self::Books => {
                let message = [message.to_owned()].into_iter().chain(hint).collect::<Vec<_>>().join("; ");
                of_book(BookError::Shut { path, message })
            }
        }
    }

    fn wrong_query(self, path: String) -> Response {
        let (message, hint) = ("the query of this URL is not the one that was given", "use the URL as it is");
        match self {
            Self::Citations => rest::error(Kind::Invalid, message, &[hint.to_owned()]),
            Self::Books => of_book(BookError::Validation { path, message: format!("{message}; {hint}") }),
        }
    }

    fn failed(self, path: String, error: Error) -> Response {
        match self {
            Self::Citations => rest::error(error.kind(), &error.to_string(), &error.hints()),
            Self::Books => of_book(BookError::Engine { path, error }),
        }
    }
}

fn of_book(error: BookError) -> Response {
    rest::of_family(&Family::Books.error(error))
}

/// Whether a browser shows content of this type itself. Everything else is offered as a file.
fn is_shown(mime: &str) -> bool {
    ["image/", "audio/", "video/"].iter().any(|start| mime.starts_with(start)) || mime == "application/pdf"
}

/// Sends a file, or the part of it that is asked for, or only says that it has not changed.
fn answer(app: Arc<App>, headers: &HeaderMap, download: Download) -> Response {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_known = text(header::IF_NONE_MATCH).is_some_and(|tags| ranges::names(tags, &download.tag));
    let range = match text(header::IF_RANGE) {
        Some(tag) if tag != download.tag => None,
        _ => text(header::RANGE),
    };
    let (status, part) = match (is_known, ranges::part(range, download.size)) {
        (true, _) => (StatusCode::NOT_MODIFIED, 0..0),
        (false, ranges::Part::Whole) => (StatusCode::OK, 0..download.size),
        (false, ranges::Part::Some(part)) => (StatusCode::PARTIAL_CONTENT, part),
        (false, ranges::Part::None) => (StatusCode::RANGE_NOT_SATISFIABLE, 0..0),
    };
    let size = download.size;
    let mut response = status.into_response();
    for (name, value) in described(&download) {
        response.headers_mut().insert(name, value);
    }
    let content_range = match status {
        StatusCode::PARTIAL_CONTENT => Some(format!("bytes {}-{}/{size}", part.start, part.end - 1)),
        StatusCode::RANGE_NOT_SATISFIABLE => Some(format!("bytes */{size}")),
        _ => None,
    };
    if let Some(value) = content_range.and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    if status.is_success() {
        response.headers_mut().insert(header::CONTENT_LENGTH, (part.end - part.start).into());
        let source = Arc::new(download.source);
        let parts = Pieces { app, source, at: part.start, end: part.end, reading: None };
        *response.body_mut() = Body::from_stream(parts);
    }
    response
}

fn described(download: &Download) -> Vec<(header::HeaderName, HeaderValue)> {
    let way = if download.is_attachment { "attachment" } else { "inline" };
    let plain: String = download
        .name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' })
        .collect();
    let encoded: String =
        percent_encoding::utf8_percent_encode(&download.name, percent_encoding::NON_ALPHANUMERIC).to_string();
    let values = [
        (header::CONTENT_TYPE, download.mime.clone()),
        (header::ETAG, download.tag.clone()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CACHE_CONTROL, download.cache.to_owned()),
        (header::CONTENT_DISPOSITION, format!("{way}; filename=\"{plain}\"; filename*=UTF-8''{encoded}")),
        (header::CONTENT_SECURITY_POLICY, download.policy.to_owned()),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "cross-origin".to_owned()),
    ];
    values
        .into_iter()
        .filter_map(|(name, value)| HeaderValue::from_str(&value).ok().map(|value| (name, value)))
        .collect()
}

type Reading = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send>>;

/// A file in pieces, each read when the one before has been taken: a client that does not read holds one piece.
struct Pieces {
    app: Arc<App>,
    source: Arc<Source>,
    at: u64,
    end: u64,
    reading: Option<Reading>,
}

impl Pieces {
    fn read(&self, to: u64) -> Reading {
        let (app, source, from) = (self.app.clone(), self.source.clone(), self.at);
        Box::pin(async move {
            let call = app.new_call();
            let read = move |app: &Arc<App>| match &*source {
                Source::Asset(asset) => app
                    .library
                    .read_asset(asset, from..to, &app.new_call())
                    .map_err(|error| io::Error::other(error.to_string())),
                Source::File(file) => {
                    let mut bytes = vec![0; (to - from) as usize];
                    file.read_exact_at(&mut bytes, from).map(|()| bytes)
                }
            };
            let done = app.blocking(Work::Read, call, read).await;
            done.unwrap_or_else(|_| Err(io::Error::other("the server is busy")))
        })
    }
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.at >= self.end {
            return Poll::Ready(None);
        }
        let to = self.end.min(self.at + PIECE);
        if self.reading.is_none() {
            self.reading = Some(self.read(to));
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        match reading.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(bytes)) if bytes.len() as u64 == to - self.at => {
                self.reading = None;
                self.at = to;
                Poll::Ready(Some(Ok(bytes.into())))
            }
            Poll::Ready(outcome) => {
                self.reading = None;
                self.at = self.end;
                let error = outcome.err().unwrap_or_else(|| io::Error::other("the content is shorter"));
                tracing::warn!(%error, "a download broke off");
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}
