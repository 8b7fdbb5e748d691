//! What globs and patterns find in books, down to the ends of lines and the letters of other scripts.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

const BOOK: &str = "ai-native-python";

fn write(library: &TestLibrary, path: &str, content: &str) {
    library.ok("write_content", json!({ "book_id": BOOK, "path": path, "content": content }));
}

/// The lines that a pattern finds, each as `file:number:line`.
fn found(library: &TestLibrary, pattern: &str) -> Vec<String> {
    let lines = library.ok("grep_search", json!({ "book_id": BOOK, "pattern": pattern }));
    let line = |line: &Value| {
        let path = line["file_path"].as_str().unwrap().rsplit('/').next().unwrap();
        format!("{path}:{}:{}", line["line_number"], line["matched_line"].as_str().unwrap())
    };
    lines.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn a_pattern_ends_where_the_line_ends() {
    let library = TestLibrary::new();
    write(&library, "lessons/lf.md", "one two\ndef\n\ntwo three\n");
    write(&library, "lessons/crlf.md", "one two\r\ndef\r\n\r\ntwo three");
    assert_eq!(found(&library, "two$"), ["crlf.md:1:one two", "lf.md:1:one two"]);
    assert_eq!(found(&library, "^def$"), ["crlf.md:2:def", "lf.md:2:def"]);
    assert_eq!(found(&library, "^$"), ["crlf.md:3:", "lf.md:3:"]);
    assert_eq!(found(&library, "^two"), ["crlf.md:4:two three", "lf.md:4:two three"]);
}

#[test]
fn every_markdown_file_is_searched_and_shown_as_it_is() {
    let library = TestLibrary::new();
    write(&library, "lessons/nul.md", "a\u{0}b\nOpenDAL after a NUL\n");
    write(&library, "lessons/bom.md", "\u{feff}# OpenDAL first\n");
    write(&library, "lessons/plain.md", "OpenDAL\n");
    let all = ["bom.md:1:\u{feff}# OpenDAL first", "nul.md:2:OpenDAL after a NUL", "plain.md:1:OpenDAL"];
    assert_eq!(found(&library, "OpenDAL"), all);
    assert_eq!(found(&library, "^# Open"), all[..1]);
    library.ok("delete_content", json!({ "book_id": BOOK, "path": "lessons/nul.md" }));
    assert_eq!(found(&library, "OpenDAL").len(), 2);
}

#[test]
fn a_line_of_a_large_file_is_found_once() {
    let library = TestLibrary::new();
    let mut text = "some words of a very long lesson\n".repeat(600_000);
    text.push_str("needle at the end\n");
    library.write("site/lessons/large.md", text);
    let (caller, call) = (shelf_engine::Caller::owner(), shelf_base::CallContext::new());
    library.library.import_book(&caller, BOOK, &library.path("site"), &call).unwrap();
    for pattern in ["needle", "needle.*end$"] {
        assert_eq!(found(&library, pattern), ["large.md:600001:needle at the end"]);
    }
}

#[test]
fn a_wrong_pattern_is_shown_as_it_was_given() {
    let library = TestLibrary::new();
    let refused = error_of(library.call("grep_search", json!({ "book_id": BOOK, "pattern": "(open" })));
    let refused: Value = serde_json::from_str(&refused).unwrap();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("(open") && !message.contains("(?:"), "{message}");
    assert_eq!(
        (&refused["error"], &refused["path"]),
        (&json!("ValidationError"), &json!(format!("books/{BOOK}")))
    );
}

#[test]
fn a_glob_knows_the_letters_of_any_script() {
    let library = TestLibrary::new();
    for name in ["ü.png", "a.png", "图.png"] {
        let data = STANDARD.encode(name);
        let asset = json!({ "book_id": BOOK, "asset_type": "images", "filename": name, "binary_data": data });
        library.ok("upload_asset", asset);
    }
    write(&library, "lessons/a/b.md", "x");
    let found = |pattern: &str| -> Vec<String> {
        let paths = library.ok("glob_search", json!({ "book_id": BOOK, "pattern": pattern }));
        let name = |path: &Value| path.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        paths.as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(found("**/?.png"), ["a.png", "ü.png", "图.png"]);
    assert_eq!(found("**/[ü].png"), ["ü.png"]);
    assert_eq!(found("**/[à-ÿ].png"), ["ü.png"]);
    assert_eq!(found("**/[!a].png"), ["ü.png", "图.png"]);
    assert_eq!(found("lessons[!x]a/b.md"), [""; 0], "a class does not match a slash");
    assert_eq!(found("lessons[+-9]a/b.md"), [""; 0]);
}
