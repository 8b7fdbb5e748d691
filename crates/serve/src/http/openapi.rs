//! The description of REST for programs and for people, made from the same schemas as the tools.

use std::sync::LazyLock;

use axum::{Json, response::Html};
use http::Method;
use serde_json::{Map, Value, json};
use shelf_base::Kind;
use shelf_tools::{Family, book_error_names};

use super::{
    openapi_accounts,
    routes::{ABOUT, ROUTES, Route},
};

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

/// The OpenAPI document.
pub(super) async fn document() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

/// One operation.
pub(super) struct Operation {
    pub method: Method,
    pub path: String,
    pub tag: &'static str,
    pub summary: String,
    pub description: String,
    pub parameters: Vec<Value>,
    pub body: Option<Value>,
    pub status: u16,
    pub reply: Value,
    /// The type of a reply that is no JSON, but bytes.
    pub bytes: Option<&'static str>,
    /// Whether headers tell about the reply, which is a bare array.
    pub has_about: bool,
    /// Whether anybody may call it.
    pub is_open: bool,
    /// Whether its errors are those of the books.
    pub is_of_books: bool,
}

/// What a failure looks like.
const ERROR: &str = "#/components/schemas/Error";
const BOOK_ERROR: &str = "#/components/schemas/BookError";

impl Operation {
    fn value(self) -> Value {
        let mut operation = json!({
            "tags": [self.tag],
            "operationId": operation_id(&self.method, &self.path),
            "summary": self.summary,
            "description": self.description,
            "parameters": self.parameters,
            "responses": self.responses(),
        });
        if let Some(body) = self.body {
            let needs = body.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
            let content = json!({ "application/json": { "schema": closed(body) } });
            operation["requestBody"] = json!({ "required": needs, "content": content });
        }
        if self.is_open {
            operation["security"] = json!([]);
        }
        operation
    }

    fn responses(&self) -> Map<String, Value> {
        let answer = |description: &str, schema: &Value| json!({ "description": description, "content": { "application/json": { "schema": schema } } });
        let mut responses = Map::new();
        let mut success = answer("Success", &self.reply);
        if let Some(mime) = self.bytes {
            let schema = json!({ "type": "string", "format": "binary" });
            success["content"] = json!({ mime: { "schema": schema } });
        }
        if self.has_about {
            success["headers"] = about_headers();
        }
        responses.insert(self.status.to_string(), success);
        let kinds = [Kind::Invalid, Kind::Unauthenticated, Kind::Denied, Kind::NotFound, Kind::Conflict]
            .into_iter()
            .chain([Kind::TooLarge, Kind::RateLimited, Kind::Internal, Kind::Busy]);
        for kind in kinds {
            let row = kind.row();
            responses.insert(row.status.to_string(), answer(row.code, &self.error(kind)));
        }
        let wrong_method =
            "invalid: the path does not take the method; the header Allow names those that it takes";
        responses.insert("405".into(), answer(wrong_method, &json!({ "$ref": ERROR })));
        responses
    }

    /// The body of a failure. Before a tool is called, the server itself may refuse a request.
    fn error(&self, kind: Kind) -> Value {
        match kind {
            _ if !self.is_of_books => json!({ "$ref": ERROR }),
            Kind::Unauthenticated => json!({ "$ref": ERROR }),
            Kind::Denied | Kind::TooLarge | Kind::RateLimited | Kind::Busy => {
                json!({ "anyOf": [{ "$ref": BOOK_ERROR }, { "$ref": ERROR }] })
            }
            _ => json!({ "$ref": BOOK_ERROR }),
        }
    }
}

/// The headers of a reply that is a bare array.
fn about_headers() -> Value {
    let type_of = |name: &str| match name {
        "total" => "integer",
        "truncated" => "boolean",
        _ => "string",
    };
    let header = |(name, header, meaning): (&str, &str, &str)| {
        (header.to_owned(), json!({ "description": meaning, "schema": { "type": type_of(name) } }))
    };
    Value::Object(ABOUT.into_iter().map(header).collect())
}

/// A body in which unknown names are refused.
fn closed(mut body: Value) -> Value {
    if body["type"] == "object" {
        body["additionalProperties"] = false.into();
    }
    body
}

fn operation_id(method: &Method, path: &str) -> String {
    let words: Vec<String> = path
        .split(['/', '{', '}'])
        .filter(|word| !word.is_empty() && !matches!(*word, "api" | "v1"))
        .map(|word| word.replace('-', "_"))
        .collect();
    format!("{}_{}", method.as_str().to_lowercase(), words.join("_"))
}

fn build() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let operations =
        ROUTES.iter().filter_map(of_route).chain(of_tools()).chain(openapi_accounts::operations());
    for operation in operations {
        let entry = paths.entry(operation.path.clone()).or_insert_with(|| json!({}));
        let method = operation.method.as_str().to_lowercase();
        entry[method] = operation.value();
    }
    let error = json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message", "hints"],
            "properties": {
                "code": { "type": "string", "enum": Kind::ALL.map(|kind| kind.row().code) },
                "message": { "type": "string" },
                "hints": { "type": "array", "items": { "type": "string" } },
            },
        } },
    });
    let book_error = json!({
        "type": "object",
        "required": ["error", "message", "path"],
        "properties": {
            "error": { "type": "string", "enum": book_error_names() },
            "message": { "type": "string" },
            "path": { "type": "string", "description": "What the error is about, below books/" },
            "current_hash": {
                "anyOf": [{ "type": "string" }, { "type": "null" }],
                "description": "SHA-256 of the content that is there, after a conflict",
            },
        },
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Shelfmark",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A library for AI agents and people. Document routes take a JWT, a PAT or a CAT; personal \
                            tokens are managed with a JWT; the account routes of the contract stand at /auth too.",
        },
        "paths": paths,
        "components": {
            "schemas": { "Error": error, "BookError": book_error },
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{ "bearer": [] }],
    })
}

fn of_route(route: &Route) -> Option<Operation> {
    let tool = route.tool()?;
    let schema = tool.input_schema();
    let no_properties = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut parameters = Vec::new();
    if let Some(id) = route.id {
        let described = properties.get(id).cloned().unwrap_or_else(|| json!({ "type": "string" }));
        parameters.push(json!({ "name": "id", "in": "path", "required": true, "schema": described }));
    }
    let rest = properties.iter().filter(|(name, _)| Some(name.as_str()) != route.id);
    let mut body = None;
    if route.has_body() {
        let inner: Map<String, Value> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
        let needed: Vec<&&str> = required.iter().filter(|name| Some(**name) != route.id).collect();
        let object = json!({ "type": "object", "properties": inner, "required": needed });
        body = (route.id.is_none() || route.method != Method::POST).then_some(object);
    } else {
        parameters.extend(rest.map(|(name, value)| {
            json!({ "name": name, "in": "query", "required": required.contains(&name.as_str()), "schema": value })
        }));
    }
    Some(Operation {
        method: route.method.clone(),
        path: format!("/api/v1{}", route.path),
        tag: route.path.trim_start_matches('/').split('/').next().unwrap_or("documents"),
        summary: tool.title.to_owned(),
        description: tool.description.to_owned(),
        parameters,
        body,
        status: route.status.as_u16(),
        reply: Value::Object(tool.output_schema()),
        bytes: route.gives_image().then_some("image/png"),
        has_about: tool.answers_with_array(),
        is_open: false,
        is_of_books: tool.family == Family::Books,
    })
}

/// Every tool under its own name.
fn of_tools() -> impl Iterator<Item = Operation> {
    shelf_tools::registry().map(|tool| Operation {
        method: Method::POST,
        path: format!("/api/v1/tools/{}", tool.name),
        tag: "tools",
        summary: tool.title.to_owned(),
        description: tool.description.to_owned(),
        parameters: Vec::new(),
        body: Some(Value::Object((*tool.input_schema()).clone())),
        status: 200,
        reply: Value::Object(tool.output_schema()),
        bytes: None,
        has_about: tool.answers_with_array(),
        is_open: false,
        is_of_books: tool.family == Family::Books,
    })
}

/// The same as a page that needs no script.
pub(super) async fn page() -> Html<String> {
    let mut rows = String::new();
    for (path, methods) in DOCUMENT["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            rows.push_str(&section(path, method, operation));
        }
    }
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Shelfmark REST</title><style>body{{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
         padding:0 1rem;color:#222;background:#fdfcfa}}code,pre{{background:#f0ece4;border-radius:4px;padding:.1em .3em}}\
         pre{{padding:.6rem;overflow:auto}}summary{{cursor:pointer;margin:.3rem 0}}b{{display:inline-block;width:4.5rem}}\
         </style><h1>Shelfmark REST</h1><p>Send <code>Authorization: Bearer</code> with a JWT from \
         <code>/auth/login</code>, a PAT or a CAT. The whole description for programs is \
         <a href=\"/api/v1/openapi.json\">openapi.json</a>.</p>{rows}</html>"
    ))
}

fn section(path: &str, method: &str, operation: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let pretty = |value: &Value| escape(&serde_json::to_string_pretty(value).unwrap_or_default());
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let body =
        if body.is_null() { String::new() } else { format!("<h4>Body</h4><pre>{}</pre>", pretty(body)) };
    let parameters: String = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| {
            let about = text(&parameter["schema"]["description"]);
            format!(
                "<li><code>{}</code> in {}: {about}</li>",
                text(&parameter["name"]),
                text(&parameter["in"])
            )
        })
        .collect();
    format!(
        "<details><summary><b>{}</b> <code>{}</code> {}</summary><p>{}</p><ul>{parameters}</ul>{body}</details>",
        method.to_uppercase(),
        escape(path),
        text(&operation["summary"]),
        text(&operation["description"]),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
