//! Regression tests for what attacks on the running program once broke, each as it was first observed.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::{FileTypeExt, PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{assert_sound, binary, http::Server, shelf};

/// Peak memory of a process, in KiB.
pub fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn add(library: &Path, name: &str, content: &str) {
    let mut server = StdioClient::start(binary(), library);
    server.call("add", json!({ "name": name, "content": content }));
    assert_eq!(server.finish(), Some(0));
}

/// A library without its catalog is treated as damaged, not as new.
#[test]
fn a_lost_catalog_is_refused_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    add(&library, "large", &"something to keep ".repeat(20_000));
    add(&library, "small", "a few words");
    let mut server = StdioClient::start(binary(), &library);
    server.call("add", json!({ "name": "late", "content": "the last words" }));
    assert_eq!(server.finish(), Some(0));
    let packs = || std::fs::read_dir(library.join("packs")).unwrap().count();
    let before = packs();
    assert!(before > 0);
    for (state, lose) in [("missing", true), ("empty", false)] {
        for name in ["catalog.db", "catalog.db-wal", "catalog.db-shm"] {
            let _ = std::fs::remove_file(library.join(name));
        }
        if !lose {
            std::fs::write(library.join("catalog.db"), "").unwrap();
        }
        for command in [&["check"][..], &["gc"], &["list"], &["add", "/etc/hostname"]] {
            let (code, _, err) = shelf(&library, command);
            assert!(code != 0 && err.contains("catalog.db") && err.contains(state), "{command:?}: {err}");
            assert!(err.contains("shelf recover"), "{err}");
        }
        assert_eq!(packs(), before, "nothing is deleted");
        let (code, out, err) = shelf(&library, &["recover", "--json"]);
        assert_eq!(code, 0, "{out}{err}");
        let done: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(done["documents"], json!(3), "{done}");
        assert!(done["sequence"].as_u64().unwrap() > 0);
        assert_sound(&library);
        let mut server = StdioClient::start(binary(), &library);
        let got = server.call("get", json!({ "name": "late", "include_content": true }));
        assert_eq!(got["content"], json!("the last words"));
    }
}

/// Servers that are running while the catalog is rebuilt or lost continue with the new one, or report an error; none
/// writes to a file that will never be read again.
#[test]
fn running_servers_follow_a_recovery() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    add(&library, "first", &noise(9, 300_000));
    let mut server = StdioClient::start(binary(), &library);
    server.call("add", json!({ "name": "second", "content": "words" }));
    let (code, _, err) = shelf(&library, &["recover"]);
    assert!(code != 0 && err.contains("records would be lost"), "an intact catalog is left alone: {err}");
    let (code, out, err) = shelf(&library, &["recover", "--force"]);
    assert_eq!(code, 0, "{out}{err}");
    server.call("add", json!({ "name": "third", "content": "more words" }));
    let listed = shelf(&library, &["list"]).1;
    assert!(listed.contains("first") && listed.contains("third"), "{listed}");
    // The write-ahead log stays, as it does when only the database file is lost.
    std::fs::remove_file(library.join("catalog.db")).unwrap();
    let lost = json!({ "name": "add", "arguments": { "name": "fourth", "content": "lost words" } });
    let reply = server.request("tools/call", lost);
    assert_eq!(reply["result"]["isError"], json!(true), "{reply}");
    assert!(!library.join("catalog.db").exists(), "no empty catalog takes its place");
    assert_eq!(shelf(&library, &["recover"]).0, 0);
    server.call("add", json!({ "name": "fourth", "content": "kept words" }));
    assert!(shelf(&library, &["list"]).1.contains("fourth"));
    assert_eq!(server.call("grep", json!({ "pattern": "kept words" }))["total_matches"], json!(1));
    assert_sound(&library);
}

/// Nothing is deleted because of a catalog that disagrees with its journal, and the good copy is kept.
#[test]
fn a_damaged_catalog_deletes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut server = StdioClient::start(binary(), &library);
    for number in 0..8 {
        server.call("add", json!({ "name": format!("n{number}"), "content": noise(number + 50, 300_000) }));
    }
    assert_eq!(server.finish(), Some(0));
    shelf_catalog::suite::lose_versions(&library, 4);
    let packs = || std::fs::read_dir(library.join("packs")).unwrap().count();
    let before = packs();
    let (code, _, err) = shelf(&library, &["gc", "--keep-last", "1"]);
    assert!(code != 0 && err.contains("nothing was deleted"), "{err}");
    assert_eq!(packs(), before);
    assert_eq!(shelf(&library, &["recover"]).0, 0);
    assert_sound(&library);
    assert_eq!(shelf(&library, &["gc", "--keep-last", "1"]).0, 0);
    let mut server = StdioClient::start(binary(), &library);
    for number in 0..8 {
        let got = server.call("get", json!({ "name": format!("n{number}"), "include_content": true }));
        assert_eq!(got["content"], json!(noise(number + 50, 300_000)));
    }
}

/// A catalog changed by hand can be accepted, and everything continues to work.
#[test]
fn a_changed_catalog_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    add(&library, "a", &noise(1, 300_000));
    add(&library, "b", "words");
    shelf_catalog::suite::tamper(&library, "UPDATE documents SET title = 'by hand' WHERE path = 'a'");
    let (code, out, _) = shelf(&library, &["check"]);
    assert!(code != 0 && out.contains("document a: its title"), "{out}");
    let (code, _, err) = shelf(&library, &["gc"]);
    assert!(code != 0 && err.contains("--keep-catalog"), "{err}");
    assert_eq!(shelf(&library, &["recover", "--keep-catalog"]).0, 0);
    assert_sound(&library);
    assert_eq!(shelf(&library, &["gc"]).0, 0);
    assert!(shelf(&library, &["list", "--json"]).1.contains("by hand"));
}

/// A catalog that was rolled back from outside is detected, and nothing is deleted because of it.
#[test]
fn an_older_catalog_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    add(&library, "one", "1");
    let old = std::fs::read(library.join("catalog.db")).unwrap();
    let mut server = StdioClient::start(binary(), &library);
    server.call("add", json!({ "name": "two", "content": "2 ".repeat(100_000) }));
    assert_eq!(server.finish(), Some(0));
    std::fs::write(library.join("catalog.db"), old).unwrap();
    let (code, _, err) = shelf(&library, &["add", "/etc/hostname"]);
    assert!(code != 0 && err.contains("shelf recover"), "{err}");
    let (code, out, _) = shelf(&library, &["check"]);
    assert!(code != 0 && out.contains("the recovery copy knows of records up to"), "{out}");
    let (code, _, err) = shelf(&library, &["gc"]);
    assert!(code != 0 && err.contains("nothing was deleted") && err.contains("shelf recover"), "{err}");
    assert_eq!(shelf(&library, &["recover"]).0, 0);
    assert_sound(&library);
    assert!(shelf(&library, &["list"]).1.contains("two"));
}

/// The memory of a grep depends on the page size, not on the number of matches times context.
#[test]
fn much_context_takes_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut server = StdioClient::start(binary(), &library);
    server.call("add", json!({ "name": "short", "content": "ab\n".repeat(270_000) }));
    server.call("add", json!({ "name": "long", "content": "abcdefgh\n".repeat(900_000) }));
    for context in [50, 200_000] {
        let found = server.call("grep", json!({ "pattern": "a", "context": context }));
        assert_eq!(found["total_matches"], json!(1_170_000));
        let first = &found["matches"][0];
        assert!(!first["after"].as_array().unwrap().is_empty() && !found["next_cursor"].is_null());
        let next = server
            .call("grep", json!({ "pattern": "a", "context": context, "cursor": found["next_cursor"] }));
        assert!(next["matches"][0]["line_number"].as_u64() > Some(1));
    }
    let found = server.call("search", json!({ "query": "abcdefgh", "context": 200_000 }));
    assert!(found["total"].as_u64() > Some(0));
    assert!(peak_kib(server.id()) < 500_000, "{} KiB", peak_kib(server.id()));
}

/// A damaged row of a loose block is repaired, and does not stop the others.
#[test]
fn a_damaged_loose_block_is_healed() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    add(&library, "a", "the words that will be damaged");
    shelf_catalog::suite::tamper(&library, "UPDATE loose_blocks SET bytes = x'00ffffffff0011'");
    let (code, out, _) = shelf(&library, &["check"]);
    assert!(code != 0 && out.contains("loose"), "{out}");
    let mut server = StdioClient::start(binary(), &library);
    // More than enough to be folded into a pack, which the damaged rows must not prevent.
    for number in 0..160 {
        server.call("add", json!({ "name": format!("n{number}"), "content": noise(number, 90_000) }));
    }
    let folded = Instant::now();
    while std::fs::read_dir(library.join("packs")).map_or(0, Iterator::count) == 0 {
        assert!(folded.elapsed() < Duration::from_secs(20), "nothing was folded");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.call("add", json!({ "name": "a", "content": "the words that will be damaged" }));
    let got = server.call("get", json!({ "name": "a", "include_content": true }));
    assert_eq!(got["content"], json!("the words that will be damaged"));
    server.finish();
    // The listing of the first snapshot was damaged too; garbage collection deletes it.
    assert_eq!(shelf(&library, &["gc", "--keep-last", "1"]).0, 0);
    assert_sound(&library);
}

/// Text that does not compress well.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed * 2 + 1;
    let mut text = String::with_capacity(length);
    while text.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(&format!("{state:x} "));
    }
    text
}

/// Connections that send nothing, or nearly nothing, do not lock others out.
#[test]
fn silent_connections_have_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("library"), &["--no-auth"]);
    let mut idle: Vec<TcpStream> =
        (0..600).filter_map(|_| TcpStream::connect(&server.address).ok()).collect();
    std::thread::sleep(Duration::from_millis(300));
    // Connections beyond the limit per address get an error.
    let told = idle.iter_mut().rev().take(20).map(|stream| {
        let mut reply = String::new();
        stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let _ = stream.read_to_string(&mut reply);
        reply.starts_with("HTTP/1.1 503") && reply.to_lowercase().contains("retry-after")
    });
    assert_eq!(told.filter(|was_told| *was_told).count(), 20);
    idle.truncate(300);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server.tool("", "add", &json!({ "name": "a", "content": "words" })).0, 200);
    assert_eq!(server.tool("", "search", &json!({ "query": "words" })).0, 200);
    // A slow request head times out.
    let mut slow = TcpStream::connect(&server.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    let begun = Instant::now();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// Request bodies of unauthenticated clients must be small, and all large bodies together are bounded.
#[test]
fn unfinished_bodies_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("library"), &[]);
    let mut open = Vec::new();
    for path in ["/auth/login", "/mcp", "/api/v1/tools/add"] {
        for _ in 0..40 {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 31000000\r\n\r\n",
                server.address
            );
            let _ = stream.write_all(head.as_bytes());
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            let _ = stream.write_all(&vec![b' '; 12_000_000]);
            open.push(stream);
        }
    }
    assert_eq!(server.request("GET", "/readyz", &[], "").0, 200);
    assert!(peak_kib(server.child.id()) < 150_000, "{} KiB", peak_kib(server.child.id()));
}

/// Unread replies take a bounded amount of memory, over HTTP and on a stream.
#[test]
fn unread_answers_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let server = Server::start(&library, &["--no-auth"]);
    let content = noise(1, 9_000_000);
    assert_eq!(server.tool("", "add", &json!({ "name": "large", "content": content })).0, 200);
    let body = json!({ "name": "large", "include_content": true }).to_string();
    let request = format!(
        "POST /api/v1/tools/get HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let unread: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(format!("GET /sse HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).unwrap();
    let mut head = [0; 600];
    let mut text = String::new();
    while !text.split_once("session_id=").is_some_and(|(_, rest)| rest.contains('\n')) {
        let count = stream.read(&mut head).unwrap();
        text.push_str(&String::from_utf8_lossy(&head[..count]));
    }
    let session = text.split("session_id=").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let path = format!("/messages?session_id={session}");
    let post = |message: &Value| {
        server.request("POST", &path, &[("Content-Type", "application/json")], &message.to_string()).0
    };
    let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert_eq!(post(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })), 202);
    assert_eq!(post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })), 202);
    let mut refused = 0;
    for id in 1..120 {
        let call = json!({ "name": "get", "arguments": { "name": "large", "include_content": true, "length": 900_000 } });
        let status = post(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }));
        refused += u64::from(status == 503);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(refused > 20, "{refused} refused");
    assert_eq!(server.tool("", "status", &json!({})).0, 200);
    assert!(peak_kib(server.child.id()) < 600_000, "{} KiB", peak_kib(server.child.id()));
    drop(unread);
}

/// A long add, and a garbage collection that waits for it, block nothing else.
#[test]
fn a_waiting_garbage_collection_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let server = Server::start(&library, &["--no-auth"]);
    assert_eq!(server.tool("", "add", &json!({ "name": "a", "content": "words" })).0, 200);
    // Hold the writers' lock, as a long add would.
    let lock = std::fs::File::open(library.join("locks").join("writers.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockShared).unwrap();
    let mut waiting = Command::new(binary())
        .arg("--data-dir")
        .arg(&library)
        .args(["gc", "--wait", "60"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    for number in 0..6 {
        let begun = Instant::now();
        let name = format!("n{number}");
        assert_eq!(server.tool("", "add", &json!({ "name": name, "content": "more words" })).0, 200);
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        assert_eq!(server.tool("", "get", &json!({ "name": name })).0, 200);
    }
    let begun = Instant::now();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(waiting.id() as i32).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let code = waiting.wait().unwrap().code();
    assert!(begun.elapsed() < Duration::from_secs(3) && code != Some(0), "{code:?}");
    let (code, _, err) = shelf(&library, &["gc", "--wait", "2"]);
    assert!(code != 0 && err.contains("adding documents"), "{err}");
    drop(lock);
    assert_eq!(shelf(&library, &["gc"]).0, 0);
}

/// Many waiting writes do not block readers, end at their time limit, and are reported by `/readyz`.
#[test]
fn waiting_writes_keep_no_reader_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    std::fs::write(folder.path().join("shelf.toml"), "[limits]\ncall_seconds = 6\n").unwrap();
    let config = folder.path().join("shelf.toml");
    let server = Server::start(&library, &["--no-auth", "--config", config.to_str().unwrap()]);
    assert_eq!(server.tool("", "add", &json!({ "name": "a", "content": "words" })).0, 200);
    assert_eq!(server.request("GET", "/readyz", &[], "").0, 200);
    let gate = std::fs::File::open(library.join("locks").join("gate.lock")).unwrap();
    rustix::fs::flock(&gate, rustix::fs::FlockOperation::LockExclusive).unwrap();
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let writes: Vec<_> = (0..80)
            .map(|number| {
                let server = &server;
                let arguments = json!({ "name": format!("n{number}"), "content": "more words" });
                scope.spawn(move || server.tool("", "add", &arguments))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(500));
        for _ in 0..10 {
            let read = Instant::now();
            assert_eq!(server.tool("", "get", &json!({ "name": "a" })).0, 200);
            assert_eq!(server.tool("", "search", &json!({ "query": "words" })).0, 200);
            assert!(read.elapsed() < Duration::from_secs(1), "{:?}", read.elapsed());
        }
        assert_eq!(server.request("GET", "/healthz", &[], "").0, 200);
        assert_eq!(server.request("GET", "/readyz", &[], "").0, 503);
        for write in writes {
            let (status, reply) = write.join().unwrap();
            assert!(status == 504 || status == 503, "{status} {reply}");
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    });
    drop(gate);
    assert_eq!(server.request("GET", "/readyz", &[], "").0, 200);
    assert_eq!(server.tool("", "add", &json!({ "name": "b", "content": "words" })).0, 200);
}

/// Special files are reported and skipped; symbolic links are kept as links.
#[test]
fn special_files_are_named_and_links_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (library, tree) = (folder.path().join("library"), folder.path().join("tree"));
    std::fs::create_dir_all(tree.join("deep")).unwrap();
    std::fs::write(tree.join("deep/file.txt"), "words").unwrap();
    std::fs::write(tree.join("secret.txt"), "for nobody").unwrap();
    std::fs::set_permissions(tree.join("secret.txt"), std::fs::Permissions::from_mode(0o000)).unwrap();
    symlink("deep/file.txt", tree.join("inside")).unwrap();
    symlink("../inside", tree.join("deep/up")).unwrap();
    symlink("/etc/passwd", tree.join("outside")).unwrap();
    symlink("../../elsewhere", tree.join("deep/above")).unwrap();
    let pipe = tree.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap();
    let begun = Instant::now();
    let (code, out, err) = shelf(&library, &["add", "--json", tree.to_str().unwrap()]);
    assert!(code == 0 && begun.elapsed() < Duration::from_secs(10), "{err}");
    let reply: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&reply["links"], &reply["files_skipped"]), (&json!(4), &json!(2)), "{reply}");
    let named = |word: &str| {
        reply["skipped"].as_array().unwrap().iter().any(|one| one["reason"].as_str().unwrap().contains(word))
    };
    assert!(named("pipe") && named("socket"), "{reply}");
    assert_ne!(
        shelf(&library, &["add", pipe.to_str().unwrap()]).0,
        0,
        "adding a pipe fails instead of blocking"
    );
    let output = folder.path().join("restored");
    let snapshot = reply["snapshot_id"].as_str().unwrap();
    let restore = json!({ "snapshot_id": snapshot, "output_directory": output });
    let mut server = StdioClient::start(binary(), &library);
    let mut dry = restore.clone();
    dry["dry_run"] = json!(true);
    let planned = server.call("restore", dry);
    let done = server.call("restore", restore);
    assert_eq!(planned["restored_count"], done["restored_count"], "{planned} {done}");
    assert_eq!((&planned["failed_count"], &done["failed_count"]), (&json!(2), &json!(2)), "{done}");
    assert_eq!(std::fs::read_link(output.join("inside")).unwrap(), Path::new("deep/file.txt"));
    assert_eq!(std::fs::read_to_string(output.join("deep/up")).unwrap(), "words");
    assert!(!output.join("outside").is_symlink() && !output.join("deep/above").is_symlink());
    assert!(!std::fs::symlink_metadata(output.join("inside")).unwrap().file_type().is_fifo());
    let mode = std::fs::metadata(output.join("secret.txt")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0, "an unreadable file is restored as unreadable");
    let listed = server.call("list", json!({ "limit": 100 }));
    assert_eq!(listed["total"], json!(2), "links are not documents");
    // A dry run fails wherever the real run would.
    let missing = json!({ "snapshot_id": snapshot, "output_directory": folder.path().join("no/where"), "create_dirs": false });
    for dry_run in [true, false] {
        let mut arguments = missing.clone();
        arguments["dry_run"] = json!(dry_run);
        let reply = server.request("tools/call", json!({ "name": "restore", "arguments": arguments }));
        assert_eq!(reply["result"]["isError"], json!(true), "{reply}");
    }
    assert_sound(&library);
}

/// Memory does not depend on the size of a document, and even a large document is searched to its end.
#[test]
fn large_texts_are_indexed_to_their_end_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (library, file) = (folder.path().join("library"), folder.path().join("large.txt"));
    let mut text = String::from("The kingfisher stands at the beginning.\n");
    for part in 0..40 {
        text.push_str(&"\n".repeat(8_000_000));
        text.push_str(&format!("Part {part} speaks of a heron and marker{part}x.\n"));
    }
    text.push_str("The nightjar sings at the very end.\n");
    std::fs::write(&file, &text).unwrap();
    let lines = text.lines().count();
    drop(text);
    let mut server = StdioClient::start(binary(), &library);
    server.call("add", json!({ "path": file }));
    for (word, line) in [("kingfisher", 1), ("marker17x", 18 * 8_000_001 + 1), ("nightjar", lines)] {
        let found = server.call("search", json!({ "query": word, "type": "keyword", "line_numbers": true }));
        assert_eq!(found["total"], json!(1), "{word}");
        let hit = &found["results"][0];
        assert!(hit.to_string().contains(&format!("{line}")), "{word} on {line}: {hit}");
    }
    let found = server.call("search", json!({ "query": "heron", "type": "keyword" }));
    assert_eq!(found["total"], json!(1), "one document is one hit, however many pieces it has");
    let found = server.call("grep", json!({ "pattern": "nightjar", "before_context": 2 }));
    assert_eq!((&found["total_matches"], &found["matches"][0]["line_number"]), (&json!(1), &json!(lines)));
    assert_eq!(found["matches"][0]["before"].as_array().unwrap().len(), 2);
    let window = server.call(
        "get",
        json!({ "name": "large.txt", "include_content": true, "start_line": lines, "end_line": lines }),
    );
    assert_eq!(window["content"], json!("The nightjar sings at the very end.\n"));
    assert!(peak_kib(server.id()) < 400_000, "{} KiB", peak_kib(server.id()));
    // A new version leaves no pieces of the old one behind.
    std::fs::write(&file, "Only a wren.\n").unwrap();
    server.call("add", json!({ "path": file }));
    assert_eq!(server.call("search", json!({ "query": "heron", "type": "keyword" }))["total"], json!(0));
    assert_eq!(server.call("search", json!({ "query": "wren", "type": "keyword" }))["total"], json!(1));
}

/// Each page continues from what was shown, so that changes in between neither hide nor repeat an unchanged document.
#[test]
fn pages_of_a_search_skip_nothing_while_others_change() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut server = StdioClient::start(binary(), &library);
    for number in 0..120 {
        let content = format!("heron {}", "reed ".repeat(number % 37));
        server.call("add", json!({ "name": format!("kept/{number}"), "content": content }));
        server.call("add", json!({ "name": format!("changing/{number}"), "content": "heron heron heron" }));
    }
    let mut seen = Vec::new();
    let mut arguments = json!({ "query": "heron", "type": "keyword", "limit": 15 });
    for round in 0.. {
        let page = server.call("search", arguments.clone());
        seen.extend(
            page["results"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        arguments["cursor"] = json!(cursor);
        for number in (round * 7..round * 7 + 12).filter(|number| *number < 120) {
            let name = format!("changing/{number}");
            match number % 3 {
                0 => drop(server.call("delete_by_name", json!({ "name": name }))),
                1 => drop(server.call("add", json!({ "name": name, "content": "nothing of that kind" }))),
                _ => drop(server.call("add", json!({ "name": name, "content": "heron ".repeat(50) }))),
            }
        }
    }
    let mut kept: Vec<&String> = seen.iter().filter(|path| path.starts_with("kept/")).collect();
    kept.sort();
    kept.dedup();
    assert_eq!(kept.len(), 120);
    assert_eq!(
        seen.iter().filter(|path| path.starts_with("kept/")).count(),
        120,
        "no document appears twice"
    );
}

/// Even in a folder that others can read, all files of the library are accessible only to the owner.
#[test]
fn files_are_kept_from_other_users() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    std::fs::create_dir(&library).unwrap();
    std::fs::set_permissions(&library, std::fs::Permissions::from_mode(0o755)).unwrap();
    add(&library, "large", &noise(3, 400_000));
    assert_eq!(shelf(&library, &["reindex"]).0, 0);
    let mut folders = vec![library.clone()];
    while let Some(place) = folders.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    // Permissions that are too open are corrected when the library is next opened.
    for name in ["catalog.db", "packs"] {
        std::fs::set_permissions(library.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(shelf(&library, &["list"]).0, 0);
    for name in ["catalog.db", "packs"] {
        let mode = std::fs::metadata(library.join(name)).unwrap().permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{name}");
    }
}

/// Odd requests get useful errors.
#[test]
fn odd_requests_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let server = Server::start(&library, &["--no-auth"]);
    let refused = |tool: &str, arguments: Value| {
        let (status, reply) = server.tool("", tool, &arguments);
        (status, reply["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    let tags: Vec<String> = (0..200_000).map(|number| number.to_string()).collect();
    assert_eq!(refused("list", json!({ "tags": tags })), (413, "too_large".into()));
    assert_eq!(refused("search", json!({ "query": "x", "tags": tags })), (413, "too_large".into()));
    let add = r#"{"name": "n", "content": "c", "metadata": {"a": [18446744073709551616]}}"#;
    let (status, _, body) = server.request("POST", "/api/v1/tools/add", &[], add);
    assert!(status == 400 && body.contains("64 bits"), "{status} {body}");
    let host = server.address.clone();
    assert_eq!(server.request("GET", "/healthz", &[("Host", &host), ("Host", "evil.example")], "").0, 403);
    let origin = ("Origin", "http://127.0.0.1:9@evil.com");
    assert_eq!(server.request("GET", "/healthz", &[origin], "").0, 403);
    for number in 0..300 {
        assert_eq!(
            server.tool("", "create_collection_tool", &json!({ "name": format!("c{number}") })).0,
            200
        );
    }
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let (_, page) = server.tool("", "list_collections", &json!({ "cursor": cursor }));
        assert!(page.to_string().len() < 41_000 && page["total"] == json!(300), "{}", page["total"]);
        names.extend(page["collections"].as_array().unwrap().iter().map(|one| one["name"].to_string()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 300);
}

/// Adding a file that keeps growing comes to an end.
#[test]
fn a_growing_file_is_added_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (library, file) = (folder.path().join("library"), folder.path().join("growing"));
    std::fs::write(&file, noise(5, 20_000_000)).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
            let piece = noise(6, 4_000_000);
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                writer.write_all(piece.as_bytes()).unwrap();
                if writer.metadata().unwrap().len() > 3_000_000_000 {
                    break;
                }
            }
        });
        let begun = Instant::now();
        let (code, _, err) = shelf(&library, &["add", file.to_str().unwrap()]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(code == 0 && begun.elapsed() < Duration::from_secs(30), "{:?} {err}", begun.elapsed());
    });
    let (_, out, _) = shelf(&library, &["list", "--json"]);
    let size = serde_json::from_str::<Value>(&out).unwrap()["documents"][0]["size"].as_u64().unwrap();
    assert!(size < 200_000_000, "{size}: only what was there when the file was opened");
    assert_sound(&library);
}

/// Exceeding a file-size limit is an error and does not kill the process.
#[test]
fn a_file_size_limit_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    add(&library, "a", "words");
    let script = "ulimit -f 200; exec \"$0\" --data-dir \"$1\" add \"$2\"";
    let file = folder.path().join("large");
    std::fs::write(&file, noise(7, 900_000)).unwrap();
    let output =
        Command::new("sh").args(["-c", script]).arg(binary()).arg(&library).arg(&file).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code != 0), "{output:?}");
    assert_sound(&library);
}

/// Changed bytes in the index are detected before they are used.
#[test]
fn a_changed_index_file_is_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("library");
    let mut server = StdioClient::start(binary(), &library);
    for number in 0..600 {
        server.call(
            "add",
            json!({ "name": format!("n{number}"), "content": format!("heron number{number}x") }),
        );
    }
    server.finish();
    let segments = || {
        let entries = std::fs::read_dir(library.join("index")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "seg")).collect::<Vec<_>>()
    };
    let largest =
        || segments().into_iter().max_by_key(|path| std::fs::metadata(path).map_or(0, |found| found.len()));
    // Flip one bit at a time, at many places of a file: no match may be lost.
    for place in 0..60 {
        // Start from an intact index each time.
        assert_eq!(shelf(&library, &["reindex"]).0, 0);
        let path = largest().expect("a segment");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = (bytes.len() - 1) * place / 59;
        bytes[at] ^= 0x04;
        std::fs::write(&path, bytes).unwrap();
        let mut server = StdioClient::start(binary(), &library);
        for number in [3, 577] {
            let found = server.call("grep", json!({ "pattern": format!("number{number}x") }));
            assert_eq!(found["total_matches"], json!(1), "byte {at}");
        }
        let found = server.call("search", json!({ "query": "heron", "type": "keyword" }));
        assert_eq!(found["total"], json!(600), "byte {at}");
    }
}
