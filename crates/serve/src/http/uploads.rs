//! Uploads: the content of one asset, sent to the address that was given for it.

use std::{pin::Pin, sync::Arc, time::Duration};

use axum::{
    Json,
    body::{Body, BodyDataStream, Bytes},
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use futures_core::Stream;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use shelf_base::Kind;
use shelf_engine::{BookError, Caller, OpenUpload, Pass};
use shelf_tools::{
    Family,
    policy::{self, Verdict},
};
use tokio::time::{Instant, timeout_at};

use super::{Shared, auth, bodies, rest};
use crate::{App, app::Work};

/// Uploads at once.
pub(super) const AT_ONCE: usize = 16;
/// How long an upload may pause, and how long it may take beside a second for every [`BYTES_PER_SECOND`].
const PAUSE: Duration = Duration::from_secs(30);
const ARRIVAL: Duration = Duration::from_secs(60);
const BYTES_PER_SECOND: u64 = 128 << 10;
/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 20;

/// `PUT /uploads/{ticket}`.
pub(super) async fn take(
    State(shared): State<Shared>,
    Path(ticket): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !takes_uploads(&shared.app) {
        let hints = ["send the content to the server that gave this URL".to_owned()];
        let denied = rest::error(Kind::Denied, "this server takes no uploads", &hints);
        return refused(denied, &headers, body.into_data_stream()).await;
    }
    let Ok(_place) = shared.uploads.clone().try_acquire_owned() else {
        let mut busy = rest::error(Kind::Busy, "too many uploads at once; try again in 5 s", &[]);
        busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        return refused(busy, &headers, body.into_data_stream()).await;
    };
    let mut body = body.into_data_stream();
    if headers.contains_key(header::CONTENT_RANGE) {
        let message = "an upload is sent whole, without Content-Range".to_owned();
        let error = BookError::Validation { path: "uploads".into(), message };
        return refused(of_book(error), &headers, body).await;
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let opened = blocking(&shared, move |app| app.library.open_upload(&ticket, length)).await;
    let upload = match opened {
        Ok(upload) => upload,
        Err(response) => return refused(*response, &headers, body).await,
    };
    let upload = match receive(&shared, upload, &mut body).await {
        Ok(upload) => upload,
        Err(response) if response.status() == StatusCode::REQUEST_TIMEOUT => return closed(*response),
        Err(response) => return refused(*response, &headers, body).await,
    };
    let base_url = auth::base_url(&headers);
    let completed = blocking(&shared, move |app| {
        let asset = app.library.complete_upload(upload, &app.new_call())?;
        let caller = Caller { base_url, ..Caller::owner() };
        let url = app.library.asset_urls(&caller, std::slice::from_ref(&asset), &|| app.open_door())?;
        Ok((asset, url.into_iter().next().unwrap_or_default()))
    });
    match completed.await {
        Ok((asset, cdn_url)) => {
            let body = json!({
                "status": "success",
                "method": "presigned",
                "cdn_url": cdn_url,
                "file_size": asset.size,
                "mime_type": asset.mime,
                "path": asset.full_path(),
                "sha256": asset.hash.to_string(),
            });
            (StatusCode::CREATED, Json(body)).into_response()
        }
        Err(response) => *response,
    }
}

/// Whether this server offers the tool whose addresses these are: another server of the same library may.
fn takes_uploads(app: &App) -> bool {
    let tool = shelf_tools::find("upload_asset");
    tool.is_some_and(|tool| policy::verdict(&Pass::owner(), &app.selection, tool) == Verdict::Allowed)
}

/// Writes a body to the upload's file as it arrives.
async fn receive(
    shared: &Shared,
    mut upload: OpenUpload,
    body: &mut BodyDataStream,
) -> Result<OpenUpload, Box<Response>> {
    let until = Instant::now() + ARRIVAL + Duration::from_secs(upload.size() / BYTES_PER_SECOND);
    let mut gathered: Vec<u8> = Vec::new();
    loop {
        let next = std::future::poll_fn(|context| Pin::new(&mut *body).poll_next(context));
        let piece: Option<Bytes> = match timeout_at(until.min(Instant::now() + PAUSE), next).await {
            Err(_) => {
                let mut late = rest::error(Kind::TimedOut, "the content did not arrive in time", &[]);
                *late.status_mut() = StatusCode::REQUEST_TIMEOUT;
                return Err(Box::new(late));
            }
            Ok(Some(Err(_))) => {
                let hints = ["send the whole content to the same URL".to_owned()];
                return Err(Box::new(rest::error(Kind::Invalid, "the content broke off", &hints)));
            }
            Ok(None) => None,
            Ok(Some(Ok(piece))) => Some(piece),
        };
        let is_end = piece.is_none();
        gathered.extend_from_slice(&piece.unwrap_or_default());
        if gathered.len() >= GATHERED || is_end {
            let bytes = std::mem::take(&mut gathered);
            upload = blocking(shared, move |_| upload.write(&bytes).map(|()| upload)).await?;
        }
        if is_end {
            return Ok(upload);
        }
    }
}

/// Refuses a body. What is left of it is listened to for a while, since most clients read an answer only when they have sent
/// everything; those that wait to be asked for it are not asked.
async fn refused(response: Response, headers: &HeaderMap, body: BodyDataStream) -> Response {
    if !headers.contains_key(header::EXPECT) {
        bodies::listen_on(body).await;
    }
    closed(response)
}

fn of_book(error: BookError) -> Response {
    rest::of_family(&Family::Books.error(error))
}

/// What is left of a body is not read.
fn closed(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn blocking<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&Arc<App>) -> Result<T, BookError> + Send + 'static,
) -> Result<T, Box<Response>> {
    match shared.app.blocking(Work::Write, shared.app.new_call(), work).await {
        Ok(outcome) => outcome.map_err(|error| Box::new(of_book(error))),
        Err(_) => Err(Box::new(rest::error(Kind::Busy, "the server is busy; nothing was stored", &[]))),
    }
}
