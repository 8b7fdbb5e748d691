//! REST and the protocol over HTTP: bodies and errors as they are described, batches, and numbers that stay exact.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::http::Server;

const MCP: &str = "/mcp";
const REVISION: &str = "MCP-Protocol-Version";

fn start(folder: &tempfile::TempDir) -> Server {
    Server::start(&folder.path().join("library"), &["--no-auth"])
}

/// Sends a message of the protocol.
fn send(server: &Server, revision: Option<&str>, body: &str) -> (u16, Value) {
    let mut headers =
        vec![("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
    headers.extend(revision.map(|revision| (REVISION, revision)));
    let (status, _, reply) = server.request("POST", MCP, &headers, body);
    (status, serde_json::from_str(&reply).unwrap_or(Value::String(reply)))
}

#[test]
fn messages_without_a_method_are_refused_in_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let (status, reply) = send(&server, Some("2025-06-18"), r#"{"jsonrpc":"2.0","id":1}"#);
    assert_eq!((status, &reply["id"], &reply["error"]["code"]), (400, &json!(1), &json!(-32600)), "{reply}");
    let level = json!({
        "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": "bogus" },
    });
    let (_, reply) = send(&server, Some("2025-06-18"), &level.to_string());
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("debug, info, notice"), "{reply}");
}

#[test]
fn batches_are_carried_out_in_the_revision_that_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let request = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let add = |id: u64, name: &str| {
        let arguments = json!({ "name": name, "content": "words" });
        let meta = json!({ "progressToken": id });
        request(id, "tools/call", json!({ "name": "add", "arguments": arguments, "_meta": meta }))
    };
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let batch = json!([
        add(1, "a.txt"),
        initialized,
        request(2, "tools/call", json!({ "name": "get", "arguments": { "name": "a.txt" } })),
        request(3, "no/such/method", json!({})),
        { "jsonrpc": "2.0", "id": 4 },
        request(5, "initialize", json!({})),
        { "jsonrpc": "2.0", "id": 6, "result": {} },
        request(7, "ping", json!({})),
    ]);
    for revision in [Some("2025-03-26"), None] {
        let (status, replies) = send(&server, revision, &batch.to_string());
        assert_eq!(status, 200, "{replies}");
        let replies = replies.as_array().unwrap();
        let ids: Vec<&Value> = replies.iter().map(|reply| &reply["id"]).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5, 7], "{replies:?}");
        assert_eq!(replies[1]["result"]["structuredContent"]["path"], "a.txt", "{:?}", replies[1]);
        let codes: Vec<&Value> = replies[2..5].iter().map(|reply| &reply["error"]["code"]).collect();
        assert_eq!(codes, [-32601, -32600, -32600], "{replies:?}");
        assert_eq!(replies[5]["result"], json!({}));
    }
    let (status, reply) = send(&server, Some("2025-03-26"), &json!([initialized, initialized]).to_string());
    assert_eq!((status, reply), (202, json!("")));
    let many: Vec<Value> = (0..65).map(|id| request(id, "ping", json!({}))).collect();
    for (revision, body) in [
        ("2025-03-26", json!([])),
        ("2025-03-26", json!(many)),
        ("2025-06-18", json!([request(1, "ping", json!({}))])),
        ("2025-11-25", json!([request(1, "ping", json!({}))])),
    ] {
        let (status, reply) = send(&server, Some(revision), &body.to_string());
        assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32600)), "{revision}: {reply}");
    }
}

#[test]
fn metadata_keeps_every_number_or_refuses_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let store = |title: &str, metadata: &str| {
        let body = format!(r#"{{"title": "{title}", "content": "text", "doc_metadata": {metadata}}}"#);
        let (status, _, reply) = server.request("POST", "/api/v1/documents", &[], &body);
        (status, serde_json::from_str::<Value>(&reply).unwrap())
    };
    let (status, stored) = store(
        "a",
        r#"{"x": 6.02214076e23, "y": [1e30, 2.7715077941825975e-163], "z": 18446744073709551615}"#,
    );
    assert_eq!(status, 201, "{stored}");
    let path = format!("/api/v1/documents/{}", stored["document_id"].as_str().unwrap());
    let (_, _, got) = server.request("GET", &path, &[], "");
    let numbers = r#"{"x":6.02214076e+23,"y":[1e+30,2.7715077941825975e-163],"z":18446744073709551615}"#;
    assert!(got.contains(numbers), "{got}");
    let (status, refused) = store("b", r#"{"deep": [{"n": 123456789012345678901234567890}]}"#);
    let message = refused["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(status, 400, "{refused}");
    assert!(message.starts_with("doc_metadata holds an integer beyond 64 bits"), "{message}");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"store_document_tool",
        "arguments":{"title":"c","content":"text","doc_metadata":{"n":-9223372036854775809}}}}"#;
    let (_, reply) = send(&server, Some("2025-06-18"), call);
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    assert!(reply["result"]["content"][0]["text"].as_str().unwrap().contains("64 bits"), "{reply}");
}

#[test]
fn what_is_refused_says_so_once_and_in_the_right_words() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let get = |path: &str| server.rest("GET", path, None, &Value::Null);
    for path in
        ["/api/v1/usage?foo=1", "/auth/pat?foo=1", "/auth/profile?foo=1", "/api/v1/auth/sessions?foo=1"]
    {
        let (status, reply) = get(path);
        assert_eq!((status, &reply["error"]["message"]), (400, &json!("unknown argument 'foo'")), "{path}");
    }
    assert_eq!(get("/api/v1/usage?").0, 200);
    let (status, reply) = server.tool("", "store_document_tool", &json!({ "titel": "x" }));
    let error = &reply["error"];
    assert_eq!((status, &error["message"]), (400, &json!("unknown argument 'titel'")));
    assert_eq!(error["hints"], json!(["did you mean title?"]));
    let wrong = |method: &str, path: &str| {
        let (status, head, body) = server.request(method, path, &[], "");
        assert!(status == 405 && head.contains("allow: "), "{head}");
        body.contains("called with POST")
    };
    assert!(wrong("GET", "/api/v1/tools/add"));
    assert!(!wrong("GET", "/auth/register") && !wrong("POST", "/sse"));
    let host = [("Host", "evil.example")];
    assert!(server.request("GET", "/healthz", &host, "").2.contains("http.allowed_hosts"));
    let (_, reply) =
        server.rest("POST", "/auth/login", None, &json!({ "username": "x", "password": "wrong" }));
    assert_eq!(reply["error"]["hints"].as_array().unwrap().len(), 1, "{reply}");
    server.tool("", "write_content", &json!({ "book_id": "taken", "path": "a.md", "content": "x" }));
    for path in ["/api/v1/books/nowhere/history", "/api/v1/tools/read_content"] {
        let method = if path.ends_with("history") { "GET" } else { "POST" };
        let (status, reply) =
            server.rest(method, path, None, &json!({ "book_id": "nowhere", "path": "a.md" }));
        assert_eq!((status, &reply["error"]), (404, &json!("ContentNotFoundError")), "{path}: {reply}");
    }
    let (status, _, body) = server.request("POST", "/api/v1/tools/read_content", &[], "{");
    assert!(status == 400 && body.contains("ValidationError"), "{body}");
}

/// Everything below a value that looks like a schema.
fn schemas<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(object) => {
            found.push(value);
            object.values().for_each(|inner| schemas(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| schemas(inner, found)),
        _ => {}
    }
}

#[test]
fn the_description_says_what_the_server_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let (_, described) = server.rest("GET", "/api/v1/openapi.json", None, &Value::Null);
    let paths = &described["paths"];
    let error = |path: &str, method: &str, status: &str| {
        paths[path][method]["responses"][status]["content"]["application/json"]["schema"].clone()
    };
    for (path, method) in [("/api/v1/tools/read_content", "post"), ("/api/v1/books/{id}/history", "get")] {
        for status in ["400", "404", "409"] {
            assert_eq!(
                error(path, method, status)["$ref"],
                "#/components/schemas/BookError",
                "{path} {status}"
            );
        }
        assert_eq!(error(path, method, "401")["$ref"], "#/components/schemas/Error");
    }
    assert_eq!(error("/api/v1/documents", "post", "404")["$ref"], "#/components/schemas/Error");
    let names = &described["components"]["schemas"]["BookError"]["properties"]["error"]["enum"];
    assert!(names.as_array().unwrap().contains(&json!("ContentNotFoundError")), "{names}");
    for (path, methods) in paths.as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let text = |name: &str| operation[name].as_str().unwrap_or_default();
            assert!(!text("summary").is_empty() && text("description").len() > 10, "{method} {path}");
            assert!(operation["responses"].get("405").is_some(), "{method} {path}");
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            assert!(body.is_null() || body["additionalProperties"] == false, "{method} {path}: {body}");
        }
    }
    let mut all = Vec::new();
    schemas(&described, &mut all);
    for schema in all {
        assert!(!schema["type"].is_array(), "{schema}");
        assert!(!schema["format"].as_str().is_some_and(|format| format.starts_with("uint")), "{schema}");
    }
    let body = |path: &str| &paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"];
    let days = &body("/api/v1/auth/pat")["properties"]["expires_in_days"];
    assert_eq!((&days["minimum"], &days["maximum"]), (&json!(1), &json!(3650)));
    let usage = &paths["/api/v1/usage"]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    let (_, used) = server.rest("GET", "/api/v1/usage", None, &Value::Null);
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&usage["properties"]), fields(&used));
}

/// One reply on a connection that goes on: its status, its head, and nothing of what follows.
fn reply(stream: &mut BufReader<TcpStream>) -> (u16, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "the connection ended: {head:?}");
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
}

#[test]
fn a_connection_goes_on_after_a_refusal_or_says_that_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("library"), &[]);
    let refused = [
        ("POST /mcp", "", 401),
        ("POST /api/v1/tools/list", "Authorization: Bearer x\r\n", 401),
        ("POST /mcp", "Origin: http://evil.example\r\n", 403),
        ("POST /nothing/here", "", 404),
        ("POST /api/v1/documents/%ff", "", 404),
        ("DELETE /healthz", "", 405),
    ];
    let begin = |request: &str, headers: &str, length: usize| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let host = &server.address;
        let head = format!("{request} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    for (request, headers, status) in refused {
        // A small body that comes late is read, so that the next request finds its beginning.
        let mut stream = begin(request, headers, 2);
        std::thread::sleep(Duration::from_millis(200));
        stream.write_all(b"{}").unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (got, head) = reply(&mut reader);
        assert_eq!(got, status, "{request}: {head}");
        assert!(!head.contains("connection: close"), "{request}: {head}");
        stream
            .write_all(format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes())
            .unwrap();
        assert_eq!(reply(&mut reader).0, 200, "{request}");
        // One that is large, that does not come, or that waits to be asked for is not waited for.
        for (more, length) in [("", 1_000_000), ("", 2), ("Expect: 100-continue\r\n", 2)] {
            let stream = begin(request, &format!("{headers}{more}"), length);
            let (got, head) = reply(&mut BufReader::new(stream));
            assert_eq!(got, status, "{request}: {head}");
            assert!(head.contains("connection: close"), "{request} {more}{length}: {head}");
        }
    }
}

#[test]
fn every_error_is_json_also_for_paths_that_are_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let paths = [
        "/api/v1/documents/%ff",
        "/api/v1/tools/%ff",
        "/auth/pat/%ff",
        "/auth/pat/%ff/rotate",
        "/auth/sessions/%ff",
        "/tools/%ff",
        "/cdn/books/%ff/a.png",
        "/archives/%ff",
        "/raw/%ff",
        "/uploads/%ff",
        "/evidence/%ff",
        "/%c3%28",
    ];
    for path in paths {
        for method in ["GET", "POST", "DELETE"] {
            let (status, head, body) = server.request(method, path, &[], "");
            assert_eq!(status, 404, "{method} {path}: {body}");
            assert!(head.contains("content-type: application/json"), "{method} {path}: {head}");
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["error"]["code"], "not_found", "{method} {path}");
        }
    }
    let message = |method: &str, path: &str| {
        server.rest(method, path, None, &Value::Null).1["error"]["message"].clone()
    };
    assert_eq!(message("DELETE", "/auth/sessions/x"), "Session not found");
    assert_eq!(message("DELETE", "/auth/pat/x"), "PAT not found");
    let refused = message("GET", "/api/v1/documents?limit=99999999999999999999");
    assert_eq!(refused, "limit must be an integer of at most 64 bits");
}

#[test]
fn the_description_tells_of_images_and_headers() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder);
    let (_, described) = server.rest("GET", "/api/v1/openapi.json", None, &Value::Null);
    let success = |path: &str, method: &str| &described["paths"][path][method]["responses"]["200"];
    let content = &success("/api/v1/documents/{id}/page", "get")["content"];
    assert_eq!(content, &json!({ "image/png": { "schema": { "type": "string", "format": "binary" } } }));
    server.tool("", "create_collection_tool", &json!({ "name": "second" }));
    for (path, method) in [("/api/v1/collections", "get"), ("/api/v1/tools/list_collections_tool", "post")] {
        let told = success(path, method)["headers"].as_object().unwrap();
        let (_, head, _) = server.request(&method.to_uppercase(), path, &[], "");
        for (name, header) in told {
            assert!(!header["description"].as_str().unwrap().is_empty());
            assert!(name == "x-next-cursor" || head.contains(&format!("{name}: ")), "{name}: {head}");
        }
        assert_eq!(told.len(), 3, "{path}");
    }
    assert!(success("/api/v1/browse", "get").get("headers").is_none());
}
