//! The web console: who looks at it, and the way from a request to a page.
//!
//! `shelf-console` makes the pages. Here a request is turned into what that crate takes: the cookie is checked and becomes
//! a caller, a change must prove that it comes from one of our own pages, and tools are called through the same policy
//! table as everywhere else.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use axum::{
    Router,
    extract::{ConnectInfo, Path, Request, State},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use shelf_base::{CallContext, ErrorInfo, Kind, Secret, bounds::PAGE_CHARS};
use shelf_console::{AccountAction, Door, Host, Reply, Visitor};
use shelf_engine::{AuthError, Bearer, CONSOLE_SESSION_SECONDS, CONSOLE_TOKEN_SECONDS, Caller, Pass};
use shelf_tools::{
    Answer, Context, ErrorReply,
    policy::{self, Selection, Verdict},
};

use super::{Shared, auth, bodies, console_accounts, console_refusals, console_streams, files, rest};
use crate::{
    App,
    app::{Work, note},
    mcp::HTTP_FILE_ACCESS,
};

/// The cookie that holds a session.
const COOKIE: &str = "shelf_session";
/// Bytes of the form that signs out.
const FORM_BYTES: usize = 16 << 10;
/// The cookie that holds the choice of light or dark.
const THEME: &str = "shelf_theme";
/// What pages may load, and where their forms may go: nothing but this server, and nothing inline.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; \
                      font-src 'none'; connect-src 'self'; frame-src 'self'; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";
/// What the bytes of a document may do when a browser opens them: nothing.
const RAW_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; sandbox; frame-ancestors 'self'";

/// The pages of somebody who is signed in.
const PAGES: [&str; 22] = [
    "/",
    "/search",
    "/to",
    "/c",
    "/c/{name}",
    "/c/{name}/{action}",
    "/d/{id}",
    "/d/{id}/{action}",
    "/graph",
    "/cite",
    "/books",
    "/books/{book}",
    "/books/{book}/{*path}",
    "/memory",
    "/snapshots",
    "/snapshots/{action}",
    "/activity",
    "/tokens",
    "/tokens/{action}",
    "/account",
    "/account/{action}",
    "/admin",
];

/// The routes of the console.
pub(super) fn router(shared: &Shared) -> Router<Shared> {
    let pages = PAGES.iter().fold(Router::new(), |router, path| router.route(path, get(page).post(page)));
    let pages = pages
        .route("/admin/{action}", get(page).post(page))
        .route("/upload", post(page))
        .route("/activity/stream", get(console_streams::activity))
        .route("/admin/stream", get(console_streams::work))
        .layer(middleware::from_fn_with_state(shared.clone(), bodies::admit))
        .layer(middleware::from_fn_with_state(shared.clone(), admit));
    let strangers = Router::new()
        .route("/sign-in", get(door).post(sign_in))
        .layer(middleware::from_fn_with_state(shared.clone(), bodies::admit_stranger));
    Router::new()
        .route("/open/{ticket}", get(open))
        .route("/sign-out", post(sign_out))
        .route("/console/{name}", get(asset))
        .route("/raw/{id}", get(raw))
        .merge(pages)
        .merge(strangers)
}

/// Somebody who is signed in.
#[derive(Clone)]
pub(super) struct SignedIn {
    pub caller: Caller,
    selection: Selection,
    visitor: Visitor,
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut pairs = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

/// Whom the cookie of a request proves; nobody without one.
pub(super) async fn signed_in(shared: &Shared, headers: &HeaderMap) -> Result<Option<SignedIn>, AuthError> {
    let text = cookie(headers, COOKIE);
    if text.is_none() && !shared.no_auth {
        return Ok(None);
    }
    let (no_auth, call) = (shared.no_auth, shared.app.new_call());
    let look = move |app: &Arc<App>| -> Result<(Pass, String, String), AuthError> {
        let pass = match text {
            _ if no_auth => Pass::owner(),
            Some(text) => app.library.verify_console(&text)?,
            None => return Err(AuthError::Unknown),
        };
        let proof = app.library.form_proof(&pass).map_err(|_| AuthError::Unknown)?;
        let name = app.library.name_of(&pass).unwrap_or_default();
        Ok((pass, proof, name))
    };
    let (pass, proof, name) = match shared.app.blocking(Work::Check, call, look).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) if error.kind() == Kind::Unauthenticated => return Ok(None),
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(AuthError::Busy),
    };
    let selection = shared.app.selection.with_extras();
    let visitor = Visitor {
        name,
        kind: match pass.bearer() {
            Bearer::Owner => "owner",
            Bearer::Web if pass.account() == shelf_base::ids::LOCAL_ACCOUNT => "owner",
            Bearer::Web => "account",
            Bearer::Personal => "personal token",
            Bearer::Collection => "collection token",
        },
        may_write: pass.may_write() && !selection.read_only,
        may_administer: pass.may_administer(),
        is_person: matches!(pass.bearer(), Bearer::Owner | Bearer::Web),
        can_sign_out: !shared.no_auth,
        proof,
    };
    let caller = Caller { pass, file_access: HTTP_FILE_ACCESS, base_url: auth::base_url(headers) };
    Ok(Some(SignedIn { caller, selection, visitor }))
}

/// Lets a request for a page in, or shows the way to sign in.
async fn admit(State(shared): State<Shared>, mut request: Request, next: middleware::Next) -> Response {
    let found = match signed_in(&shared, request.headers()).await {
        Ok(found) => found,
        Err(error) => return console_refusals::refuse(&request, error.kind(), &error.to_string()),
    };
    let Some(found) = found else {
        let asked = console_request(&request);
        let is_page = asked.query("part").is_none() && is_reading(request.method());
        let status = if request.uri().path() == "/" && is_page { 200 } else { 401 };
        return finished(shelf_console::sign_in(&asked, status, &Door::default()));
    };
    if let Err(seconds) = shared.throttle.call(&found.caller.pass) {
        return console_refusals::too_often(&request, "too many requests", seconds);
    }
    if !is_reading(request.method()) && !is_same_origin(request.headers()) {
        return console_refusals::refuse(&request, Kind::Denied, FOREIGN_FORM);
    }
    request.extensions_mut().insert(found);
    next.run(request).await
}

/// What is said to a form from elsewhere.
const FOREIGN_FORM: &str = "this form does not come from a page of this server";
/// What is said to a form whose page is older than the session.
const STALE_FORM: &str = "this page is no longer valid; go back, reload it and try again";

/// Whether a request only reads. Asking for the head alone is asking for the page.
fn is_reading(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

/// Whether a browser says that a request comes from a page of this server. What is no browser says nothing.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return false;
    }
    let host = text(header::HOST);
    match headers.get(header::ORIGIN) {
        None => true,
        Some(origin) => {
            origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, name)| name) == host
        }
    }
}

/// A request as the console takes it, without its body.
pub(super) fn console_request(request: &Request) -> shelf_console::Request {
    let headers = request.headers();
    let method =
        if is_reading(request.method()) { shelf_console::Method::Get } else { shelf_console::Method::Post };
    let base_url = auth::base_url(headers).map_or_else(String::new, |url| url.to_string());
    shelf_console::Request::new(method, request.uri().path(), request.uri().query(), base_url)
        .with_theme(cookie(headers, THEME).as_deref())
}

/// A page, or a change that a page asks for.
async fn page(State(shared): State<Shared>, request: Request) -> Response {
    let Some(found) = request.extensions().get::<SignedIn>().cloned() else {
        return rest::nothing_here().await;
    };
    let reader = console_refusals::Reader::of(&request);
    let mut asked = console_request(&request);
    let proof = request.headers().get("x-proof").and_then(|proof| proof.to_str().ok()).map(str::to_owned);
    let is_form = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let is_change = request.method() == Method::POST;
    let Ok(body) = axum::body::to_bytes(request.into_body(), usize::MAX).await else {
        return reader.refuse(Kind::Invalid, "the body ended early");
    };
    if is_form {
        asked = asked.with_form(&body);
    } else {
        asked.body = body.into();
    }
    let proof = proof.or_else(|| asked.field("proof").map(str::to_owned)).unwrap_or_default();
    let call = shared.app.new_call();
    let own = call.clone();
    let work = if is_change { Work::Write } else { Work::Read };
    let answer = move |app: &Arc<App>| {
        if is_change && !app.library.is_form_proved(&found.caller.pass, &proof).unwrap_or(false) {
            return Err(STALE_FORM);
        }
        let desk = Desk { app, found: &found, call: &own };
        Ok(shelf_console::respond(&desk, &asked))
    };
    match shared.app.blocking(work, call, answer).await {
        Ok(Ok(reply)) => finished(reply),
        Ok(Err(sentence)) => reader.refuse(Kind::Denied, sentence),
        Err(_) => reader.refuse(Kind::Busy, BUSY),
    }
}

/// What is said when there is no room for the work.
const BUSY: &str = "the server is busy; try again in a moment";

/// Whatever no route is for: a page for people, an error for programs.
pub(super) async fn elsewhere(State(shared): State<Shared>, request: Request) -> Response {
    let reader = console_refusals::Reader::of(&request);
    if !reader.is_person() || !is_reading(request.method()) {
        return rest::nothing_here().await;
    }
    match signed_in(&shared, request.headers()).await {
        Ok(Some(found)) => {
            if let Err(seconds) = shared.throttle.call(&found.caller.pass) {
                return console_refusals::too_often(&request, "too many requests", seconds);
            }
            let mut request = request;
            request.extensions_mut().insert(found);
            page(State(shared), request).await
        }
        _ => reader.refuse(Kind::NotFound, "there is no such page"),
    }
}

/// The server as one visitor may use it.
pub(super) struct Desk<'a> {
    pub app: &'a Arc<App>,
    pub found: &'a SignedIn,
    pub call: &'a CallContext,
}

/// Characters of a reply of the graph: a picture has 300 nodes, which are more than a model should read at once.
const GRAPH_CHARS: usize = 10 * PAGE_CHARS;

impl Host for Desk<'_> {
    fn visitor(&self) -> &Visitor {
        &self.found.visitor
    }

    fn may(&self, tool: &str) -> bool {
        let SignedIn { caller, selection, .. } = self.found;
        shelf_tools::find(tool)
            .is_some_and(|tool| policy::is_listed(&self.app.library, caller, selection, tool))
    }

    fn call(&self, tool: &str, arguments: Value) -> Result<Answer, ErrorReply> {
        let unknown = || console_accounts::refusal(Kind::NotFound, &format!("unknown tool '{tool}'"));
        let tool = shelf_tools::find(tool).ok_or_else(unknown)?;
        let Value::Object(arguments) = arguments else { return Err(shelf_tools::defect(tool)) };
        let context = Context {
            library: &self.app.library,
            caller: &self.found.caller,
            call: self.call,
            limits: &self.app.limits,
            selection: &self.found.selection,
            page_chars: if tool.name == "graph" { GRAPH_CHARS } else { PAGE_CHARS },
            upload_door: &|| self.app.open_door(),
        };
        let started = Instant::now();
        let outcome = shelf_tools::call(tool, &context, arguments);
        note(tool, started, outcome.as_ref().err());
        outcome
    }

    fn account(&self, action: AccountAction) -> Result<Value, ErrorReply> {
        console_accounts::act(self.app, &self.found.caller, &self.found.selection, action)
    }
}

/// A reply of the console as a response of the server.
pub(super) fn finished(reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, reply.body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.mime));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    // Forms must be able to say which page they come from.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if let Some(cache) = reply.cache {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    }
    if let Some(location) = reply.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
        headers.insert(header::LOCATION, location);
    }
    let name = reply
        .file_name
        .and_then(|name| HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")).ok());
    if let Some(name) = name {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

async fn asset(Path(name): Path<String>) -> Response {
    let Some((mime, bytes)) = shelf_console::asset(&name) else { return rest::nothing_here().await };
    // Pages name the version that they want.
    let headers = [(header::CONTENT_TYPE, mime), (header::CACHE_CONTROL, "public, max-age=604800")];
    (headers, bytes).into_response()
}

/// The page with the ways to sign in.
async fn door(State(shared): State<Shared>, request: Request) -> Response {
    match signed_in(&shared, request.headers()).await {
        Ok(Some(_)) => finished(Reply::to("/")),
        _ => finished(shelf_console::sign_in(&console_request(&request), 200, &Door::default())),
    }
}

async fn sign_in(
    State(shared): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if !is_same_origin(request.headers()) {
        return console_refusals::refuse(&request, Kind::Denied, FOREIGN_FORM);
    }
    if let Err(seconds) = shared.throttle.login(address.ip()) {
        return console_refusals::too_often(&request, TOO_MANY_ATTEMPTS, seconds);
    }
    let (asked, secure) = (console_request(&request), is_secure(request.headers()));
    let reader = console_refusals::Reader::of(&request);
    let Ok(body) = axum::body::to_bytes(request.into_body(), usize::MAX).await else {
        return reader.refuse(Kind::Invalid, "the body ended early");
    };
    let asked = asked.with_form(&body);
    let text = |name: &str| asked.field(name).unwrap_or_default().to_owned();
    let (name, password, token) = (text("name"), text("password"), text("token"));
    let is_token = !token.trim().is_empty();
    let call = shared.app.new_call();
    let proved = shared.app.blocking(Work::Check, call, {
        let (name, token) = (name.clone(), token.trim().to_owned());
        move |app| -> Result<Secret, (Kind, String)> {
            if token.is_empty() {
                app.library
                    .console_log_in(&name, &password)
                    .map_err(|error| (error.kind(), error.to_string()))
            } else {
                app.library.console_with_token(&token).map_err(|error| match error.kind() {
                    Kind::Unauthenticated => (Kind::Unauthenticated, "This token is not valid".to_owned()),
                    kind => (kind, error.to_string()),
                })
            }
        }
    });
    match proved.await {
        Ok(Ok(secret)) => {
            let mut response = finished(Reply::to(asked.own_next()));
            let lasts = if is_token { CONSOLE_TOKEN_SECONDS } else { CONSOLE_SESSION_SECONDS };
            keep(&mut response, Some((secret.reveal(), lasts)), secure);
            response
        }
        Ok(Err((kind, sentence))) => {
            let door = Door { refusal: Some(sentence), name };
            finished(shelf_console::sign_in(&asked, kind.row().status, &door))
        }
        Err(_) => reader.refuse(Kind::Busy, BUSY),
    }
}

/// What is said to an address that tries to sign in again and again.
const TOO_MANY_ATTEMPTS: &str = "too many attempts to sign in from this address";

/// Whether the browser reached a proxy in front of this server by https.
fn is_secure(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https")
}

/// Gives the browser a cookie for so many seconds, or takes it away.
fn keep(response: &mut Response, text: Option<(&str, u64)>, secure: bool) {
    let secure = if secure { "; Secure" } else { "" };
    let value = match text {
        Some((text, lasts)) => {
            format!("{COOKIE}={text}; Path=/; HttpOnly; SameSite=Strict; Max-Age={lasts}{secure}")
        }
        None => format!("{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{secure}"),
    };
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}

/// A link that signs the owner in, once.
async fn open(
    State(shared): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    Path(ticket): Path<String>,
    request: Request,
) -> Response {
    if let Err(seconds) = shared.throttle.login(address.ip()) {
        return console_refusals::too_often(&request, TOO_MANY_ATTEMPTS, seconds);
    }
    let secure = is_secure(request.headers());
    let call = shared.app.new_call();
    let proved =
        shared.app.blocking(Work::Check, call, move |app| app.library.redeem_console_link(&ticket)).await;
    match proved {
        Ok(Ok(secret)) => {
            let mut response = finished(Reply::to("/"));
            keep(&mut response, Some((secret.reveal(), CONSOLE_SESSION_SECONDS)), secure);
            response
        }
        _ => {
            let refusal = "This link has expired or was used before. Run shelf open again.".to_owned();
            let asked = shelf_console::Request::new(shelf_console::Method::Get, "/", None, String::new());
            finished(shelf_console::sign_in(
                &asked,
                401,
                &Door { refusal: Some(refusal), name: String::new() },
            ))
        }
    }
}

async fn sign_out(State(shared): State<Shared>, request: Request) -> Response {
    let reader = console_refusals::Reader::of(&request);
    let headers = request.headers().clone();
    let Ok(body) = axum::body::to_bytes(request.into_body(), FORM_BYTES).await else {
        return reader.refuse(Kind::Invalid, "the body ended early");
    };
    let found = match signed_in(&shared, &headers).await {
        Ok(Some(found)) if is_same_origin(&headers) => found,
        _ => return finished(Reply::to("/sign-in")),
    };
    let asked = shelf_console::Request::new(shelf_console::Method::Post, "/sign-out", None, String::new())
        .with_form(&body);
    let proof = asked.field("proof").unwrap_or_default().to_owned();
    let call = shared.app.new_call();
    let done = shared.app.blocking(Work::Write, call, move |app| {
        let is_proved = app.library.is_form_proved(&found.caller.pass, &proof).unwrap_or(false);
        // A token has no session to end; forgetting the cookie is all there is to do.
        is_proved && (found.caller.pass.session().is_none() || app.library.log_out(&found.caller).is_ok())
    });
    if done.await != Ok(true) {
        return reader.refuse(Kind::Denied, STALE_FORM);
    }
    let mut response = finished(Reply::to("/sign-in"));
    keep(&mut response, None, is_secure(&headers));
    response
}

/// The bytes of a document, which a browser must never take for a page of this server.
async fn raw(State(shared): State<Shared>, Path(id): Path<String>, request: Request) -> Response {
    let reader = console_refusals::Reader::of(&request);
    let found = match signed_in(&shared, request.headers()).await {
        Ok(Some(found)) => found,
        Ok(None) => return reader.refuse(Kind::Unauthenticated, "sign in first"),
        Err(error) => return reader.refuse(error.kind(), &error.to_string()),
    };
    if let Err(seconds) = shared.throttle.call(&found.caller.pass) {
        return console_refusals::too_often(&request, "too many requests", seconds);
    }
    let asked = console_request(&request);
    let version = asked.query("version").map(str::to_owned);
    let (download, in_frame) = (asked.query("download").is_some(), asked.query("frame").is_some());
    let may = |name: &str| {
        let (pass, selection) = (&found.caller.pass, &found.selection);
        shelf_tools::find(name).is_some_and(|tool| policy::verdict(pass, selection, tool) == Verdict::Allowed)
    };
    if !may("get_document_tool") {
        return reader.refuse(Kind::Denied, "Insufficient permissions: read access required");
    }
    let caller = found.caller.clone();
    let call = shared.app.new_call();
    let look = move |app: &Arc<App>| app.library.open_document(&caller, &id, version.as_deref());
    match shared.app.blocking(Work::Read, call, look).await {
        Ok(Ok(mut document)) => {
            // Text is shown as text, whatever it would be for a browser, except in the sandboxed frame that asks for it.
            if document.mime.starts_with("text/") && !in_frame && !download {
                document.mime = "text/plain; charset=utf-8".into();
            }
            files::document(shared.app, request.headers(), document, download, RAW_POLICY)
        }
        Ok(Err(error)) if reader.is_person() => reader.refuse(error.kind(), &error.to_string()),
        Ok(Err(error)) => rest::error(error.kind(), &error.to_string(), &error.hints()),
        Err(_) => reader.refuse(Kind::Busy, BUSY),
    }
}
