//! What happened: whose things events are about, and pages of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shelf_engine::Caller;
use shelf_testkit::{TestLibrary, error_of};

const BOOK: &str = "birds-of-the-lake";

fn events(library: &TestLibrary, arguments: Value) -> Vec<Value> {
    library.ok("activity", arguments)["events"].as_array().unwrap().clone()
}

/// Operation and path of events.
fn told(events: &[Value]) -> Vec<(&str, &str)> {
    events
        .iter()
        .map(|event| (event["operation"].as_str().unwrap(), event["path"].as_str().unwrap()))
        .collect()
}

#[test]
fn events_are_filtered_by_the_family_whose_things_they_changed() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "name": "heron.md", "content": "# Heron\n", "resource_id": "heron" }));
    library.ok(
        "write_content",
        json!({ "book_id": BOOK, "path": "lessons/part-1/chapter-01/lesson-01.md", "content": "One" }),
    );
    library.ok(
        "add",
        json!({ "name": "lessons/part-1/chapter-01/lesson-02.md", "content": "Two", "collection": BOOK }),
    );
    library.ok("store_document_tool", json!({ "title": "Frogs", "content": "Food of herons." }));
    library.library.unset_map(&Caller::owner(), "heron").unwrap();
    let all = events(&library, json!({ "limit": 100 }));
    let mut seen = BTreeSet::new();
    for family in ["store", "documents", "books", "citations"] {
        let found = events(&library, json!({ "family": family, "limit": 100 }));
        assert!(found.iter().all(|event| event["family"] == family), "{found:?}");
        let labelled: Vec<Value> = all.iter().filter(|event| event["family"] == family).cloned().collect();
        assert_eq!(found, labelled, "a filter gives what has its word");
        seen.extend(found.iter().map(|event| event["sequence"].as_u64().unwrap()));
    }
    assert_eq!(seen.len(), all.len(), "every event has a family");
    let citations = events(&library, json!({ "family": "citations" }));
    assert_eq!(told(&citations), [("set_map", "heron.md")]);
    let books = events(&library, json!({ "family": "books", "operations": ["add"] }));
    let paths: Vec<&str> = told(&books).into_iter().map(|(_, path)| path).collect();
    let lessons = ["lessons/part-1/chapter-01/lesson-02.md", "lessons/part-1/chapter-01/lesson-01.md"];
    assert_eq!(paths, lessons, "whichever tool wrote them");
    let titled = events(&library, json!({ "family": "documents", "operations": ["add"] }));
    assert!(titled.len() == 1 && titled[0]["path"].as_str().unwrap().starts_with("documents/"), "{titled:?}");
    let stored = events(&library, json!({ "family": "store", "operations": ["add"] }));
    assert_eq!(told(&stored), [("add", "heron.md")]);
    let error = error_of(library.call("activity", json!({ "family": "workspace" })));
    assert!(
        error.contains("store, documents, books, citations") && error.contains("query_memory"),
        "{error}"
    );
}

#[test]
fn events_of_a_collection_that_is_gone_keep_their_family() {
    let library = TestLibrary::new();
    library.ok(
        "write_content",
        json!({ "book_id": BOOK, "path": "lessons/part-1/chapter-01/lesson-01.md", "content": "One" }),
    );
    let shelves = library.ok("list_collections", json!({}));
    let book = shelves["collections"].as_array().unwrap().iter().find(|shelf| shelf["name"] == BOOK).unwrap();
    library.ok("delete_collection_tool", json!({ "collection_id": book["collection_id"] }));
    let books = events(&library, json!({ "family": "books" }));
    let operations: Vec<&str> = told(&books).into_iter().map(|(operation, _)| operation).collect();
    assert!(
        operations.starts_with(&["delete_collection", "delete"]) && operations.contains(&"add"),
        "{operations:?}"
    );
    assert!(books.iter().all(|event| event.get("collection").is_none()), "its name is gone");
}

#[test]
fn pages_lead_through_all_events_of_one_person() {
    let library = TestLibrary::new();
    for number in 0..7 {
        library.ok("add", json!({ "name": format!("{number}.txt"), "content": format!("number {number}") }));
    }
    let by = events(&library, json!({ "limit": 1 }))[0]["by"].clone();
    let (mut before, mut paths) = (Value::Null, Vec::new());
    loop {
        let mut asked = json!({ "by": by, "operations": ["add"], "limit": 3 });
        if !before.is_null() {
            asked["before"] = before;
        }
        let page = library.ok("activity", asked);
        assert_eq!(page["complete"], true);
        paths.extend(told(page["events"].as_array().unwrap()).iter().map(|(_, path)| (*path).to_owned()));
        match page.get("next_before") {
            Some(next) => before = next.clone(),
            None => break,
        }
    }
    assert_eq!(paths, ["6.txt", "5.txt", "4.txt", "3.txt", "2.txt", "1.txt", "0.txt"]);
    let nobody = library.ok("activity", json!({ "by": "nobody" }));
    assert!(nobody["events"].as_array().unwrap().is_empty() && nobody.get("next_before").is_none());
}
