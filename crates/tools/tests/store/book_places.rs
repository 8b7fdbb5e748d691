//! Where files of books are: paths that only one of two may have, names that find an asset, copies that are what they
//! should be, and the words in which a refusal names them.

use std::{fs, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use shelf_base::{CallContext, Kind};
use shelf_engine::{BookChange, BookStatus, Caller};
use shelf_testkit::{TestLibrary, error_of, tree};

const BOOK: &str = "ai-native-python";

fn error(library: &TestLibrary, tool: &str, arguments: Value) -> Value {
    serde_json::from_str(&error_of(library.call(tool, arguments))).unwrap()
}

fn lesson(path: &str) -> Value {
    json!({ "book_id": BOOK, "path": path, "content": "x" })
}

fn image(name: &str, bytes: &[u8]) -> Value {
    let data = STANDARD.encode(bytes);
    json!({ "book_id": BOOK, "asset_type": "images", "filename": name, "binary_data": data })
}

fn place(name: &str) -> Value {
    json!({ "book_id": BOOK, "asset_type": "images", "filename": name })
}

fn file_of(url: &Value) -> PathBuf {
    let path = url.as_str().unwrap().strip_prefix("file://").unwrap_or_else(|| panic!("{url}"));
    PathBuf::from(percent_encoding::percent_decode_str(path).decode_utf8().unwrap().into_owned())
}

#[test]
fn a_path_is_a_file_or_a_folder() {
    let library = TestLibrary::new();
    library.ok("write_content", lesson("col"));
    library.ok("write_content", lesson("a/b/c.md"));
    for (path, why) in [
        ("col/y.md", "'col', which is a file"),
        ("col/y/z.md", "'col', which is a file"),
        ("a", "is a folder"),
        ("a/b", "is a folder"),
    ] {
        let refused = error(&library, "write_content", lesson(path));
        assert_eq!(
            (&refused["error"], &refused["path"]),
            (&json!("InvalidPathError"), &json!(format!("books/{BOOK}/{path}")))
        );
        assert!(refused["message"].as_str().unwrap().contains(why), "{refused}");
    }
    // Others that only begin the same are none of its business.
    for path in ["col", "col.md", "colt/x.md", "a/b0", "a/b-c.md"] {
        library.ok("write_content", lesson(path));
    }
    library.ok("delete_content", json!({ "book_id": BOOK, "path": "col" }));
    library.ok("write_content", lesson("col/y.md"));
}

#[test]
fn of_a_file_and_a_folder_at_one_path_only_one_is_made() {
    let library = TestLibrary::new();
    for round in 0..8 {
        let (file, inner) = (format!("r{round}/x"), format!("r{round}/x/y.md"));
        let made: usize = std::thread::scope(|scope| {
            let calls = [&file, &inner].map(|path| {
                let library = &library;
                scope.spawn(move || usize::from(library.call("write_content", lesson(path)).is_ok()))
            });
            calls.into_iter().map(|call| call.join().unwrap()).sum()
        });
        assert_eq!(made, 1, "round {round}");
    }
}

#[test]
fn two_files_of_a_tree_never_become_one() {
    let library = TestLibrary::new();
    for name in [
        "README.md",
        "lessons/README.md",
        "img/a.png",
        "assets/images/img/a.png",
        "data.csv",
        "files/data.csv",
    ] {
        library.write(&format!("site/{name}"), name);
    }
    let (caller, call) = (Caller::owner(), CallContext::new());
    let import = || library.library.import_book(&caller, BOOK, &library.path("site"), &call).unwrap();
    assert_eq!(import().added, 6);
    assert_eq!(import().unchanged, 6, "every file is found where it is");
    library.library.export_book(&caller, BOOK, &library.path("out"), &call).unwrap();
    assert_eq!(tree(&library.path("out")), tree(&library.path("site")));
    let read = library.ok("read_content", json!({ "book_id": BOOK, "path": "lessons/README.md" }));
    assert_eq!(read["content"], "lessons/README.md", "what stands in its place stays there");
}

#[test]
fn an_imported_asset_goes_by_the_names_it_has() {
    let library = TestLibrary::new();
    for name in ["img/a b.png", "img/c.png"] {
        library.write(&format!("site/{name}"), name);
    }
    let (caller, call) = (Caller::owner(), CallContext::new());
    library.library.import_book(&caller, BOOK, &library.path("site"), &call).unwrap();
    let listed = library.ok("list_assets", json!({ "book_id": BOOK }));
    let stored: Vec<&str> =
        listed.as_array().unwrap().iter().map(|asset| asset["filename"].as_str().unwrap()).collect();
    for (given, stored) in ["img/a b.png", "img/c.png"].iter().zip(&stored) {
        for name in [given, stored] {
            let got = library.ok("get_asset", place(name));
            assert_eq!(got["filename"], *stored);
            assert_eq!(fs::read(file_of(&got["cdn_url"])).unwrap(), given.as_bytes());
        }
        for name in [given, stored] {
            let path = library.ok("upload_asset", image(name, name.as_bytes()))["path"].clone();
            assert_eq!(path, format!("books/{BOOK}/assets/images/{stored}"), "a new version of it");
        }
    }
    assert_eq!(library.ok("list_assets", json!({ "book_id": BOOK })).as_array().unwrap().len(), 2);
    for name in ["img/new.png", "../img/c.png"] {
        assert_eq!(error(&library, "upload_asset", image(name, b"x"))["error"], "InvalidPathError", "{name}");
    }
}

#[test]
fn a_list_names_only_urls_that_work() {
    let library = TestLibrary::new();
    // Together they are more than one list copies.
    for number in 0..9_u8 {
        let bytes = vec![number; (8 << 20) + usize::from(number)];
        library.ok("upload_asset", image(&format!("{number}.png"), &bytes));
    }
    // The address of one that was stored is a file; without them the list has to choose.
    fs::remove_dir_all(library.path("library/exports")).unwrap();
    let listed = library.ok("list_assets", json!({ "book_id": BOOK }));
    let (mut files, mut served) = (0, 0);
    for asset in listed.as_array().unwrap() {
        let url = asset["cdn_url"].as_str().unwrap();
        if url.starts_with("file://") {
            assert_eq!(fs::metadata(file_of(&asset["cdn_url"])).unwrap().len(), asset["file_size"], "{url}");
            files += 1;
        } else {
            assert!(url.starts_with("http://127.0.0.1:1/cdn/books/") && url.contains("?k="), "{url}");
            served += 1;
        }
    }
    assert_eq!((files, served), (7, 2));
}

#[test]
fn a_copy_that_somebody_changed_is_made_again() {
    let library = TestLibrary::new();
    library.ok("upload_asset", image("a.png", b"the very bytes"));
    let copy = || file_of(&library.ok("get_asset", place("a.png"))["cdn_url"]);
    for changed in [&b"shorter"[..], b"the same size!"] {
        fs::write(copy(), changed).unwrap();
        assert_eq!(fs::read(copy()).unwrap(), b"the very bytes");
    }
    fs::remove_file(copy()).unwrap();
    assert_eq!(fs::read(copy()).unwrap(), b"the very bytes");
}

#[test]
fn a_book_that_takes_no_writes_takes_no_deletions_either() {
    let library = TestLibrary::new();
    library.ok("write_content", lesson("lessons/a.md"));
    let change = BookChange { status: Some(BookStatus::Archived), ..BookChange::default() };
    library.library.set_book(&Caller::owner(), BOOK, &change, &CallContext::new()).unwrap();
    for (tool, arguments, path) in [
        ("write_content", lesson("lessons/a.md"), "lessons/a.md"),
        ("delete_content", json!({ "book_id": BOOK, "path": "lessons/a.md" }), "lessons/a.md"),
        ("delete_content", json!({ "book_id": BOOK, "path": "lessons/none.md" }), "lessons/none.md"),
        (
            "delete_summary",
            json!({ "book_id": BOOK, "chapter_id": "chapter-01" }),
            "chapters/chapter-01/.summary.md",
        ),
        ("upload_asset", image("a.png", b"x"), "assets/images/a.png"),
    ] {
        let refused = error(&library, tool, arguments);
        assert_eq!(
            (&refused["error"], &refused["path"]),
            (&json!("ConflictError"), &json!(format!("books/{BOOK}/{path}"))),
            "{tool}"
        );
    }
}

#[test]
fn errors_name_what_the_arguments_name() {
    let library = TestLibrary::new();
    let path = "lessons/a.md";
    for (tool, arguments, path) in [
        ("write_content", json!({ "book_id": BOOK, "path": path }), format!("books/{BOOK}/{path}")),
        ("read_content", json!({ "book_id": BOOK }), format!("books/{BOOK}")),
        ("read_content", json!({ "book_id": BOOK, "path": 7 }), format!("books/{BOOK}")),
        ("read_content", json!({ "book_id": "No" }), "books".into()),
        (
            "write_summary",
            json!({ "book_id": BOOK, "chapter_id": "chapter-01" }),
            format!("books/{BOOK}/chapters/chapter-01/.summary.md"),
        ),
        (
            "upload_asset",
            json!({ "book_id": BOOK, "asset_type": "images", "filename": "a.png", "file_size": 0 }),
            format!("books/{BOOK}/assets/images/a.png"),
        ),
    ] {
        let refused = error(&library, tool, arguments);
        assert_eq!(
            (&refused["error"], &refused["path"]),
            (&json!("ValidationError"), &json!(path)),
            "{tool}"
        );
    }
    for (tool, arguments) in [
        ("read_summary", json!({ "book_id": BOOK, "chapter_id": "chapter-01" })),
        ("get_asset", place("a.png")),
        ("get_book_archive", json!({ "book_id": BOOK })),
    ] {
        let missing = error(&library, tool, arguments);
        let sentence = format!("Content not found: {}", missing["path"].as_str().unwrap());
        assert_eq!(
            (&missing["error"], &missing["message"]),
            (&json!("ContentNotFoundError"), &json!(sentence))
        );
    }
}

#[test]
fn a_reader_is_refused_in_the_contracts_words() {
    let library = TestLibrary::new();
    library.user("alice", false);
    let minted = library.personal("alice", &[shelf_engine::PersonalScope::Read], None);
    let reader = library.admit(minted.text.reveal(), shelf_engine::Door::Protocol).unwrap();
    let refused = library.call_as(&reader, "write_content", lesson("lessons/a.md")).unwrap_err();
    assert_eq!(refused.kind, Kind::Denied);
    let body: Value = serde_json::from_str(&refused.text).unwrap();
    assert_eq!(
        body,
        json!({
            "error": "ValidationError",
            "message": "Insufficient permissions: write access required",
            "path": format!("books/{BOOK}/lessons/a.md"),
        })
    );
}

#[test]
fn an_upload_url_works_as_long_as_the_token_that_asked_for_it() {
    let library = TestLibrary::new();
    library.user("alice", false);
    let minted = library.personal(
        "alice",
        &[shelf_engine::PersonalScope::Read, shelf_engine::PersonalScope::Write],
        None,
    );
    let alice = library.admit(minted.text.reveal(), shelf_engine::Door::Protocol).unwrap();
    let alice = Caller { base_url: Some("http://library.test:7433".into()), ..alice };
    let arguments = json!({ "book_id": BOOK, "asset_type": "audio", "filename": "a.mp3", "file_size": 3 });
    let reply = library.ok_as(&alice, "upload_asset", arguments);
    let ticket = reply["upload_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let mut upload = library.library.open_upload(&ticket, Some(3)).unwrap();
    upload.write(b"abc").unwrap();
    let person = library.admit(&library.session("alice"), shelf_engine::Door::Rest).unwrap();
    let id = alice.pass.token().unwrap();
    library.library.revoke_personal(&person, &id.to_string()).unwrap();
    let call = CallContext::new();
    for refused in [
        library.library.open_upload(&ticket, Some(3)).map(drop),
        library.library.complete_upload(upload, &call).map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!((refused.name(), refused.kind()), ("ValidationError", Kind::Denied), "{refused:?}");
    }
}

#[test]
fn an_archive_url_works_as_long_as_the_book() {
    let library = TestLibrary::new();
    library.ok("write_content", lesson("lessons/a.md"));
    let caller = Caller { base_url: Some("http://library.test:7433".into()), ..Caller::owner() };
    let reply = library.ok_as(&caller, "get_book_archive", json!({ "book_id": BOOK }));
    let proof = reply["archive_url"].as_str().unwrap().split_once("?k=").unwrap().1.to_owned();
    assert!(library.library.open_archive(&proof).unwrap().is_some());
    let id = library.collection_of(&caller, BOOK);
    library.ok("delete_collection_tool", json!({ "collection_id": id }));
    assert!(library.library.open_archive(&proof).unwrap().is_none());
    library.ok("write_content", lesson("lessons/a.md"));
    assert!(
        library.library.open_archive(&proof).unwrap().is_none(),
        "another book of the same id is another book"
    );
}

#[test]
fn a_new_title_stands_in_the_books_file_too() {
    let library = TestLibrary::new();
    let path = "book.yaml";
    let file = json!({ "book_id": BOOK, "path": path, "content": "title: Old # first\nlevel: 1\n" });
    library.ok("write_content", file);
    let change = BookChange { title: Some("New: better".into()), ..BookChange::default() };
    library.library.set_book(&Caller::owner(), BOOK, &change, &CallContext::new()).unwrap();
    let read = library.ok("read_content", json!({ "book_id": BOOK, "path": path }));
    assert_eq!(read["content"], "title: \"New: better\"\nlevel: 1\n");
    assert_eq!(library.ok("list_books", json!({}))[0]["title"], "New: better");
    // A change that closes the book, too, comes after the title.
    let change = BookChange {
        title: Some("Last".into()),
        status: Some(BookStatus::Archived),
        ..BookChange::default()
    };
    library.library.set_book(&Caller::owner(), BOOK, &change, &CallContext::new()).unwrap();
    let read = library.ok("read_content", json!({ "book_id": BOOK, "path": path }));
    assert_eq!(read["content"], "title: \"Last\"\nlevel: 1\n");
}
