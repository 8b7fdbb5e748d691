//! Subscriptions: clients of every transport are told when a document or a collection changes, whichever process wrote,
//! and of nothing else.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{accounts::start, binary, http::Server, shelf};

/// How long a change may take to be told on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a client on stdio is told until `wanted` is among it.
fn told(client: &mut StdioClient, wanted: &str) -> Vec<String> {
    let (deadline, mut uris) = (Instant::now() + PATIENCE, Vec::new());
    for number in 0.. {
        assert!(Instant::now() < deadline, "never told of {wanted}, only of {uris:?}");
        let id = format!("look {number}");
        client.send_line(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }).to_string());
        loop {
            let line = client.read_line().expect("the server goes on");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                break;
            }
            if message["method"] == "notifications/resources/updated" {
                uris.push(message["params"]["uri"].as_str().unwrap().to_owned());
            }
        }
        if uris.iter().any(|uri| uri == wanted) {
            return uris;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    uris
}

fn add(library: &std::path::Path, name: &str, text: &str, collection: &str) -> Value {
    let arguments = json!({ "name": name, "content": text, "collection": collection }).to_string();
    let (code, out, err) = shelf(library, &["--json", "call", "add", &arguments]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

fn document(added: &Value) -> String {
    format!("shelf://documents/{}", added["document_id"].as_str().unwrap())
}

fn collection(client: &mut StdioClient, name: &str) -> String {
    let listed = client.call("list_collections_tool", json!({}));
    let all = listed["result"].as_array().unwrap();
    let found = all.iter().find(|collection| collection["name"] == name).unwrap();
    format!("shelf://collections/{}", found["id"].as_str().unwrap())
}

#[test]
fn a_client_on_stdio_hears_of_what_another_process_writes() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path();
    let [first, second] = ["one", "two"].map(|name| document(&add(library, name, "text", "work")));
    let mut client = StdioClient::spawn(binary(), library, &[]);
    let hello = client.initialize();
    assert_eq!(hello["result"]["capabilities"]["resources"]["subscribe"], true, "{hello}");
    let shelf_uri = collection(&mut client, "work");
    for uri in [&first, &second, &shelf_uri] {
        let reply = client.request("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(reply["result"], json!({}), "{reply}");
    }
    add(library, "one", "another text", "work");
    let mut heard = told(&mut client, &shelf_uri);
    heard.sort();
    assert_eq!(heard, [shelf_uri.clone(), first.clone()], "the document and its collection, each once");

    let reply = client.request("resources/unsubscribe", json!({ "uri": first }));
    assert_eq!(reply["result"], json!({}), "{reply}");
    add(library, "one", "a third text", "work");
    assert_eq!(told(&mut client, &shelf_uri), std::slice::from_ref(&shelf_uri), "not the document any more");
    add(library, "elsewhere", "text", "other");
    assert_eq!(shelf(library, &["delete", "two"]).0, 0);
    let heard = told(&mut client, &second);
    assert!(heard.iter().all(|uri| *uri == second || *uri == shelf_uri), "{heard:?}");

    let read = client.request("resources/read", json!({ "uri": shelf_uri }));
    let content: Value =
        serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&content["name"], &content["document_count"]), (&json!("work"), &json!(1)), "{content}");
    assert_eq!(content["documents"], json!([{ "uri": first, "path": "one" }]));
}

#[test]
fn what_cannot_be_subscribed_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let added = add(folder.path(), "one", "text", "work");
    let snapshot = format!("shelf://snapshots/{}", added["snapshot_id"].as_str().unwrap());
    let mut client = StdioClient::start(binary(), folder.path());
    let unknown = "shelf://documents/550e8400-e29b-41d4-a716-446655440000";
    for uri in [unknown, &snapshot, "shelf://documents/none", "file:///etc/passwd"] {
        let reply = client.request("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(reply["error"]["code"], -32002, "{reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(uri), "{reply}");
    }
    let reply = client.request("resources/subscribe", json!({}));
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    let reply = client.request("resources/unsubscribe", json!({ "uri": unknown }));
    assert_eq!(reply["result"], json!({}), "there need not be a subscription to end");
}

/// Metadata of a request of 2026-07-28.
fn modern() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

fn listen(id: u64, uris: &[&str]) -> Value {
    let params = json!({ "_meta": modern(), "notifications": { "resourceSubscriptions": uris } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params })
}

#[test]
fn a_client_on_stdio_listens_in_the_stateless_revision() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path();
    let uri = document(&add(library, "one", "text", "work"));
    let mut client = StdioClient::spawn(binary(), library, &[]);
    let found = client.request("server/discover", json!({ "_meta": modern() }));
    assert_eq!(found["result"]["capabilities"]["resources"]["subscribe"], true, "{found}");
    client.send_line(&listen(77, &[&uri, "shelf://snapshots/none"]).to_string());
    let next = |client: &mut StdioClient| -> Value {
        serde_json::from_str(&client.read_line().expect("a message")).unwrap()
    };
    let accepted = next(&mut client);
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged", "{accepted}");
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!([uri]));
    // The acknowledgement is sent before the subscription is in place.
    std::thread::sleep(Duration::from_millis(500));
    add(library, "one", "another text", "work");
    let update = next(&mut client);
    assert_eq!(
        (&update["method"], &update["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri))
    );
    assert_eq!(update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 77, "{update}");
}

/// A stream of events of a server.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(server: &Server, head: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text =
            format!("{head} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", server.address, body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    fn status(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// The next message.
    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("a message in time") > 0, "the stream ended");
            if let Some(data) = line.strip_prefix("data:")
                && let Ok(message) = serde_json::from_str(data.trim())
            {
                return message;
            }
        }
    }

    /// Everything until the server ends the stream.
    fn rest(mut self) -> String {
        let mut text = String::new();
        let _ = self.0.read_to_string(&mut text);
        text
    }
}

const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn initialize(server: &Server, bearer: &str) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let headers = [ACCEPT, JSON, ("Authorization", bearer)];
    let (status, head, body) = server.request("POST", "/mcp", &headers, &message.to_string());
    assert_eq!(status, 200, "{body}");
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    id.trim().to_owned()
}

fn subscribe(server: &Server, bearer: &str, session: Option<&str>, uri: &str) -> (u16, Value) {
    let message =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": uri } });
    let mut headers = vec![("Authorization", bearer), ("Mcp-Protocol-Version", "2025-11-25")];
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    server.mcp("/mcp", &headers, &message)
}

fn store(server: &Server, token: &str, name: &str, text: &str) -> String {
    let (status, added) = server.tool(token, "add", &json!({ "name": name, "content": text }));
    assert_eq!(status, 200, "{added}");
    document(&added)
}

#[test]
fn sessions_over_http_are_told_of_their_own_documents_only() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder.path().join("library"));
    let [alice, bob] = ["alice", "bob"].map(|name| {
        server.register(name);
        server.personal(name)
    });
    let (alice_bearer, bob_bearer) = (format!("Bearer {alice}"), format!("Bearer {bob}"));
    let uri = store(&server, &alice, "diary", "dear diary");
    let session = initialize(&server, &alice_bearer);
    let other = initialize(&server, &bob_bearer);

    let (_, reply) = subscribe(&server, &bob_bearer, Some(&other), &uri);
    assert_eq!(reply["error"]["code"], -32002, "a document of somebody else does not exist: {reply}");
    let (_, reply) = subscribe(&server, &alice_bearer, None, &uri);
    assert!(reply["error"]["message"].as_str().unwrap().contains("Mcp-Session-Id"), "{reply}");
    let (status, _) = subscribe(&server, &alice_bearer, Some("made-up"), &uri);
    assert_eq!(status, 404);
    let (_, reply) = subscribe(&server, &alice_bearer, Some(&session), &uri);
    assert_eq!(reply["result"], json!({}), "{reply}");
    let (_, reply) = subscribe(&server, &bob_bearer, Some(&session), &uri);
    assert!(reply["error"].is_object(), "the session is Alice's: {reply}");

    let headers = [ACCEPT, ("Authorization", &alice_bearer), ("Mcp-Session-Id", &session)];
    let mut stream = Events::open(&server, "GET /mcp", &headers, "");
    assert_eq!(stream.status(), "200");
    let thief = [ACCEPT, ("Authorization", &bob_bearer), ("Mcp-Session-Id", &session)];
    assert_eq!(Events::open(&server, "GET /mcp", &thief, "").status(), "404");
    assert_eq!(store(&server, &alice, "diary", "a second day"), uri);
    let message = stream.next();
    let expected =
        json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } });
    assert_eq!(message, expected);

    let (status, ..) = server.request("DELETE", "/mcp", &headers, "");
    assert_eq!(status, 204);
    let rest = stream.rest();
    assert!(!rest.contains("data: {"), "nothing more is told: {rest}");
    assert_eq!(subscribe(&server, &alice_bearer, Some(&session), &uri).0, 404, "the session has ended");
}

#[test]
fn a_stream_over_http_ends_when_its_token_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(&folder.path().join("library"));
    server.register("alice");
    let token = server.personal("alice");
    let bearer = format!("Bearer {token}");
    let uri = store(&server, &token, "diary", "dear diary");
    let message = listen(5, &[&uri]).to_string();
    let headers = [
        ACCEPT,
        JSON,
        ("Authorization", bearer.as_str()),
        ("Mcp-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "subscriptions/listen"),
    ];
    let mut stream = Events::open(&server, "POST /mcp", &headers, &message);
    assert_eq!(stream.status(), "200");
    assert_eq!(stream.next()["method"], "notifications/subscriptions/acknowledged");
    std::thread::sleep(Duration::from_millis(500));
    store(&server, &token, "diary", "a second day");
    let update = stream.next();
    assert_eq!(
        (&update["method"], &update["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri))
    );

    let second = server.personal("alice");
    let session = server.log_in("alice")["access_token"].as_str().unwrap().to_owned();
    let listed = server.rest("GET", "/auth/pat", Some(&session), &Value::Null).1;
    let tokens = listed.as_array().unwrap_or_else(|| panic!("{listed}")).clone();
    let first = tokens.iter().map(|token| token["created_at"].as_str().unwrap()).min().unwrap();
    let id = tokens.iter().find(|token| token["created_at"] == first).unwrap()["id"].as_str().unwrap();
    let (status, _) = server.rest("DELETE", &format!("/auth/pat/{id}"), Some(&session), &Value::Null);
    assert!(status < 300, "{status}");
    store(&server, &second, "diary", "a third day");
    let rest = stream.rest();
    assert!(!rest.contains("notifications/resources/updated"), "told after the token was revoked: {rest}");
}
