//! A plain page at `/` that says what this is and how to connect, until the web console stands there.

use axum::{extract::State, response::Html};
use http::HeaderMap;

use super::Shared;

/// Shows the page.
pub(super) async fn show(State(shared): State<Shared>, headers: HeaderMap) -> Html<String> {
    let host =
        headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:7433");
    // The Host was allowed by the guard; what is left is escaped all the same.
    let host: String =
        host.chars().filter(|sign| sign.is_ascii_alphanumeric() || ".-:[]".contains(*sign)).collect();
    let token = if shared.no_auth {
        "This server was started with --no-auth: whoever reaches it on this machine acts as its owner, without a token."
    } else {
        "Every request needs a token: <code>Authorization: Bearer pat_live_…</code>. <code>shelf token create</code> makes one."
    };
    let header =
        if shared.no_auth { "" } else { ", \"headers\": {\"Authorization\": \"Bearer YOUR_TOKEN\"}" };
    let flag = if shared.no_auth { "" } else { " -H 'Authorization: Bearer YOUR_TOKEN'" };
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Shelfmark</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;\
         color:#222;background:#fdfcfa}}code,pre{{background:#f0ece4;border-radius:4px;padding:.1em .3em}}pre{{padding:1rem;\
         overflow:auto}}</style>\
         <h1>Shelfmark</h1><p>A library for AI agents and people: store anything once, find it fast, cite it exactly.</p>\
         <p>The server is running, version {version}. {token}</p>\
         <h2>Connect an agent</h2><pre>{{\"mcpServers\": {{\"shelfmark\": {{\"type\": \"http\", \"url\": \"http://{host}/mcp\"{header}}}}}}}</pre>\
         <h2>Call a tool</h2><pre>curl{flag} -X POST http://{host}/api/v1/tools/status -d '{{}}'</pre>\
         <p><a href=\"/healthz\">healthz</a> · <a href=\"/readyz\">readyz</a></p></html>",
        version = env!("CARGO_PKG_VERSION"),
    ))
}
