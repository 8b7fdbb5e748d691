//! What a new user pastes: ready-made settings for the usual MCP clients.

use serde_json::json;

/// How to reach a server over HTTP. `token` is `None` when none is needed.
pub(super) fn over_http(url: &str, token: Option<&str>) -> String {
    let headers = token.map(|token| json!({ "Authorization": format!("Bearer {token}") }));
    let server = |extra: serde_json::Value| {
        let mut server = extra;
        server["url"] = json!(url);
        if let Some(headers) = &headers {
            server["headers"] = headers.clone();
        }
        server
    };
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    let generic = pretty(json!({ "mcpServers": { "shelfmark": server(json!({ "type": "http" })) } }));
    let code = pretty(json!({ "servers": { "shelfmark": server(json!({ "type": "http" })) } }));
    let header =
        token.map_or_else(String::new, |token| format!(" --header \"Authorization: Bearer {token}\""));
    format!(
        "Claude Code:\n  claude mcp add --transport http shelfmark {url}{header}\n\n\
         Claude Desktop, Cursor (.cursor/mcp.json) and most other clients:\n{generic}\n\n\
         VS Code (.vscode/mcp.json):\n{code}"
    )
}
