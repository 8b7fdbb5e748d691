//! Assets of books: stored with the call or by a URL, served to who has the address, and archived with the book.

use std::{fs::File, io::Read as _, path::PathBuf, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use shelf_base::{CallContext, Digest};
use shelf_engine::{BookError, Caller, Library};
use shelf_testkit::{TestLibrary, error_of};

const BOOK: &str = "ai-native-python";
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn error(library: &TestLibrary, tool: &str, arguments: Value) -> Value {
    serde_json::from_str(&error_of(library.call(tool, arguments))).unwrap()
}

fn upload(library: &TestLibrary, name: &str, data: &str) -> Value {
    let arguments = json!({ "book_id": BOOK, "asset_type": "images", "filename": name, "binary_data": data });
    library.ok("upload_asset", arguments)
}

/// A caller who reached the server over HTTP.
fn over_http() -> Caller {
    Caller { base_url: Some("http://library.test:7433".into()), ..Caller::owner() }
}

fn of_file_url(url: &Value) -> PathBuf {
    let path = url.as_str().unwrap().strip_prefix("file://").unwrap();
    PathBuf::from(percent_encoding::percent_decode_str(path).decode_utf8().unwrap().into_owned())
}

#[test]
fn an_asset_is_stored_described_and_listed_as_the_contract_says() {
    let library = TestLibrary::new();
    let path = format!("books/{BOOK}/assets/images/diagram.png");
    let stored = upload(&library, "diagram.png", PIXEL);
    for (field, value) in [
        ("status", json!("success")),
        ("method", json!("direct")),
        ("mime_type", json!("image/png")),
        ("path", json!(path)),
        ("file_size", json!(STANDARD.decode(PIXEL).unwrap().len())),
    ] {
        assert_eq!(stored[field], value, "{field}");
    }
    let place = json!({ "book_id": BOOK, "asset_type": "images", "filename": "diagram.png" });
    let got = library.ok("get_asset", place);
    for (field, value) in [
        ("uploaded_by_agent_id", "system"),
        ("asset_type", "images"),
        ("filename", "diagram.png"),
        ("mime_type", "image/png"),
    ] {
        assert_eq!(got[field], value, "{field}");
    }
    assert!(got["upload_timestamp"].as_str().unwrap().ends_with('Z'));
    // Without a server, the address is a file with the very bytes.
    assert_eq!(std::fs::read(of_file_url(&got["cdn_url"])).unwrap(), STANDARD.decode(PIXEL).unwrap());
    let listed = library.ok("list_assets", json!({ "book_id": BOOK }));
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0], got);
    let slides = json!({ "book_id": BOOK, "asset_type": "slides" });
    assert_eq!(library.ok("list_assets", slides), json!([]));
    assert_eq!(library.ok("list_assets", json!({ "book_id": "no-such-book" })), json!([]));
    let missing = json!({ "book_id": BOOK, "asset_type": "videos", "filename": "diagram.png" });
    let missing = error(&library, "get_asset", missing);
    assert_eq!(missing["error"], "ContentNotFoundError");
    assert_eq!(missing["path"], format!("books/{BOOK}/assets/videos/diagram.png"));
}

#[test]
fn names_are_cleaned_and_never_meet() {
    let library = TestLibrary::new();
    let names = ["a b.png", "a_b.png", "a*b.png", "größe.png", "gröſse.png", "A_B.png"];
    let stored: Vec<Value> =
        names.iter().map(|name| upload(&library, name, &STANDARD.encode(name))["path"].clone()).collect();
    let mut distinct = stored.clone();
    distinct.sort_by_key(Value::to_string);
    distinct.dedup();
    assert_eq!(distinct.len(), names.len(), "{stored:?}");
    assert_eq!(stored[3], format!("books/{BOOK}/assets/images/größe.png"), "letters of any script stay");
    for (name, path) in names.iter().zip(&stored) {
        let stored_name = path.as_str().unwrap().rsplit('/').next().unwrap();
        // The name that was given and the one it is stored under both find it.
        for asked in [name, stored_name] {
            let place = json!({ "book_id": BOOK, "asset_type": "images", "filename": asked });
            let got = library.ok("get_asset", place);
            assert_eq!(got["filename"], stored_name);
            assert_eq!(std::fs::read(of_file_url(&got["cdn_url"])).unwrap(), name.as_bytes());
        }
    }
    let before =
        library.ok("get_asset", json!({ "book_id": BOOK, "asset_type": "images", "filename": "a b.png" }));
    upload(&library, "a b.png", &STANDARD.encode("new"));
    let after =
        library.ok("get_asset", json!({ "book_id": BOOK, "asset_type": "images", "filename": "a b.png" }));
    assert_eq!(before["filename"], after["filename"], "the same name is a new version");
    assert_ne!(before["sha256"], after["sha256"]);
}

#[test]
fn wrong_uploads_are_refused_with_the_contracts_names() {
    let library = TestLibrary::new();
    let large = STANDARD.encode(vec![0_u8; 10 << 20]);
    for (change, name) in [
        (json!({ "asset_type": "pictures" }), "ValidationError"),
        (json!({ "binary_data": "not base64!" }), "ValidationError"),
        (json!({ "binary_data": "QUJD=" }), "ValidationError"),
        (json!({ "binary_data": "QUI\n" }), "ValidationError"),
        (json!({ "binary_data": "" }), "ValidationError"),
        (json!({ "binary_data": large }), "ValidationError"),
        (json!({ "binary_data": null }), "ValidationError"),
        (json!({ "file_size": 5 }), "ValidationError"),
        (json!({ "binary_data": null, "file_size": 0 }), "ValidationError"),
        (json!({ "binary_data": null, "file_size": 6_u64 << 30 }), "ValidationError"),
        (json!({ "binary_data": null, "file_size": -1 }), "ValidationError"),
        (json!({ "book_id": "No" }), "ValidationError"),
        (json!({ "filename": "../x.png" }), "InvalidPathError"),
        (json!({ "filename": "x\u{0}.png" }), "InvalidPathError"),
        (json!({ "filename": "%2e%2e%2fx.png" }), "InvalidPathError"),
        (json!({ "filename": "a\u{ff0f}b.png" }), "InvalidPathError"),
    ] {
        let mut arguments =
            json!({ "book_id": BOOK, "asset_type": "images", "filename": "x.png", "binary_data": "QUJD" });
        for (field, value) in change.as_object().unwrap() {
            arguments[field] = value.clone();
        }
        let shown = change.to_string();
        assert_eq!(
            error(&library, "upload_asset", arguments)["error"],
            name,
            "{}",
            &shown[..shown.len().min(80)]
        );
    }
    assert_eq!(library.ok("list_books", json!({})), json!([]), "nothing was made");
    let agreeing = json!({
        "book_id": BOOK, "asset_type": "images", "filename": "x.png", "binary_data": "QUJD", "file_size": 3
    });
    assert_eq!(library.ok("upload_asset", agreeing)["method"], "direct");
}

#[test]
fn a_capability_opens_one_asset_and_a_public_book_needs_none() {
    let library = TestLibrary::new();
    upload(&library, "one.png", PIXEL);
    upload(&library, "two.png", PIXEL);
    let place = |name: &str| json!({ "book_id": BOOK, "asset_type": "images", "filename": name });
    let url = |name: &str| {
        library.ok_as(&over_http(), "get_asset", place(name))["cdn_url"].as_str().unwrap().to_owned()
    };
    let one = url("one.png");
    let start = format!("http://library.test:7433/cdn/books/{BOOK}/assets/images/one.png?k=");
    let key = one.strip_prefix(&start).unwrap_or_else(|| panic!("{one}"));
    let opens = |path: &str, key: Option<&str>| {
        library.library.open_asset(BOOK, path, key).unwrap().map(|asset| asset.mime)
    };
    let (first, second) = ("assets/images/one.png", "assets/images/two.png");
    assert_eq!(opens(first, Some(key)).as_deref(), Some("image/png"));
    for (path, key) in [(first, None), (first, Some("")), (first, Some("AAAA")), (second, Some(key))] {
        assert_eq!(opens(path, key), None, "{path} {key:?}");
    }
    assert_eq!(library.library.open_asset("other-book", first, Some(key)).unwrap(), None);
    let change = shelf_engine::BookChange { is_public: Some(true), ..Default::default() };
    library.library.set_book(&Caller::owner(), BOOK, &change, &CallContext::new()).unwrap();
    assert!(opens(second, None).is_some());
    assert!(!url("one.png").contains('?'));
    // Lessons are not assets, public or not.
    library.ok("write_content", json!({ "book_id": BOOK, "path": "lessons/a.md", "content": "x" }));
    assert_eq!(opens("lessons/a.md", None), None);
}

fn awaited(library: &TestLibrary, name: &str, size: u64) -> (String, Value) {
    let arguments = json!({ "book_id": BOOK, "asset_type": "videos", "filename": name, "file_size": size });
    let reply = library.ok_as(&over_http(), "upload_asset", arguments);
    let url = reply["upload_url"].as_str().unwrap();
    (url.strip_prefix("http://library.test:7433/uploads/").unwrap().to_owned(), reply)
}

fn send(library: &Library, ticket: &str, bytes: &[u8]) -> Result<shelf_engine::Asset, BookError> {
    let mut upload = library.open_upload(ticket, Some(bytes.len() as u64))?;
    for piece in bytes.chunks(1_000) {
        upload.write(piece)?;
    }
    library.complete_upload(upload, &CallContext::new())
}

fn parts(library: &TestLibrary) -> usize {
    std::fs::read_dir(library.path("library/uploads")).map_or(0, Iterator::count)
}

#[test]
fn an_upload_url_takes_its_asset_once() {
    let library = TestLibrary::new();
    let bytes = vec![7_u8; 200_000];
    let (ticket, reply) = awaited(&library, "tutorial.mp4", bytes.len() as u64);
    assert_eq!((&reply["status"], &reply["method"]), (&json!("success"), &json!("presigned")));
    assert_eq!(reply["path"], format!("books/{BOOK}/assets/videos/tutorial.mp4"));
    for field in ["expires_at", "upload_id", "cdn_url"] {
        assert!(reply[field].is_string(), "{field}");
    }
    // What breaks off leaves nothing, and the address still works.
    let mut broken = library.library.open_upload(&ticket, None).unwrap();
    broken.write(&bytes[..1_000]).unwrap();
    assert_eq!(parts(&library), 1);
    assert_eq!(
        library.library.complete_upload(broken, &CallContext::new()).unwrap_err().name(),
        "ValidationError"
    );
    let mut longer = library.library.open_upload(&ticket, None).unwrap();
    longer.write(&bytes).unwrap();
    assert!(longer.write(b"x").is_err());
    drop(longer);
    assert_eq!(parts(&library), 0);
    assert_eq!(library.library.open_upload(&ticket, Some(3)).unwrap_err().name(), "ValidationError");
    assert_eq!(library.ok("list_assets", json!({ "book_id": BOOK })), json!([]));
    let asset = send(&library.library, &ticket, &bytes).unwrap();
    assert_eq!((asset.hash, asset.size), (Digest::of(&bytes), bytes.len() as u64));
    assert_eq!(send(&library.library, &ticket, &bytes).unwrap_err().name(), "ConflictError");
    let place = json!({ "book_id": BOOK, "asset_type": "videos", "filename": "tutorial.mp4" });
    assert_eq!(library.ok("get_asset", place)["sha256"], Digest::of(&bytes).to_string());
    assert_eq!(parts(&library), 0);
}

#[test]
fn of_two_senders_at_one_address_the_first_complete_one_wins() {
    let library = TestLibrary::new();
    let (ticket, _) = awaited(&library, "a.mp4", 3);
    let mut first = library.library.open_upload(&ticket, None).unwrap();
    let mut second = library.library.open_upload(&ticket, None).unwrap();
    first.write(b"one").unwrap();
    second.write(b"two").unwrap();
    library.library.complete_upload(second, &CallContext::new()).unwrap();
    let late = library.library.complete_upload(first, &CallContext::new()).unwrap_err();
    assert_eq!(late.name(), "ConflictError");
    let place = json!({ "book_id": BOOK, "asset_type": "videos", "filename": "a.mp4" });
    assert_eq!(library.ok("get_asset", place)["sha256"], Digest::of(b"two").to_string());
}

#[test]
fn addresses_that_were_changed_or_have_expired_are_refused() {
    let library = TestLibrary::with_clock();
    let (ticket, _) = awaited(&library, "a.mp4", 3);
    let refused = |ticket: &str| library.library.open_upload(ticket, None).unwrap_err().name();
    for at in 0..ticket.len() {
        let mut changed = ticket.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        // The last character of base64 carries bits that do not count.
        if changed != ticket && at + 1 < ticket.len() {
            assert_eq!(refused(&changed), "ValidationError", "changed at {at}");
        }
    }
    let clock = library.clock.as_ref().unwrap();
    clock.advance(Duration::from_secs(3_599));
    assert!(library.library.open_upload(&ticket, None).is_ok());
    clock.advance(Duration::from_secs(2));
    assert_eq!(refused(&ticket), "ValidationError");
}

#[test]
fn an_upload_of_a_deactivated_account_is_refused() {
    let library = TestLibrary::new();
    let user = library.user("alice", false);
    let caller = Caller { base_url: Some("http://library.test:7433".into()), ..library.caller("alice") };
    let arguments = json!({ "book_id": BOOK, "asset_type": "audio", "filename": "a.mp3", "file_size": 3 });
    let reply = library.ok_as(&caller, "upload_asset", arguments);
    let ticket = reply["upload_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    library.ok("update_user_tool", json!({ "user_id": user.id.to_string(), "is_active": false }));
    assert_eq!(send(&library.library, &ticket, b"abc").unwrap_err().name(), "ValidationError");
}

#[test]
fn an_archive_holds_the_whole_book_and_is_made_once() {
    let library = TestLibrary::with_clock();
    let lesson = "# Ünïcode\r\n\ntrailing  \n";
    for (path, content) in
        [("lessons/part-1/a.md", lesson), ("lessons/b.md", "b"), ("notes/x.md", "kept too")]
    {
        library.ok("write_content", json!({ "book_id": BOOK, "path": path, "content": content }));
    }
    library.ok("write_summary", json!({ "book_id": BOOK, "chapter_id": "chapter-01", "content": "summary" }));
    upload(&library, "größe.png", PIXEL);
    let reply = library.ok("get_book_archive", json!({ "book_id": BOOK }));
    for (field, value) in [
        ("status", json!("success")),
        ("format", json!("zip")),
        ("valid_for_seconds", json!(3600)),
        ("file_count", json!(6)),
    ] {
        assert_eq!(reply[field], value, "{field}");
    }
    let file = of_file_url(&reply["archive_url"]);
    let mut archive = zip::ZipArchive::new(File::open(&file).unwrap()).unwrap();
    let mut total = 0;
    for (path, content) in [
        ("lessons/part-1/a.md", Some(lesson.as_bytes().to_vec())),
        ("chapters/chapter-01/.summary.md", Some(b"summary".to_vec())),
        ("assets/images/größe.png", Some(STANDARD.decode(PIXEL).unwrap())),
        ("notes/x.md", Some(b"kept too".to_vec())),
        ("lessons/b.md", Some(b"b".to_vec())),
        ("book.yaml", None),
    ] {
        let mut bytes = Vec::new();
        archive.by_name(path).unwrap_or_else(|_| panic!("{path}")).read_to_end(&mut bytes).unwrap();
        total += bytes.len();
        if let Some(content) = content {
            assert_eq!(bytes, content, "{path}");
        }
    }
    assert_eq!((archive.len(), reply["total_size_bytes"].as_u64()), (6, Some(total as u64)));
    // Nothing has changed: the same file is given again.
    let written = std::fs::metadata(&file).unwrap();
    let again = library.ok("get_book_archive", json!({ "book_id": BOOK }));
    assert_eq!(again["manifest_hash"], reply["manifest_hash"]);
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(&file).unwrap().ino(), written.ino());
    library.ok("write_content", json!({ "book_id": BOOK, "path": "lessons/b.md", "content": "c" }));
    let changed = library.ok("get_book_archive", json!({ "book_id": BOOK }));
    assert_ne!(changed["manifest_hash"], reply["manifest_hash"]);
    // Over HTTP the address is signed, and dies.
    let served = library.ok_as(&over_http(), "get_book_archive", json!({ "book_id": BOOK }));
    let url = served["archive_url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://library.test:7433/archives/{BOOK}-")), "{url}");
    let proof = url.split_once("?k=").unwrap().1;
    assert!(library.library.open_archive(proof).unwrap().is_some());
    assert!(library.library.open_archive(&proof[1..]).unwrap().is_none());
    library.clock.as_ref().unwrap().advance(Duration::from_secs(3_601));
    assert!(library.library.open_archive(proof).unwrap().is_none());
    library.library.clear_archives();
    assert_eq!(std::fs::read_dir(library.path("library/archives")).unwrap().count(), 0, "they are removed");
    let unknown = error(&library, "get_book_archive", json!({ "book_id": "no-such-book" }));
    assert_eq!(
        (&unknown["error"], &unknown["path"]),
        (&json!("ContentNotFoundError"), &json!("books/no-such-book"))
    );
}

#[test]
fn an_asset_is_had_by_the_name_that_lists_show_and_deleted_by_its_path() {
    let library = TestLibrary::new();
    let upload = |name: &str, data: &str| {
        let mut place = json!({ "book_id": "some-book", "asset_type": "images", "filename": name });
        place["binary_data"] = json!(data);
        library.ok("upload_asset", place);
    };
    upload("a b.png", "QUJD");
    let list = || library.ok("list_assets", json!({ "book_id": "some-book" }));
    let listed = list()[0].clone();
    let stored = listed["filename"].as_str().unwrap();
    upload(stored, "REVG");
    let get = |name: &str| {
        library.ok("get_asset", json!({ "book_id": "some-book", "asset_type": "images", "filename": name }))
    };
    assert_eq!(get(stored)["sha256"], listed["sha256"]);
    assert_eq!(get("a b.png")["sha256"], listed["sha256"]);
    upload("größe.png", "QUJD");
    let place = json!({ "book_id": "some-book", "path": "assets/images/größe.png" });
    let gone = library.ok("delete_content", place);
    assert_eq!(gone["existed"], true);
    assert_eq!(list().as_array().unwrap().len(), 2);
}
