//! `list`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

fn paths(reply: &Value) -> Vec<&str> {
    reply["documents"].as_array().unwrap().iter().map(|document| document["path"].as_str().unwrap()).collect()
}

fn library() -> TestLibrary {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "# a", "name": "src/a.md", "tags": ["x", "y"] }));
    library.ok("add", json!({ "content": "fn b() {}", "name": "src/deep/b.rs", "tags": ["x"] }));
    library.ok(
        "add",
        json!({ "content": "iVBORw0KGgoAAAANSUhEUg==", "encoding": "base64", "name": "img/c.png" }),
    );
    library.ok("add", json!({ "content": "print(1)", "name": "other/d.py", "collection": "scripts" }));
    library
}

#[test]
fn filters_do_what_they_say() {
    let library = library();
    let check = |arguments: Value, expected: &[&str]| {
        let reply = library.ok("list", arguments.clone());
        assert_eq!(paths(&reply), expected, "{arguments}");
        assert_eq!(reply["total"], expected.len(), "{arguments}");
    };
    check(json!({}), &["img/c.png", "other/d.py", "src/a.md", "src/deep/b.rs"]);
    check(json!({ "type": "image" }), &["img/c.png"]);
    check(json!({ "type": "text", "extension": ".py" }), &["other/d.py"]);
    check(json!({ "type": "code" }), &["other/d.py", "src/deep/b.rs"]);
    check(json!({ "type": "document" }), &["src/a.md"]);
    check(json!({ "extension": "md,rs" }), &["src/a.md", "src/deep/b.rs"]);
    check(json!({ "mime": "image/*" }), &["img/c.png"]);
    check(json!({ "mime": "text/markdown" }), &["src/a.md"]);
    check(json!({ "binary": true }), &["img/c.png"]);
    check(json!({ "text": true, "collection": "default" }), &["src/a.md", "src/deep/b.rs"]);
    check(json!({ "tags": ["x"] }), &["src/a.md", "src/deep/b.rs"]);
    check(json!({ "tags": ["x", "y"], "match_all_tags": true }), &["src/a.md"]);
    check(json!({ "pattern": "src/" }), &["src/a.md", "src/deep/b.rs"]);
    check(json!({ "pattern": "src/*" }), &["src/a.md"]);
    check(json!({ "pattern": "*.{rs,py}" }), &["other/d.py", "src/deep/b.rs"]);
    check(json!({ "name": "b.rs" }), &["src/deep/b.rs"]);
    check(json!({ "created_after": "1d" }), &["img/c.png", "other/d.py", "src/a.md", "src/deep/b.rs"]);
    check(json!({ "indexed_before": "2020-01-01" }), &[]);
    check(json!({ "recent": 2 }), &["other/d.py", "img/c.png"]);
    check(json!({ "recent": 2, "sort_by": "name" }), &["img/c.png", "other/d.py"]);
    check(
        json!({ "sort_by": "size", "sort_order": "desc", "limit": "4" }),
        &["img/c.png", "src/deep/b.rs", "other/d.py", "src/a.md"],
    );
}

#[test]
fn a_document_has_what_it_is_filtered_and_sorted_by_and_nothing_is_said_twice() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "# a", "name": "src/a.md", "tags": ["x"], "metadata": { "k": 1 } }));
    let made = library.ok("create_collection_tool", json!({ "name": "papers" }));
    let paper = json!({ "title": "Herons", "content": "text", "collection_id": made["id"] });
    library.ok("store_document_tool", paper);
    let listed = library.ok("list", json!({ "sort_by": "created" }));
    let [plain, titled] = listed["documents"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&plain["tags"], &plain["metadata"]), (&json!(["x"]), &json!({ "k": 1 })));
    assert_eq!((&plain["name"], &plain["extension"]), (&json!("a.md"), &json!(".md")));
    let fields = [
        ("hash", "string"),
        ("path", "string"),
        ("collection", "string"),
        ("size", "number"),
        ("mime_type", "string"),
        ("type", "string"),
        ("created_at", "string"),
        ("modified_at", "string"),
        ("indexed_at", "string"),
    ];
    for (name, kind) in fields {
        let found = &plain[name];
        assert!(if kind == "string" { found.is_string() } else { found.is_number() }, "{name}: {plain}");
    }
    // It has one id, and its title is not its name once more.
    assert!(plain.get("id").is_none() && plain.get("title").is_none(), "{plain}");
    assert_eq!(titled["title"], "Herons");
}

#[test]
fn slips_are_explained() {
    let library = library();
    let says = |arguments| error_of(library.call("list", arguments));
    assert!(says(json!({ "type": "novel" })).contains("type must be text, binary, image"));
    assert!(says(json!({ "sort_by": "mood" })).contains("sort_by must be name, size"));
    assert!(says(json!({ "created_after": "soon" })).contains("'soon' is not a time"));
    assert!(says(json!({ "pattern": "[" })).contains("'[' is no pattern"));
    assert!(says(json!({ "cursor": "AAAA" })).contains("start again without it"));
    assert!(says(json!({ "limit": -1 })).contains("limit must be at least 0"));
}

#[test]
fn pages_are_complete_and_bounded() {
    let library = TestLibrary::new();
    for number in 0..700 {
        library.write(&format!("tree/{:02}/file-{number:04}.txt", number % 7), format!("{number}"));
    }
    library
        .ok("add", json!({ "path": library.path("tree"), "tags": ["a rather long tag to fill the page"] }));
    for sort in ["name", "size", "created", "modified", "indexed"] {
        for order in ["asc", "desc"] {
            let mut seen = BTreeSet::new();
            let mut arguments = json!({ "sort_by": sort, "sort_order": order, "limit": 1000 });
            let mut pages = 0;
            loop {
                let page = library.ok("list", arguments.clone());
                assert!(page.to_string().len() <= 40_000);
                assert_eq!(page["total"], 700);
                for path in paths(&page) {
                    assert!(seen.insert(path.to_owned()), "{path} twice");
                }
                pages += 1;
                match page.get("next_cursor").filter(|cursor| !cursor.is_null()) {
                    Some(cursor) => arguments["cursor"] = cursor.clone(),
                    None => break,
                }
            }
            assert!(pages > 3 && seen.len() == 700, "{sort} {order}: {} in {pages} pages", seen.len());
        }
    }
    let cursor = library.ok("list", json!({ "limit": 5 }))["next_cursor"].clone();
    let other = error_of(library.call("list", json!({ "limit": 5, "sort_by": "size", "cursor": cursor })));
    assert!(other.contains("for the same arguments"), "{other}");
    let forged =
        error_of(library.call("list", json!({ "cursor": format!("x{}", cursor.as_str().unwrap()) })));
    assert!(forged.contains("start again"), "{forged}");
}

#[test]
fn a_name_means_paths_ends_of_paths_and_titles_and_joins_other_filters() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "name": "notes/plan.md", "content": "one" }));
    library.ok("add", json!({ "name": "plan.md", "content": "two" }));
    library.ok("store_document_tool", json!({ "title": "plan.md", "content": "three" }));
    let paths = |arguments: Value| library.ok("list", arguments)["total"].as_u64().unwrap();
    assert_eq!(paths(json!({ "name": "plan.md" })), 3);
    assert_eq!(paths(json!({ "name": "plan.md", "pattern": "notes/*" })), 1);
    assert_eq!(paths(json!({ "name": "an.md" })), 0);
    let error = error_of(library.call("list", json!({ "collection": "nowhere" })));
    assert!(error.starts_with("Error: no collection 'nowhere'"), "{error}");
}

#[test]
fn a_hash_and_a_name_must_mean_one_document() {
    let library = TestLibrary::new();
    let hash = library.ok("add", json!({ "name": "a/one.txt", "content": "same" }))["hash"].clone();
    library.ok("add", json!({ "name": "two.txt", "content": "same" }));
    library.ok("add", json!({ "name": "three.txt", "content": "other" }));
    let get =
        |name: &str| library.ok("get", json!({ "hash": hash, "name": name, "graph": false, "depth": 2 }));
    assert_eq!((&get("one.txt")["path"], &get("two.txt")["path"]), (&json!("a/one.txt"), &json!("two.txt")));
    for tool in ["get", "update"] {
        let mut arguments = json!({ "hash": hash, "name": "three.txt" });
        if tool == "update" {
            arguments["metadata"] = json!(["a=1"]);
        }
        let error = error_of(library.call(tool, arguments));
        assert!(error.contains("'three.txt' is not the document with hash"), "{error}");
    }
    library.ok("update", json!({ "hash": hash, "name": "two.txt", "metadata": ["a=1"] }));
}

#[test]
fn relative_times_mean_the_same_on_every_page() {
    for (tool, list, mut question) in [
        ("list", "documents", json!({ "created_after": "7d", "limit": 2 })),
        ("search", "results", json!({ "query": "lake", "created_after": "7d", "limit": 2 })),
    ] {
        let library = TestLibrary::with_clock();
        for number in 0..6 {
            library.ok("add", json!({ "content": format!("lake {number}"), "name": format!("{number}.md") }));
        }
        let mut found = BTreeSet::new();
        loop {
            let page = library.ok(tool, question.clone());
            let documents = page[list].as_array().unwrap();
            found.extend(documents.iter().map(|document| document["path"].as_str().unwrap().to_owned()));
            // Later, what was meant at first is older than seven days.
            library.days_pass(4);
            match page["next_cursor"].as_str() {
                Some(cursor) => question["cursor"] = json!(cursor),
                None => break,
            }
        }
        assert_eq!(found.len(), 6, "{tool}");
        question["created_after"] = json!("8d");
        assert!(error_of(library.call(tool, question)).contains("cursor"), "{tool}");
    }
}

#[test]
fn paths_that_json_makes_longer_stay_within_a_page() {
    let library = TestLibrary::new();
    for number in 0..120 {
        let name = format!("{}/{number}.md", "\"".repeat(900));
        library.ok("add", json!({ "content": format!("lake {number}"), "name": name }));
    }
    for (tool, question) in [
        ("list", json!({ "paths_only": true })),
        ("search", json!({ "query": "lake", "paths_only": true, "limit": 120 })),
        ("search", json!({ "query": "lake", "limit": 120 })),
        ("grep", json!({ "pattern": "lake" })),
        ("grep", json!({ "pattern": "lake", "output": true, "with_filename": true, "color": "always" })),
        ("grep", json!({ "pattern": "lake", "count": true, "output": true, "with_filename": true })),
        ("grep", json!({ "pattern": "lake", "files_with_matches": true, "output": true })),
    ] {
        let page = library.ok(tool, question.clone());
        let length = page.to_string().len();
        assert!(length <= 40_000, "{tool} {question}: {length}");
        assert!(page["next_cursor"].is_string(), "{tool} {question}");
    }
}
