//! The workspace contract's own way over HTTP: `POST /tools` with `{"tool", "input"}`, `POST /tools/{name}` with
//! `{"input"}`, and the contract's bare JSON as the answer, errors too.

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use serde_json::{Map, Value, json};
use shelf_tools::Family;

use super::Shared;
use crate::mcp::Admitted;

type Body = Result<Bytes, BytesRejection>;

/// `POST /tools`.
pub(super) async fn call(state: State<Shared>, admitted: Extension<Admitted>, body: Body) -> Response {
    let request = match object(body) {
        Ok(request) => request,
        Err(message) => return invalid(message),
    };
    match request.get("tool").and_then(Value::as_str).map(str::to_owned) {
        Some(name) => run(state, admitted, &name, request).await,
        None => invalid("tool must be the name of a tool"),
    }
}

/// `POST /tools/{name}`.
pub(super) async fn call_named(
    state: State<Shared>,
    admitted: Extension<Admitted>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    match object(body) {
        Ok(request) => run(state, admitted, &name, request).await,
        Err(message) => invalid(message),
    }
}

async fn run(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    name: &str,
    mut request: Map<String, Value>,
) -> Response {
    let Some(tool) = shelf_tools::find(name).filter(|tool| tool.family == Family::Workspace) else {
        return invalid(&format!("unknown tool '{name}'"));
    };
    let input = match request.remove("input") {
        Some(Value::Object(input)) => input,
        None | Some(Value::Null) => Map::new(),
        Some(_) => return invalid("input must be an object"),
    };
    let Admitted { caller, selection } = admitted;
    let call = shared.app.new_call();
    match shared.app.run(tool, selection, caller, call, input).await {
        Ok(answer) => Json(answer.value).into_response(),
        Err(failure) => {
            let status = StatusCode::from_u16(failure.kind.row().status);
            let mut response = failure.text.into_response();
            *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let json = header::HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            if let Some(seconds) = failure.retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

fn object(body: Body) -> Result<Map<String, Value>, &'static str> {
    let body = body.map_err(|_| "the body is too large")?;
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(&body).map_err(|_| "the body must be a JSON object")
}

fn invalid(message: &str) -> Response {
    let body = json!({ "error": { "code": "INVALID_INPUT", "message": message } });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
