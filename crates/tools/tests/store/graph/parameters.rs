//! Every parameter of `graph` with every other: pages fit together, and each parameter keeps its meaning.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use shelf_testkit::TestLibrary;

/// A library of pages and code in a folder, and the snapshot of it before the last change.
fn library() -> (TestLibrary, String) {
    let library = TestLibrary::new();
    for number in 0..9 {
        let (next, other) = ((number + 1) % 9, (number * 2 + 3) % 9);
        library.write(
            &format!("tree/{number}.md"),
            format!("---\ntags: [even{}]\n---\n# Page {number}\n\n## Part\n\n[n]({next}.md#part) [o]({other}.md) [s](src/a.rs)\n", number % 2),
        );
    }
    library.write("tree/src/lib.rs", "mod a;\nmod b;\n");
    library.write("tree/src/a.rs", "use crate::b::two;\npub fn one() { two(); }\n");
    library.write("tree/src/b.rs", "use crate::a::one;\npub fn two() { one(); three(); }\nfn three() {}\n");
    let folder = library.path("tree");
    let first = library.ok("add", json!({ "path": folder }))["snapshot_id"].as_str().unwrap().to_owned();
    library.write("tree/4.md", "# Page 4\n\nnothing else\n");
    library.ok("add", json!({ "path": folder }));
    (library, first)
}

fn with(base: &Map<String, Value>, more: &Value) -> Value {
    let mut arguments = base.clone();
    arguments.extend(more.as_object().unwrap().clone());
    Value::Object(arguments)
}

/// Reads all pages of a question and compares them with the whole answer.
fn pages_fit(library: &TestLibrary, base: &Map<String, Value>, limit: usize) {
    let whole = library.ok("graph", with(base, &json!({ "limit": 1000 })));
    let list = if whole["nodes"].is_array() { "nodes" } else { "connected_nodes" };
    let all = whole[list].as_array().unwrap();
    assert_eq!((&whole["truncated"], &whole["total"]), (&json!(false), &json!(all.len())), "{base:?}");
    let (mut nodes, mut edges) = (Vec::new(), BTreeSet::new());
    loop {
        let page = library.ok("graph", with(base, &json!({ "limit": limit, "offset": nodes.len() })));
        nodes.extend(page[list].as_array().unwrap().clone());
        for edge in page["edges"].as_array().into_iter().flatten() {
            // With a type, an edge stands on the pages of both of its ends.
            let is_new = edges.insert(edge.to_string());
            assert!(is_new || base.contains_key("list_type"), "{base:?}: {edge} twice");
        }
        assert_eq!(page["truncated"], json!(nodes.len() < all.len()), "{base:?} after {}", nodes.len());
        if page["truncated"] == json!(false) {
            break;
        }
    }
    assert_eq!(&nodes, all, "{base:?}");
    let expected: BTreeSet<String> =
        whole["edges"].as_array().into_iter().flatten().map(Value::to_string).collect();
    assert_eq!(edges, expected, "{base:?}");
}

#[test]
fn pages_of_every_combination_fit_together() {
    let (library, snapshot) = library();
    let name = library.path("tree/0.md");
    let origin = library.ok("graph", json!({ "name": name, "depth": 1 }))["origin"].clone();
    let origins = [
        json!({ "name": name }),
        json!({ "hash": origin["hash"] }),
        json!({ "node_key": origin["node_key"] }),
        json!({ "node_id": origin["node_id"] }),
        json!({ "name": library.path("tree/src/a.rs") }),
    ];
    let choices: [&[Value]; 5] = [
        &[json!({ "depth": 1 }), json!({}), json!({ "depth": 5 })],
        &[json!({}), json!({ "reverse": true })],
        &[
            json!({}),
            json!({ "relation": "links_to" }),
            json!({ "relation_filters": ["CALLS", "Imports", "defines"], "relation": "LINKS_TO" }),
            json!({ "relation_filters": ["TAGGED", "CONTAINS", "HAS_VERSION", "IN_SNAPSHOT", "SIMILAR_TO", "DUPLICATE_OF"] }),
        ],
        &[json!({}), json!({ "list_type": "heading" }), json!({ "list_type": "document" })],
        &[json!({}), json!({ "scope_snapshot": snapshot })],
    ];
    let mut asked = 0;
    for (at, origin) in origins.iter().enumerate() {
        let mut combined = vec![origin.as_object().unwrap().clone()];
        for choice in choices {
            combined = combined
                .iter()
                .flat_map(|base| choice.iter().map(|more| with(base, more).as_object().unwrap().clone()))
                .collect();
        }
        // The four ways of naming a document lead to the same answers, so each takes its share of the questions.
        for base in combined.into_iter().skip(if at < 4 { at } else { 0 }).step_by(if at < 4 { 4 } else { 3 })
        {
            pages_fit(&library, &base, 2 + asked % 3);
            asked += 1;
        }
    }
    assert!(asked > 150, "{asked}");
    for base in [
        json!({ "list_type": "document" }),
        json!({ "list_type": "heading", "scope_snapshot": snapshot }),
        json!({ "list_type": "symbol" }),
        json!({ "list_type": "tag" }),
        json!({ "isolated": true }),
        json!({ "isolated": true, "list_type": "heading" }),
        json!({ "isolated": true, "relation": "CALLS" }),
    ] {
        pages_fit(&library, base.as_object().unwrap(), 2);
    }
}

#[test]
fn each_parameter_keeps_its_meaning_beside_others() {
    let (library, snapshot) = library();
    let name = library.path("tree/0.md");
    let base = json!({ "name": name, "depth": 3, "relation_filters": ["LINKS_TO", "CONTAINS"] });
    for flags in 0..8_u32 {
        let (nodes, edges, hydrate) = (flags & 1 > 0, flags & 2 > 0, flags & 4 > 0);
        let more = json!({
            "include_node_properties": nodes, "include_edge_properties": edges, "hydrate_fully": hydrate,
            "scope_snapshot": snapshot,
        });
        let reply = library.ok("graph", with(base.as_object().unwrap(), &more));
        for node in reply["connected_nodes"].as_array().unwrap() {
            assert_eq!(node.get("properties").is_some(), nodes);
            assert_eq!(node.get("document").is_some(), hydrate && node["type"] == "document");
            assert!((1..=3).contains(&node["distance"].as_u64().unwrap()));
        }
        for edge in reply["edges"].as_array().unwrap() {
            assert_eq!(edge.get("properties").is_some(), edges);
            assert!(["LINKS_TO", "CONTAINS"].contains(&edge["relation"].as_str().unwrap()));
        }
    }
    // In the snapshot page 4 still leads on; by now it does not.
    let four = json!({ "name": library.path("tree/4.md"), "relation": "LINKS_TO", "depth": 1 });
    let now = library.ok("graph", four.clone());
    let then = library.ok("graph", with(four.as_object().unwrap(), &json!({ "scope_snapshot": snapshot })));
    assert_eq!(now["total"], json!(0));
    assert_eq!(then["total"], json!(4), "three documents and a heading");
    let only = library.ok("graph", json!({ "name": name, "depth": 5, "list_type": "function" }));
    let names: BTreeSet<&str> = only["connected_nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["one", "three", "two"].into());
}
