//! The description of REST for programs and for people, made from the same schemas as the tools.

use std::sync::LazyLock;

use axum::{Json, response::Html};
use http::Method;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use shelf_base::Kind;

use super::{
    accounts::{
        ChangePassword, CreateToken, LogIn, PersonalToken, Refresh, Register, Session, SessionView, User,
    },
    routes::{ROUTES, Route},
};

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);

/// The OpenAPI document.
pub(super) async fn document() -> Json<&'static Value> {
    Json(&DOCUMENT)
}

fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// One operation.
struct Operation {
    method: Method,
    path: String,
    tag: &'static str,
    summary: String,
    description: String,
    parameters: Vec<Value>,
    body: Option<Value>,
    status: u16,
    reply: Value,
    is_open: bool,
}

impl Operation {
    fn value(self) -> Value {
        let mut responses = Map::new();
        responses.insert(
            self.status.to_string(),
            json!({ "description": "Success", "content": { "application/json": { "schema": self.reply } } }),
        );
        let kinds = [Kind::Invalid, Kind::Unauthenticated, Kind::Denied, Kind::NotFound, Kind::Conflict]
            .into_iter()
            .chain([Kind::TooLarge, Kind::RateLimited, Kind::Internal, Kind::Busy]);
        for kind in kinds {
            let row = kind.row();
            let error = json!({ "$ref": "#/components/schemas/Error" });
            responses.insert(
                row.status.to_string(),
                json!({ "description": row.code, "content": { "application/json": { "schema": error } } }),
            );
        }
        let mut operation = json!({
            "tags": [self.tag],
            "operationId": operation_id(&self.method, &self.path),
            "summary": self.summary,
            "description": self.description,
            "parameters": self.parameters,
            "responses": responses,
        });
        if let Some(body) = self.body {
            let content = json!({ "application/json": { "schema": &body } });
            let needs = body.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
            operation["requestBody"] = json!({ "required": needs, "content": content });
        }
        if self.is_open {
            operation["security"] = json!([]);
        }
        operation
    }
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
    let operations = ROUTES.iter().filter_map(of_route).chain(of_tools()).chain(of_accounts());
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
            "schemas": { "Error": error },
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
        let object = json!({
            "type": "object", "properties": inner, "required": needed, "additionalProperties": false,
        });
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
        is_open: false,
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
        is_open: false,
    })
}

fn of_accounts() -> impl Iterator<Item = Operation> {
    let message = || json!({ "type": "object", "properties": { "message": { "type": "string" } } });
    let id = || json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    let tokens = json!({ "type": "array", "items": schema_of::<PersonalToken>() });
    let tools = json!({ "type": "object", "properties": { "tools": { "type": "array" } } });
    let usage = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let operation = |method, path: &str, summary: &str, body, status, reply, is_open| Operation {
        method,
        path: format!("/api/v1{path}"),
        tag: "auth",
        summary: summary.to_owned(),
        description: String::new(),
        parameters: if path.contains("{id}") { vec![id()] } else { Vec::new() },
        body,
        status,
        reply,
        is_open,
    };
    let (get, post) = (Method::GET, Method::POST);
    vec![
        operation(
            post.clone(),
            "/auth/register",
            "Make an account",
            Some(schema_of::<Register>()),
            201,
            schema_of::<User>(),
            true,
        ),
        operation(
            post.clone(),
            "/auth/login",
            "Log in",
            Some(schema_of::<LogIn>()),
            200,
            schema_of::<Session>(),
            true,
        ),
        operation(
            post.clone(),
            "/auth/refresh",
            "Go on with a session",
            Some(schema_of::<Refresh>()),
            200,
            schema_of::<Session>(),
            true,
        ),
        operation(post.clone(), "/auth/logout", "End the session", None, 200, message(), false),
        operation(
            get.clone(),
            "/auth/profile",
            "The caller's account",
            None,
            200,
            schema_of::<User>(),
            false,
        ),
        operation(
            post.clone(),
            "/auth/pat",
            "Make a personal token",
            Some(schema_of::<CreateToken>()),
            201,
            schema_of::<PersonalToken>(),
            false,
        ),
        operation(get.clone(), "/auth/pat", "List personal tokens", None, 200, tokens, false),
        operation(Method::DELETE, "/auth/pat/{id}", "Revoke a personal token", None, 200, message(), false),
        operation(
            post.clone(),
            "/auth/password",
            "Change the password; all sessions end",
            Some(schema_of::<ChangePassword>()),
            200,
            message(),
            false,
        ),
        operation(
            get.clone(),
            "/auth/sessions",
            "Where the caller is signed in",
            None,
            200,
            json!({ "type": "array", "items": schema_of::<SessionView>() }),
            false,
        ),
        operation(Method::DELETE, "/auth/sessions/{id}", "End a session", None, 200, message(), false),
        operation(
            post,
            "/auth/pat/{id}/rotate",
            "Replace a personal token",
            None,
            200,
            schema_of::<PersonalToken>(),
            false,
        ),
        operation(get.clone(), "/tools", "The tools that the caller may call", None, 200, tools, false),
        operation(get, "/usage", "How much the caller uses", None, 200, usage, false),
    ]
    .into_iter()
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
