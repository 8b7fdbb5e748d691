//! Files of books over plain HTTP and over stdio: what is refused is refused in the right words, and every address that is
//! given out leads somewhere.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{binary, http::Server, shelf};

const BOOK: &str = "ai-native-python";

fn token(library: &Path) -> String {
    let (code, out, err) = shelf(library, &["token", "create", "--label", "authoring", "--json"]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str::<Value>(&out).unwrap()["key"].as_str().unwrap().to_owned()
}

/// A request of which everything is sent before the answer is read, as most clients do it.
fn send(address: &str, head: &str, body: &[u8]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).expect("the server listens to all of it");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let (head, body) = reply.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {body}"))
}

#[test]
fn downloads_keep_to_the_rules_of_http() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    let asset = json!({
        "book_id": BOOK, "asset_type": "images", "filename": "a.png", "binary_data": "MDEyMzQ1Njc4OQ==",
    });
    let (_, stored) = server.tool(&token, "upload_asset", &asset);
    let url = stored["cdn_url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", server.address)).unwrap();
    let of = |line: &str, more: &str| send(&server.address, &format!("{line} HTTP/1.1{more}"), b"");
    let (status, head, _) = of(&format!("HEAD {path}"), "\r\nRange: bytes=0-3");
    assert!(
        status == 200 && head.contains("content-length: 10") && !head.contains("content-range"),
        "{head}"
    );
    assert_eq!(of(&format!("GET {path}"), "\r\nRange: bytes=2-3").2, "23");
    let (status, head, _) = of(&format!("GET {path}"), "\r\nRange: bytes=99999999999999999999999-");
    assert!(status == 416 && head.contains("content-range: bytes */10"), "{head}");
    let (status, _, body) = of(&format!("GET {path}&k=other"), "");
    assert_eq!((status, &json_of(&body)["error"]), (400, &json!("ValidationError")), "{body}");
    for (line, hint) in [
        ("GET /uploads/x".to_owned(), "PUT"),
        (format!("POST {path}"), "GET"),
        ("GET /api/v1/tools/get".into(), "POST"),
    ] {
        let header = format!("\r\nAuthorization: Bearer {token}");
        let (status, _, body) = of(&line, &header);
        assert_eq!(status, 405, "{line}");
        assert!(json_of(&body)["error"]["hints"][0].as_str().unwrap().contains(hint), "{body}");
    }
}

#[test]
fn a_refused_upload_gets_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    let body = vec![7_u8; 24 << 20];
    let (status, _, refusal) = send(&server.address, "PUT /uploads/not-a-ticket HTTP/1.1", &body);
    assert_eq!((status, &json_of(&refusal)["error"]), (403, &json!("ValidationError")), "{refusal}");
    let asked = json!({ "book_id": BOOK, "asset_type": "videos", "filename": "a.mp4", "file_size": 100 });
    let (_, reply) = server.tool(&token, "upload_asset", &asked);
    let url = reply["upload_url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", server.address)).unwrap();
    let (status, _, refusal) = send(&server.address, &format!("PUT {path} HTTP/1.1"), &body);
    assert_eq!((status, &json_of(&refusal)["error"]), (400, &json!("ValidationError")), "{refusal}");
    let part = format!("PUT {path} HTTP/1.1\r\nContent-Range: bytes 0-99/200");
    let (status, _, refusal) = send(&server.address, &part, &body[..100]);
    assert!(status == 400 && refusal.contains("Content-Range"), "{refusal}");
    assert_eq!(send(&server.address, &format!("PUT {path} HTTP/1.1"), &body[..100]).0, 201);
}

#[test]
fn what_cannot_be_read_is_refused_in_the_familys_words() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    let large = vec![b' '; (32 << 20) + 1];
    for (body, status) in [(&b"{"[..], 400), (b"[1]", 400), (&large, 413)] {
        let line = format!("POST /api/v1/tools/read_content HTTP/1.1\r\nAuthorization: Bearer {token}");
        let (answered, _, reply) = send(&server.address, &line, body);
        assert_eq!(
            (answered, &json_of(&reply)["error"], &json_of(&reply)["path"]),
            (status, &json!("ValidationError"), &json!("books")),
            "{reply}"
        );
    }
    let place = json!({ "book_id": BOOK, "path": "lessons/x.md" }).to_string();
    for (arguments, name) in
        [(place.as_str(), "ContentNotFoundError"), ("{", "ValidationError"), ("[1]", "ValidationError")]
    {
        let (code, _, err) = shelf(folder.path(), &["--json", "call", "read_content", arguments]);
        assert!(code != 0 && json_of(&err)["error"] == name && json_of(&err)["path"].is_string(), "{err}");
    }
}

#[test]
fn a_list_says_whether_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    let lesson = json!({ "book_id": BOOK, "path": "lessons/a.md", "content": "a\na\na\n" });
    client.call("write_content", lesson);
    for (tool, arguments, about) in [
        ("list_books", json!({}), json!({ "shelfmark/total": 1, "shelfmark/truncated": false })),
        (
            "glob_search",
            json!({ "book_id": BOOK, "pattern": "**" }),
            json!({ "shelfmark/total": 1, "shelfmark/truncated": false }),
        ),
        (
            "list_assets",
            json!({ "book_id": BOOK }),
            json!({ "shelfmark/total": 0, "shelfmark/truncated": false }),
        ),
        (
            "grep_search",
            json!({ "book_id": BOOK, "pattern": "a$", "max_results": 3 }),
            json!({ "shelfmark/total": 3, "shelfmark/truncated": false }),
        ),
        (
            "grep_search",
            json!({ "book_id": BOOK, "pattern": "a$", "max_results": 2 }),
            json!({ "shelfmark/truncated": true }),
        ),
    ] {
        let reply = client.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(reply["result"]["_meta"], about, "{tool}");
    }
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn an_archive_over_stdio_is_a_file_and_is_removed_when_it_has_expired() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[http]\npublic_url = \"https://books.example.org\"\n[books]\nurl_seconds = 1\n";
    let config = folder.path().join("shelf.toml");
    std::fs::write(&config, settings).unwrap();
    let mut client =
        StdioClient::spawn(binary(), folder.path(), &["--config", &config.display().to_string()]);
    client.initialize();
    client.call("write_content", json!({ "book_id": BOOK, "path": "lessons/a.md", "content": "a" }));
    let reply = client.call("get_book_archive", json!({ "book_id": BOOK }));
    let url = reply["archive_url"].as_str().unwrap();
    assert!(url.starts_with("file://") && url.ends_with(".zip"), "{url}");
    assert_eq!(reply["valid_for_seconds"], 1);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    assert_eq!(client.finish(), Some(0));
    assert_eq!(std::fs::read_dir(folder.path().join("archives")).unwrap().count(), 0, "the end removes it");
}
