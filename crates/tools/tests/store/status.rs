//! `status`, `list_collections`, `list_snapshots`.

use serde_json::json;
use shelf_testkit::{TestLibrary, error_of};

#[test]
fn the_five_figures_are_true() {
    let library = TestLibrary::new();
    let empty = library.ok("status", json!({}));
    assert_eq!(
        empty,
        json!({ "total_objects": 0, "total_bytes": 0, "unique_blocks": 0, "deduplicated_bytes": 0, "dedup_ratio": 0.0 })
    );
    for name in ["a", "b", "c", "d"] {
        library.ok("add", json!({ "content": "twelve bytes", "name": name }));
    }
    let full = library.ok("status", json!({ "detailed": true, "file_types": true }));
    assert_eq!(
        (&full["total_objects"], &full["total_bytes"], &full["unique_blocks"]),
        (&json!(4), &json!(48), &json!(1))
    );
    assert_eq!((&full["deduplicated_bytes"], &full["dedup_ratio"]), (&json!(36), &json!(0.75)));
    assert_eq!(full["details"]["snapshots"], 4);
    // One content is waiting, the listings of the snapshots lie with them; a fold empties the queue.
    assert_eq!(full["details"]["queue"]["pending"], 1);
    library.library.fold_now().unwrap();
    assert_eq!(library.ok("status", json!({ "detailed": true }))["details"]["queue"]["pending"], 0);
    assert_eq!(full["file_types"]["by_mime"], json!([{ "type": "text/plain", "count": 4, "bytes": 48 }]));
    library.ok("delete_by_name", json!({ "name": "a" }));
    assert_eq!(library.ok("status", json!({}))["total_bytes"], 36);
}

#[test]
fn collections_and_snapshots_are_listed() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "1", "name": "a" }));
    library.ok("add", json!({ "content": "22", "name": "b", "collection": "other", "snapshot_label": "v1" }));
    let collections = library.ok("list_collections", json!({}));
    let names: Vec<_> = collections["collections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (&c["name"], &c["bytes"], &c["kind"]))
        .collect();
    let plain = json!("plain");
    assert_eq!(names, [(&json!("default"), &json!(1), &plain), (&json!("other"), &json!(2), &plain)]);
    let snapshots = library.ok("list_snapshots", json!({ "collection": "other" }));
    let snapshot = &snapshots["snapshots"][0];
    assert_eq!(
        (&snapshot["label"], &snapshot["file_count"], &snapshot["bytes"]),
        (&json!("v1"), &json!(1), &json!(2))
    );
    let id = snapshot["snapshot_id"].as_str().unwrap();
    assert_eq!((id.len(), id.ends_with('Z')), ("2026-11-15T02:07:09.123456Z".len(), true));
    assert_eq!(
        error_of(library.call("list_snapshots", json!({ "collection": "othr" }))),
        "Error: no collection 'othr'\ndid you mean other?"
    );
    for number in 0..300 {
        library.ok("add", json!({ "content": "x", "name": format!("n{number}") }));
    }
    let (mut seen, mut cursor) = (0, None);
    loop {
        let page = library.ok("list_snapshots", json!({ "cursor": cursor }));
        assert!(page.to_string().len() <= 40_000);
        seen += page["snapshots"].as_array().unwrap().len();
        match page.get("next_cursor").filter(|cursor| !cursor.is_null()) {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(seen, 302);
}
