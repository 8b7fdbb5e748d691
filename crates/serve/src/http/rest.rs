//! REST: every tool as `POST /api/v1/tools/{name}`, and the health of the server.

use std::time::Duration;

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, Uri, header};
use serde_json::{Map, Value, json};
use shelf_base::{Kind, bounds::REQUEST_BYTES};
use shelf_tools::{ErrorReply, Family, Tool, verbatim};

use super::{Shared, routes};
use crate::{app::Work, mcp::Admitted};

/// An error body with the right status.
pub(super) fn error(kind: Kind, message: &str, hints: &[String]) -> Response {
    let row = kind.row();
    let status = StatusCode::from_u16(row.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = Json(json!({ "error": { "code": row.code, "message": message, "hints": hints } }));
    let mut response = (status, body).into_response();
    if kind == Kind::Unauthenticated {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The tools that the caller may call, with their schemas.
pub(super) async fn list(
    State(shared): State<Shared>,
    Extension(Admitted { caller, selection }): Extension<Admitted>,
) -> Response {
    let Ok(listed) = shared.app.listed(caller, selection).await else {
        return error(Kind::Busy, "the server is busy: nothing was done", &["try again later".to_owned()]);
    };
    let tools: Vec<Value> = listed
        .into_iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": &*tool.input_schema(),
                "outputSchema": tool.output_schema(),
            })
        })
        .collect();
    Json(json!({ "tools": tools })).into_response()
}

/// Calls a tool: its arguments are the body, the contract's JSON is the answer.
pub(super) async fn call(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    Path(name): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Some(tool) = shelf_tools::find(&name) else {
        let near = shelf_base::nearest(&name, shelf_tools::registry().map(|tool| tool.name), 3);
        let hints: Vec<String> =
            if near.is_empty() { Vec::new() } else { vec![format!("did you mean {}?", near.join(", "))] };
        return error(Kind::NotFound, &format!("unknown tool '{name}'"), &hints);
    };
    let Ok(body) = body else {
        return unreadable(
            tool,
            Kind::TooLarge,
            &format!("the body is larger than {} MiB", REQUEST_BYTES >> 20),
        );
    };
    let arguments: Map<String, Value> = if body.trim_ascii().is_empty() {
        Map::new()
    } else {
        match with_text_kept(tool.name, &body, &[]) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) => return unreadable(tool, Kind::Invalid, "the body must be a JSON object of arguments"),
            Err(fault) => {
                return unreadable(tool, Kind::Invalid, &format!("the body is not valid JSON: {fault}"));
            }
        }
    };
    let Admitted { caller, selection } = admitted;
    let call = shared.app.new_call();
    match shared.app.run(tool, selection, caller, call, arguments, routes::answered).await {
        Ok(response) => response,
        Err(failure) => refused(tool, &failure),
    }
}

/// The answer to a call whose arguments could not be read.
pub(super) fn unreadable(tool: &Tool, kind: Kind, message: &str) -> Response {
    refused(tool, &shelf_tools::unreadable(tool, kind, message))
}

/// The answer to a call that failed, as the routes of the tool's family give it.
pub(super) fn refused(tool: &Tool, failure: &ErrorReply) -> Response {
    if tool.family == Family::Books { of_family(failure) } else { failed(failure) }
}

/// The answer to a call that failed, in the words of the tool's own family.
pub(super) fn of_family(failure: &ErrorReply) -> Response {
    let status = StatusCode::from_u16(failure.kind.row().status);
    let mut response =
        (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), failure.text.clone()).into_response();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// JSON as a body that takes no more memory than it has bytes: it may wait long to be read.
pub(super) fn json(value: &Value) -> Response {
    let mut body = serde_json::to_vec(value).unwrap_or_default();
    body.shrink_to_fit();
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// The answer to a call that failed.
fn failed(failure: &ErrorReply) -> Response {
    let mut response = error(failure.kind, &failure.message, &failure.hints);
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Reads a body; what the tool keeps as it was written is wrapped.
pub(super) fn with_text_kept(tool: &str, body: &[u8], path: &[&str]) -> serde_json::Result<Value> {
    let wrapped = std::str::from_utf8(body).ok().and_then(|text| verbatim::wrap(tool, text, path));
    wrapped.map_or_else(|| serde_json::from_slice(body), |text| serde_json::from_str(&text))
}

/// The process is alive.
pub(super) async fn healthy() -> &'static str {
    "ok\n"
}

/// The library answers, and a write could begin.
pub(super) async fn ready(State(shared): State<Shared>) -> Response {
    let call = shared.app.new_call();
    let looked = shared.app.blocking(Work::Check, call, |app| app.library.hindrance());
    let hindrance = match tokio::time::timeout(LOOK, looked).await {
        Ok(Ok(None)) if !shared.app.is_crowded() => return "ready\n".into_response(),
        Ok(Ok(None)) => "all places for writes are taken by calls that wait".to_owned(),
        Ok(Ok(Some(hindrance))) => hindrance,
        _ => "the library does not answer".to_owned(),
    };
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, format!("{hindrance}\n")).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    response
}

/// How long the library may take to say how it is: longer than a connection to a database takes that does not answer, so that
/// the answer names it.
const LOOK: Duration = Duration::from_secs(8);

/// Any other path.
pub(super) async fn nothing_here() -> Response {
    error(
        Kind::NotFound,
        "nothing is served here",
        &["MCP is at /mcp, REST is described at /api/v1/docs".into()],
    )
}

/// A known path with the wrong method.
pub(super) async fn wrong_method(address: Uri) -> Response {
    let begins = |start: &str| address.path().starts_with(start);
    let hint = if begins("/uploads/") {
        "content is sent with PUT"
    } else if ["/cdn/", "/archives/", "/evidence/"].into_iter().any(begins) {
        "files are downloaded with GET"
    } else if begins("/api/v1/tools/") || begins("/tools") {
        "tools are called with POST"
    } else {
        "the header Allow names the methods that it takes"
    };
    let mut response = error(Kind::Invalid, "this path does not take this method", &[hint.into()]);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}
