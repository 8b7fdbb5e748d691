//! `edit`, and reading like a person: by id, by address, several at once, with near names.

use serde_json::json;
use shelf_testkit::{TestLibrary, error_of};

#[test]
fn a_piece_is_replaced_and_the_rest_stays() {
    let library = TestLibrary::new();
    let text = "first line\nsecond line\r\nthird line without end";
    let added = library.ok("add", json!({ "content": text, "name": "notes/a.txt", "tags": ["kept"] }));
    let edited = library.ok(
        "edit",
        json!({ "name": "a.txt", "old_text": "second line", "new_text": "2nd", "expected_hash": added["hash"] }),
    );
    assert_eq!((&edited["replaced"], &edited["line"], &edited["version"]), (&json!(1), &json!(2), &json!(2)));
    assert_eq!(edited["previous_hash"], added["hash"]);
    let got = library.ok("get", json!({ "name": "a.txt", "include_content": true }));
    assert_eq!(got["content"], text.replace("second line", "2nd"));
    assert_eq!((&got["hash"], &got["tags"]), (&edited["hash"], &json!(["kept"])));
    let found = library.ok("grep", json!({ "pattern": "2nd" }));
    assert_eq!(found["total_matches"], 1, "searches see the new text");
    let all =
        json!({ "name": got["document_id"], "old_text": "line", "new_text": "row", "replace_all": true });
    assert_eq!(library.ok("edit", all)["replaced"], 2);
}

#[test]
fn a_doubtful_edit_changes_nothing() {
    let library = TestLibrary::new();
    let added = library.ok("add", json!({ "content": "one two one", "name": "a.txt" }));
    let says = |arguments| error_of(library.call("edit", arguments));
    let twice = says(json!({ "name": "a.txt", "old_text": "one", "new_text": "1" }));
    assert!(twice.contains("occurs 2 times") && twice.contains("replace_all"), "{twice}");
    let absent = says(json!({ "name": "a.txt", "old_text": "three", "new_text": "3" }));
    assert!(absent.contains("does not occur in 'a.txt'"), "{absent}");
    let stale =
        json!({ "name": "a.txt", "old_text": "two", "new_text": "2", "expected_hash": "0".repeat(64) });
    assert!(says(stale).contains("changed by somebody else"));
    let malformed = json!({ "name": "a.txt", "old_text": "two", "new_text": "2", "expected_hash": "abc" });
    assert!(says(malformed).contains("64 hexadecimal digits"));
    assert!(
        says(json!({ "name": "b.txt", "old_text": "x", "new_text": "y" })).contains("no document 'b.txt'")
    );
    library.ok("add", json!({ "content": "AAEC/w==", "encoding": "base64", "name": "b.bin" }));
    assert!(says(json!({ "name": "b.bin", "old_text": "x", "new_text": "y" })).contains("is not UTF-8 text"));
    assert_eq!(library.ok("get", json!({ "name": "a.txt" }))["hash"], added["hash"]);
}

#[test]
fn get_takes_ids_addresses_and_several_names() {
    let library = TestLibrary::new();
    let text = "alpha\nbeta\ngamma\n";
    let added =
        library.ok("add", json!({ "content": text, "name": "notes/greek.txt", "resource_id": "greek" }));
    library.ok("add", json!({ "content": "other", "name": "other.txt" }));
    let id = added["document_id"].as_str().unwrap();
    assert_eq!(library.ok("get", json!({ "name": id }))["path"], "notes/greek.txt");
    for address in ["text://greek#lines=2-3", &format!("text://{id}#lines=2-3")] {
        let got = library.ok("get", json!({ "name": address, "include_content": true }));
        assert_eq!((&got["content"], &got["path"]), (&json!("beta\ngamma\n"), &json!("notes/greek.txt")));
        assert!(got["address"].as_str().unwrap().ends_with("#lines=2-3"), "{got}");
    }
    let whole = library.ok("get", json!({ "name": "text://greek", "include_content": true }));
    assert_eq!(whole["content"], text);
    let several = library.ok(
        "get",
        json!({ "names": ["greek.txt", "other.txt", "text://greek#lines=1"], "include_content": true }),
    );
    let contents: Vec<_> =
        several["documents"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(contents, [&json!(text), &json!("other"), &json!("alpha\n")]);
    assert_eq!(several["found"], true);
    let some = library.ok("get", json!({ "names": ["other.txt", "absent.txt"] }));
    assert_eq!((&some["found"], &some["documents"][1]["found"]), (&json!(false), &json!(false)));
    assert_eq!(some["documents"][1]["path"], "absent.txt");
    let both = error_of(library.call("get", json!({ "names": ["a"], "name": "b" })));
    assert!(both.contains("cannot be combined"), "{both}");
    assert_eq!(library.ok("get", json!({ "name": "text://nobody#lines=1" }))["found"], false);
}

#[test]
fn a_missing_name_answers_with_near_ones() {
    let library = TestLibrary::new();
    for name in ["notes/printer.md", "notes/reading-room.md", "src/shelve.py"] {
        library.ok("add", json!({ "content": name, "name": name }));
    }
    let near = |name: &str| library.ok("get", json!({ "name": name }))["suggestions"].clone();
    assert_eq!(near("prnter.md"), json!(["notes/printer.md"]));
    assert_eq!(near("printer.txt"), json!(["notes/printer.md"]));
    assert_eq!(near("reading"), json!(["notes/reading-room.md"]));
    assert!(near("something quite different").is_null());
    let error = error_of(library.call("update", json!({ "name": "shelv.py", "tags": ["x"] })));
    assert!(error.contains("did you mean src/shelve.py"), "{error}");
}
