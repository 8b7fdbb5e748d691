//! What one caller may do to the others: names and documents that are made to take long or much memory, and addresses that
//! are used for what they were not given for.

use std::{
    fmt::Write as _,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{attack::peak_kib, binary, http::Server, shelf};

fn token(library: &Path) -> String {
    let (code, out, err) = shelf(library, &["token", "create", "--label", "one", "--json"]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str::<Value>(&out).unwrap()["key"].as_str().unwrap().to_owned()
}

#[test]
fn long_names_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    let long = "k".repeat(700_000);
    let ask = |method: &str, parameters: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters });
        let header = format!("Bearer {token}");
        let (_, reply) = server.mcp("/mcp", &[("Authorization", header.as_str())], &message);
        reply.to_string()
    };
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for reply in [
                    ask("tools/call", json!({ "name": long, "arguments": {} })),
                    ask("tools/call", json!({ "name": "get", "arguments": { &long: 1 } })),
                    ask("tools/call", json!({ "name": "list", "arguments": { "collection": long } })),
                    ask("tools/call", json!({ "name": "graph", "arguments": { "name": long } })),
                    ask("tools/call", json!({ "name": "get", "arguments": { "names": [long, long] } })),
                    ask("prompts/get", json!({ "name": long })),
                    ask("resources/read", json!({ "uri": long })),
                ] {
                    assert!(reply.len() < 64_000, "{} bytes", reply.len());
                    assert!(reply.contains("kkkk") || reply.contains("names may hold"), "{reply}");
                }
            });
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// A document of one page with these objects after its font; the first of them is `X`.
fn pdf(content: &str, more: &[String]) -> Vec<u8> {
    let stream =
        |head: &str, body: &str| format!("<<{head}/Length {}>>stream\n{body}\nendstream", body.len());
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>>>"
            .to_owned(),
        stream("", content),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_owned(),
    ];
    let form = "/Type/XObject/Subtype/Form/BBox[0 0 600 700]";
    objects.extend(
        more.iter()
            .enumerate()
            .map(|(at, body)| stream(&format!("{form}/Resources<</XObject<</X {} 0 R>>>>", at + 7), body)),
    );
    let mut file = String::from("%PDF-1.4\n");
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (at, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        writeln!(file, "{} 0 obj\n{object}\nendobj", at + 1).unwrap();
    }
    let start = file.len();
    let trailer = format!("trailer<</Size {}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF", objects.len() + 1);
    (file + &table + &trailer).into_bytes()
}

/// Forms that draw each other ten times, thirteen deep.
fn bomb() -> Vec<u8> {
    let mut forms = vec!["/X Do ".repeat(10); 12];
    forms.push("0 0 500 500 re f".to_owned());
    pdf(&"/X Do ".repeat(10), &forms)
}

#[test]
fn a_page_takes_no_more_time_and_memory_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let token = token(&library);
    let server = Server::start(&library, &[]);
    let add = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let (code, out, err) = shelf(&library, &["add", "--json", file.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<Value>(&out).unwrap()["document_id"].as_str().unwrap().to_owned()
    };
    let (plain, bomb) = (
        add("plain.pdf", &pdf("BT /F 12 Tf (plain) Tj ET", &["0 0 9 9 re f".into()])),
        add("bomb.pdf", &bomb()),
    );
    let page = |id: &str| {
        let path = format!("/api/v1/documents/{id}/page?page=1&width=400");
        send(&server.address, &format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}"), b"")
    };
    assert_eq!(page(&plain).0, 200);
    let begun = Instant::now();
    let (status, body) = page(&bomb);
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("drawing it takes"), "{body}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    // It is not tried again, and nothing of it goes on.
    let begun = Instant::now();
    assert_eq!(page(&bomb).0, 400);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(page(&plain).0, 200);
    assert!(peak_kib(server.child.id()) < 400 << 10, "{} KiB", peak_kib(server.child.id()));
}

#[test]
fn a_drawing_program_says_what_is_wrong_and_draws() {
    let draw = |bytes: &[u8]| {
        let mut child = std::process::Command::new(binary())
            .args(["draw-page", "100"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        child.wait_with_output().unwrap()
    };
    let drawn = draw(&pdf("0 0 300 300 re f", &["".into()]));
    assert!(drawn.status.success() && drawn.stdout.starts_with(b"\x89PNG"), "{drawn:?}");
    let refused = draw(b"not a document");
    assert_eq!(refused.status.code(), Some(65));
    assert_eq!(String::from_utf8_lossy(&refused.stderr), "its structure cannot be read");
}

/// Sends a request with this beginning of its head; the status and the body of the reply.
fn send(address: &str, head: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let status = reply.split(' ').nth(1).unwrap().parse().unwrap();
    (status, reply.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn a_server_that_only_reads_stores_no_upload() {
    let folder = tempfile::tempdir().unwrap();
    let token = token(folder.path());
    let writable = Server::start(folder.path(), &[]);
    let asked = json!({ "book_id": "lake", "asset_type": "videos", "filename": "a.mp4", "file_size": 4 });
    let (_, reply) = writable.tool(&token, "upload_asset", &asked);
    let url = reply["upload_url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", writable.address)).unwrap();
    let reading = Server::start(folder.path(), &["--read-only"]);
    let (status, body) = send(&reading.address, &format!("PUT {path} HTTP/1.1"), b"1234");
    assert!(status == 403 && body.contains("this server takes no uploads"), "{status} {body}");
    let (status, body) = send(&writable.address, &format!("PUT {path} HTTP/1.1"), b"1234");
    assert_eq!(status, 201, "{body}");
}

#[test]
fn an_address_works_as_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    let lesson = json!({ "book_id": "lake", "path": "lessons/a.md", "content": "a" });
    assert_eq!(server.tool(&token, "write_content", &lesson).0, 200);
    let (_, reply) = server.tool(&token, "get_book_archive", &json!({ "book_id": "lake" }));
    let url = reply["archive_url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", server.address)).unwrap();
    assert_eq!(send(&server.address, &format!("GET {path} HTTP/1.1"), b"").0, 200);
    let (_, proof) = path.split_once('?').unwrap();
    let other = format!("GET /archives/invoice.exe?{proof} HTTP/1.1");
    assert_eq!(send(&server.address, &other, b"").0, 404);
}
