//! Ready-made configuration for common MCP clients, for a new user to paste.

use serde_json::json;

/// Configuration for clients that connect over HTTP, and for clients that start their own server on the same library.
/// `token` is `None` when the server requires none, and `flags` are those with which the library is found.
pub(super) fn over_http(url: &str, token: Option<&str>, flags: &[String], variables: &[&str]) -> String {
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
    let program =
        std::env::current_exe().map_or_else(|_| "shelf".to_owned(), |path| path.display().to_string());
    let arguments: Vec<&str> = flags.iter().map(String::as_str).chain(["serve"]).collect();
    let stdio = json!({ "command": program, "args": arguments });
    let besides = match variables {
        [] => String::new(),
        names => format!("; it must have these variables: {}", names.join(", ")),
    };
    let desktop = pretty(json!({ "mcpServers": { "shelfmark": stdio } }));
    let header =
        token.map_or_else(String::new, |token| format!(" --header \"Authorization: Bearer {token}\""));
    format!(
        "Claude Code:\n  claude mcp add --transport http shelfmark {url}{header}\n\n\
         Cursor (.cursor/mcp.json) and most other clients:\n{generic}\n\n\
         VS Code (.vscode/mcp.json):\n{code}\n\n\
         Claude Desktop (claude_desktop_config.json; it starts its own server on the same library{besides}):\n{desktop}"
    )
}
