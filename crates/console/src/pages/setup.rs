//! What to paste into which client to connect an agent.

use maud::{Markup, html};
use serde_json::json;

use crate::frame;

/// Ready-made settings for the usual clients. Without a token the server takes every caller for its owner.
pub(crate) fn clients(base_url: &str, token: Option<&str>) -> Markup {
    let url = format!("{base_url}/mcp");
    let mut server = json!({ "type": "http", "url": url });
    if let Some(token) = token {
        server["headers"] = json!({ "Authorization": format!("Bearer {token}") });
    }
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    let header =
        token.map_or_else(String::new, |token| format!(" --header \"Authorization: Bearer {token}\""));
    let bearer = token.map_or_else(String::new, |token| format!(" -H \"Authorization: Bearer {token}\""));
    let blocks = [
        ("Claude Code", format!("claude mcp add --transport http shelfmark {url}{header}")),
        ("Cursor and most other clients", pretty(json!({ "mcpServers": { "shelfmark": server } }))),
        ("VS Code", pretty(json!({ "servers": { "shelfmark": server } }))),
        ("A shell", format!("curl -X POST {base_url}/api/v1/tools/status{bearer} -d '{{}}'")),
    ];
    html! {
        div.setup {
            @for (name, text) in blocks {
                details open[name == "Claude Code"] {
                    summary { (name) }
                    div.paste { pre { code { (text) } } (frame::copy("Copy", &text)) }
                }
            }
        }
    }
}
