//! The workspace contract's own way over HTTP: `POST /tools` with `{"tool", "input"}`, `POST /tools/{name}` with
//! `{"input"}`, and the contract's bare JSON as the answer, errors too.

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shelf_tools::{Family, Tool};

use super::{
    Shared,
    rest::{self, with_text_kept},
};
use crate::mcp::Admitted;

type Body = Result<Bytes, BytesRejection>;

/// The name that a body gives; the rest is read when the tool is known.
#[derive(Deserialize)]
struct Named {
    tool: String,
}

/// `POST /tools`.
pub(super) async fn call(state: State<Shared>, admitted: Extension<Admitted>, body: Body) -> Response {
    let name = match &body {
        Ok(body) => serde_json::from_slice::<Named>(body).map(|named| named.tool).ok(),
        Err(_) => return invalid(TOO_LARGE),
    };
    match name {
        Some(name) => run(state, admitted, &name, body).await,
        None => invalid("the body must be a JSON object with the name of a tool in 'tool'"),
    }
}

/// `POST /tools/{name}`.
pub(super) async fn call_named(
    state: State<Shared>,
    admitted: Extension<Admitted>,
    Path(name): Path<String>,
    body: Body,
) -> Response {
    run(state, admitted, &name, body).await
}

async fn run(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    name: &str,
    body: Body,
) -> Response {
    let Some(tool) = shelf_tools::find(name).filter(|tool| tool.family == Family::Workspace) else {
        let listed = shared.app.listed(admitted.caller, admitted.selection).await.unwrap_or_default();
        let is_ours = |tool: &&&Tool| tool.family == Family::Workspace;
        let known: Vec<&str> = listed.iter().filter(is_ours).map(|tool| tool.name).collect();
        return invalid(&format!("unknown tool '{name}'; known here: {}", known.join(", ")));
    };
    let input = match input(tool, body) {
        Ok(input) => input,
        Err(message) => return invalid(&message),
    };
    let Admitted { caller, selection } = admitted;
    let call = shared.app.new_call();
    match shared.app.run(tool, selection, caller, call, input, |answer| rest::json(&answer.value)).await {
        Ok(response) => response,
        Err(failure) => rest::of_family(&failure),
    }
}

const TOO_LARGE: &str = "the body is too large";

/// The input that a body gives; an empty body gives none.
fn input(tool: &Tool, body: Body) -> Result<Map<String, Value>, String> {
    let body = body.map_err(|_| TOO_LARGE)?;
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    let Ok(Value::Object(mut request)) = with_text_kept(tool.name, &body, &["input"]) else {
        return Err("the body must be a JSON object".into());
    };
    let input = request.remove("input");
    request.remove("tool");
    if let Some(unknown) = request.keys().next() {
        return Err(format!("unknown field '{unknown}': the arguments of a tool stand under 'input'"));
    }
    match input {
        Some(Value::Object(input)) => Ok(input),
        None | Some(Value::Null) => Ok(Map::new()),
        Some(_) => Err("input must be an object".into()),
    }
}

fn invalid(message: &str) -> Response {
    let body = json!({ "error": { "code": "INVALID_INPUT", "message": message } });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
