//! Documents, collections, tokens and users as REST resources. Each route is a tool under another name: the same
//! arguments from path, query and body, the same policy, the same reply.

use std::collections::HashMap;

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{Path, Query, State, rejection::BytesRejection},
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Map, Value};
use shelf_base::{Kind, bounds::REQUEST_BYTES};
use shelf_tools::{Answer, Attachment, Tool, policy::EXTRAS};

use super::{Shared, rest};
use crate::mcp::Admitted;

/// One route.
pub(super) struct Route {
    /// Its method.
    pub method: Method,
    /// Its path below `/api/v1`.
    pub path: &'static str,
    /// The tool that it is.
    pub tool: &'static str,
    /// The argument that `{id}` in the path stands for.
    pub id: Option<&'static str>,
    /// The status of success.
    pub status: StatusCode,
    /// Whether it stands outside `/api/v1` too, as the contract spells the account routes.
    pub is_bare: bool,
}

const fn route(method: Method, path: &'static str, tool: &'static str, id: Option<&'static str>) -> Route {
    Route { method, path, tool, id, status: StatusCode::OK, is_bare: false }
}

impl Route {
    const fn created(mut self) -> Self {
        self.status = StatusCode::CREATED;
        self
    }

    const fn bare(mut self) -> Self {
        self.is_bare = true;
        self
    }

    /// The tool itself.
    pub(super) fn tool(&self) -> Option<&'static Tool> {
        shelf_tools::find(self.tool)
    }

    /// Whether it answers with the image that comes with the tool's reply.
    pub(super) fn gives_image(&self) -> bool {
        self.tool == "page_image"
    }

    /// Whether it takes a body.
    pub(super) fn has_body(&self) -> bool {
        matches!(self.method, Method::POST | Method::PUT | Method::PATCH)
    }
}

const DOCUMENT: Option<&str> = Some("document_id");
const COLLECTION: Option<&str> = Some("collection_id");
const KEY: Option<&str> = Some("key_id");
const USER: Option<&str> = Some("user_id");
const BOOK: Option<&str> = Some("book_id");

/// Every route.
pub(super) const ROUTES: &[Route] = &[
    route(Method::GET, "/documents", "list_documents_tool", None),
    route(Method::POST, "/documents", "store_document_tool", None).created(),
    route(Method::GET, "/documents/{id}", "get_document_tool", DOCUMENT),
    route(Method::PATCH, "/documents/{id}", "update_document_tool", DOCUMENT),
    route(Method::PUT, "/documents/{id}", "update_document_tool", DOCUMENT),
    route(Method::DELETE, "/documents/{id}", "delete_document_tool", DOCUMENT),
    route(Method::GET, "/search", "search_documents_tool", None),
    route(Method::POST, "/search", "search_documents_tool", None),
    route(Method::GET, "/collections", "list_collections_tool", None),
    route(Method::POST, "/collections", "create_collection_tool", None).created(),
    route(Method::GET, "/collections/{id}", "get_collection_tool", COLLECTION),
    route(Method::PATCH, "/collections/{id}", "rename_collection_tool", COLLECTION),
    route(Method::PUT, "/collections/{id}", "rename_collection_tool", COLLECTION),
    route(Method::DELETE, "/collections/{id}", "delete_collection_tool", COLLECTION),
    route(Method::GET, "/documents/{id}/versions", "describe_document", DOCUMENT),
    route(Method::GET, "/documents/{id}/text", "read_text", DOCUMENT),
    route(Method::GET, "/browse", "browse", None),
    route(Method::GET, "/facets", "facets", None),
    route(Method::GET, "/activity", "activity", None),
    route(Method::GET, "/snapshots/compare", "compare_snapshots", None),
    route(Method::GET, "/memory", "query_memory", None),
    route(Method::GET, "/memory/check", "check_memory", None),
    route(Method::GET, "/documents/{id}/page", "page_image", DOCUMENT),
    route(Method::POST, "/documents/{id}/undelete", "undelete_document", DOCUMENT).created(),
    route(Method::GET, "/archive", "archive", None),
    route(Method::GET, "/admin/check", "check_library", None),
    route(Method::GET, "/admin/calls", "call_statistics", None),
    route(Method::GET, "/books/{id}/history", "book_history", BOOK),
    route(Method::GET, "/admin/audit", "audit_journal", None),
    route(Method::GET, "/admin/gc-plan", "plan_gc", None),
    route(Method::POST, "/users", "create_user", None).created(),
    route(Method::GET, "/users", "list_users_tool", None),
    route(Method::GET, "/users/search", "search_users_tool", None),
    route(Method::GET, "/users/{id}", "get_user_tool", USER),
    route(Method::PATCH, "/users/{id}", "update_user_tool", USER),
    route(Method::PUT, "/users/{id}", "update_user_tool", USER),
    route(Method::DELETE, "/users/{id}", "delete_user_tool", USER),
    route(Method::POST, "/auth/cat", "create_cat_tool", None).created().bare(),
    route(Method::GET, "/auth/cat", "list_cats_tool", None).bare(),
    route(Method::DELETE, "/auth/cat/{id}", "revoke_cat_tool", KEY).bare(),
    route(Method::POST, "/auth/cat/{id}/rotate", "rotate_cat_tool", KEY).bare(),
];

/// The routes, to be put behind the check of who calls.
pub(super) fn router() -> Router<Shared> {
    ROUTES.iter().fold(Router::new(), |router, route| {
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { return router };
        let handler = move |state: State<Shared>,
                            admitted: Extension<Admitted>,
                            path: Option<Path<String>>,
                            query: Query<HashMap<String, String>>,
                            body: Result<Bytes, BytesRejection>| {
            run(route, state, admitted, path, query, body)
        };
        let router = router.route(&format!("/api/v1{}", route.path), on(filter, handler));
        if route.is_bare { router.route(route.path, on(filter, handler)) } else { router }
    })
}

async fn run(
    route: &'static Route,
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    path: Option<Path<String>>,
    Query(query): Query<HashMap<String, String>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Ok(body) = body else {
        let message = format!("the body is larger than {} MiB", REQUEST_BYTES >> 20);
        return rest::error(Kind::TooLarge, &message, &[]);
    };
    let mut arguments = match read_body(route, &body) {
        Ok(arguments) => arguments,
        Err(message) => return rest::error(Kind::Invalid, &message, &[]),
    };
    arguments.extend(query.into_iter().map(|(name, value)| (name, Value::String(value))));
    if let (Some(name), Some(Path(id))) = (route.id, path) {
        if arguments.get(name).is_some_and(|given| given.as_str() != Some(&id)) {
            let message = format!("{name} is named by the path; the body or query names another");
            return rest::error(Kind::Invalid, &message, &[]);
        }
        arguments.insert(name.to_owned(), Value::String(id));
    }
    // A list with a question is a search.
    let name = match route.tool {
        "list_users_tool" if arguments.contains_key("query") => "search_users_tool",
        name => name,
    };
    let Some(tool) = shelf_tools::find(name) else { return rest::nothing_here().await };
    let Admitted { caller, selection } = admitted;
    // A route that stands here is offered, whether or not agents are offered its tool.
    let selection = if tool.toolset() == EXTRAS { selection.with_extras() } else { selection };
    let call = shared.app.new_call();
    let finish = if route.gives_image() { as_image } else { answered };
    match shared.app.run(tool, selection, caller, call, arguments, finish).await {
        Ok(response) => (route.status, response).into_response(),
        Err(failure) => rest::refused(tool, &failure),
    }
}

fn read_body(route: &Route, body: &[u8]) -> Result<Map<String, Value>, String> {
    if !route.has_body() || body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    match rest::with_text_kept(route.tool, body, &[]) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("the body must be a JSON object".into()),
        Err(fault) => Err(format!("the body is not valid JSON: {fault}")),
    }
}

/// The image that comes with a reply.
fn as_image(answer: Answer) -> Response {
    let image = answer.attachments.iter().find_map(|attachment| match attachment {
        Attachment::Image { mime, data } => {
            Some((HeaderValue::from_str(mime).ok()?, STANDARD.decode(data).ok()?))
        }
        _ => None,
    });
    match image {
        Some((mime, bytes)) => ([(http::header::CONTENT_TYPE, mime)], bytes).into_response(),
        None => answered(answer),
    }
}

/// What is said of a bare array stands in headers: its name in `about`, the header, and what it means.
pub(super) const ABOUT: [(&str, &str, &str); 3] = [
    ("total", "x-total-count", "How many entries there are on all pages"),
    ("truncated", "x-truncated", "Whether the array ends before the list does"),
    ("nextCursor", "x-next-cursor", "cursor of the next page, if there is one"),
];

/// The contract's JSON.
pub(super) fn answered(answer: Answer) -> Response {
    let mut response = rest::json(&answer.value);
    for (name, header, _) in ABOUT {
        let text = match answer.about.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => continue,
        };
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(HeaderName::from_static(header), value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_a_tool_that_knows_its_argument() {
        for route in ROUTES {
            let tool = route.tool().unwrap_or_else(|| panic!("{}", route.tool));
            assert_eq!(route.id.is_some(), route.path.contains("{id}"), "{}", route.path);
            if let Some(id) = route.id {
                assert!(tool.input_schema()["properties"].get(id).is_some(), "{} {id}", route.tool);
            }
        }
    }
}
