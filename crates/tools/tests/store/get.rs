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

/// What `get` gives for an address: its text.
fn cited(library: &TestLibrary, address: &str) -> String {
    let got = library.ok("get", json!({ "name": address, "include_content": true }));
    assert_eq!(got["encoding"], "utf-8", "{got}");
    got["content"].as_str().unwrap().to_owned()
}

#[test]
fn an_address_means_lines_of_the_text_as_it_reads() {
    let library = TestLibrary::new();
    let page = "<html><head><title>T</title>\n<style>\nx{}\n</style>\n</head>\n<body>\n<p>first</p>\n\n\n<div>\n\
                <p>needleword here\nand more</p></div></body></html>\n";
    library.write("page.html", page);
    let utf_16: Vec<u8> =
        "\u{feff}erste Zeile\nzweite needleword Zeile\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(library.path("wide.txt"), utf_16).unwrap();
    for name in ["page.html", "wide.txt"] {
        library.ok("add", json!({ "path": library.path(name) }));
    }
    let found = library.ok("search", json!({ "query": "needleword" }));
    assert_eq!(found["total"], 2, "{found}");
    for hit in found["results"].as_array().unwrap() {
        let address = hit["address"].as_str().unwrap();
        assert!(cited(&library, address).contains("needleword"), "{hit}");
        let resolved = library.ok("resolve", json!({ "address": address, "include_content": true }));
        assert_eq!(resolved["address"], hit["address"]);
    }
    // Lines of a text in another encoding are lines, whichever way they are asked for.
    let window = json!({ "name": "wide.txt", "include_content": true, "start_line": 2, "end_line": 2 });
    assert_eq!(library.ok("get", window)["content"], "zweite needleword Zeile\n");
}

#[test]
fn places_that_a_text_does_not_have_are_refused() {
    let library = TestLibrary::new();
    let added = library.ok("add", json!({ "content": "a\nb\nc\nd\n", "name": "n.txt" }));
    let id = added["document_id"].as_str().unwrap();
    assert_eq!(cited(&library, &format!("text://{id}#lines=4")), "d\n");
    for place in ["#lines=9-10", "#lines=4-5", "#lines=3-2", "#bogus=1", "#chars=0-4"] {
        let name = format!("text://{id}{place}");
        for include_content in [true, false] {
            let arguments = json!({ "name": name, "include_content": include_content });
            let error = error_of(library.call("get", arguments));
            assert!(error.starts_with("Error: name is"), "{name}: {error}");
        }
    }
    let outside = error_of(library.call("get", json!({ "name": format!("text://{id}#lines=9-10") })));
    assert!(outside.contains("the text has 4 lines, so there is no line 10"), "{outside}");
}

#[test]
fn one_of_several_names_may_mean_several_documents() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "1", "name": "one/a.txt" }));
    library.ok("add", json!({ "content": "2", "name": "two/a.txt" }));
    let got = library.ok("get", json!({ "names": ["one/a.txt", "a.txt"] }));
    let documents = got["documents"].as_array().unwrap();
    assert_eq!((&got["found"], &documents[0]["found"]), (&json!(false), &json!(true)));
    assert_eq!((&documents[1]["found"], &documents[1]["path"]), (&json!(false), &json!("a.txt")));
    assert_eq!(documents[1]["suggestions"].as_array().unwrap().len(), 2, "{got}");
}

#[test]
fn no_argument_is_ignored() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "text", "name": "a.txt" }));
    let (one, other) = (library.path("one"), library.path("other"));
    for arguments in [
        json!({ "name": "a.txt", "outputPath": one, "output_path": other }),
        json!({ "name": "a.txt", "outputPath": one, "offset": 1 }),
        json!({ "name": "a.txt", "outputPath": one, "start_line": 1 }),
    ] {
        assert!(error_of(library.call("get", arguments)).contains("outputPath"));
    }
}

#[test]
fn long_names_are_not_repeated() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "text", "name": "a.txt" }));
    let long = "k".repeat(1 << 20);
    for (tool, arguments) in [
        ("get", json!({ "names": ["a.txt", long] })),
        ("delete_by_name", json!({ "names": [long] })),
        ("delete_by_name", json!({ "name": long })),
    ] {
        assert!(error_of(library.call(tool, arguments)).contains("names may hold at most 4096 bytes"));
    }
    for (tool, arguments) in [
        ("get", json!({ &long: 1 })),
        ("get", json!({ "name": "a.txt", "collection": long })),
        ("list", json!({ "collection": long })),
        ("list", json!({ "sort_by": long })),
        ("graph", json!({ "name": long })),
        ("read_content", json!({ "book_id": long, "path": long })),
        ("store_document_tool", json!({ "title": "a", "content": "a", "collection": long })),
    ] {
        let replied = match library.call(tool, arguments) {
            Ok(value) => value.to_string(),
            Err(error) => error.text,
        };
        assert!(replied.len() < 40_000, "{tool}: {} bytes", replied.len());
    }
    let outside =
        library.call("restore", json!({ "collection": "default", "output_directory": "/tmp/a\u{0}b" }));
    assert!(error_of(outside).contains("must not hold the character NUL"));
}
