//! The pages, and which request asks for which.

mod account;
mod activity;
mod admin;
mod around;
mod as_json;
mod books;
mod browse;
mod charts;
mod cite;
mod confined;
mod confirm;
mod deleted;
mod document;
mod graph;
mod memory;
mod player;
mod reading;
mod search;
mod search_filters;
mod setup;
mod sheets;
mod sign_in;
mod snapshots;
mod start;
mod to;
mod tokens;
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
    if request.method == Method::Get && request.query("part") == Some("json") {
        return as_json::reply(host, request);
    }
    route(host, request).unwrap_or_else(|error| frame::failure(host, request, &error))
}

fn route(host: &dyn Host, request: &Request) -> Answer {
    let path = request.path();
    match request.method {
        Method::Get => show(host, request, &path),
        Method::Post => change(host, request, &path),
    }
}

fn show(host: &dyn Host, request: &Request, path: &[&str]) -> Answer {
    if frame::is_confined(host) {
        return confined::show(host, request, path);
    }
    match path {
        [] => start::page(host, request),
        ["search"] => search::page(host, request),
        ["to"] => to::page(host, request),
        ["c"] => browse::collections(host, request),
        ["c", name] => browse::folder(host, request, name),
        ["c", name, "zip"] => browse::zip(host, request, name),
        ["d", id] => document::page(host, request, id),
        ["d", id, "diff"] => versions::difference(host, request, id),
        ["d", id, "page"] => sheets::image(host, request, id),
        ["graph"] => graph::page(host, request),
        ["cite"] => cite::page(host, request),
        ["books"] => books::list(host, request),
        ["books", book] => books::contents(host, request, book),
        ["books", book, path @ ..] => books::lesson(host, request, book, &path.join("/")),
        ["memory"] => memory::page(host, request),
        ["snapshots"] => snapshots::page(host, request),
        ["snapshots", "zip"] => snapshots::zip(host, request),
        ["snapshots", "compare"] => snapshots::compare(host, request),
        ["snapshots", "diff"] => snapshots::difference(host, request),
        ["activity"] => activity::page(host, request),
        ["tokens"] => tokens::page(host, request),
        ["account"] => account::page(host, request),
        ["admin"] => admin::page(host, request),
        _ => Err(missing("there is no such page")),
    }
}

fn change(host: &dyn Host, request: &Request, path: &[&str]) -> Answer {
    match path {
        ["upload"] => upload::take(host, request),
        ["c"] => browse::create(host, request),
        ["c", name, "chosen"] => browse::chosen(host, request, name),
        ["d", id, action] => document::change(host, request, id, action),
        ["books", book, "assets", kind] => books::upload(host, request, book, kind),
        ["books", book, path @ ..] if !path.is_empty() => books::write(host, request, book, &path.join("/")),
        ["tokens", "create"] => tokens::create(host, request),
        ["tokens", "change"] => tokens::change(host, request),
        ["account", action] => account::change(host, request, action),
        ["admin", action] => admin::change(host, request, action),
        _ => Err(missing("there is no such action")),
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
