//! The HTTP server: tokens, hosts, REST, graceful stop. The client is a few lines over a socket, so that the test
//! controls every byte of a request.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{binary, shelf};

pub struct Server {
    pub child: Child,
    pub address: String,
    greeting: String,
}

impl Server {
    pub fn start(library: &Path, more: &[&str]) -> Self {
        Self::start_with(library, more, &[])
    }

    /// Starts it with other variables.
    pub fn start_with(library: &Path, more: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::try_start(library, more, variables).unwrap_or_else(|said| panic!("{said}"))
    }

    /// The same; what it said when it ended instead.
    pub fn try_start(library: &Path, more: &[&str], variables: &[(&str, &str)]) -> Result<Self, String> {
        let metrics: &[&str] =
            if more.contains(&"--admin-listen") { &[] } else { &["--admin-listen", "off"] };
        let mut child = Command::new(binary())
            .envs(variables.iter().copied())
            .arg("--data-dir")
            .arg(library)
            .args(["serve", "--http", "127.0.0.1:0"])
            .args(metrics)
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("Stop with Ctrl-C") {
            if lines.read_line(&mut greeting).unwrap() == 0 {
                let _ = child.wait();
                return Err(greeting);
            }
        }
        let address = greeting.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(Self { child, address, greeting })
    }

    /// Its metrics; it must have been started with an address for them.
    pub fn metrics(&self) -> String {
        let rest = self.greeting.split("Metrics: http://").nth(1).expect("an address");
        let address = rest.split_once("/metrics").expect("an address").0;
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("GET /metrics HTTP/1.1\r\nConnection: close\r\nHost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        reply
    }

    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String, String) {
        let (status, head, body) = self.request_as_sent(method, path, headers, body);
        (status, head.to_lowercase(), body)
    }

    /// The same, with the letters of the head as they were sent.
    pub fn request_as_sent(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, format!("{head}\r\n"), body.to_owned())
    }

    /// Calls a tool; `None` when the server is gone.
    pub fn try_tool(&self, token: &str, name: &str, arguments: &Value) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let body = arguments.to_string();
        let head = format!(
            "POST /api/v1/tools/{name} HTTP/1.1\r\nConnection: close\r\nHost: {}\r\nContent-Length: {}\r\n\
             Authorization: Bearer {token}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        serde_json::from_str(reply.split_once("\r\n\r\n")?.1).ok()
    }

    pub fn tool(&self, token: &str, name: &str, arguments: &Value) -> (u16, Value) {
        let header = format!("Bearer {token}");
        let path = format!("/api/v1/tools/{name}");
        let (status, _, body) =
            self.request("POST", &path, &[("Authorization", &header)], &arguments.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    pub fn mcp(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> (u16, Value) {
        let mut all =
            vec![("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
        all.extend_from_slice(headers);
        let (status, _, body) = self.request("POST", path, &all, &message.to_string());
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_first_start_makes_a_token_and_only_its_hash_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let start = server.greeting.find("pat_live_").expect("a token");
    let token = server.greeting[start..start + 41].to_owned();
    assert!(server.greeting.contains("\"mcpServers\"") && server.greeting.contains("claude mcp add"));
    assert_eq!(server.tool(&token, "status", &json!({})).0, 200);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(
                !bytes.windows(token.len()).any(|window| window == token.as_bytes()),
                "{} holds the token",
                path.display()
            );
        }
    }
    drop(server);
    let again = Server::start(folder.path(), &[]);
    assert!(!again.greeting.contains("pat_live_"), "the token is shown only once");
    assert_eq!(again.tool(&token, "status", &json!({})).0, 200);
    let (_, out, _) = shelf(folder.path(), &["token", "list", "--json"]);
    let id = serde_json::from_str::<Value>(&out).unwrap()["tokens"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(shelf(folder.path(), &["token", "revoke", &id]).0, 0);
    let (status, body) = again.tool(&token, "status", &json!({}));
    assert_eq!(
        (status, &body["error"]["message"]),
        (401, &json!("Invalid PAT token")),
        "revoked immediately"
    );
}

#[test]
fn callers_without_a_working_token_hear_the_contracts_sentences() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let cases: &[(Option<&str>, &str)] = &[
        (None, "Missing or invalid Authorization header"),
        (Some("Basic dXNlcg=="), "Missing or invalid Authorization header"),
        (Some("Bearer"), "Missing or invalid Authorization header"),
        (Some("Bearer pat_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "Invalid PAT token"),
        (Some("Bearer cat_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "Invalid CAT"),
        (Some("Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"), "JWT tokens not accepted for MCP"),
        (Some("Bearer something-else"), "Not authenticated"),
    ];
    for path in ["/mcp", "/mcp/x/store", "/messages", "/api/v1/tools/status"] {
        for (header, sentence) in cases {
            let headers: Vec<(&str, &str)> = header.iter().map(|value| ("Authorization", *value)).collect();
            let (status, head, body) = server.request("POST", path, &headers, "{}");
            assert_eq!(status, 401, "{path} {header:?}");
            assert!(head.contains("www-authenticate: bearer"), "{head}");
            // REST accepts web tokens, so a bad one is only unauthenticated there.
            let is_rest = path.starts_with("/api") && sentence.starts_with("JWT");
            let sentence = if is_rest { "Not authenticated" } else { sentence };
            assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["error"]["message"], *sentence);
        }
    }
    for path in ["/healthz", "/readyz", "/"] {
        assert_eq!(server.request("GET", path, &[], "").0, 200, "{path}");
    }
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--no-auth"]);
    for path in ["/", "/mcp", "/api/v1/tools", "/healthz"] {
        assert_eq!(server.request("GET", path, &[("Host", "evil.example")], "").0, 403, "{path}");
        assert_eq!(server.request("GET", path, &[("Origin", "http://evil.example")], "").0, 403, "{path}");
    }
    assert_eq!(server.request("GET", "/healthz", &[("Origin", "http://localhost:9999")], "").0, 200);
    let (code, _, err) = shelf(folder.path(), &["serve", "--http", "0.0.0.0:0", "--no-auth"]);
    assert_eq!(code, 2);
    assert!(err.contains("--no-auth is refused"), "{err}");
}

#[test]
fn rest_and_mcp_give_the_same_and_paths_narrow() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--no-auth"]);
    let (status, added) = server.tool("x", "add", &json!({ "content": "x", "name": "a" }));
    assert_eq!((status, added["files_added"].as_u64()), (200, Some(1)));
    let call = |name: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": {} } });
    let (status, reply) = server.mcp("/mcp", &[("MCP-Protocol-Version", "2025-11-25")], &call("status"));
    assert_eq!(status, 200);
    assert_eq!(reply["result"]["structuredContent"], server.tool("x", "status", &json!({})).1);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let count = |path: &str, headers: &[(&str, &str)]| {
        server.mcp(path, headers, &list).1["result"]["tools"].as_array().map_or(0, Vec::len)
    };
    let known =
        |takes: fn(&shelf_tools::Tool) -> bool| shelf_tools::registry().filter(|tool| takes(tool)).count();
    // Four tools do nothing over HTTP until something is configured for them.
    assert_eq!(count("/mcp", &[]), known(|tool| tool.toolset() != "extras") - 4);
    assert_eq!(count("/mcp/x/extras", &[]), 0);
    assert_eq!(count("/mcp/x/store", &[]), known(|tool| tool.toolset() == "store") - 2);
    assert_eq!(
        count("/mcp/x/store/readonly", &[]),
        known(|tool| tool.toolset() == "store" && tool.hints.read_only)
    );
    assert_eq!(count("/mcp", &[("X-MCP-Toolsets", "workspace")]), 1);
    assert_eq!(count("/mcp/x/workspace", &[("X-MCP-Toolsets", "store")]), 0);
    assert_eq!(server.mcp("/mcp/x/nonsense", &[], &list).0, 404);
    let (_, refused) = server.mcp("/mcp/x/store/readonly", &[], &call("delete_by_name"));
    assert_eq!(
        refused["result"]["content"][0]["text"],
        "Error: Insufficient permissions: write access required"
    );
    let errors: &[(&str, &str, &str, u16, &str)] = &[
        ("POST", "/api/v1/tools/get", "{\"hash\": 5}", 400, "invalid"),
        ("POST", "/api/v1/tools/get", "[]", 400, "invalid"),
        ("POST", "/api/v1/tools/get", "{", 400, "invalid"),
        ("POST", "/api/v1/tools/gett", "{}", 404, "not_found"),
        ("POST", "/api/v1/tools/update", "{\"name\": \"zz\", \"metadata\": [\"a=b\"]}", 404, "not_found"),
        ("POST", "/api/v1/tools/add", "{\"path\": \"/etc/passwd\"}", 403, "unavailable"),
        ("GET", "/nowhere", "", 404, "not_found"),
        ("GET", "/api/v1/tools/get", "", 405, "invalid"),
    ];
    for (method, path, body, status, code) in errors {
        let (found, _, reply) = server.request(method, path, &[], body);
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!((found, &reply["error"]["code"]), (*status, &json!(code)), "{path} {body}");
        assert!(!reply.to_string().contains("SELECT") && !reply.to_string().contains("/etc/passwd"));
    }
}

#[test]
fn messages_that_are_none_are_answered_in_json_rpc() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--no-auth"]);
    let headers = [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
    for (body, code) in [("{", -32700), ("[]", -32600), (r#"{"id":1,"method":"ping"}"#, -32600)] {
        let (status, _, reply) = server.request("POST", "/mcp", &headers, body);
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!((status, reply["error"]["code"].as_i64()), (400, Some(code)), "{body}");
    }
    let large = "x".repeat((32 << 20) + 10);
    for path in ["/mcp", "/api/v1/tools/add"] {
        let (status, _, reply) = server.request("POST", path, &headers, &large);
        assert_eq!(status, 413, "{path}");
        assert!(
            serde_json::from_str::<Value>(&reply).unwrap()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("32 MiB")
        );
    }
}

#[test]
fn a_term_signal_stops_gracefully() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &["--no-auth"]);
    assert_eq!(server.tool("x", "status", &json!({})).0, 200);
    Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_workspace_answers_in_the_contracts_own_way() {
    let folder = tempfile::tempdir().unwrap();
    let (library, workspace) = (folder.path().join("library"), folder.path().join("workspace"));
    std::fs::create_dir_all(workspace.join("docs")).unwrap();
    std::fs::write(workspace.join("docs/a.md"), "hello").unwrap();
    let server = Server::start(&library, &["--no-auth", "--workspace", workspace.to_str().unwrap()]);
    let post = |path: &str, body: Value| {
        let (status, _, body) = server.request("POST", path, &[], &body.to_string());
        (status, serde_json::from_str::<Value>(&body).unwrap())
    };
    let read = json!({ "content": "hello", "path": "docs/a.md", "size_bytes": 5 });
    assert_eq!(
        post("/tools/read_repo_file", json!({ "input": { "path": "docs/a.md" } })),
        (200, read.clone())
    );
    assert_eq!(
        post("/tools", json!({ "tool": "read_repo_file", "input": { "path": "docs/a.md" } })),
        (200, read)
    );
    let (status, refused) = post("/tools", json!({ "tool": "read_repo_file", "input": { "path": "../x" } }));
    assert_eq!((status, refused["error"]["code"].as_str()), (403, Some("PATH_NOT_ALLOWED")));
    let entry = json!({ "timestamp": "2026-01-07T14:00:00Z", "event": "x" });
    let input = json!({ "input": { "file": "decisions.jsonl", "entry": entry } });
    for count in 1..=30 {
        assert_eq!(post("/tools/write_memory_entry", input.clone()).1["entry_count"], count);
    }
    let (status, limited) = post("/tools/write_memory_entry", input);
    assert_eq!((status, limited["error"]["code"].as_str()), (429, Some("RATE_LIMITED")));
    assert!(limited["error"]["retry_after_seconds"].as_u64().unwrap() >= 1);
    assert_eq!(post("/tools", json!({ "tool": "add" })).1["error"]["code"], "INVALID_INPUT");
    assert!(post("/tools/hello", json!({})).1["message"].as_str().unwrap().starts_with("Hello from"));
    drop(server);
    // Without a configured folder there is no workspace over HTTP.
    let server = Server::start(&library, &["--no-auth"]);
    let (_, _, body) =
        server.request("POST", "/tools/read_repo_file", &[], r#"{"input": {"path": "docs/a.md"}}"#);
    assert!(body.contains("PATH_NOT_ALLOWED"), "{body}");
}
