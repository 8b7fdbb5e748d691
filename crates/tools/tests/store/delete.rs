//! `delete_by_name`.

use serde_json::json;
use shelf_testkit::{TestLibrary, error_of};

#[test]
fn documents_go_and_snapshots_keep_them() {
    let library = TestLibrary::new();
    for name in ["keep.txt", "drafts/a.tmp", "drafts/b.tmp", "drafts/c.txt"] {
        library.ok("add", json!({ "content": name, "name": name }));
    }
    let preview = library.ok("delete_by_name", json!({ "pattern": "drafts/*.tmp", "dry_run": true }));
    assert_eq!((&preview["count"], &preview["dry_run"]), (&json!(2), &json!(true)));
    assert_eq!(library.ok("list", json!({}))["total"], 4);
    let hash = library.ok("get", json!({ "name": "a.tmp" }))["hash"].clone();
    let gone = library.ok("delete_by_name", json!({ "pattern": "drafts/*.tmp" }));
    assert_eq!(gone["deleted"][0]["path"], "drafts/a.tmp");
    assert_eq!(library.ok("list", json!({}))["total"], 2);
    assert_eq!(library.ok("get", json!({ "hash": hash }))["found"], json!(false));
    assert_eq!(library.ok("status", json!({}))["total_objects"], 2);
    let several = library.ok("delete_by_name", json!({ "names": ["c.txt", "nothing.txt"] }));
    assert_eq!((&several["count"], &several["not_found"]), (&json!(1), &json!(["nothing.txt"])));
    let none = library.ok("delete_by_name", json!({ "name": "nothing.txt" }));
    assert_eq!(none["count"], 0);
    assert!(none["note"].as_str().unwrap().contains("nothing matched"));
    assert!(error_of(library.call("delete_by_name", json!({}))).contains("name or names or pattern"));
    // Deleted content is still in its snapshot, and adding it again creates a new document.
    let snapshots = library.ok("list_snapshots", json!({}));
    let id = snapshots["snapshots"].as_array().unwrap().last().unwrap()["snapshot_id"].clone();
    let restored =
        library.ok("restore", json!({ "snapshot_id": id, "output_directory": library.path("out") }));
    assert_eq!(restored["restored_count"], 1);
    let again = library.ok("add", json!({ "content": "drafts/a.tmp", "name": "drafts/a.tmp" }));
    assert_eq!((&again["bytes_stored"], &again["files_added"]), (&json!(0), &json!(1)));
}
