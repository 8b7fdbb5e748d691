//! Accounts over HTTP: registration, sessions, immediate revocation of tokens, the older stream, and documents that
//! stay whole when the server is killed.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{assert_sound, http::Server, shelf};

/// A server with limits high enough for the tests.
pub fn start(library: &Path) -> Server {
    let settings = library.with_extension("toml");
    let limits = "[limits]\nregister_per_hour = 0\nlogin_per_minute = 0\nrefresh_per_minute = 0\n";
    std::fs::write(&settings, limits).unwrap();
    Server::start(library, &["--config", settings.to_str().unwrap()])
}

impl Server {
    pub fn rest(&self, method: &str, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, _, reply) = self.request(method, path, &headers, &body);
        (status, serde_json::from_str(&reply).unwrap_or(Value::String(reply)))
    }

    pub fn register(&self, name: &str) -> (u16, Value) {
        let wanted = json!({
            "email": format!("{name}@example.com"), "username": name, "password": "correct horse battery",
        });
        self.rest("POST", "/auth/register", None, &wanted)
    }

    pub fn log_in(&self, name: &str) -> Value {
        let proof = json!({ "username": name, "password": "correct horse battery" });
        let (status, session) = self.rest("POST", "/api/v1/auth/login", None, &proof);
        assert_eq!(status, 200, "{session}");
        session
    }

    pub fn personal(&self, name: &str) -> String {
        let session = self.log_in(name);
        let (status, made) =
            self.rest("POST", "/auth/pat", session["access_token"].as_str(), &json!({ "label": "test" }));
        assert_eq!(status, 201, "{made}");
        made["key"].as_str().unwrap().to_owned()
    }
}

#[test]
fn people_register_log_in_and_make_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder.path().join("library"));
    let (status, alice) = server.register("alice");
    assert_eq!(
        (status, &alice["is_superuser"]),
        (201, &json!(true)),
        "the first account is the administrator"
    );
    let (status, bob) = server.register("bob");
    assert_eq!((status, &bob["is_superuser"]), (201, &json!(false)));
    assert_eq!(server.register("bob").0, 409);
    let fields: Vec<&String> = bob.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id", "email", "username", "is_active", "is_superuser", "created_at"]);
    let wrong = json!({ "username": "bob", "password": "wrong horse battery" });
    let (status, refused) = server.rest("POST", "/auth/login", None, &wrong);
    assert_eq!((status, &refused["error"]["message"]), (401, &json!("Invalid username or password")));
    let session = server.log_in("bob");
    assert_eq!((&session["token_type"], &session["expires_in"]), (&json!("bearer"), &json!(1_800)));
    let access = session["access_token"].as_str();
    let (_, profile) = server.rest("GET", "/auth/profile", access, &Value::Null);
    assert_eq!(profile["username"], "bob");
    let refresh = json!({ "refresh_token": session["refresh_token"] });
    let (status, next) = server.rest("POST", "/auth/refresh", None, &refresh);
    assert_eq!(status, 200);
    let (status, reused) = server.rest("POST", "/auth/refresh", None, &refresh);
    assert_eq!((status, &reused["error"]["message"]), (401, &json!("Invalid refresh token")));
    let dead = server.rest("GET", "/auth/profile", next["access_token"].as_str(), &Value::Null);
    assert_eq!(dead.0, 401, "a token used twice ends the whole session");
    let session = server.log_in("bob");
    let access = session["access_token"].as_str();
    let wanted = json!({ "label": "laptop", "scopes": ["READ"], "expires_in_days": 7 });
    let (status, made) = server.rest("POST", "/auth/pat", access, &wanted);
    assert_eq!((status, &made["scopes"], &made["label"]), (201, &json!(["READ"]), &json!("laptop")));
    let key = made["key"].as_str().unwrap().to_owned();
    let admin = json!({ "label": "more", "scopes": ["ADMIN"] });
    let (status, refused) = server.rest("POST", "/auth/pat", access, &admin);
    let sentence = json!("Insufficient permissions: ADMIN scope required");
    assert_eq!((status, &refused["error"]["message"]), (403, &sentence));
    let (_, listed) = server.rest("GET", "/auth/pat", access, &Value::Null);
    assert!(listed[0].get("key").is_none() && listed[0]["label"] == "laptop");
    let (status, refused) = server.rest("GET", "/auth/pat", Some(&key), &Value::Null);
    assert_eq!(
        (status, &refused["error"]["message"]),
        (403, &json!("Insufficient permissions: JWT required"))
    );
    let id = made["id"].as_str().unwrap();
    let (_, rotated) = server.rest("POST", &format!("/auth/pat/{id}/rotate"), access, &Value::Null);
    assert_eq!(rotated["id"], made["id"]);
    assert_eq!(server.tool(&key, "status", &json!({})).0, 401, "the old key stops working immediately");
    let key = rotated["key"].as_str().unwrap();
    assert_eq!(server.tool(key, "status", &json!({})).0, 200);
    let (status, _) = server.tool(key, "add", &json!({ "content": "x", "name": "y" }));
    assert_eq!(status, 403, "READ only");
    assert_eq!(server.rest("DELETE", &format!("/auth/pat/{id}"), access, &Value::Null).0, 200);
    assert_eq!(server.tool(key, "status", &json!({})).0, 401);
    assert_eq!(server.rest("POST", "/auth/logout", access, &Value::Null).0, 200);
    assert_eq!(server.rest("GET", "/auth/profile", access, &Value::Null).0, 401);
}

#[test]
fn documents_are_resources_and_lists_say_their_total() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder.path().join("library"));
    server.register("alice");
    let session = server.log_in("alice");
    let token = session["access_token"].as_str();
    let document = json!({ "title": "Birds", "content": "The heron waits." });
    let (status, stored) = server.rest("POST", "/api/v1/documents", token, &document);
    assert_eq!((status, &stored["chunk_count"]), (201, &json!(1)));
    let path = format!("/api/v1/documents/{}", stored["document_id"].as_str().unwrap());
    assert_eq!(server.rest("PATCH", &path, token, &json!({ "title": "Herons" })).0, 200);
    assert_eq!(server.rest("GET", &path, token, &Value::Null).1["title"], "Herons");
    let bearer = format!("Bearer {}", token.unwrap());
    let (status, head, body) =
        server.request("GET", "/api/v1/documents?limit=5", &[("Authorization", &bearer)], "");
    assert!(status == 200 && head.contains("x-total-count: 1") && body.starts_with('['), "{head}\n{body}");
    let (_, found) = server.rest("GET", "/api/v1/search?query=heron&max_tokens=500", token, &Value::Null);
    assert_eq!(found["total_results"], 1);
    let (_, usage) = server.rest("GET", "/api/v1/usage", token, &Value::Null);
    assert_eq!(usage["documents"], 1);
    assert_eq!(server.rest("DELETE", &path, token, &Value::Null).0, 200);
    let (status, gone) = server.rest("GET", &path, token, &Value::Null);
    assert_eq!((status, &gone["error"]["message"]), (404, &json!("Document not found")));
    let (status, refused) = server.rest("GET", "/api/v1/documents?limits=5", token, &Value::Null);
    assert_eq!(status, 400);
    assert!(refused["error"]["hints"][0].as_str().unwrap().contains("limit"), "{refused}");
    let (_, openapi) = server.rest("GET", "/api/v1/openapi.json", None, &Value::Null);
    for tool in shelf_tools::registry() {
        assert!(openapi["paths"].get(format!("/api/v1/tools/{}", tool.name)).is_some(), "{}", tool.name);
    }
    for path in ["/api/v1/documents/{id}", "/api/v1/auth/register", "/api/v1/auth/cat/{id}/rotate"] {
        assert!(openapi["paths"].get(path).is_some(), "{path}");
    }
}

#[test]
fn limits_are_kept_for_each_address_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("library"), &[]);
    for number in 0..5 {
        assert_eq!(server.register(&format!("user{number}")).0, 201);
    }
    let body = json!({ "email": "x@example.com", "username": "x", "password": "correct horse battery" });
    let (status, head, reply) = server.request("POST", "/auth/register", &[], &body.to_string());
    assert_eq!(status, 429, "{reply}");
    assert!(head.contains("retry-after: "), "{head}");
    let proof = json!({ "username": "user0", "password": "wrong horse battery" });
    let codes: Vec<u16> = (0..11).map(|_| server.rest("POST", "/auth/login", None, &proof).0).collect();
    assert!(codes[..10].iter().all(|code| *code == 401) && codes[10] == 429, "{codes:?}");
}

#[test]
fn the_first_account_is_made_on_the_machine_itself() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let server = start(&library);
    let body = json!({ "email": "x@example.com", "username": "x", "password": "correct horse battery" });
    let forwarded = [("X-Forwarded-For", "192.0.2.7")];
    let (status, _, reply) = server.request("POST", "/auth/register", &forwarded, &body.to_string());
    assert!(status == 403 && reply.contains("shelf user create --admin"), "{status} {reply}");
    let mut made = std::process::Command::new(crate::binary())
        .args(["--data-dir", library.to_str().unwrap(), "user", "create", "root", "--admin"])
        .args(["--email", "root@example.com", "--json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    made.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
    let out = made.wait_with_output().unwrap();
    let root: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(root["is_superuser"], true);
    let (status, _, reply) = server.request("POST", "/auth/register", &forwarded, &body.to_string());
    let second: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!((status, &second["is_superuser"]), (201, &json!(false)));
    let (code, _, err) = shelf(&library, &["user", "update", "root", "--admin", "false"]);
    assert!(code != 0 && err.contains("last administrator"), "{err}");
    assert_eq!(shelf(&library, &["user", "update", "x", "--active", "false"]).0, 0);
    let proof = json!({ "username": "x", "password": "correct horse battery" });
    assert_eq!(
        server.rest("POST", "/auth/login", None, &proof).0,
        401,
        "deactivated immediately, from another process"
    );
    assert_ne!(shelf(&library, &["user", "delete", "x"]).0, 0, "requires --yes");
    assert_eq!(shelf(&library, &["user", "delete", "x", "--yes"]).0, 0);
    let (_, out, _) = shelf(&library, &["user", "list", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["total"], 1);
}

/// A stream of the older transport.
struct Stream {
    reader: BufReader<TcpStream>,
    path: String,
}

impl Stream {
    fn open(server: &Server, token: &str) -> Self {
        let mut socket = TcpStream::connect(&server.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!(
            "GET /sse HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Accept: text/event-stream\r\n\r\n",
            server.address
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut stream = Self { reader: BufReader::new(socket), path: String::new() };
        stream.path = stream.event("endpoint");
        stream
    }

    /// The data of the next event of this kind.
    fn event(&mut self, kind: &str) -> String {
        let mut line = String::new();
        let wanted = format!("event: {kind}");
        while line.trim() != wanted {
            line.clear();
            assert!(self.reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
        line.clear();
        self.reader.read_line(&mut line).unwrap();
        line.trim().strip_prefix("data: ").unwrap().to_owned()
    }

    fn ask(&mut self, server: &Server, token: &str, message: &Value) -> Value {
        let bearer = format!("Bearer {token}");
        let (status, _, body) =
            server.request("POST", &self.path, &[("Authorization", &bearer)], &message.to_string());
        assert_eq!(status, 202, "{body}");
        serde_json::from_str(&self.event("message")).unwrap()
    }
}

#[test]
fn the_older_stream_serves_the_same_tools_to_its_own_identity_only() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder.path().join("library"));
    server.register("alice");
    server.register("bob");
    let (alice, bob) = (server.personal("alice"), server.personal("bob"));
    let mut stream = Stream::open(&server, &alice);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let welcome = stream.ask(&server, &alice, &hello);
    assert_eq!(welcome["result"]["protocolVersion"], "2024-11-05");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let bearer = format!("Bearer {alice}");
    let (status, _, _) =
        server.request("POST", &stream.path, &[("Authorization", &bearer)], &ready.to_string());
    assert_eq!(status, 202);
    let store = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "store_document_tool", "arguments": { "title": "T", "content": "by the old way" } } });
    assert_eq!(stream.ask(&server, &alice, &store)["result"]["isError"], false);
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "list_documents_tool", "arguments": {} } });
    let listed = stream.ask(&server, &alice, &list);
    assert_eq!(listed["result"]["structuredContent"]["result"][0]["title"], "T");
    assert!(listed["result"]["content"][0]["text"].as_str().unwrap().starts_with('['));
    assert_eq!(listed["result"]["_meta"]["shelfmark/total"], 1);
    let other = format!("Bearer {bob}");
    let (status, _, _) =
        server.request("POST", &stream.path, &[("Authorization", &other)], &list.to_string());
    assert_eq!(status, 404, "another identity cannot use the stream");
    let session = server.log_in("alice");
    let tokens = server.rest("GET", "/auth/pat", session["access_token"].as_str(), &Value::Null).1;
    let id = tokens[0]["id"].as_str().unwrap();
    server.rest("DELETE", &format!("/auth/pat/{id}"), session["access_token"].as_str(), &Value::Null);
    let (status, _, body) =
        server.request("POST", &stream.path, &[("Authorization", &bearer)], &list.to_string());
    assert!(status == 401 && body.contains("Invalid PAT token"), "revoked immediately: {body}");
    let mut rest = String::new();
    while stream.reader.read_line(&mut rest).unwrap() > 0 {}
    // The stream itself ends within seconds: reading reached the end, not the timeout.
}

#[test]
fn pages_of_configured_origins_may_call_and_others_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let settings = library.with_extension("toml");
    std::fs::write(&settings, "[http]\nallowed_origins = [\"https://app.example\"]\n").unwrap();
    let server = Server::start(&library, &["--config", settings.to_str().unwrap()]);
    let ask = |origin: &str| {
        let headers = [("Origin", origin), ("Access-Control-Request-Method", "POST")];
        server.request("OPTIONS", "/api/v1/documents", &headers, "")
    };
    let (status, head, _) = ask("https://app.example");
    assert_eq!(status, 204, "{head}");
    assert!(head.contains("access-control-allow-origin: https://app.example"), "{head}");
    assert!(head.contains("access-control-allow-headers: authorization"), "{head}");
    let (status, head, _) = ask("https://other.example");
    assert!(status == 403 && !head.contains("access-control"), "{head}");
    let (status, head, _) = ask("http://localhost:3000");
    assert!(status != 204 && !head.contains("access-control"), "{head}");
    let (_, head, _) = server.request("GET", "/api/v1/documents", &[], "");
    assert!(head.contains("cache-control: no-store") && head.contains("www-authenticate: bearer"), "{head}");
}

#[test]
fn account_bodies_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder.path().join("library"));
    server.register("alice");
    let session = server.log_in("alice");
    let access = session["access_token"].as_str();
    let says = |body: &Value| {
        let (status, reply) = server.rest("POST", "/auth/pat", access, body);
        assert_eq!(status, 400, "{reply}");
        format!("{} {}", reply["error"]["message"].as_str().unwrap(), reply["error"]["hints"])
    };
    let misspelt = says(&json!({ "label": "x", "expires_in_day": 1 }));
    assert!(misspelt.contains("unknown argument") && misspelt.contains("expires_in_days"), "{misspelt}");
    assert!(says(&json!(["x"])).starts_with("the body must be a JSON object"));
    assert!(says(&json!({})).starts_with("missing argument"));
    assert!(says(&json!({ "label": "x", "scopes": ["SUDO"] })).starts_with("scopes may hold"));
    assert!(says(&json!({ "label": "x", "expires_in_days": 0 })).starts_with("expires_in_days must be"));
    let (_, only_admin) =
        server.rest("POST", "/auth/pat", access, &json!({ "label": "root", "scopes": ["ADMIN"] }));
    let key = only_admin["key"].as_str().unwrap();
    assert_eq!(server.tool(key, "list_users_tool", &json!({})).0, 200, "the ADMIN scope includes all others");
    assert_eq!(server.tool(key, "status", &json!({})).0, 200);
    let (status, gone) = server.rest("DELETE", "/auth/pat/none", access, &Value::Null);
    assert_eq!((status, &gone["error"]["message"]), (404, &json!("PAT not found")));
}

#[test]
fn a_killed_server_leaves_every_document_whole() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut server = start(&library);
    server.register("alice");
    let token = server.personal("alice");
    let version = |word: &str| format!("# The {word} paper\n\n{}", format!("{word} again. ").repeat(400));
    let stored =
        server.tool(&token, "store_document_tool", &json!({ "title": "P", "content": version("walrus") }));
    let id = stored.1["document_id"].clone();
    let (mut kept, mut gone) = (Vec::new(), Vec::new());
    for round in 0..8_u64 {
        let pid = server.child.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30 + round * 17));
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        });
        for turn in 0.. {
            let word = if turn % 2 == 0 { "otter" } else { "walrus" };
            let arguments = json!({ "document_id": id, "title": word, "content": version(word) });
            if server.try_tool(&token, "update_document_tool", &arguments).is_none() {
                break;
            }
            let note = json!({ "title": format!("Note {round} {turn}"), "content": "a quokka passes by" });
            let Some(stored) = server.try_tool(&token, "store_document_tool", &note) else { break };
            let stored = stored["document_id"].as_str().unwrap().to_owned();
            if turn % 2 == 0 {
                kept.push(stored);
                continue;
            }
            // If the server is killed during the deletion, the document may be there or not.
            if server.try_tool(&token, "delete_document_tool", &json!({ "document_id": stored })).is_none() {
                break;
            }
            gone.push(stored);
        }
        killer.join().unwrap();
        drop(server);
        server = start(&library);
        let (_, got) = server.tool(&token, "get_document_tool", &json!({ "document_id": id }));
        let content = got["content"].as_str().unwrap();
        let (word, other) = if content.contains("otter") { ("otter", "walrus") } else { ("walrus", "otter") };
        assert_eq!(content, version(word), "the content is exactly one of the two versions");
        assert!(got["title"] == word || got["title"] == "P", "title and content change together: {got}");
        let find = |word: &str| {
            let query = json!({ "query": word, "type": "keyword", "fuzzy": false });
            server.tool(&token, "search", &query).1["total"].clone()
        };
        assert_eq!((find(word), find(other)), (json!(1), json!(0)), "search agrees");
        let status = |id: &String| server.tool(&token, "get_document_tool", &json!({ "document_id": id })).0;
        assert!(kept.iter().all(|id| status(id) == 200), "every acknowledged document is there");
        assert!(gone.iter().all(|id| status(id) == 404), "every acknowledged deletion took effect");
    }
    assert!(!kept.is_empty());
    drop(server);
    assert_sound(&library);
}

#[test]
fn an_empty_token_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let served = std::process::Command::new(crate::binary())
        .args(["--data-dir", folder.path().to_str().unwrap(), "serve"])
        .env("SHELF_TOKEN", " ")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&served.stderr);
    assert_eq!(served.status.code(), Some(6), "{told}");
    assert!(told.contains("SHELF_TOKEN is set but empty"), "{told}");
}
