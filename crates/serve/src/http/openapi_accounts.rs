//! The description of the routes that are no tools: accounts, sessions, personal tokens, and what the caller may and has.

use http::Method;
use schemars::JsonSchema;
use serde_json::{Value, json};
use shelf_tools::schema_of;

use super::{
    accounts::{
        ChangePassword, CreateToken, LogIn, PersonalToken, Refresh, Register, Session, SessionView, Usage,
        User,
    },
    openapi::Operation,
};

fn operation(method: Method, path: &str, summary: &str, description: &str) -> Operation {
    let id = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    Operation {
        method,
        path: format!("/api/v1{path}"),
        tag: "auth",
        summary: summary.to_owned(),
        description: description.to_owned(),
        parameters: if path.contains("{id}") { vec![id] } else { Vec::new() },
        body: None,
        status: 200,
        reply: json!({
            "type": "object",
            "required": ["message"],
            "properties": { "message": { "type": "string" } },
        }),
        bytes: None,
        has_about: false,
        is_open: false,
        is_of_books: false,
    }
}

impl Operation {
    fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(schema_of::<T>()), ..self }
    }

    fn gives<T: JsonSchema>(self) -> Self {
        Self { reply: schema_of::<T>(), ..self }
    }

    fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    fn created(self) -> Self {
        Self { status: 201, ..self }
    }
}

/// The tools as `GET /tools` lists them.
fn tools() -> Value {
    let (text, object) = (json!({ "type": "string" }), json!({ "type": "object" }));
    let tool = json!({
        "type": "object",
        "required": ["name", "title", "description", "inputSchema", "outputSchema"],
        "properties": {
            "name": text, "title": text, "description": text, "inputSchema": object, "outputSchema": object,
        },
    });
    json!({
        "type": "object",
        "required": ["tools"],
        "properties": { "tools": { "type": "array", "items": tool } },
    })
}

/// Every such route.
pub(super) fn operations() -> impl Iterator<Item = Operation> {
    let tools = Operation {
        reply: tools(),
        ..operation(
            Method::GET,
            "/tools",
            "List tools",
            "The tools that the caller may call, with their schemas.",
        )
    };
    sessions().into_iter().chain(personal_tokens()).chain([
        tools,
        operation(
            Method::GET,
            "/usage",
            "Show usage",
            "How many documents, collections, snapshots and active tokens the caller has, and the bytes of its documents.",
        )
        .gives::<Usage>(),
    ])
}

fn sessions() -> [Operation; 8] {
    let (get, post) = (|| Method::GET, || Method::POST);
    [
        operation(
            post(),
            "/auth/register",
            "Register",
            "Make an account with a collection named default. The first account of a library is an administrator, and is \
             made from the library's own machine only.",
        )
        .takes::<Register>()
        .gives::<User>()
        .created()
        .open(),
        operation(
            post(),
            "/auth/login",
            "Log in",
            "Begin a session with a username or an email address. The access token is for REST; MCP takes personal tokens.",
        )
        .takes::<LogIn>()
        .gives::<Session>()
        .open(),
        operation(
            post(),
            "/auth/refresh",
            "Renew a session",
            "Exchange a refresh token, which works once, for new tokens. Using it again ends the session.",
        )
        .takes::<Refresh>()
        .gives::<Session>()
        .open(),
        operation(post(), "/auth/logout", "Log out", "End the session of this request."),
        operation(get(), "/auth/profile", "Show the own account", "The account of whoever sends the request.")
            .gives::<User>(),
        operation(
            post(),
            "/auth/password",
            "Change the password",
            "Set another password. All sessions of the account end; its personal tokens stay.",
        )
        .takes::<ChangePassword>(),
        operation(get(), "/auth/sessions", "List sessions", "Where the caller is logged in.")
            .gives::<Vec<SessionView>>(),
        operation(Method::DELETE, "/auth/sessions/{id}", "End a session", "End one of the caller's sessions."),
    ]
}

fn personal_tokens() -> [Operation; 4] {
    [
        operation(
            Method::POST,
            "/auth/pat",
            "Create a personal token",
            "Make a token for MCP and REST. Its key is shown only once.",
        )
        .takes::<CreateToken>()
        .gives::<PersonalToken>()
        .created(),
        operation(
            Method::GET,
            "/auth/pat",
            "List personal tokens",
            "The caller's tokens, without their keys.",
        )
        .gives::<Vec<PersonalToken>>(),
        operation(
            Method::DELETE,
            "/auth/pat/{id}",
            "Revoke a personal token",
            "Make a token useless at once and for good.",
        ),
        operation(
            Method::POST,
            "/auth/pat/{id}/rotate",
            "Rotate a personal token",
            "Replace the key of a token: the old one stops working, and the new one is shown only once.",
        )
        .gives::<PersonalToken>(),
    ]
}
