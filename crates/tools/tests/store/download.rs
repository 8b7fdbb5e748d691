//! `download`, against a test server.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use shelf_base::{CallContext, Digest};
use shelf_engine::{Caller, DownloadRequest, DownloadSettings, FileAccess, Options};
use shelf_testkit::{TestLibrary, error_of};

/// The content of every complete response.
fn content() -> Vec<u8> {
    (0..300_000_u32).flat_map(|number| number.to_le_bytes()).collect()
}

/// A server that answers each path differently, until the test ends.
struct Web {
    address: String,
    asked: Arc<AtomicUsize>,
}

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = counter.clone();
                thread::spawn(move || answer(stream, &counter));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

fn answer(mut stream: TcpStream, asked: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut range, mut header) = (None, String::new());
    loop {
        header.clear();
        reader.read_line(&mut header).ok()?;
        let lower = header.trim().to_lowercase();
        if let Some(start) = lower.strip_prefix("range: bytes=").and_then(|rest| rest.strip_suffix('-')) {
            range = start.parse::<usize>().ok();
        }
        if lower.is_empty() {
            break;
        }
    }
    asked.fetch_add(1, Ordering::SeqCst);
    let all = content();
    let mut send = |head: &str, body: &[u8]| {
        let _ = stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes());
        let _ = stream.write_all(body);
    };
    let length = all.len();
    match path.split('?').next()? {
        "/files/whole.bin" | "/" => send(&format!("200 OK\r\nContent-Length: {length}"), &all),
        "/named" => send(
            "200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; \
             filename=\"../quarterly report.txt\"",
            b"hi",
        ),
        "/moved" => send("302 Found\r\nLocation: /files/whole.bin?x=1\r\nContent-Length: 0", b""),
        "/around" => send("302 Found\r\nLocation: /around\r\nContent-Length: 0", b""),
        "/to-a-file" => send("302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0", b""),
        "/with-password" => {
            send("302 Found\r\nLocation: http://me:secret@127.0.0.1/\r\nContent-Length: 0", b"")
        }
        "/broken" => match range {
            // Sends two thirds and closes the connection; a range request gets the rest.
            None => {
                send(&format!("200 OK\r\nContent-Length: {length}\r\nETag: \"v1\""), &all[..length / 3 * 2])
            }
            Some(start) => send(
                &format!(
                    "206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{length}\r\nETag: \"v1\"",
                    length - start,
                    length - 1
                ),
                &all[start..],
            ),
        },
        // The same, but the rest does not match the first part, so the two must not be joined.
        "/other-tag" | "/no-tag" | "/other-total" | "/unknown-total" | "/weak" | "/longer" => match range {
            None => {
                let tag = if path == "/weak" { "W/\"v1\"" } else { "\"v1\"" };
                let first = asked.load(Ordering::SeqCst) == 1;
                let body = if first { vec![b'o'; length / 2] } else { all.clone() };
                send(
                    &format!(
                        "200 OK\r\nContent-Length: {length}\r\nETag: {tag}\r\nLast-Modified: Sun, 01 Nov 2026 00:00:00 GMT"
                    ),
                    &body,
                );
            }
            Some(start) => {
                let (tag, total, body) = match path.as_str() {
                    "/other-tag" => ("ETag: \"v2\"", length.to_string(), &all[start..]),
                    "/no-tag" => ("X: y", length.to_string(), &all[start..]),
                    "/other-total" => ("ETag: \"v1\"", (length + 2).to_string(), &all[start..]),
                    "/unknown-total" => ("ETag: \"v1\"", "*".to_owned(), &all[start..start + 10]),
                    _ => ("ETag: \"v1\"", length.to_string(), &all[..]),
                };
                let last = start + body.len() - 1;
                send(
                    &format!(
                        "206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{last}/{total}\r\n{tag}",
                        body.len()
                    ),
                    body,
                );
            }
        },
        "/unasked" => send(
            "206 Partial Content\r\nContent-Length: 5\r\nContent-Range: bytes 0-4/10\r\nETag: \"v1\"",
            b"12345",
        ),
        "/small-steps" => {
            let start = range.unwrap_or(0);
            let end = (start + 100_000).min(length);
            let head = if start == 0 {
                format!("200 OK\r\nContent-Length: {length}")
            } else {
                format!(
                    "206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{length}",
                    end - start,
                    end - 1
                )
            };
            send(&format!("{head}\r\nETag: \"v1\""), &all[start..end]);
        }
        "/packed.html" => send("200 OK\r\nContent-Length: 4\r\nContent-Encoding: gzip", &[0x1F, 0x8B, 8, 0]),
        "/always-broken" => send(&format!("200 OK\r\nContent-Length: {length}"), &all[..100]),
        "/large" => send("200 OK\r\nContent-Length: 99999999999", b"begin"),
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            while stream.write_all(&[b'x'; 65_536]).is_ok() {}
        }
        "/silent" => thread::sleep(Duration::from_secs(20)),
        "/unable" => send("503 Service Unavailable\r\nContent-Length: 0", b""),
        "/forbidden" => send("403 Forbidden\r\nContent-Length: 0", b""),
        _ => send("404 Not Found\r\nContent-Length: 0", b""),
    }
    Some(())
}

fn library(settings: DownloadSettings) -> TestLibrary {
    TestLibrary::with(Options { download: settings, ..Options::default() })
}

fn open() -> DownloadSettings {
    DownloadSettings { private_addresses: true, ..DownloadSettings::default() }
}

fn documents(library: &TestLibrary) -> u64 {
    library.ok("list", json!({}))["total"].as_u64().unwrap()
}

#[test]
fn what_is_downloaded_is_stored_with_its_name_and_origin() {
    let (web, library) = (Web::start(), library(open()));
    let hash = Digest::of(&content()).to_string();
    let whole =
        library.ok("download", json!({ "url": web.url("/files/whole.bin?v=2#part"), "tags": ["web"] }));
    assert_eq!((&whole["hash"], &whole["path"]), (&json!(hash), &json!("whole.bin")));
    assert_eq!((whole["size"].as_u64(), whole.get("checksum_ok")), (Some(1_200_000), None));
    let got = library.ok("get", json!({ "name": "whole.bin" }));
    assert_eq!(got["metadata"]["source_url"], web.url("/files/whole.bin?v=2"));
    assert_eq!((&got["tags"], &got["size"]), (&json!(["web"]), &json!(1_200_000)));
    let sums = [
        format!("sha256:{hash}"),
        format!("SHA256:{}", hash.to_uppercase()),
        format!("blake3:{}", blake3::hash(&content()).to_hex()),
    ];
    for sum in sums {
        let reply = library.ok("download", json!({ "url": web.url("/files/whole.bin"), "checksum": sum }));
        assert_eq!(reply["checksum_ok"], true, "{sum}");
    }
    let named = library.ok("download", json!({ "url": web.url("/named"), "collection": "papers" }));
    assert_eq!((&named["path"], &named["collection"]), (&json!("named"), &json!("papers")));
    let named = library.ok("get", json!({ "name": "named" }));
    assert_eq!(named["metadata"]["filename"], ".._quarterly report.txt");
    let moved = library.ok("download", json!({ "url": web.url("/moved"), "name": "notes/moved.bin" }));
    assert_eq!((&moved["path"], &moved["hash"]), (&json!("notes/moved.bin"), &json!(hash)));
    let moved = library.ok("get", json!({ "name": "notes/moved.bin" }));
    assert_eq!(moved["metadata"]["final_url"], web.url("/files/whole.bin?x=1"));
    let rootless = library.ok("download", json!({ "url": web.address }));
    assert_eq!(rootless["path"], "127.0.0.1");
    assert_eq!(
        std::fs::read_dir(library.path("library/downloads")).unwrap().count(),
        0,
        "no temporary files are left"
    );
}

#[test]
fn what_breaks_off_is_taken_up_where_it_ended() {
    let (web, library) = (Web::start(), library(open()));
    let reply = library.ok("download", json!({ "url": web.url("/broken") }));
    assert_eq!(reply["hash"], Digest::of(&content()).to_string());
    assert_eq!(web.asked.load(Ordering::SeqCst), 2, "once for the beginning, once for the rest");
    let error = error_of(library.call("download", json!({ "url": web.url("/always-broken") })));
    assert!(error.contains("127.0.0.1") && documents(&library) == 1, "{error}");
}

#[test]
fn two_contents_are_never_glued_together() {
    for path in ["/other-tag", "/no-tag", "/other-total", "/unknown-total", "/weak", "/longer"] {
        let (web, library) = (Web::start(), library(open()));
        match library.call("download", json!({ "url": web.url(path) })) {
            Ok(reply) => assert_eq!(reply["hash"], Digest::of(&content()).to_string(), "{path}"),
            Err(_) => assert_eq!(documents(&library), 0, "{path}"),
        }
    }
    let (web, library) = (Web::start(), library(open()));
    assert!(library.call("download", json!({ "url": web.url("/unasked") })).is_err());
    let reply = library.ok("download", json!({ "url": web.url("/small-steps") }));
    assert_eq!(reply["hash"], Digest::of(&content()).to_string());
    let packed = library.ok("download", json!({ "url": web.url("/packed.html") }));
    assert_eq!(library.ok("get", json!({ "hash": packed["hash"] }))["metadata"]["content_encoding"], "gzip");
    assert_eq!(
        std::fs::read_dir(library.path("library/downloads")).unwrap().count(),
        0,
        "no temporary files are left"
    );
}

#[test]
fn silent_machines_hold_nobody_up() {
    let (web, library) = (Web::start(), library(open()));
    let calls: Vec<CallContext> = (0..5).map(|_| CallContext::new()).collect();
    thread::scope(|scope| {
        let library = &library;
        let web = &web;
        let running: Vec<_> = calls
            .iter()
            .enumerate()
            .map(|(number, call)| {
                let request = DownloadRequest {
                    url: web.url(&format!("/silent?{number}")),
                    ..DownloadRequest::default()
                };
                scope.spawn(move || library.library.download(&Caller::owner(), &request, call))
            })
            .collect();
        thread::sleep(Duration::from_millis(400));
        let began = Instant::now();
        calls.iter().for_each(CallContext::cancel);
        let ended: Vec<String> =
            running.into_iter().map(|one| one.join().unwrap().unwrap_err().to_string()).collect();
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        let refused = ended.iter().filter(|text| text.contains("too many downloads of yours")).count();
        assert_eq!(refused, 1, "{ended:?}");
    });
}

#[test]
fn what_was_said_of_another_download_does_not_stay() {
    let (web, library) = (Web::start(), library(open()));
    library.ok("download", json!({ "url": web.url("/named"), "name": "x", "metadata": { "mine": 1 } }));
    library.ok("download", json!({ "url": web.url("/moved"), "name": "x" }));
    let metadata = library.ok("get", json!({ "name": "x" }))["metadata"].clone();
    assert_eq!(metadata["source_url"], web.url("/moved"));
    assert_eq!((&metadata["filename"], &metadata["mine"]), (&json!("moved"), &json!(1)));
    assert_eq!(metadata["content_type"], "application/octet-stream");
}

#[test]
fn a_wrong_sum_stores_nothing() {
    let (web, library) = (Web::start(), library(open()));
    let sum = format!("sha256:{}", "0".repeat(64));
    let error = error_of(library.call("download", json!({ "url": web.url("/named"), "checksum": sum })));
    assert!(error.contains("instead of sha256:0000") && error.contains("nothing was stored"), "{error}");
    assert_eq!(documents(&library), 0);
    for checksum in ["sha1:00", "sha256:12", "e3b0c442"] {
        let asked = web.asked.load(Ordering::SeqCst);
        let error =
            error_of(library.call("download", json!({ "url": web.url("/named"), "checksum": checksum })));
        assert!(error.starts_with("Error: checksum must be"), "{error}");
        assert_eq!(web.asked.load(Ordering::SeqCst), asked, "no request was sent");
    }
}

#[test]
fn bounds_hold() {
    let web = Web::start();
    let small = library(DownloadSettings { most_bytes: 1 << 20, time: Duration::from_secs(2), ..open() });
    for path in ["/large", "/files/whole.bin", "/endless"] {
        let error = error_of(small.call("download", json!({ "url": web.url(path) })));
        assert!(error.contains("larger than 1 MiB"), "{path}: {error}");
    }
    let began = Instant::now();
    let error = error_of(small.call("download", json!({ "url": web.url("/silent") })));
    assert!(error.contains("longer than 2 s") && began.elapsed() < Duration::from_secs(10), "{error}");
    assert_eq!(documents(&small), 0);
    let cancelled = library(DownloadSettings { time: Duration::from_secs(60), ..open() });
    let call = CallContext::new();
    let stop = call.clone();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        stop.cancel();
    });
    let request = DownloadRequest { url: web.url("/endless"), ..DownloadRequest::default() };
    let outcome = cancelled.library.download(&Caller::owner(), &request, &call);
    assert!(matches!(outcome, Err(shelf_engine::Error::Stopped(_))), "{outcome:?}");
    stopper.join().unwrap();
}

#[test]
fn hostile_addresses_are_refused() {
    let (web, closed) = (Web::start(), library(DownloadSettings::default()));
    let port = web.address.rsplit(':').next().unwrap();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "2130706433",
        "0x7f.1",
        "127.1",
        "017700000001",
        "127.0.0.1.",
    ] {
        let url = format!("http://{host}:{port}/named");
        let error = error_of(closed.call("download", json!({ "url": url })));
        assert!(error.contains("private") || error.contains("no host"), "{url}: {error}");
    }
    assert_eq!(web.asked.load(Ordering::SeqCst), 0, "no request was sent");
    let open = library(open());
    let refused = |url: String| error_of(open.call("download", json!({ "url": url })));
    for (url, part) in [
        ("file:///etc/passwd".to_owned(), "must begin with http"),
        ("ftp://example.org/x".to_owned(), "must begin with http"),
        ("javascript:alert(1)".to_owned(), "must begin with http"),
        ("no address".to_owned(), "is no address"),
        ("http://".to_owned(), "is no address"),
        ("http://me:secret@127.0.0.1/".to_owned(), "user name or password"),
        (format!("http://127.0.0.1/{}", "x".repeat(5_000)), "larger than"),
        ("http://nowhere.invalid/x".to_owned(), "no host of that name"),
        (web.url("/around"), "redirects"),
        (web.url("/to-a-file"), "a redirect was refused"),
        (web.url("/with-password"), "a redirect was refused"),
        (web.url("/nothing"), "404"),
        (web.url("/forbidden"), "403"),
        (web.url("/unable"), "503"),
    ] {
        let error = refused(url.clone());
        assert!(error.contains(part) && !error.contains("secret"), "{url}: {error}");
    }
    let name = json!({ "url": web.url("/named"), "name": "../outside" });
    assert!(open.call("download", name).is_err());
    assert_eq!(documents(&open), 0);
}

#[test]
fn over_http_it_must_be_switched_on() {
    let web = Web::start();
    for over_http in [false, true] {
        let library = library(DownloadSettings { over_http, ..open() });
        let caller = Caller { file_access: FileAccess::Configured, ..Caller::owner() };
        let outcome = library.call_as(&caller, "download", json!({ "url": web.url("/named") }));
        match outcome {
            Ok(reply) => assert_eq!((over_http, &reply["size"]), (true, &json!(2))),
            Err(failure) => {
                assert!(!over_http && failure.message.contains("off over HTTP"), "{}", failure.message);
                assert!(failure.hints[0].contains("download.over_http"), "{:?}", failure.hints);
            }
        }
    }
}
