//! Who sends an HTTP request: the token is checked here, once, and leaves a pass behind.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, header};
use shelf_base::{ErrorInfo, Kind, Secret};
use shelf_engine::{AuthError, Caller, Door, Pass};
use shelf_tools::policy::Selection;

use super::{Shared, rest, throttle};
use crate::{
    app::Work,
    mcp::{Admitted, HTTP_FILE_ACCESS},
    stdio::Identity,
};

/// Lets a request of the protocol in: with a personal or a collection token.
pub(super) async fn admit_protocol(state: State<Shared>, request: Request, next: Next) -> Response {
    admit(state, Door::Protocol, request, next).await
}

/// Lets a REST request in: with any token, or the web token of a session.
pub(super) async fn admit_rest(state: State<Shared>, request: Request, next: Next) -> Response {
    admit(state, Door::Rest, request, next).await
}

/// Lets a request in with its pass and the tools it may see, or answers 401.
async fn admit(State(shared): State<Shared>, door: Door, mut request: Request, next: Next) -> Response {
    let pass = match pass_of(&shared, request.headers(), door).await {
        Ok(pass) => pass,
        Err(refusal) => return refuse(&refusal),
    };
    if let Err(seconds) = shared.throttle.call(&pass) {
        return throttle::refuse("too many calls with this token", seconds);
    }
    let Some(selection) = selection_of(&shared, &request) else {
        return rest::error(
            Kind::NotFound,
            "no such toolset",
            &[format!("known: {}", Selection::TOOLSETS.join(", "))],
        );
    };
    let token = (!shared.no_auth).then(|| bearer(request.headers())).flatten();
    let identity = token.map_or(Identity::Owner, |token| Identity::Token(Secret::new(token.to_owned())));
    request.extensions_mut().insert(identity);
    let base_url = base_url(request.headers());
    request
        .extensions_mut()
        .insert(Admitted { caller: Caller { pass, file_access: HTTP_FILE_ACCESS, base_url }, selection });
    next.run(request).await
}

/// The address by which a request reached the server: replies give addresses that begin with it.
pub(super) fn base_url(headers: &HeaderMap) -> Option<Arc<str>> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    // The guard has allowed the host; what stands in a reply is a host all the same.
    let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte));
    is_host.then(|| format!("http://{host}").into())
}

/// Whom the headers of a request prove.
pub(super) async fn pass_of(shared: &Shared, headers: &HeaderMap, door: Door) -> Result<Pass, AuthError> {
    if shared.no_auth {
        return Ok(Pass::owner());
    }
    let token = bearer(headers).ok_or(AuthError::NoHeader)?.to_owned();
    let call = shared.app.new_call();
    let checked = shared.app.blocking(Work::Check, call, move |app| app.library.verify(&token, door)).await;
    checked.unwrap_or(Err(AuthError::Busy))
}

/// The token of an `Authorization: Bearer` header. Two such headers are none: nobody could say which of them counts.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (first, None) = (all.next()?, all.next()) else { return None };
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' ')).then_some(token)
}

/// The server's selection, narrowed by the path `/mcp/x/<toolset>[/readonly]` and the header `X-MCP-Toolsets`.
fn selection_of(shared: &Shared, request: &Request) -> Option<Selection> {
    let mut selection = shared.app.selection.clone();
    if let Some(rest) = request.uri().path().strip_prefix("/mcp/x/") {
        let (toolset, read_only) =
            rest.strip_suffix("/readonly").map_or((rest, false), |toolset| (toolset, true));
        selection = selection.narrowed(toolset, read_only)?;
    }
    match request.headers().get("x-mcp-toolsets") {
        Some(header) => selection.narrowed(header.to_str().ok()?, false),
        None => Some(selection),
    }
}

fn refuse(refusal: &AuthError) -> Response {
    rest::error(refusal.kind(), &refusal.to_string(), &refusal.hints())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values.iter().filter_map(|value| HeaderValue::from_bytes(value).ok()) {
            headers.append(header::AUTHORIZATION, value);
        }
        headers
    }

    #[test]
    fn one_bearer_token_and_nothing_else() {
        let read = |values: &[&[u8]]| bearer(&headers(values)).map(str::to_owned);
        assert_eq!(read(&[b"Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(read(&[b"bearer  abc "]).as_deref(), Some("abc"));
        for wrong in [&b"Bearer"[..], b"Bearer ", b"Basic abc", b"abc", b"Bearer a b", b"Bearer \xff", b""] {
            assert_eq!(read(&[wrong]), None, "{wrong:?}");
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[b"Bearer abc", b"Bearer def"]), None);
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(token) = bearer(&headers(&[&bytes])) {
                prop_assert!(!token.is_empty() && token.is_ascii());
            }
        }
    }
}
