//! Books as agents and build pipelines use them: many writers at once, uploads and downloads over HTTP, archives, and
//! the commands for people.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use shelf_testkit::{StdioClient, tree};

use crate::{assert_sound, binary, http::Server, shelf, storm::rounds};

const BOOK: &str = "ai-native-python";

fn token(library: &Path) -> String {
    let (code, out, err) = shelf(library, &["token", "create", "--label", "authoring", "--json"]);
    assert_eq!(code, 0, "{err}");
    serde_json::from_str::<Value>(&out).unwrap()["key"].as_str().unwrap().to_owned()
}

/// A plain request; the status, the head in lower case, and the body.
fn request(address: &str, head: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{head}\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses may close before it has read everything.
    let _ = stream.write_all(body);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let end = reply.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&reply[..end]).to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, reply[end + 4..].to_vec())
}

fn path_of(url: &Value, address: &str) -> String {
    let url = url.as_str().unwrap();
    url.strip_prefix(&format!("http://{address}")).unwrap_or_else(|| panic!("{url}")).to_owned()
}

fn memory_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Bytes that do not compress and are different at every place.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn of_many_writers_with_one_hash_exactly_one_wins_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    let place = json!({ "book_id": BOOK, "path": "lessons/a.md" });
    let mut first = place.clone();
    first["content"] = json!("start");
    let mut hash = server.tool(&token, "write_content", &first).1["file_hash"].clone();
    for round in 0..rounds(20) {
        let won = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for writer in 0..64 {
                let (server, token, won, hash) = (&server, &token, &won, &hash);
                scope.spawn(move || {
                    let arguments = json!({
                        "book_id": BOOK, "path": "lessons/a.md", "file_hash": hash,
                        "content": format!("round {round} by {writer}"),
                    });
                    let (status, reply) = server.tool(token, "write_content", &arguments);
                    match status {
                        200 => won.lock().unwrap().push(reply["file_hash"].clone()),
                        409 => assert_eq!(reply["error"], "ConflictError", "{reply}"),
                        other => panic!("{other}: {reply}"),
                    }
                });
            }
        });
        let won = won.into_inner().unwrap();
        assert_eq!(won.len(), 1, "round {round}");
        hash = won[0].clone();
        assert_eq!(server.tool(&token, "read_content", &place).1["file_hash_sha256"], hash);
    }
    let (code, out, err) =
        shelf(folder.path(), &["books", "history", BOOK, "lessons/a.md", "--json", "-n", "9999"]);
    assert_eq!(code, 0, "{err}");
    let history = serde_json::from_str::<Value>(&out).unwrap()["changes"].as_array().unwrap().clone();
    assert_eq!(history.len() as u64, rounds(20) + 1);
    assert!(history.iter().all(|change| change["agent_id"] == "authoring"));
    let (code, _, err) = shelf(folder.path(), &["check", "--audit"]);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn of_many_processes_with_one_hash_exactly_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let mut clients: Vec<StdioClient> = (0..8).map(|_| StdioClient::start(binary(), folder.path())).collect();
    let place = json!({ "book_id": BOOK, "path": "lessons/a.md" });
    clients[0].call("write_content", json!({ "book_id": BOOK, "path": "lessons/a.md", "content": "start" }));
    for round in 0..rounds(20) {
        let hash = clients[0].call("read_content", place.clone())["file_hash_sha256"].clone();
        let won = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for (writer, client) in clients.iter_mut().enumerate() {
                let (won, hash) = (&won, &hash);
                scope.spawn(move || {
                    // Eight calls each: the first of all 64 that comes through wins.
                    for attempt in 0..8 {
                        let arguments = json!({
                            "book_id": BOOK, "path": "lessons/a.md", "file_hash": hash,
                            "content": format!("round {round} by {writer} {attempt}"),
                        });
                        let call = json!({ "name": "write_content", "arguments": arguments });
                        let reply = client.request("tools/call", call);
                        if reply["result"]["isError"] == false {
                            won.fetch_add(1, Ordering::Relaxed);
                        } else {
                            let text = reply["result"]["content"][0]["text"].as_str().unwrap().to_owned();
                            assert!(text.contains("ConflictError"), "{text}");
                        }
                    }
                });
            }
        });
        assert_eq!(won.into_inner(), 1, "round {round}");
    }
    drop(clients);
    let (code, _, err) = shelf(folder.path(), &["check", "--audit"]);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn a_large_upload_streams_and_its_url_works_once() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    let megabytes = if rounds(0) >= 200 { 1_024 } else { 64 };
    let bytes = noise(megabytes << 20);
    let ask = |size: usize| {
        let arguments =
            json!({ "book_id": BOOK, "asset_type": "videos", "filename": "a b.mp4", "file_size": size });
        let (status, reply) = server.tool(&token, "upload_asset", &arguments);
        assert_eq!((status, &reply["method"]), (200, &json!("presigned")), "{reply}");
        reply
    };
    let reply = ask(bytes.len());
    let path = path_of(&reply["upload_url"], &server.address);
    let put = |path: &str, body: &[u8]| {
        let head = format!("PUT {path} HTTP/1.1\r\nContent-Length: {}", body.len());
        request(&server.address, &head, body)
    };
    assert_eq!(put(&path, &bytes[..100]).0, 400, "the wrong size");
    let changed = path.replace("uploads/", "uploads/A");
    assert_eq!(put(&changed, b"x").0, 403, "changed");
    // An upload that breaks off leaves nothing.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head =
        format!("PUT {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n", server.address, bytes.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&bytes[..2 << 20]).unwrap();
    stream.shutdown(Shutdown::Both).unwrap();
    let parts = || std::fs::read_dir(folder.path().join("uploads")).map_or(0, Iterator::count);
    let waited = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        parts() == 0
    });
    assert!(waited, "the part is removed");
    let before = memory_of(server.child.id());
    let (status, _, body) = put(&path, &bytes);
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
    let grown = memory_of(server.child.id()).saturating_sub(before);
    assert!(grown < 48 << 20, "memory grew by {} MB", grown >> 20);
    assert_eq!(put(&path, &bytes).0, 409, "once");
    assert_eq!(parts(), 0);
    let place = json!({ "book_id": BOOK, "asset_type": "videos", "filename": "a b.mp4" });
    let (_, asset) = server.tool(&token, "get_asset", &place);
    assert_eq!(asset["file_size"], bytes.len());
    let path = path_of(&asset["cdn_url"], &server.address);
    let (status, head, body) = request(&server.address, &format!("GET {path} HTTP/1.1"), b"");
    assert_eq!((status, body.len()), (200, bytes.len()));
    assert!(body == bytes, "the very bytes");
    for line in ["content-type: video/mp4", "x-content-type-options: nosniff", "accept-ranges: bytes"] {
        assert!(head.contains(line), "{line} in {head}");
    }
    let tag = format!("etag: \"{}\"", asset["sha256"].as_str().unwrap());
    assert!(head.contains(&tag), "{head}");
    let part = format!("GET {path} HTTP/1.1\r\nRange: bytes=1000000-1000999");
    let (status, head, body) = request(&server.address, &part, b"");
    assert_eq!((status, &body[..]), (206, &bytes[1_000_000..1_001_000]));
    assert!(head.contains(&format!("content-range: bytes 1000000-1000999/{}", bytes.len())), "{head}");
    let known = format!("GET {path} HTTP/1.1\r\nIf-None-Match: {}", &tag["etag: ".len()..]);
    let (status, _, body) = request(&server.address, &known, b"");
    assert_eq!((status, body.len()), (304, 0));
    let (status, head, body) = request(&server.address, &format!("HEAD {path} HTTP/1.1"), b"");
    assert_eq!((status, body.len()), (200, 0));
    assert!(head.contains(&format!("content-length: {}", bytes.len())), "{head}");
    let beyond = format!("GET {path} HTTP/1.1\r\nRange: bytes={}-", bytes.len());
    assert_eq!(request(&server.address, &beyond, b"").0, 416);
    let plain = path.split('?').next().unwrap();
    assert_eq!(request(&server.address, &format!("GET {plain} HTTP/1.1"), b"").0, 404, "without its key");
    drop(server);
    assert_sound(folder.path());
}

#[test]
fn a_client_on_stdio_uploads_through_a_door_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = StdioClient::start(binary(), folder.path());
    let bytes = noise(11 << 20);
    let place = json!({ "book_id": BOOK, "asset_type": "images", "filename": "big.png" });
    let mut arguments = place.clone();
    arguments["file_size"] = json!(bytes.len());
    let reply = client.call("upload_asset", arguments);
    let url = reply["upload_url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let (address, path) = url.split_once('/').unwrap();
    let head = format!("PUT /{path} HTTP/1.1\r\nContent-Length: {}", bytes.len());
    let (status, _, body) = request(address, &head, &bytes);
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
    let asset = client.call("get_asset", place);
    let file = asset["cdn_url"].as_str().unwrap().strip_prefix("file://").unwrap();
    assert!(std::fs::read(file).unwrap() == bytes);
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn an_archive_is_downloaded_by_its_url_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (token, server) = (token(folder.path()), Server::start(folder.path(), &[]));
    for number in 0..20 {
        let path = format!("lessons/{number}.md");
        let arguments = json!({ "book_id": BOOK, "path": path, "content": format!("lesson {number}\n") });
        assert_eq!(server.tool(&token, "write_content", &arguments).0, 200);
    }
    let (_, reply) = server.tool(&token, "get_book_archive", &json!({ "book_id": BOOK }));
    let path = path_of(&reply["archive_url"], &server.address);
    let (status, head, body) = request(&server.address, &format!("GET {path} HTTP/1.1"), b"");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/zip") && head.contains("attachment"), "{head}");
    // The archive is written with the same library that reads it here, so another one looks at it too.
    let saved = folder.path().join("saved.zip");
    std::fs::write(&saved, &body).unwrap();
    if shelf_testkit::can_run("python3", "--version") {
        let tested =
            std::process::Command::new("python3").args(["-m", "zipfile", "-t"]).arg(&saved).output().unwrap();
        assert!(tested.status.success() && tested.stdout.starts_with(b"Done testing"), "{tested:?}");
    }
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(body)).unwrap();
    let mut text = String::new();
    archive.by_name("lessons/7.md").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((archive.len(), text.as_str()), (21, "lesson 7\n"));
    for wrong in [path.replace("?k=", "?k=A"), path.split('?').next().unwrap().to_owned()] {
        assert_eq!(request(&server.address, &format!("GET {wrong} HTTP/1.1"), b"").0, 404);
    }
    let (status, reply) =
        server.tool(&token, "read_content", &json!({ "book_id": BOOK, "path": "lessons/x.md" }));
    assert_eq!(
        (status, reply),
        (
            404,
            json!({
                "error": "ContentNotFoundError",
                "message": format!("Content not found: books/{BOOK}/lessons/x.md"),
                "path": format!("books/{BOOK}/lessons/x.md"),
            })
        ),
        "REST answers with the family's own body"
    );
}

#[test]
fn people_import_edit_compare_and_export_a_book() {
    let folder = tempfile::tempdir().unwrap();
    let (library, site) = (folder.path().join("library"), folder.path().join("site"));
    for number in 0..40 {
        let place = site.join(format!("docs/part {}", number % 4));
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join(format!("page {number}.md")), format!("# Page {number}\n\nText.\n"))
            .unwrap();
        std::fs::write(place.join(format!("{number}.png")), noise(5_000 + number)).unwrap();
    }
    let site_text = site.display().to_string();
    let run = |arguments: &[&str]| {
        let (code, out, err) = shelf(&library, arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{err}");
        out
    };
    run(&["books", "import", BOOK, &site_text, "--title", "A real book"]);
    assert!(run(&["books", "list"]).contains("A real book"));
    let paths =
        run(&["call", "glob_search", &json!({ "book_id": BOOK, "pattern": "lessons/**" }).to_string()]);
    let first = serde_json::from_str::<Value>(&paths).unwrap()[0].as_str().unwrap().to_owned();
    let path = first.strip_prefix(&format!("books/{BOOK}/")).unwrap();
    let edit = json!({ "book_id": BOOK, "path": path, "content": "# Page 0\n\nBetter text.\n" });
    run(&["call", "write_content", &edit.to_string()]);
    let difference = run(&["books", "diff", BOOK, path]);
    assert!(difference.contains("-Text.\n+Better text.\n"), "{difference}");
    let out = folder.path().join("out");
    run(&["books", "export", BOOK, &out.display().to_string()]);
    let (before, after) = (tree(&site), tree(&out));
    let changed: Vec<&String> =
        before.iter().zip(&after).filter(|(one, other)| one != other).map(|((path, _), _)| path).collect();
    assert_eq!((before.len(), after.len(), changed.len()), (80, 80, 1), "{changed:?}");
    let history = run(&["books", "history", BOOK, path, "--json"]);
    let old = serde_json::from_str::<Value>(&history).unwrap()["changes"][0]["previous_hash"].clone();
    run(&["books", "restore", BOOK, path, &old.as_str().unwrap()[..10]]);
    run(&["books", "export", BOOK, &out.display().to_string(), "--overwrite"]);
    assert_eq!(tree(&out), before, "everything is as it was");
    let zip = folder.path().join("book.zip").display().to_string();
    run(&["books", "archive", BOOK, "-o", &zip]);
    assert_eq!(zip::ZipArchive::new(std::fs::File::open(&zip).unwrap()).unwrap().len(), 81);
    run(&["books", "set", BOOK, "--status", "archived"]);
    let (code, _, err) = shelf(&library, &["call", "write_content", &edit.to_string()]);
    assert!(code != 0 && err.contains("archived"), "{err}");
    assert_sound(&library);
}

#[test]
fn a_real_book_is_edited_by_three_agents_and_only_the_edits_differ() {
    let folder = tempfile::tempdir().unwrap();
    let (library, site) = (folder.path().join("library"), folder.path().join("site"));
    for number in 0..2_000 {
        let place = site.join(format!("docs/guide {}", number % 20));
        std::fs::create_dir_all(&place).unwrap();
        let text = format!(
            "---\ntitle: Page {number}\n---\n\n# Page {number}\n\nSee [next](page-{}.md).\n",
            number + 1
        );
        std::fs::write(place.join(format!("page-{number}.md")), text).unwrap();
    }
    std::fs::create_dir_all(site.join("static/img")).unwrap();
    for number in 0..500 {
        std::fs::write(site.join(format!("static/img/{number}.png")), noise(1_000 + number)).unwrap();
    }
    let (code, _, err) = shelf(&library, &["books", "import", BOOK, &site.display().to_string()]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("2500 new"), "{err}");
    let mut agents: Vec<StdioClient> = (0..3).map(|_| StdioClient::start(binary(), &library)).collect();
    let paths = agents[0].call("glob_search", json!({ "book_id": BOOK, "pattern": "lessons/**/page-1?.md" }));
    let paths: Vec<String> = paths["result"]
        .as_array()
        .or_else(|| paths.as_array())
        .unwrap_or_else(|| panic!("{paths}"))
        .iter()
        .map(|path| path.as_str().unwrap().strip_prefix(&format!("books/{BOOK}/")).unwrap().to_owned())
        .collect();
    assert_eq!(paths.len(), 10);
    std::thread::scope(|scope| {
        for (number, agent) in agents.iter_mut().enumerate() {
            let paths = &paths;
            scope.spawn(move || {
                for path in paths {
                    // Each adds its own line to every page, however often another was faster.
                    loop {
                        let read = agent.call("read_content", json!({ "book_id": BOOK, "path": path }));
                        let content = format!("{}Line of agent {number}.\n", read["content"].as_str().unwrap());
                        let call = json!({ "name": "write_content", "arguments": {
                            "book_id": BOOK, "path": path, "content": content, "file_hash": read["file_hash_sha256"],
                        } });
                        if agent.request("tools/call", call)["result"]["isError"] == false {
                            break;
                        }
                    }
                }
            });
        }
    });
    drop(agents);
    let out = folder.path().join("out");
    let (code, _, err) = shelf(&library, &["books", "export", BOOK, &out.display().to_string()]);
    assert_eq!(code, 0, "{err}");
    let (before, after) = (tree(&site), tree(&out));
    assert_eq!((before.len(), after.len()), (2_500, 2_500));
    let mut changed = 0;
    for ((path, old), (_, new)) in before.iter().zip(&after).filter(|(one, other)| one != other) {
        changed += 1;
        let added = new.strip_prefix(old.as_slice()).unwrap_or_else(|| panic!("{path}"));
        let mut lines: Vec<&str> = std::str::from_utf8(added).unwrap().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["Line of agent 0.", "Line of agent 1.", "Line of agent 2."], "{path}");
    }
    assert_eq!(changed, 10);
    // The whole book goes through a ZIP file and comes back the same; a hostile one is refused.
    let zip = folder.path().join("book.zip").display().to_string();
    assert_eq!(shelf(&library, &["books", "archive", BOOK, "-o", &zip]).0, 0);
    let (code, _, err) = shelf(&library, &["books", "import", "second-book", &zip]);
    assert!(code == 0 && err.contains("2501 new"), "{err}");
    let hostile = folder.path().join("hostile.zip");
    let mut writer = zip::ZipWriter::new(std::fs::File::create(&hostile).unwrap());
    writer.start_file("../escaped.md", zip::write::SimpleFileOptions::default()).unwrap();
    writer.write_all(b"x").unwrap();
    writer.finish().unwrap();
    let (code, _, err) = shelf(&library, &["books", "import", "third-book", &hostile.display().to_string()]);
    assert!(code != 0 && err.contains("leads outside"), "{err}");
    assert!(!library.join("escaped.md").exists() && !folder.path().join("escaped.md").exists());
}
