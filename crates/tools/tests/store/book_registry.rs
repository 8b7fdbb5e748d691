//! Books as such: their registry, their status, whose they are, and what happened to them.

use std::fs;

use serde_json::{Value, json};
use shelf_base::CallContext;
use shelf_engine::{BookChange, BookError, BookStatus, Caller};
use shelf_testkit::{TestLibrary, error_of, tree};

const BOOK: &str = "ai-native-python";

fn error(library: &TestLibrary, tool: &str, arguments: Value) -> Value {
    serde_json::from_str(&error_of(library.call(tool, arguments))).unwrap()
}

fn write(library: &TestLibrary, path: &str, content: &str) -> Value {
    library.ok("write_content", json!({ "book_id": BOOK, "path": path, "content": content }))
}

fn set(library: &TestLibrary, change: &BookChange) {
    library.library.set_book(&Caller::owner(), BOOK, change, &CallContext::new()).unwrap();
}

#[test]
fn a_closed_book_takes_no_writes_from_any_family() {
    let library = TestLibrary::new();
    write(&library, "lessons/a.md", "a");
    let id = library.ok("list", json!({ "collection": BOOK }))["documents"][0]["document_id"].clone();
    let collection = library.collection_of(&Caller::owner(), BOOK);
    for status in [BookStatus::Archived, BookStatus::Migrating] {
        set(&library, &BookChange { status: Some(status), ..BookChange::default() });
        assert_eq!(library.ok("list_books", json!({}))[0]["status"], status.word());
        let content = json!({ "book_id": BOOK, "path": "lessons/b.md", "content": "b" });
        let asset =
            json!({ "book_id": BOOK, "asset_type": "images", "filename": "x.png", "binary_data": "QUJD" });
        let large =
            json!({ "book_id": BOOK, "asset_type": "images", "filename": "x.png", "file_size": 20_000_000 });
        let summary = json!({ "book_id": BOOK, "chapter_id": "chapter-01", "content": "b" });
        for (tool, arguments) in [
            ("write_content", content),
            ("delete_content", json!({ "book_id": BOOK, "path": "lessons/a.md" })),
            ("write_summary", summary),
            ("upload_asset", asset),
            ("upload_asset", large),
        ] {
            let refused = error(&library, tool, arguments);
            assert_eq!(refused["error"], "ConflictError", "{tool}: {refused}");
            assert!(refused["message"].as_str().unwrap().contains(status.word()), "{refused}");
        }
        for (tool, arguments) in [
            ("add", json!({ "content": "x", "name": "lessons/c.md", "collection": BOOK })),
            ("update", json!({ "name": "lessons/a.md", "metadata": { "k": "v" } })),
            ("delete_by_name", json!({ "name": "lessons/a.md" })),
            ("update_document_tool", json!({ "document_id": id, "title": "t" })),
            ("store_document_tool", json!({ "title": "t", "content": "x", "collection_id": collection })),
            ("delete_document_tool", json!({ "document_id": id })),
            ("delete_collection_tool", json!({ "collection_id": collection })),
        ] {
            let refused = error_of(library.call(tool, arguments));
            assert!(refused.contains(status.word()), "{tool}: {refused}");
        }
        assert_eq!(
            library.ok("read_content", json!({ "book_id": BOOK, "path": "lessons/a.md" }))["content"],
            "a"
        );
    }
    set(&library, &BookChange { status: Some(BookStatus::Active), ..BookChange::default() });
    write(&library, "lessons/b.md", "b");
}

#[test]
fn other_families_keep_to_the_paths_of_a_book() {
    let library = TestLibrary::new();
    write(&library, "lessons/a.md", "a");
    for name in ["lessons/my page.md", "../x.md", "lessons/é.md"] {
        let refused =
            error_of(library.call("add", json!({ "content": "x", "name": name, "collection": BOOK })));
        assert!(refused.contains("not a path of a book") || refused.contains("name"), "{refused}");
    }
    library.ok("add", json!({ "content": "from the store", "name": "lessons/c.md", "collection": BOOK }));
    let read = library.ok("read_content", json!({ "book_id": BOOK, "path": "lessons/c.md" }));
    assert_eq!(read["content"], "from the store");
    let got =
        library.ok("get", json!({ "name": format!("books/{BOOK}/lessons/c.md"), "include_content": true }));
    assert_eq!(got["content"], "from the store", "a file of a book answers to its full path");
}

#[test]
fn an_id_belongs_to_one_account_of_the_library() {
    let library = TestLibrary::new();
    write(&library, "lessons/a.md", "secret");
    library.user("alice", false);
    let alice = library.caller("alice");
    let place = json!({ "book_id": BOOK, "path": "lessons/a.md", "content": "mine" });
    let refused: Value =
        serde_json::from_str(&error_of(library.call_as(&alice, "write_content", place))).unwrap();
    assert_eq!(
        (&refused["error"], &refused["message"]),
        (&json!("ValidationError"), &json!("book_id is not available"))
    );
    let hers =
        json!({ "book_id": BOOK, "asset_type": "images", "filename": "x.png", "file_size": 20_000_000 });
    let refused = error_of(library.call_as(&alice, "upload_asset", hers));
    assert!(refused.contains("book_id is not available"), "{refused}");
    for (tool, arguments) in [
        ("read_content", json!({ "book_id": BOOK, "path": "lessons/a.md" })),
        ("get_book_archive", json!({ "book_id": BOOK })),
        ("book_history", json!({ "book_id": BOOK })),
        ("plan_build", json!({ "book_id": BOOK })),
    ] {
        let unknown: Value =
            serde_json::from_str(&error_of(library.call_as(&alice, tool, arguments))).unwrap();
        assert_eq!(unknown["error"], "ContentNotFoundError", "{tool}");
    }
    for tool in ["list_books", "list_assets", "glob_search", "grep_search"] {
        let arguments = match tool {
            "list_books" => json!({}),
            "list_assets" => json!({ "book_id": BOOK }),
            _ => json!({ "book_id": BOOK, "pattern": "*", "all_books": true }),
        };
        let arguments = if tool == "grep_search" {
            json!({ "book_id": BOOK, "pattern": "secret", "all_books": true })
        } else {
            arguments
        };
        assert_eq!(library.ok_as(&alice, tool, arguments), json!([]), "{tool}");
    }
    // A plain collection of hers may have the name, and never becomes a book.
    library.ok_as(&alice, "create_collection_tool", json!({ "name": BOOK }));
    let refused = error_of(library.call_as(
        &alice,
        "write_content",
        json!({ "book_id": BOOK, "path": "a.md", "content": "x" }),
    ));
    assert!(refused.contains("ConflictError"), "{refused}");
}

#[test]
fn the_registry_is_exported_and_taken_over_when_somebody_edits_it() {
    let library = TestLibrary::new();
    let file = library.path("library/registry.yaml");
    assert!(!file.exists());
    write(&library, "lessons/a.md", "a");
    write(&library, "book.yaml", "title: \"Python: the AI way\"\nauthor: x\n");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("book_id: ai-native-python") && text.contains("Python: the AI way"), "{text}");
    assert_eq!(library.ok("list_books", json!({}))[0]["title"], "Python: the AI way");
    // What the library wrote itself is not imported.
    set(&library, &BookChange { title: Some("Another".into()), ..BookChange::default() });
    let list =
        |library: &shelf_engine::Library| library.books(&Caller::owner(), &CallContext::new()).unwrap();
    assert_eq!(list(&library.reopen())[0].title, "Another");
    let edited = "books:\n  - book_id: ai-native-python\n    title: Edited\n    status: archived\n  - book_id: second-book\n    title: Second\n    storage_backend: fs\n    created_at: \"2025-01-01T00:00:00Z\"\n    status: active\n  - book_id: NOT-VALID\n";
    fs::write(&file, edited).unwrap();
    let books = list(&library.reopen());
    assert_eq!(books.len(), 2, "{books:?}");
    assert_eq!((books[0].title.as_str(), books[0].status), ("Edited", BookStatus::Archived));
    assert_eq!(
        (books[1].title.as_str(), books[1].created_at.to_string().as_str()),
        ("Second", "2025-01-01T00:00:00Z")
    );
    // Leaving a book out deletes nothing, and what cannot be read changes nothing.
    fs::write(&file, "books: []\n").unwrap();
    assert_eq!(list(&library.reopen()).len(), 2);
    fs::write(&file, "books: [[[").unwrap();
    assert_eq!(list(&library.reopen()).len(), 2);
    // The next change writes the file anew; what somebody wrote is kept beside it.
    let rejected = library.path("library/registry.yaml.rejected");
    assert_eq!(fs::read_to_string(&rejected).unwrap(), "books: [[[");
    fs::write(&file, edited).unwrap();
    library.reopen();
    assert_eq!(fs::read_to_string(&rejected).unwrap(), edited, "an entry of it was left out");
}

#[test]
fn every_change_is_told_with_who_made_it() {
    let library = TestLibrary::new();
    library.user("alice", false);
    let alice = library.caller("alice");
    let write = |content: &str| {
        let arguments = json!({ "book_id": "her-book", "path": "lessons/a.md", "content": content });
        library.ok_as(&alice, "write_content", arguments)["file_hash"].clone()
    };
    let first = write("one");
    let second = write("two");
    library.ok_as(&alice, "delete_content", json!({ "book_id": "her-book", "path": "lessons/a.md" }));
    let history =
        library.ok_as(&alice, "book_history", json!({ "book_id": "her-book", "path": "lessons/a.md" }));
    let told: Vec<(&str, &Value, &Value)> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (change["operation"].as_str().unwrap(), &change["previous_hash"], &change["new_hash"]))
        .collect();
    let none = Value::Null;
    assert_eq!(told, [("deleted", &second, &none), ("updated", &first, &second), ("created", &none, &first)]);
    assert!(history.as_array().unwrap().iter().all(|change| change["agent_id"] == "alice's"));
    // A deleted file comes back from its history.
    let call = CallContext::new();
    let hash = first.as_str().unwrap();
    library.library.restore_book_file(&alice, ("her-book", "lessons/a.md"), &hash[..12], &call).unwrap();
    let read =
        library.ok_as(&alice, "read_content", json!({ "book_id": "her-book", "path": "lessons/a.md" }));
    assert_eq!(read["content"], "one");
    assert_eq!(library.library.audit(&CallContext::new()).unwrap().1, Vec::<String>::new());
}

#[test]
fn a_plan_tells_what_changed_since_a_build() {
    let library = TestLibrary::new();
    for (path, content) in [("lessons/a.md", "a"), ("lessons/b.md", "b"), ("lessons/c.md", "c")] {
        write(&library, path, content);
    }
    let plan = |since: Option<&Value>| {
        let mut arguments = json!({ "book_id": BOOK });
        if let Some(since) = since {
            arguments["manifest_hash"] = since.clone();
        }
        library.ok("plan_build", arguments)
    };
    let first = plan(None);
    assert_eq!((first["added"].as_array().unwrap().len(), &first["complete"]), (3, &json!(true)));
    let state = first["manifest_hash"].clone();
    assert_eq!(plan(Some(&state))["unchanged"], 3);
    write(&library, "lessons/a.md", "a2");
    library.ok("delete_content", json!({ "book_id": BOOK, "path": "lessons/b.md" }));
    write(&library, "lessons/d.md", "d");
    let second = plan(Some(&state));
    let paths = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(&second["added"]), ["lessons/d.md"]);
    assert_eq!(paths(&second["modified"]), ["lessons/a.md"]);
    assert_eq!((&second["deleted"], &second["unchanged"]), (&json!(["lessons/b.md"]), &json!(1)));
    assert_eq!(second["complete"], false);
    let unknown = plan(Some(&json!("0".repeat(64))));
    assert_eq!((&unknown["complete"], unknown["added"].as_array().unwrap().len()), (&json!(true), 3));
    let hashes =
        library.ok("batch_hashes", json!({ "book_id": BOOK, "paths": ["lessons/a.md", "lessons/b.md"] }));
    assert!(hashes["files"][0]["file_hash"].is_string() && hashes["files"][1]["file_hash"].is_null());
    assert_eq!(hashes["manifest_hash"], second["manifest_hash"]);
}

#[test]
fn a_tree_is_imported_and_exported_byte_for_byte() {
    let library = TestLibrary::new();
    for (name, bytes) in [
        ("site/docs/intro.md", &b"# Intro\r\n![logo](../static/img/my logo.png)\n"[..]),
        ("site/docs/Kapitel 1/\u{dc}berblick.md", b"umlaut"),
        ("site/static/img/my logo.png", b"\x89PNG\r\n\x1a\n0000"),
        ("site/mkdocs.yml", b"site_name: x\n"),
        ("site/.hidden", b""),
        ("site/book.yaml", b"title: From the file\n"),
        ("site/lessons/part-1/a.md", b"stays"),
        ("site/.git/config", b"not imported"),
    ] {
        library.write(name, bytes);
    }
    std::os::unix::fs::symlink("/etc/passwd", library.path("site/docs/passwd.md")).unwrap();
    let (caller, call) = (Caller::owner(), CallContext::new());
    let import = || library.library.import_book(&caller, BOOK, &library.path("site"), &call).unwrap();
    let tally = import();
    assert_eq!((tally.added, tally.skipped.len()), (7, 2), "{tally:?}");
    assert!(tally.skipped[0].0.contains("passwd") && tally.skipped[1].0 == ".git", "{tally:?}");
    assert_eq!(library.ok("list_books", json!({}))[0]["title"], "From the file");
    assert_eq!(import().unchanged, 7, "importing again changes nothing");
    let lessons = library.ok("glob_search", json!({ "book_id": BOOK, "pattern": "lessons/**/*.md" }));
    assert_eq!(lessons.as_array().unwrap().len(), 3, "{lessons}");
    assert_eq!(library.ok("list_assets", json!({ "book_id": BOOK })).as_array().unwrap().len(), 1);
    library.library.export_book(&caller, BOOK, &library.path("out"), &call).unwrap();
    let mut original = tree(&library.path("site"));
    original.retain(|(path, _)| !path.starts_with(".git") && !path.ends_with("passwd.md"));
    assert_eq!(tree(&library.path("out")), original);
    // A place that somebody put into the metadata does not lead outside.
    library.ok(
        "update",
        json!({ "name": "files/mkdocs.yml", "metadata": { "original_path": "../../escaped" } }),
    );
    library.library.export_book(&caller, BOOK, &library.path("inside/out"), &call).unwrap();
    assert!(!library.path("escaped").exists() && library.path("inside/out/files/mkdocs.yml").exists());
}

#[test]
fn a_zip_that_leads_outside_is_refused_whole() {
    let library = TestLibrary::new();
    let (caller, call) = (Caller::owner(), CallContext::new());
    let pack = |name: &str, fill: &dyn Fn(&mut zip::ZipWriter<fs::File>)| {
        let path = library.path(name);
        let mut writer = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        writer.start_file("lessons/good.md", zip::write::SimpleFileOptions::default()).unwrap();
        fill(&mut writer);
        writer.finish().unwrap();
        path
    };
    let outside = ["../../escaped.md", "/escaped.md", "lessons/../../escaped.md", "a\\..\\..\\escaped.md"];
    let mut hostile: Vec<_> = outside
        .iter()
        .enumerate()
        .map(|(at, name)| {
            pack(&format!("{at}.zip"), &|writer| {
                writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            })
        })
        .collect();
    hostile.push(pack("link.zip", &|writer| {
        let options = zip::write::SimpleFileOptions::default();
        writer.add_symlink("lessons/link.md", "/etc/passwd", options).unwrap();
    }));
    for path in hostile {
        let refused = library.library.import_book(&caller, BOOK, &path, &call).unwrap_err();
        assert!(matches!(refused, BookError::InvalidPath { .. }), "{}: {refused:?}", path.display());
        assert!(!library.path("escaped.md").exists() && !library.path("../escaped.md").exists());
    }
    assert_eq!(library.ok("list_books", json!({})), json!([]), "nothing of them was imported");
    let good = pack("good.zip", &|_| {});
    assert_eq!(library.library.import_book(&caller, BOOK, &good, &call).unwrap().added, 1);
}

#[test]
fn what_the_library_wrote_itself_is_never_taken_over() {
    let library = TestLibrary::new();
    write(&library, "lessons/a.md", "a");
    let file = library.path("library/registry.yaml");
    let before = fs::read(&file).unwrap();
    set(&library, &BookChange { status: Some(BookStatus::Archived), ..BookChange::default() });
    // As it is when a process is killed before it has replaced the file.
    fs::write(&file, before).unwrap();
    let status = |library: &shelf_engine::Library| {
        library.books(&Caller::owner(), &CallContext::new()).unwrap()[0].status
    };
    assert_eq!(status(&library.reopen()), BookStatus::Archived);
    // The next change writes it as it should be.
    set(&library, &BookChange { title: Some("T".into()), ..BookChange::default() });
    assert!(fs::read_to_string(&file).unwrap().contains("status: archived"));
}

#[test]
fn changes_of_several_at_once_all_stay() {
    let library = TestLibrary::new();
    let books = ["book-a", "book-b", "book-c", "book-d"];
    for book in books {
        library.ok("write_content", json!({ "book_id": book, "path": "lessons/a.md", "content": "a" }));
    }
    for round in 0..8 {
        let status = if round % 2 == 0 { BookStatus::Archived } else { BookStatus::Active };
        std::thread::scope(|scope| {
            for book in books {
                let library = &library;
                scope.spawn(move || {
                    // Each as a process of its own would do it.
                    let change = BookChange { status: Some(status), ..BookChange::default() };
                    let own = library.reopen();
                    own.set_book(&Caller::owner(), book, &change, &CallContext::new()).unwrap();
                });
            }
        });
        let listed = library.library.books(&Caller::owner(), &CallContext::new()).unwrap();
        assert!(listed.iter().all(|book| book.status == status), "{listed:?}");
        let file = fs::read_to_string(library.path("library/registry.yaml")).unwrap();
        assert_eq!(file.matches(&format!("status: {}", status.word())).count(), books.len(), "{file}");
    }
}

#[test]
fn the_title_is_that_of_the_file_whoever_wrote_it_last() {
    let library = TestLibrary::new();
    write(&library, "lessons/a.md", "a");
    for round in 0..6 {
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let library = &library;
                scope.spawn(move || write(library, "book.yaml", &format!("title: {round} by {writer}\n")));
            }
        });
        let file = library.ok("read_content", json!({ "book_id": BOOK, "path": "book.yaml" }));
        let title = library.ok("list_books", json!({}))[0]["title"].as_str().unwrap().to_owned();
        assert_eq!(file["content"], format!("title: {title}\n"));
    }
}

#[test]
fn no_book_takes_the_name_of_the_default_collection() {
    let library = TestLibrary::new();
    let refused = || {
        for (tool, arguments) in [
            ("write_content", json!({ "path": "lessons/a.md", "content": "x" })),
            ("write_summary", json!({ "chapter_id": "chapter-01", "content": "x" })),
            ("upload_asset", json!({ "asset_type": "images", "filename": "x.png", "binary_data": "QUJD" })),
            ("upload_asset", json!({ "asset_type": "images", "filename": "x.png", "file_size": 20_000_000 })),
        ] {
            let mut arguments = arguments;
            arguments["book_id"] = json!("default");
            let found = error(&library, tool, arguments);
            assert_eq!(found["error"], "ValidationError", "{tool}: {found}");
            assert_eq!(found["message"], "book_id is not available", "{tool}");
        }
        let change = BookChange::default();
        assert!(library.library.set_book(&Caller::owner(), "default", &change, &CallContext::new()).is_err());
    };
    refused();
    library.ok("add", json!({ "content": "x", "name": "a b.md" }));
    refused();
}
