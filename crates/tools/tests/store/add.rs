//! `add`.

use serde_json::json;
use shelf_engine::{Caller, FileAccess, Options};
use shelf_testkit::{TestLibrary, error_of};

#[test]
fn content_is_stored_once_and_counted_truly() {
    let library = TestLibrary::new();
    let first = library.ok(
        "add",
        json!({ "content": "one two three", "name": "a.txt", "tags": ["x"], "metadata": { "n": 1 } }),
    );
    assert_eq!((first["bytes_stored"].as_u64(), first["bytes_deduped"].as_u64()), (Some(13), Some(0)));
    let second = library.ok("add", json!({ "content": "one two three", "name": "b.txt" }));
    assert_eq!(second["hash"], first["hash"]);
    assert_ne!(second["document_id"], first["document_id"]);
    assert_eq!((second["bytes_stored"].as_u64(), second["bytes_deduped"].as_u64()), (Some(0), Some(13)));
    let again = library.ok("add", json!({ "content": "one two three", "name": "a.txt", "tags": ["y"] }));
    assert_eq!(again["files_unchanged"], 1);
    assert_eq!(again["document_id"], first["document_id"]);
    let got = library.ok("get", json!({ "name": "a.txt" }));
    assert_eq!(
        (&got["version"], &got["tags"], &got["metadata"]),
        (&json!(1), &json!(["x", "y"]), &json!({ "n": 1 }))
    );
}

#[test]
fn changed_content_makes_a_version_and_a_snapshot() {
    let library = TestLibrary::new();
    let first = library.ok("add", json!({ "content": "old", "name": "a.txt", "snapshot_label": "before" }));
    let second = library.ok("add", json!({ "content": "new", "name": "a.txt" }));
    assert_eq!(second["document_id"], first["document_id"]);
    assert_eq!(library.ok("get", json!({ "name": "a.txt", "include_content": true }))["content"], "new");
    let old = library.ok("get", json!({ "hash": first["hash"], "include_content": true }));
    assert_eq!(
        (&old["content"], &old["version"], &old["is_current"]),
        (&json!("old"), &json!(1), &json!(false))
    );
    let snapshots = library.ok("list_snapshots", json!({}));
    assert_eq!(snapshots["total"], 2);
    assert_eq!(snapshots["snapshots"][1]["label"], "before");
}

#[test]
fn folders_honour_ignore_files_and_globs_and_report_what_fails() {
    use std::os::unix::fs::symlink;
    let library = TestLibrary::new();
    library.write("tree/.gitignore", "*.log\n");
    library.write("tree/a.md", "a");
    library.write("tree/b.log", "b");
    library.write("tree/sub/c.rs", "c");
    library.write("tree/sub/.hidden", "h");
    library.write("tree/.git/HEAD", "ref: refs/heads/main\n");
    library.write("tree/.git/refs/heads/main", format!("{}\n", "a".repeat(40)));
    symlink("/etc/passwd", library.path("tree/link")).unwrap();
    let folder = library.path("tree");
    let reply = library.ok("add", json!({ "path": folder, "snapshot_label": "one" }));
    assert_eq!((&reply["files_added"], &reply["files_failed"]), (&json!(4), &json!(0)));
    let paths = library.ok("list", json!({ "paths_only": true, "sort_by": "name" }));
    let expected: Vec<String> = [".gitignore", "a.md", "sub/.hidden", "sub/c.rs"]
        .iter()
        .map(|name| format!("{}/{name}", folder.display()))
        .collect();
    assert_eq!(paths["paths"], json!(expected));
    let snapshot = &library.ok("list_snapshots", json!({}))["snapshots"][0];
    assert_eq!((&snapshot["git_branch"], &snapshot["git_commit"]), (&json!("main"), &json!("a".repeat(40))));
    assert_eq!(snapshot["hash"], reply["hash"]);
    let some = library.ok("add", json!({ "path": folder, "collection": "rust", "include": ["*.rs"] }));
    assert_eq!(some["files_added"], 1);
    let rest =
        library.ok("add", json!({ "path": folder, "collection": "rest", "exclude": ["sub/", "*.md"] }));
    assert_eq!(rest["files_added"], 1);
    let flat = library.ok("add", json!({ "path": folder, "collection": "flat", "recursive": false }));
    assert_eq!(flat["files_added"], 2);
}

#[test]
fn the_root_of_a_folder_is_its_content() {
    let library = TestLibrary::new();
    for name in ["one", "two"] {
        library.write(&format!("{name}/a"), "a");
        library.write(&format!("{name}/d/b"), "b");
    }
    let one = library.ok("add", json!({ "path": library.path("one") }));
    let two = library.ok("add", json!({ "path": library.path("two") }));
    assert_eq!(one["hash"], two["hash"]);
    library.write("two/d/b", "c");
    assert_ne!(library.ok("add", json!({ "path": library.path("two") }))["hash"], one["hash"]);
}

#[test]
fn re_adding_sees_every_change_and_deletes_nothing() {
    let library = TestLibrary::new();
    library.write("tree/a", "1");
    library.write("tree/b", "1");
    let folder = library.path("tree");
    library.ok("add", json!({ "path": folder }));
    // The same length, within the resolution of the clock: only the content differs.
    library.write("tree/a", "2");
    std::fs::remove_file(library.path("tree/b")).unwrap();
    let again = library.ok("add", json!({ "path": folder }));
    assert_eq!((&again["files_updated"], &again["files_unchanged"]), (&json!(1), &json!(0)));
    assert_eq!(library.ok("list", json!({}))["total"], 2);
    assert_eq!(library.ok("list_snapshots", json!({}))["snapshots"][0]["file_count"], 1);
}

#[test]
fn bad_requests_are_explained() {
    let library = TestLibrary::new();
    let says = |arguments| error_of(library.call("add", arguments));
    assert_eq!(says(json!({})), "Error: provide path, or content with name");
    assert_eq!(says(json!({ "content": "x" })), "Error: name is required with content");
    assert_eq!(
        says(json!({ "path": "a", "content": "x", "name": "y" })),
        "Error: provide either path, or content with name, not both"
    );
    assert!(
        says(json!({ "path": "/no/such/file" }))
            .starts_with("Error: cannot read '/no/such/file': no such file")
    );
    assert_eq!(
        says(json!({ "content": "x", "name": "a/../b" })),
        "Error: name must not hold '.' or '..' segments"
    );
    assert_eq!(says(json!({ "content": "x", "name": "" })), "Error: name must not be empty");
    assert_eq!(
        says(json!({ "content": "x", "name": "n".repeat(1_025) })),
        "Error: name is larger than 1024 bytes"
    );
    assert_eq!(
        says(json!({ "content": "x", "name": "n", "tags": ["t".repeat(257)] })),
        "Error: a tag is larger than 256 bytes"
    );
    let many: Vec<String> = (0..129).map(|n| n.to_string()).collect();
    assert_eq!(
        says(json!({ "content": "x", "name": "n", "tags": many })),
        "Error: tags is larger than 128 tags"
    );
    assert!(
        says(json!({ "content": "x", "name": "n", "metadata": { "k": "v".repeat(70_000) } }))
            .contains("metadata is larger")
    );
    assert_eq!(
        says(json!({ "content": "!", "name": "n", "encoding": "base64" })),
        "Error: content is not valid base64"
    );
    assert_eq!(
        says(json!({ "content": "x", "nam": "n" })),
        "Error: unknown argument 'nam'\ndid you mean name?"
    );
    assert_eq!(library.ok("status", json!({}))["total_objects"], 0);
}

#[test]
fn a_resource_id_names_one_document() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "x", "name": "a", "resource_id": "lecture_01" }));
    let taken =
        error_of(library.call("add", json!({ "content": "y", "name": "b", "resource_id": "lecture_01" })));
    assert_eq!(taken, "Error: resource_id 'lecture_01' already names another document");
    assert_eq!(library.ok("list", json!({}))["total"], 1);
    library.ok("add", json!({ "content": "z", "name": "a", "resource_id": "lecture_01" }));
}

#[test]
fn over_http_only_import_roots_are_read() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("ok")).unwrap();
    std::fs::write(root.path().join("ok/file"), "f").unwrap();
    symlink(outside.path(), root.path().join("way-out")).unwrap();
    symlink(outside.path().join("secret"), root.path().join("ok/link")).unwrap();
    let remote = Caller { file_access: FileAccess::Configured, ..Caller::owner() };
    let closed = TestLibrary::new();
    let refused = error_of(closed.call_as(&remote, "add", json!({ "path": root.path().join("ok/file") })));
    assert!(refused.contains("off over HTTP") && refused.contains("import_roots"), "{refused}");
    let library =
        TestLibrary::with(Options { import_roots: vec![root.path().to_owned()], ..Options::default() });
    let hostile = [
        outside.path().join("secret").display().to_string(),
        root.path().join("../etc/passwd").display().to_string(),
        root.path().join("way-out/secret").display().to_string(),
        root.path().join("ok/link").display().to_string(),
        format!("{}-sibling/x", root.path().display()),
        "/etc/passwd".into(),
        "..".into(),
        "ok/../../x".into(),
    ];
    for path in hostile {
        let refused = error_of(library.call_as(&remote, "add", json!({ "path": path })));
        assert_eq!(refused, "Error: path is outside the configured import roots", "{path}");
    }
    let missing = library.call_as(&remote, "add", json!({ "path": root.path().join("missing") }));
    assert!(error_of(missing).contains("no such file or directory"));
    assert_eq!(
        library.call_as(&remote, "add", json!({ "path": root.path().join("ok/file") })).unwrap()["files_added"],
        1
    );
    assert_eq!(library.call_as(&remote, "add", json!({ "path": "ok" })).unwrap()["files_unchanged"], 1);
}

#[test]
fn bounds_hold_for_what_a_document_has_in_the_end() {
    let library = TestLibrary::new();
    let tags = |from: u32| (from..from + 100).map(|n| n.to_string()).collect::<Vec<_>>();
    library.ok(
        "add",
        json!({ "content": "x", "name": "a", "tags": tags(0), "metadata": { "one": "v".repeat(40_000) } }),
    );
    let refused = error_of(library.call("add", json!({ "content": "x", "name": "a", "tags": tags(100) })));
    assert_eq!(refused, "Error: tags of a document may not be larger than 128 tags");
    let refused = error_of(
        library
            .call("add", json!({ "content": "y", "name": "a", "metadata": { "two": "v".repeat(40_000) } })),
    );
    assert!(refused.contains("metadata of a document may not be larger"), "{refused}");
    let refused = error_of(library.call("update", json!({ "name": "a", "tags": tags(200) })));
    assert!(refused.contains("128 tags"), "{refused}");
    library.ok("update", json!({ "name": "a", "metadata": ["small=1"] }));
    assert_eq!(library.ok("get", json!({ "name": "a" }))["version"], 1, "no partial change was made");
}

#[test]
fn a_failed_add_leaves_no_collection_behind() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "x", "name": "a", "resource_id": "r" }));
    for arguments in [
        json!({ "path": "/nope", "collection": "ghost" }),
        json!({ "content": "x", "name": "../a", "collection": "ghost" }),
        json!({ "path": "/tmp", "include": ["["], "collection": "ghost" }),
        json!({ "content": "x", "name": "b", "resource_id": "r", "collection": "ghost" }),
    ] {
        error_of(library.call("add", arguments));
    }
    assert_eq!(library.ok("list_collections", json!({}))["total"], 1);
}

#[test]
fn an_unchanged_file_keeps_its_times_but_snapshots_follow_the_file() {
    let library = TestLibrary::new();
    library.write("tree/a", "same");
    library.ok("add", json!({ "path": library.path("tree") }));
    let before = library.ok("get", json!({ "name": "tree/a" }));
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(1_500_000_000_123_456_789);
    std::fs::File::options().write(true).open(library.path("tree/a")).unwrap().set_modified(time).unwrap();
    library.ok("add", json!({ "path": library.path("tree"), "snapshot_label": "touched" }));
    assert_eq!(library.ok("get", json!({ "name": "tree/a" })), before);
    library.ok("restore", json!({ "snapshot_label": "touched", "output_directory": library.path("out") }));
    assert_eq!(
        std::fs::metadata(library.path("out/a")).unwrap().modified().unwrap(),
        time,
        "to the nanosecond"
    );
}
