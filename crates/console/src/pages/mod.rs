//! The pages, and which request asks for which.

mod activity;
mod document;
mod graph;
mod search;
mod setup;
mod sign_in;
mod start;
mod to;
mod upload;
mod versions;

use serde_json::Value;
use shelf_base::Kind;
use shelf_tools::ErrorReply;

use crate::{Host, Method, Reply, Request, frame};

pub use sign_in::{Door, sign_in};

/// What a page is made of, or why there is none.
pub(crate) type Answer = Result<Reply, ErrorReply>;

/// Answers a request of somebody who is signed in. Whoever sends a change has proved where it comes from.
pub fn respond(host: &dyn Host, request: &Request) -> Reply {
    route(host, request).unwrap_or_else(|error| frame::failure(host, request, &error))
}

fn route(host: &dyn Host, request: &Request) -> Answer {
    match (request.method, request.path().as_slice()) {
        (Method::Get, []) => start::page(host, request),
        (Method::Get, ["search"]) => search::page(host, request),
        (Method::Get, ["activity"]) => activity::page(host, request),
        (Method::Post, ["upload"]) => upload::take(host, request),
        (Method::Get, ["to"]) => to::page(host, request),
        (Method::Get, ["d", id]) => document::page(host, request, id),
        (Method::Get, ["d", id, "diff"]) => versions::difference(host, request, id),
        (Method::Post, ["d", id, action]) => document::change(host, request, id, action),
        _ => Err(missing("there is no such page")),
    }
}

/// Calls a tool and takes its JSON.
pub(crate) fn ask(host: &dyn Host, tool: &str, arguments: Value) -> Result<Value, ErrorReply> {
    host.call(tool, arguments).map(|answer| answer.value)
}

/// An error of the console itself.
pub(crate) fn problem(kind: Kind, message: impl Into<String>) -> ErrorReply {
    let message = message.into();
    ErrorReply { kind, text: message.clone(), message, hints: Vec::new(), retry_after: None }
}

pub(crate) fn missing(message: impl Into<String>) -> ErrorReply {
    problem(Kind::NotFound, message)
}

pub(crate) fn invalid(message: impl Into<String>) -> ErrorReply {
    problem(Kind::Invalid, message)
}

/// The time by the clock of the machine.
pub(crate) fn now() -> shelf_base::Moment {
    shelf_base::Moment::from_system(std::time::SystemTime::now())
}
