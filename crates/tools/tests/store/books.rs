//! Books: lessons and summaries with compare-and-swap, and finding them.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

const BOOK: &str = "ai-native-python";
const LESSON: &str = "lessons/part-1/chapter-01/lesson-01.md";

fn error(library: &TestLibrary, tool: &str, arguments: Value) -> Value {
    serde_json::from_str(&error_of(library.call(tool, arguments))).unwrap()
}

fn write(library: &TestLibrary, path: &str, content: &str) -> Value {
    library.ok("write_content", json!({ "book_id": BOOK, "path": path, "content": content }))
}

#[test]
fn a_lesson_is_written_read_and_deleted_as_the_contract_says() {
    let library = TestLibrary::new();
    let place = json!({ "book_id": BOOK, "path": LESSON });
    let full = format!("books/{BOOK}/{LESSON}");
    let missing = error(&library, "read_content", place.clone());
    assert_eq!(
        missing,
        json!({ "error": "ContentNotFoundError", "message": format!("Content not found: {full}"), "path": full })
    );
    let content = "---\r\ntitle: Introduction\n---\n\n# Lesson 1  \n\n";
    let written = write(&library, LESSON, content);
    assert_eq!((&written["status"], &written["path"]), (&json!("success"), &json!(full)));
    assert_eq!((&written["mode"], &written["file_size"]), (&json!("created"), &json!(content.len())));
    let read = library.ok("read_content", place.clone());
    assert_eq!((&read["content"], &read["file_size"]), (&json!(content), &json!(content.len())));
    assert_eq!((&read["file_hash_sha256"], &read["storage_backend"]), (&written["file_hash"], &json!("fs")));
    let again = write(&library, LESSON, content);
    assert_eq!((&again["mode"], &again["file_hash"]), (&json!("updated"), &written["file_hash"]));
    let found = library.ok("search", json!({ "query": "Introduction Lesson", "type": "keyword" }));
    assert_eq!(found["results"][0]["path"], LESSON, "a lesson is found by every search");
    let deleted = library.ok("delete_content", place.clone());
    assert_eq!(
        deleted,
        json!({ "status": "success", "path": full, "existed": true, "message": "File deleted" })
    );
    assert_eq!(library.ok("delete_content", place)["existed"], false);
}

#[test]
fn a_write_that_expects_other_content_is_a_conflict() {
    let library = TestLibrary::new();
    let write = |content: &str, hash: &Value| {
        let arguments = json!({ "book_id": BOOK, "path": LESSON, "content": content, "file_hash": hash });
        library.call("write_content", arguments)
    };
    let unknown = json!("0".repeat(64));
    let absent: Value = serde_json::from_str(&error_of(write("one", &unknown))).unwrap();
    assert_eq!((&absent["error"], &absent["current_hash"]), (&json!("ConflictError"), &Value::Null));
    assert!(library.ok("list_books", json!({})).as_array().unwrap().is_empty(), "nothing was made");
    let first = write("one", &Value::Null).unwrap()["file_hash"].clone();
    let second = write("two", &first).unwrap()["file_hash"].clone();
    let late: Value = serde_json::from_str(&error_of(write("three", &first))).unwrap();
    assert_eq!((&late["error"], &late["current_hash"]), (&json!("ConflictError"), &second));
    // Of many writers with one hash exactly one wins.
    for round in 0..5 {
        let read = library.ok("read_content", json!({ "book_id": BOOK, "path": LESSON }));
        let (hash, won) = (read["file_hash_sha256"].clone(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for writer in 0..16 {
                let (write, hash, won) = (&write, &hash, &won);
                scope.spawn(move || {
                    if write(&format!("round {round} by {writer}"), hash).is_ok() {
                        won.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(won.load(Ordering::Relaxed), 1, "round {round}");
    }
}

#[test]
fn summaries_have_a_place_of_their_own() {
    let library = TestLibrary::new();
    let chapter = json!({ "book_id": BOOK, "chapter_id": "chapter-01" });
    let path = format!("books/{BOOK}/chapters/chapter-01/.summary.md");
    for tool in ["read_summary", "delete_summary"] {
        let missing = error(&library, tool, chapter.clone());
        assert_eq!((&missing["error"], &missing["path"]), (&json!("ContentNotFoundError"), &json!(path)));
    }
    let mut arguments = chapter.clone();
    arguments["content"] = json!("# Summary\n");
    let written = library.ok("write_summary", arguments);
    assert_eq!((&written["path"], &written["file_size"]), (&json!(path), &json!(10)));
    let read = library.ok("read_summary", chapter.clone());
    assert_eq!((&read["content"], &read["sha256"]), (&json!("# Summary\n"), &written["sha256"]));
    let large = json!({ "book_id": BOOK, "path": "chapters/chapter-01/.summary.md", "content": "x".repeat((100 << 10) + 1) });
    assert_eq!(
        error(&library, "write_content", large)["error"],
        "ValidationError",
        "whichever tool writes it"
    );
    assert_eq!(library.ok("delete_summary", chapter)["message"], "Summary deleted");
    let wrong = json!({ "book_id": BOOK, "chapter_id": "chapter-1" });
    assert_eq!(error(&library, "read_summary", wrong)["error"], "ValidationError");
}

#[test]
fn files_and_lines_are_found_in_one_book_or_all() {
    let library = TestLibrary::new();
    write(&library, "lessons/a/one.md", "first\nOpenDAL here\r\n");
    write(&library, "lessons/b/two.md", "OpenDAL there");
    write(&library, "lessons/b/code.py", "OpenDAL = 1");
    write(&library, "book.yaml", "title: \"AI-Native Python\"\n");
    let other = json!({ "book_id": "other-book", "path": "lessons/x.md", "content": "OpenDAL too" });
    library.ok("write_content", other);
    let glob = |pattern: &str, all: bool| {
        library.ok("glob_search", json!({ "book_id": BOOK, "pattern": pattern, "all_books": all }))
    };
    let full = |path: &str| format!("books/{BOOK}/{path}");
    assert_eq!(glob("**/*.md", false), json!([full("lessons/a/one.md"), full("lessons/b/two.md")]));
    assert_eq!(glob("lessons/*.md", false), json!([]), "a star does not match a folder");
    assert_eq!(
        glob("lessons/?/{one,code}.*", false),
        json!([full("lessons/a/one.md"), full("lessons/b/code.py")])
    );
    assert_eq!(glob("lessons/**", true).as_array().unwrap().len(), 4);
    let grep = |arguments: Value| library.ok("grep_search", arguments);
    let found = grep(json!({ "book_id": BOOK, "pattern": "OpenDAL" }));
    assert_eq!(
        found[0],
        json!({ "file_path": full("lessons/a/one.md"), "line_number": 2, "matched_line": "OpenDAL here" })
    );
    assert_eq!(found.as_array().unwrap().len(), 2, "only Markdown is searched");
    let all = json!({ "book_id": BOOK, "pattern": "OpenDAL", "all_books": true });
    assert_eq!(grep(all).as_array().unwrap().len(), 3);
    let one = json!({ "book_id": BOOK, "pattern": "OpenDAL", "max_results": 1 });
    assert_eq!(grep(one).as_array().unwrap().len(), 1);
    assert_eq!(grep(json!({ "book_id": "no-such-book", "pattern": "x" })), json!([]));
    let books = library.ok("list_books", json!({}));
    assert_eq!((&books[0]["book_id"], &books[0]["title"]), (&json!(BOOK), &json!("AI-Native Python")));
    assert_eq!((&books[1]["title"], &books[1]["status"]), (&json!("other-book"), &json!("active")));
}

#[test]
fn hostile_names_patterns_and_sizes_are_refused() {
    let library = TestLibrary::new();
    for path in ["../x", "/etc/passwd", "a//b", "a/./b", "a\u{0}b", "a%2e%2e/b", "ａ.md", ""] {
        let arguments = json!({ "book_id": BOOK, "path": path, "content": "x" });
        assert_eq!(error(&library, "write_content", arguments)["error"], "InvalidPathError", "{path:?}");
    }
    for book in ["ab", "Upper", "a--b", "../abc"] {
        let arguments = json!({ "book_id": book, "path": "a.md", "content": "x" });
        assert_eq!(error(&library, "write_content", arguments)["error"], "ValidationError", "{book}");
    }
    let large = json!({ "book_id": BOOK, "path": "a.md", "content": "x".repeat((1 << 20) + 1) });
    assert_eq!(error(&library, "write_content", large)["error"], "ValidationError");
    for (tool, pattern) in [("glob_search", "[a"), ("grep_search", "(a"), ("grep_search", "")] {
        let arguments = json!({ "book_id": BOOK, "pattern": pattern });
        assert_eq!(error(&library, tool, arguments)["error"], "ValidationError", "{tool} {pattern}");
    }
    let many = json!({ "book_id": BOOK, "pattern": "a", "max_results": 1_001 });
    assert_eq!(error(&library, "grep_search", many)["error"], "ValidationError");
    library.ok("create_collection_tool", json!({ "name": "plain-one" }));
    let plain = json!({ "book_id": "plain-one", "path": "a.md", "content": "x" });
    assert_eq!(error(&library, "write_content", plain)["error"], "ConflictError");
}

#[test]
fn a_file_answers_to_its_full_path_too() {
    let library = TestLibrary::new();
    let written = write(&library, "lessons/a.md", "a");
    let full = written["path"].as_str().unwrap().to_owned();
    assert_eq!(full, format!("books/{BOOK}/lessons/a.md"));
    let at = |path: &str| json!({ "book_id": BOOK, "path": path });
    assert_eq!(library.ok("read_content", at(&full))["content"], "a");
    let mut change = at(&full);
    change["content"] = json!("b");
    change["file_hash"] = written["file_hash"].clone();
    let changed = library.ok("write_content", change);
    assert_eq!((&changed["path"], &changed["mode"]), (&json!(full), &json!("updated")));
    assert_eq!(library.ok("book_history", at(&full)).as_array().unwrap().len(), 2);
    let hashes = library.ok("batch_hashes", json!({ "book_id": BOOK, "paths": [full] }));
    assert_eq!(hashes["files"][0]["file_hash"], changed["file_hash"]);
    assert_eq!(library.ok("delete_content", at(&full))["existed"], true);
    assert_eq!(error(&library, "read_content", at(&full))["path"], full);
    // A file of just this path, from before, is the one that is meant.
    library.ok("add", json!({ "content": "older", "name": full, "collection": BOOK }));
    assert_eq!(library.ok("read_content", at(&full))["content"], "older");
}

#[test]
fn arguments_that_contradict_or_lead_nowhere_are_refused() {
    let library = TestLibrary::new();
    write(&library, "lessons/a.md", "a");
    let both = json!({
        "book_id": BOOK, "path": "lessons/a.md", "content": "b", "file_hash": "a".repeat(64), "expected_hash": "b".repeat(64),
    });
    assert_eq!(error(&library, "write_content", both)["error"], "ValidationError");
    for path in ["../x", "/etc", "a b"] {
        let asked = json!({ "book_id": BOOK, "paths": ["lessons/a.md", path] });
        assert_eq!(error(&library, "batch_hashes", asked)["error"], "InvalidPathError", "{path}");
    }
    let none = library.ok("batch_hashes", json!({ "book_id": BOOK, "paths": [] }));
    assert_eq!(none["files"], json!([]));
}
