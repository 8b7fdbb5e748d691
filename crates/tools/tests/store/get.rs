//! `get`.

use serde_json::json;
use shelf_testkit::{TestLibrary, error_of};

#[test]
fn by_hash_prefix_and_name() {
    let library = TestLibrary::new();
    let added = library.ok("add", json!({ "content": "x", "name": "docs/guide/a.txt" }));
    let hash = added["hash"].as_str().unwrap();
    for arguments in [
        json!({ "hash": hash }),
        json!({ "hash": &hash[..8] }),
        json!({ "hash": hash.to_uppercase() }),
        json!({ "name": "docs/guide/a.txt" }),
        json!({ "name": "guide/a.txt" }),
        json!({ "name": "a.txt" }),
    ] {
        let got = library.ok("get", arguments);
        assert_eq!(
            (&got["found"], &got["size"], &got["path"]),
            (&json!(true), &json!(1), &json!("docs/guide/a.txt"))
        );
        assert!(got.get("content").is_none());
    }
    let absent = library.ok("get", json!({ "hash": "0".repeat(64) }));
    assert_eq!(absent, json!({ "found": false, "size": 0, "path": "" }));
    assert_eq!(library.ok("get", json!({ "name": "uide/a.txt" }))["found"], json!(false));
    assert!(error_of(library.call("get", json!({ "hash": "abc" }))).contains("8 to 64 hexadecimal digits"));
    assert_eq!(
        error_of(library.call("get", json!({}))),
        "Error: hash or name is needed to say which document"
    );
}

#[test]
fn several_meanings_are_listed() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "1", "name": "one/a.txt" }));
    library.ok("add", json!({ "content": "2", "name": "two/a.txt", "collection": "other" }));
    let error = error_of(library.call("get", json!({ "name": "a.txt" })));
    assert!(
        error.starts_with("Error: 'a.txt' means 2 documents")
            && error.contains("one/a.txt")
            && error.contains("two/a.txt")
    );
    assert_eq!(library.ok("get", json!({ "name": "a.txt", "collection": "other" }))["path"], "two/a.txt");
    let copy = library.ok("add", json!({ "content": "1", "name": "copy" }));
    let shared = library.ok("get", json!({ "hash": copy["hash"] }));
    assert_eq!((&shared["found"], shared["also_at"].as_array().unwrap().len()), (&json!(true), 1));
}

#[test]
fn content_comes_whole_or_in_windows() {
    let library = TestLibrary::new();
    let text = "erste Zeile\nzweite Zäile\ndritte Zeile\n";
    library.ok("add", json!({ "content": text, "name": "a.txt" }));
    let get = |more: serde_json::Value| {
        let mut arguments = json!({ "name": "a.txt", "include_content": true });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        library.ok("get", arguments)
    };
    let whole = get(json!({}));
    assert_eq!(
        (&whole["content"], &whole["encoding"], &whole["truncated"]),
        (&json!(text), &json!("utf-8"), &json!(false))
    );
    let lines = get(json!({ "start_line": 2, "end_line": 2 }));
    assert_eq!(
        (&lines["content"], &lines["truncated"], &lines["total_lines"]),
        (&json!("zweite Zäile\n"), &json!(true), &json!(3))
    );
    assert_eq!(get(json!({ "start_line": 3 }))["content"], "dritte Zeile\n");
    assert_eq!(get(json!({ "start_line": 9 }))["content"], "");
    // A window that would end inside a character ends before it, and the next one starts there.
    let cut = text.find('ä').unwrap() + 1;
    let first = get(json!({ "offset": 0, "length": cut }));
    assert_eq!(first["content"], text[..cut - 1]);
    let rest = get(json!({ "offset": first["next_offset"] }));
    assert_eq!(format!("{}{}", first["content"].as_str().unwrap(), rest["content"].as_str().unwrap()), text);
    assert_eq!(get(json!({ "offset": 10_000 }))["content"], "");
    assert!(
        error_of(library.call(
            "get",
            json!({ "name": "a.txt", "include_content": true, "start_line": 3, "end_line": 2 })
        ))
        .contains("end_line")
    );
    library.ok("add", json!({ "content": "AP8Q", "encoding": "base64", "name": "b.bin" }));
    let binary = library.ok("get", json!({ "name": "b.bin", "include_content": true }));
    assert_eq!((&binary["content"], &binary["encoding"]), (&json!("AP8Q"), &json!("base64")));
}

#[test]
fn a_copy_is_written_whole() {
    let library = TestLibrary::new();
    let body = "line\n".repeat(100_000);
    library.ok("add", json!({ "content": body, "name": "big.txt" }));
    for key in ["outputPath", "output_path"] {
        let target = library.path(&format!("{key}/deep/copy.txt"));
        let got = library.ok("get", json!({ "name": "big.txt", key: target }));
        assert_eq!(got["path"], json!(target));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), body);
    }
    assert!(
        error_of(library.call("get", json!({ "name": "big.txt", "outputPath": library.path("outputPath") })))
            .contains("not a folder")
    );
}

#[test]
fn only_regular_files_are_written() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "x", "name": "a" }));
    let pipe = library.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = error_of(library.call("get", json!({ "name": "a", "outputPath": pipe })));
    assert!(refused.contains("regular file"), "{refused}");
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    library.write("real", "old");
    symlink(library.path("real"), library.path("link")).unwrap();
    library.ok("get", json!({ "name": "a", "outputPath": library.path("link") }));
    assert_eq!(std::fs::read_to_string(library.path("real")).unwrap(), "x", "a link is followed");
    assert!(std::fs::symlink_metadata(library.path("link")).unwrap().is_symlink());
}
