//! Accounts over REST: registering, logging in, and personal tokens, which the protocol itself cannot make.

use std::net::SocketAddr;

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{ConnectInfo, Path, Request, State, rejection::BytesRejection},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, delete, get, post},
};
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use shelf_base::{ErrorInfo, Kind};
use shelf_engine::{
    Account, Caller, Error, KeyRequest, Library, PersonalScope, Registration, SessionRow, TokenRow, Tokens,
};

use super::{Shared, rest, throttle};
use crate::{
    app::{BlockingError, Work},
    mcp::Admitted,
};

/// The routes that anybody may call.
pub(super) fn outside() -> Router<Shared> {
    let router = both(Router::new(), "/auth/register", || post(register));
    let router = both(router, "/auth/login", || post(log_in));
    both(router, "/auth/refresh", || post(refresh)).layer(middleware::from_fn(no_query))
}

/// The routes of somebody who is known.
pub(super) fn inside() -> Router<Shared> {
    let router = both(Router::new(), "/auth/logout", || post(log_out));
    let router = both(router, "/auth/profile", || get(profile));
    let router = both(router, "/auth/pat", || get(list_tokens).post(create_token));
    let router = both(router, "/auth/pat/{id}", || delete(revoke_token));
    let router = both(router, "/auth/pat/{id}/rotate", || post(rotate_token));
    let router = both(router, "/auth/sessions", || get(list_sessions));
    let router = both(router, "/auth/sessions/{id}", || delete(end_session));
    let router = both(router, "/auth/password", || post(change_password));
    router.route("/api/v1/usage", get(usage)).layer(middleware::from_fn(no_query))
}

/// Refuses what stands in the query of a route that takes nothing there: a mistake would go unnoticed.
async fn no_query(request: Request, next: Next) -> Response {
    let Some(query) = request.uri().query().filter(|query| !query.is_empty()) else {
        return next.run(request).await;
    };
    let name = query.split(['=', '&']).next().unwrap_or_default();
    let hints = ["this path takes no arguments in its query".to_owned()];
    rest::error(Kind::Invalid, &format!("unknown argument '{name}'"), &hints)
}

/// At the contract's path and below `/api/v1`.
fn both(router: Router<Shared>, path: &str, method: impl Fn() -> MethodRouter<Shared>) -> Router<Shared> {
    router.route(path, method()).route(&format!("/api/v1{path}"), method())
}

/// A person who wants an account.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Register {
    /// Email address
    email: String,
    /// Username
    username: String,
    /// Password, at least 10 characters
    password: String,
}

/// What a login takes.
#[derive(Deserialize, JsonSchema)]
pub(super) struct LogIn {
    /// Username, or email address
    username: Option<String>,
    /// Email address, instead of username
    email: Option<String>,
    /// Password
    password: String,
}

/// What a renewal of a session takes.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Refresh {
    /// The refresh token of the login or of the last refresh
    refresh_token: String,
}

/// A personal token that is wanted.
#[derive(Deserialize, JsonSchema)]
pub(super) struct CreateToken {
    /// Descriptive label
    label: String,
    /// READ, WRITE, and for superusers ADMIN (default READ and WRITE)
    scopes: Option<Scopes>,
    /// Expiry in days
    #[schemars(range(min = 1, max = 3650))]
    expires_in_days: Option<u64>,
}

/// The scopes of a token: several, or one.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Scopes {
    Several(Vec<String>),
    One(String),
}

impl Scopes {
    fn words(self) -> Vec<String> {
        match self {
            Self::Several(words) => words,
            // Some clients send a list as a text.
            Self::One(text) => serde_json::from_str(&text).unwrap_or_else(|_| vec![text]),
        }
    }
}

/// Another password that is wanted.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ChangePassword {
    /// The present password
    current_password: String,
    /// The new password, at least 10 characters
    new_password: String,
}

/// Where somebody is signed in.
#[derive(Serialize, JsonSchema)]
pub(super) struct SessionView {
    /// Session UUID
    pub id: String,
    /// When it began
    pub created_at: String,
    /// When it ends by itself
    pub expires_at: String,
    /// Whether it is the session of this request
    pub is_current: bool,
}

/// The sessions of a caller.
pub(super) fn session_views(library: &Library, caller: &Caller) -> Result<Vec<SessionView>, Error> {
    let current = caller.pass.session();
    let view = |session: &SessionRow| SessionView {
        id: session.id.to_string(),
        created_at: session.created_at.to_string(),
        expires_at: session.expires_at.to_string(),
        is_current: Some(session.id) == current,
    };
    Ok(library.sessions(caller)?.iter().map(view).collect())
}

/// A user.
#[derive(Serialize, JsonSchema)]
pub(super) struct User {
    /// User UUID
    id: String,
    /// Email address; null for the account of the library itself
    #[schemars(extend("x-or-null" = true))]
    email: Option<String>,
    /// Username
    username: String,
    /// Whether the user's tokens work
    is_active: bool,
    /// Whether the user is an administrator
    is_superuser: bool,
    /// When the account was made
    created_at: String,
}

impl From<Account> for User {
    fn from(account: Account) -> Self {
        Self {
            id: account.id.to_string(),
            email: account.email,
            username: account.username,
            is_active: account.is_active,
            is_superuser: account.is_superuser,
            created_at: account.created_at.to_string(),
        }
    }
}

/// What a login or a refresh gives.
#[derive(Serialize, JsonSchema)]
pub(super) struct Session {
    /// For requests to REST; the protocol takes PATs
    access_token: String,
    /// For the next refresh, once
    refresh_token: String,
    /// bearer
    token_type: &'static str,
    /// Seconds that the access token works
    expires_in: u64,
}

impl From<Tokens> for Session {
    fn from(tokens: Tokens) -> Self {
        Self {
            access_token: tokens.access.reveal().to_owned(),
            refresh_token: tokens.refresh.reveal().to_owned(),
            token_type: "bearer",
            expires_in: tokens.expires_in,
        }
    }
}

/// A personal token; its key only when it was just made.
#[derive(Serialize, JsonSchema)]
pub(super) struct PersonalToken {
    /// PAT UUID
    id: String,
    /// Label
    label: String,
    /// The token itself, shown only once
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// What it may do
    scopes: Vec<&'static str>,
    /// When it was made
    created_at: String,
    /// When it stops working; null when it does not
    #[schemars(extend("x-or-null" = true))]
    expires_at: Option<String>,
    /// When it was last used, to about a minute
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    /// Whether it works
    is_active: bool,
}

pub(super) fn token_view(found: &TokenRow, key: Option<String>, library: &Library) -> PersonalToken {
    let token = &found.token;
    PersonalToken {
        id: token.id.to_string(),
        label: token.label.clone(),
        key,
        scopes: PersonalScope::words(token.scopes),
        created_at: token.created_at.to_string(),
        expires_at: token.expires_at.map(|at| at.to_string()),
        last_used_at: found.last_used_at.map(|at| at.to_string()),
        is_active: found.is_active(library.now()),
    }
}

type Body = Result<Bytes, BytesRejection>;

/// Reads a body by the rules that hold for the arguments of tools: a misspelt name is an error, not a silent default.
#[expect(clippy::result_large_err, reason = "the error is the answer")]
fn read<T: DeserializeOwned + JsonSchema>(body: Body) -> Result<T, Response> {
    let wrong = |message: &str| rest::error(Kind::Invalid, message, &[]);
    let body = body.map_err(|_| rest::error(Kind::TooLarge, "the body is too large", &[]))?;
    let body = if body.trim_ascii().is_empty() { &b"{}"[..] } else { &body[..] };
    let arguments = match serde_json::from_slice(body) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(_) => return Err(wrong("the body must be a JSON object")),
        Err(fault) => return Err(wrong(&format!("the body is not valid JSON: {fault}"))),
    };
    let Value::Object(schema) = shelf_tools::schema_of::<T>() else { return Err(wrong("no schema")) };
    let checked = shelf_tools::check_arguments(&schema, arguments)
        .map_err(|(message, hints)| rest::error(Kind::Invalid, &message, &hints))?;
    serde_json::from_value(Value::Object(checked)).map_err(|fault| wrong(&fault.to_string()))
}

/// Whose machine a request comes from. Behind a proxy everybody comes from the proxy's, so then nobody is here.
fn is_here(address: SocketAddr, headers: &HeaderMap) -> bool {
    let forwarded = ["forwarded", "x-forwarded-for", "x-real-ip"];
    address.ip().to_canonical().is_loopback() && !forwarded.iter().any(|name| headers.contains_key(*name))
}

/// A server that only reads makes no accounts and no tokens either.
fn refuse_writing(shared: &Shared) -> Option<Response> {
    let sentence = "Insufficient permissions: write access required";
    shared.app.selection.read_only.then(|| rest::error(Kind::Denied, sentence, &[]))
}

/// Does blocking work in the library and answers with it.
async fn answer<T: Serialize + Send + 'static>(
    shared: &Shared,
    status: StatusCode,
    work: impl FnOnce(&Library) -> Result<T, Error> + Send + 'static,
) -> Response {
    let call = shared.app.new_call();
    match shared.app.blocking(Work::Write, call, move |app| work(&app.library)).await {
        Ok(Ok(value)) => (status, Json(value)).into_response(),
        Ok(Err(Error::NotFound { what, .. })) => rest::error(Kind::NotFound, &not_found(what), &[]),
        Ok(Err(error)) => rest::error(error.kind(), &error.to_string(), &error.hints()),
        Err(BlockingError::Busy) => rest::error(Kind::Busy, "the server is busy; nothing was done", &[]),
        Err(BlockingError::Defect) => rest::error(Kind::Internal, "the request ended by a defect", &[]),
    }
}

async fn register(
    State(shared): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let wanted: Register = match read(body) {
        Ok(wanted) => wanted,
        Err(response) => return response,
    };
    if let Some(refusal) = refuse_writing(&shared) {
        return refusal;
    }
    if let Err(seconds) = shared.throttle.register(address.ip()) {
        return throttle::refuse("too many registrations from this address", seconds);
    }
    let here = is_here(address, &headers);
    answer(&shared, StatusCode::CREATED, move |library| {
        let Register { email, username, password } = wanted;
        library.register(Registration { email, username, password }, here).map(User::from)
    })
    .await
}

async fn log_in(
    State(shared): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    body: Body,
) -> Response {
    let proof: LogIn = match read(body) {
        Ok(proof) => proof,
        Err(response) => return response,
    };
    if let Err(seconds) = shared.throttle.login(address.ip()) {
        return throttle::refuse("too many logins from this address", seconds);
    }
    let Some(name) = proof.username.or(proof.email) else {
        return rest::error(Kind::Invalid, "username is required", &[]);
    };
    answer(&shared, StatusCode::OK, move |library| library.log_in(&name, &proof.password).map(Session::from))
        .await
}

async fn refresh(
    State(shared): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    body: Body,
) -> Response {
    let proof: Refresh = match read(body) {
        Ok(proof) => proof,
        Err(response) => return response,
    };
    if let Err(seconds) = shared.throttle.refresh(address.ip()) {
        return throttle::refuse("too many refreshes from this address", seconds);
    }
    answer(&shared, StatusCode::OK, move |library| library.refresh(&proof.refresh_token).map(Session::from))
        .await
}

async fn log_out(State(shared): State<Shared>, Extension(admitted): Extension<Admitted>) -> Response {
    answer(&shared, StatusCode::OK, move |library| {
        library.log_out(&admitted.caller)?;
        Ok(json!({ "message": "Logged out successfully" }))
    })
    .await
}

async fn profile(State(shared): State<Shared>, Extension(admitted): Extension<Admitted>) -> Response {
    answer(&shared, StatusCode::OK, move |library| library.profile(&admitted.caller).map(User::from)).await
}

async fn create_token(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    body: Body,
) -> Response {
    let wanted: CreateToken = match read(body) {
        Ok(wanted) => wanted,
        Err(response) => return response,
    };
    if let Some(refusal) = refuse_writing(&shared) {
        return refusal;
    }
    answer(&shared, StatusCode::CREATED, move |library| create(library, &admitted.caller, wanted)).await
}

fn create(library: &Library, caller: &Caller, wanted: CreateToken) -> Result<Value, Error> {
    let scopes = wanted
        .scopes
        .map(|given| given.words().iter().map(|word| scope(word)).collect::<Result<Vec<_>, _>>());
    let scopes = scopes.transpose()?;
    let request = KeyRequest { label: wanted.label, days: wanted.expires_in_days };
    let minted = library.create_personal(caller, request, scopes.as_deref())?;
    let token = minted.token;
    Ok(json!({
        "id": token.id.to_string(),
        "label": token.label,
        "key": minted.text.reveal(),
        "scopes": PersonalScope::words(token.scopes),
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|at| at.to_string()),
        "is_active": true,
    }))
}

pub(super) fn scope(word: &str) -> Result<PersonalScope, Error> {
    PersonalScope::from_word(word).ok_or_else(|| Error::invalid("scopes", "may hold READ, WRITE and ADMIN"))
}

async fn list_tokens(State(shared): State<Shared>, Extension(admitted): Extension<Admitted>) -> Response {
    answer(&shared, StatusCode::OK, move |library| {
        let tokens = library.personal_tokens(&admitted.caller)?;
        Ok(tokens.iter().map(|token| token_view(token, None, library)).collect::<Vec<_>>())
    })
    .await
}

async fn revoke_token(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    Path(id): Path<String>,
) -> Response {
    if let Some(refusal) = refuse_writing(&shared) {
        return refusal;
    }
    answer(&shared, StatusCode::OK, move |library| {
        library.revoke_personal(&admitted.caller, &id)?;
        Ok(json!({ "message": "PAT revoked successfully" }))
    })
    .await
}

async fn rotate_token(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    Path(id): Path<String>,
) -> Response {
    if let Some(refusal) = refuse_writing(&shared) {
        return refusal;
    }
    answer(&shared, StatusCode::OK, move |library| {
        let (token, key) = library.rotate_personal(&admitted.caller, &id)?;
        Ok(token_view(&token, Some(key.reveal().to_owned()), library))
    })
    .await
}

/// What is said of something that is not there, as the tools say it.
pub(super) fn not_found(what: &str) -> String {
    let mut letters = what.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    format!("{}{} not found", first.map_or_else(String::new, String::from), letters.as_str())
}

async fn list_sessions(State(shared): State<Shared>, Extension(admitted): Extension<Admitted>) -> Response {
    answer(&shared, StatusCode::OK, move |library| session_views(library, &admitted.caller)).await
}

async fn end_session(
    State(shared): State<Shared>,
    Extension(admitted): Extension<Admitted>,
    Path(id): Path<String>,
) -> Response {
    answer(&shared, StatusCode::OK, move |library| {
        library.end_session(&admitted.caller, &id)?;
        Ok(json!({ "message": "Session ended" }))
    })
    .await
}

async fn change_password(
    State(shared): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    Extension(admitted): Extension<Admitted>,
    body: Body,
) -> Response {
    let wanted: ChangePassword = match read(body) {
        Ok(wanted) => wanted,
        Err(response) => return response,
    };
    if let Some(refusal) = refuse_writing(&shared) {
        return refusal;
    }
    // It is a way to guess the present password, like a login.
    if let Err(seconds) = shared.throttle.login(address.ip()) {
        return throttle::refuse("too many attempts from this address", seconds);
    }
    answer(&shared, StatusCode::OK, move |library| {
        library.change_password(&admitted.caller, &wanted.current_password, &wanted.new_password)?;
        Ok(json!({ "message": "Password changed; all sessions have ended" }))
    })
    .await
}

/// What somebody has.
#[derive(Serialize, JsonSchema)]
pub(super) struct Usage {
    /// Number of collections
    collections: u64,
    /// Number of documents
    documents: u64,
    /// Bytes of the documents
    bytes: u64,
    /// Number of snapshots
    snapshots: u64,
    /// Number of personal tokens that work
    active_pats: u64,
    /// Number of collection tokens that work
    active_cats: u64,
}

async fn usage(State(shared): State<Shared>, Extension(admitted): Extension<Admitted>) -> Response {
    answer(&shared, StatusCode::OK, move |library| {
        let usage = library.usage(&admitted.caller)?;
        Ok(Usage {
            collections: usage.collections,
            documents: usage.documents,
            bytes: usage.bytes,
            snapshots: usage.snapshots,
            active_pats: usage.personal_tokens,
            active_cats: usage.collection_tokens,
        })
    })
    .await
}
