//! Which hosts and origins may reach the server: what keeps a web page from talking to it behind the user's back.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use shelf_base::Kind;

use super::{Settings, Shared, rest};

/// Whether a listener for this machine alone is called by a name of this machine; for what is served beside the API.
pub(super) async fn check_loopback(request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).map(str::to_lowercase);
    let is_address = |host: &str| without_port(host).trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let fits = host.is_some_and(|host| is_loopback_authority(&host) || is_address(&host));
    if hosts.next().is_some() || !fits {
        return rest::error(Kind::Denied, "this Host is not allowed", &[]);
    }
    next.run(request).await
}

/// The check of Host and Origin.
pub(crate) struct Guard {
    loopback: bool,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    pub(super) fn new(listen: SocketAddr, settings: &Settings) -> Self {
        let mut hosts: Vec<String> = settings.allowed_hosts.iter().map(|host| host.to_lowercase()).collect();
        hosts.push(listen.ip().to_string());
        let origins = settings
            .allowed_origins
            .iter()
            .map(|origin| origin.trim_end_matches('/').to_lowercase())
            .collect();
        Self { loopback: listen.ip().is_loopback(), hosts, origins }
    }

    fn allows(&self, headers: &HeaderMap, uri_host: Option<&str>) -> Result<(), &'static str> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).or(uri_host);
        // Two of them: nobody could say which one a program behind this one would believe.
        if hosts.next().is_some() || !host.is_some_and(|host| self.allows_host(host)) {
            return Err("this Host is not allowed; add it to http.allowed_hosts in shelf.toml");
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let allowed = |origin: &HeaderValue| origin.to_str().is_ok_and(|origin| self.allows_origin(origin));
        // Neither of two is believed, for the same reason.
        match (origins.next(), origins.next()) {
            (None, _) => Ok(()),
            (Some(origin), None) if allowed(origin) => Ok(()),
            (Some(_), None) => {
                Err("this Origin is not allowed; add it to http.allowed_origins in shelf.toml")
            }
            (Some(_), Some(_)) => Err("a request has one Origin, not several"),
        }
    }

    /// The origin of a request, when it is one of those that were configured.
    fn configured_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let text = origin.to_str().ok()?.trim_end_matches('/').to_lowercase();
        self.origins.contains(&text).then(|| origin.clone())
    }

    fn allows_host(&self, host: &str) -> bool {
        let name = without_port(host).to_lowercase();
        if is_loopback_authority(&host.to_lowercase())
            || self.hosts.contains(&name)
            || self.hosts.contains(&host.to_lowercase())
        {
            return true;
        }
        // A rebound name is a name; a bare address on a public listener is somebody who knows where it is.
        !self.loopback && name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.trim_end_matches('/').to_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(is_loopback_authority)
    }
}

/// A loopback name or address, with a port of digits or none: no user, no path, nothing else.
fn is_loopback_authority(authority: &str) -> bool {
    let name = without_port(authority);
    let port = authority[name.len()..].strip_prefix(':');
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    is_loopback(name) && (name.len() == authority.len() || port.is_some_and(is_port))
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') && !host[..colon].ends_with(':') => &host[..colon],
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    name == "localhost"
        || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Lets a page of a configured origin read the reply. Loopback origins get no such headers: they may call, as any program
/// of the machine may, but a page has no business with what comes back.
fn share_with(headers: &mut HeaderMap, origin: HeaderValue, is_preflight: bool) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let shown = "x-total-count, x-truncated, x-next-cursor, retry-after, mcp-session-id, www-authenticate";
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(shown));
    if is_preflight {
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
            (
                header::ACCESS_CONTROL_ALLOW_HEADERS,
                "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, \
                 last-event-id, x-mcp-toolsets",
            ),
            (header::ACCESS_CONTROL_MAX_AGE, "600"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

/// Whether a path is text once its percent signs are undone. No route is for another one, and every route would refuse it
/// in its own way.
fn is_text(path: &str) -> bool {
    percent_decode_str(path).decode_utf8().is_ok()
}

/// Refuses requests from hosts and origins that are not allowed, before anything else looks at them.
pub(super) async fn check(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    match shared.guard.allows(request.headers(), request.uri().host()) {
        Ok(()) => {
            let origin = shared.guard.configured_origin(request.headers());
            let is_preflight = origin.is_some()
                && request.method() == Method::OPTIONS
                && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
            let mut response = if is_preflight {
                StatusCode::NO_CONTENT.into_response()
            } else if is_text(request.uri().path()) {
                next.run(request).await
            } else {
                rest::nothing_here().await
            };
            let headers = response.headers_mut();
            if let Some(origin) = origin {
                share_with(headers, origin, is_preflight);
            }
            // Replies hold what is the caller's alone, tokens among it.
            headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
            headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
            for (name, value) in [("x-frame-options", "DENY"), ("referrer-policy", "no-referrer")] {
                headers.entry(name).or_insert(HeaderValue::from_static(value));
            }
            let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
            headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(policy));
            response
        }
        Err(sentence) => rest::error(Kind::Denied, sentence, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(listen: &str) -> Guard {
        let settings = Settings {
            listen: listen.parse().unwrap(),
            other_ports: Vec::new(),
            admin_listen: None,
            admin_required: false,
            no_auth: false,
            allowed_hosts: vec!["shelf.example".into()],
            allowed_origins: vec!["https://app.example".into()],
            limits: super::super::HttpLimits::default(),
            connections: super::super::ConnectionLimits { total: 8, per_address: 8 },
        };
        Guard::new(settings.listen, &settings)
    }

    #[test]
    fn names_that_rebind_are_refused() {
        let local = guard("127.0.0.1:7433");
        for host in ["localhost", "127.0.0.1:7433", "[::1]:7433", "shelf.example", "shelf.example:80"] {
            assert!(local.allows_host(host), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "192.168.1.5", "localhost.evil.example:7433", ""]
        {
            assert!(!local.allows_host(host), "{host}");
        }
        assert!(guard("0.0.0.0:7433").allows_host("192.168.1.5:7433"));
        assert!(!guard("0.0.0.0:7433").allows_host("evil.example:7433"));
    }

    #[test]
    fn a_request_has_one_origin() {
        let local = guard("127.0.0.1:7433");
        let asks = |origins: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost"));
            origins.iter().for_each(|origin| {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            });
            local.allows(&headers, None).is_ok()
        };
        assert!(asks(&[]) && asks(&["http://localhost:3000"]));
        assert!(!asks(&["http://evil.example"]));
        assert!(!asks(&["http://localhost:3000", "http://evil.example"]));
        assert!(!asks(&["http://localhost:3000", "http://localhost:3000"]));
    }

    #[test]
    fn origins_must_be_local_or_configured() {
        let local = guard("127.0.0.1:7433");
        for origin in
            ["http://localhost:3000", "http://127.0.0.1:7433", "https://app.example", "http://[::1]:80"]
        {
            assert!(local.allows_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "http://127.0.0.1:9@evil.com",
            "http://localhost:80/x",
            "http://localhost:",
            "http://evil.example",
            "https://app.example.evil.example",
            "file://",
        ] {
            assert!(!local.allows_origin(origin), "{origin}");
        }
    }
}
