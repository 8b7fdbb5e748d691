//! `graph`, and `get` with `graph: true`.

mod code;
mod hostile;
mod model;
mod pages;
mod parameters;
mod wide;

use serde_json::{Value, json};
use shelf_testkit::{TestLibrary, error_of};

/// `relation source -> target` of each edge, by the names of its nodes.
pub(crate) fn told(reply: &Value) -> Vec<String> {
    let mut names = std::collections::HashMap::new();
    let nodes = reply["connected_nodes"].as_array().unwrap().iter().chain([&reply["origin"]]);
    for node in nodes {
        let name = match node["type"].as_str().unwrap() {
            "document" => node["path"].as_str().unwrap().to_owned(),
            "heading" => format!("{}#{}", node["path"].as_str().unwrap(), node["name"].as_str().unwrap()),
            _ => node["name"].as_str().unwrap().to_owned(),
        };
        names.insert(node["node_key"].as_str().unwrap().to_owned(), name);
    }
    let name = |key: &Value| {
        let key = key.as_str().unwrap();
        names
            .get(key)
            .cloned()
            .unwrap_or_else(|| key.split_once('#').map_or(key, |(_, name)| name).to_owned())
    };
    let edges = reply["edges"].as_array().unwrap().iter();
    edges
        .map(|edge| {
            format!(
                "{} {} -> {}",
                edge["relation"].as_str().unwrap(),
                name(&edge["source"]),
                name(&edge["target"])
            )
        })
        .collect()
}

pub(crate) fn add(library: &TestLibrary, name: &str, content: &str) {
    library.ok("add", json!({ "content": content, "name": name }));
}

fn small() -> TestLibrary {
    let library = TestLibrary::new();
    add(
        &library,
        "docs/a.md",
        "---\ntags: [guide]\n---\n# A\n\nSee [b](b.md#part \"T\") and [gone](gone.md).\nAlso <https://example.org/x>.\n",
    );
    add(&library, "docs/b.md", "# B\n\n## Part\n\nBack to [[a]] and on to [c](sub/c.md).\n");
    add(&library, "docs/sub/c.md", "# C\n\nNothing else.\n");
    add(&library, "lonely.txt", "nobody mentions me");
    library
}

#[test]
fn links_are_followed_forwards_and_backwards() {
    let library = small();
    let reply = library
        .ok("graph", json!({ "name": "docs/a.md", "relation": "links_to", "include_edge_properties": true }));
    assert_eq!(
        told(&reply),
        [
            "LINKS_TO docs/a.md -> docs/b.md",
            "LINKS_TO docs/a.md -> docs/b.md#Part",
            "LINKS_TO docs/a.md -> gone.md",
            "LINKS_TO docs/b.md -> docs/a.md",
            "LINKS_TO docs/b.md -> docs/sub/c.md",
        ]
    );
    let first = &reply["edges"][0]["properties"];
    assert_eq!(
        (&first["line"], &first["text"], &first["title"], &first["anchor"]),
        (&json!(6), &json!("b"), &json!("T"), &json!("part"))
    );
    assert_eq!(reply["edges"][2]["properties"]["broken"], json!(true));
    assert_eq!((&reply["total"], &reply["truncated"]), (&json!(4), &json!(false)));
    let back = library.ok("graph", json!({ "name": "c.md", "reverse": true, "depth": 1 }));
    assert_eq!(told(&back), ["LINKS_TO docs/b.md -> docs/sub/c.md"]);
    // A document that arrives later is linked to from that moment on; one that goes leaves a broken link.
    add(&library, "docs/gone.md", "# Here now\n");
    let now = library.ok("graph", json!({ "name": "docs/gone.md", "reverse": true, "depth": 1 }));
    assert_eq!(told(&now), ["LINKS_TO docs/a.md -> docs/gone.md"]);
    library.ok("delete_by_name", json!({ "name": "docs/b.md" }));
    let after = library.ok("graph", json!({ "name": "docs/a.md", "depth": 1, "relation": "LINKS_TO" }));
    assert_eq!(told(&after), ["LINKS_TO docs/a.md -> b.md#part", "LINKS_TO docs/a.md -> docs/gone.md"]);
}

#[test]
fn every_node_is_found_by_its_key_and_number() {
    let library = small();
    let mut nodes: Vec<Value> = Vec::new();
    for wanted in ["document", "heading", "tag", "collection", "snapshot", "reference", "version"] {
        let listed = library.ok(
            "graph",
            json!({ "list_type": wanted, "include_node_properties": true, "hydrate_fully": true }),
        );
        assert_eq!(listed["total"], json!(listed["nodes"].as_array().unwrap().len()), "{wanted}");
        assert!(!listed["nodes"].as_array().unwrap().is_empty(), "{wanted}");
        nodes.extend(listed["nodes"].as_array().unwrap().iter().cloned());
    }
    let ids: std::collections::HashSet<u64> =
        nodes.iter().map(|node| node["node_id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), nodes.len());
    library.library.reindex(&shelf_base::CallContext::new()).unwrap();
    for node in &nodes {
        assert!(node["node_id"].as_u64().unwrap() < 1 << 53);
        for arguments in [json!({ "node_key": node["node_key"] }), json!({ "node_id": node["node_id"] })] {
            let found = library.ok("graph", arguments);
            assert_eq!(found["origin"]["node_key"], node["node_key"]);
            assert_eq!(found["origin"]["node_id"], node["node_id"]);
        }
    }
    let types = library.ok("graph", json!({ "list_types": true }));
    let count = |name: &str| {
        types["types"].as_array().unwrap().iter().find(|one| one["type"] == name).unwrap()["count"].clone()
    };
    assert_eq!(
        (count("document"), count("heading"), count("tag"), count("reference")),
        (json!(4), json!(4), json!(1), json!(2))
    );
}

#[test]
fn relations_of_the_catalog_are_walked_when_they_are_asked_for() {
    let library = small();
    let usual = library.ok("graph", json!({ "name": "docs/a.md", "depth": 1 }));
    assert!(told(&usual).iter().all(|edge| edge.starts_with("LINKS_TO") || edge.starts_with("REFERENCES")));
    let tagged = library.ok("graph", json!({ "name": "docs/a.md", "depth": 1, "relation": "TAGGED" }));
    assert_eq!(told(&tagged), ["TAGGED docs/a.md -> guide"]);
    let back = library.ok("graph", json!({ "node_key": "tag:guide", "reverse": true, "relation": "TAGGED" }));
    assert_eq!(told(&back), ["TAGGED docs/a.md -> guide"]);
    library.ok("update", json!({ "name": "docs/b.md", "metadata": {}, "tags": ["+mine"] }));
    assert_eq!(
        told(&library.ok("graph", json!({ "name": "docs/b.md", "relation": "TAGGED" }))),
        ["TAGGED docs/b.md -> mine"]
    );
    add(&library, "docs/a.md", "# A\n\nNew words.\n");
    let versions = library.ok(
        "graph",
        json!({ "name": "docs/a.md", "relation_filters": ["HAS_VERSION", "contains"], "depth": 1 }),
    );
    assert_eq!(
        told(&versions),
        [
            "CONTAINS docs/a.md -> docs/a.md#A",
            "HAS_VERSION docs/a.md -> version 1",
            "HAS_VERSION docs/a.md -> version 2"
        ]
    );
    let snapshots = library.ok("graph", json!({ "name": "docs/b.md", "relation": "IN_SNAPSHOT" }));
    assert_eq!(snapshots["total"], json!(1));
    let key = &snapshots["connected_nodes"][0]["node_key"];
    let inside = library.ok("graph", json!({ "node_key": key, "reverse": true, "relation": "IN_SNAPSHOT" }));
    assert_eq!(inside["connected_nodes"][0]["path"], "docs/b.md");
    add(&library, "copy.md", "# A\n\nNew words.\n");
    let same = library.ok("graph", json!({ "name": "copy.md", "relation": "DUPLICATE_OF" }));
    assert_eq!(told(&same), ["DUPLICATE_OF copy.md -> docs/a.md", "DUPLICATE_OF docs/a.md -> copy.md"]);
}

#[test]
fn isolated_documents_are_those_that_nothing_connects() {
    let library = small();
    let isolated = library.ok("graph", json!({ "isolated": true }));
    let paths: Vec<&str> =
        isolated["nodes"].as_array().unwrap().iter().map(|node| node["path"].as_str().unwrap()).collect();
    assert_eq!((paths, &isolated["total"]), (vec!["lonely.txt"], &json!(1)));
    let headings = library.ok("graph", json!({ "isolated": true, "list_type": "heading" }));
    assert_eq!(headings["total"], json!(3), "one heading is linked to");
    let by_relation = library.ok("graph", json!({ "isolated": true, "relation": "LINKS_TO" }));
    assert_eq!(by_relation["total"], json!(1));
    add(&library, "again.txt", "nobody mentions me");
    assert_eq!(
        library.ok("graph", json!({ "isolated": true }))["total"],
        json!(0),
        "duplicates are connected"
    );
}

#[test]
fn a_snapshot_shows_documents_as_they_were() {
    let library = TestLibrary::new();
    library.write("tree/a.md", "[b](b.md)\n");
    library.write("tree/b.md", "nothing\n");
    let folder = library.path("tree");
    let first = library.ok("add", json!({ "path": folder }));
    library.write("tree/a.md", "nothing now\n");
    library.write("tree/c.md", "[a](a.md)\n");
    library.ok("add", json!({ "path": folder }));
    let ask = |more: Value| {
        let mut arguments = json!({ "name": "tree/b.md", "reverse": true });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        library.ok("graph", arguments)["total"].clone()
    };
    assert_eq!(ask(json!({})), json!(0));
    let then = json!({ "scope_snapshot": first["snapshot_id"] });
    assert_eq!(ask(then.clone()), json!(1));
    let mut outside = then.as_object().unwrap().clone();
    outside.insert("name".into(), json!("tree/c.md"));
    assert!(error_of(library.call("graph", Value::Object(outside))).contains("no document"));
    assert!(
        error_of(
            library.call("graph", json!({ "name": "tree/b.md", "scope_snapshot": "2020-01-01T00:00:00Z" }))
        )
        .contains("no snapshot")
    );
}

#[test]
fn wrong_arguments_are_explained() {
    let library = small();
    let error = |arguments: Value| error_of(library.call("graph", arguments));
    assert!(error(json!({})).contains("give name, hash, node_key or node_id"));
    assert!(error(json!({ "name": "docs/a.md", "depth": 6 })).contains("depth must be at most 5"));
    assert!(error(json!({ "name": "docs/a.md", "depth": 0 })).contains("depth must be at least 1"));
    assert!(error(json!({ "name": "docs/a.md", "relation": "LIKES" })).contains("LINKS_TO"));
    assert!(error(json!({ "name": "absent.md" })).contains("no document 'absent.md'"));
    assert!(error(json!({ "node_key": "doc:123" })).contains("no node"));
    assert!(error(json!({ "node_key": "nonsense" })).contains("must begin with"));
    assert!(error(json!({ "node_id": 5 })).contains("no node"));
    assert!(error(json!({ "node_id": u64::MAX })).contains("no node"));
    assert!(error(json!({ "node_id": 5, "name": "docs/a.md" })).contains("only one"));
    assert!(error(json!({ "list_type": "planet" })).contains("must be document"));
    assert!(error(json!({ "name": "docs/a.md", "limit": 0 })).contains("limit must be at least 1"));
}

#[test]
fn get_tells_of_related_documents() {
    let library = small();
    let got = library.ok("get", json!({ "name": "docs/b.md", "graph": true, "depth": 1 }));
    let related: Vec<(&str, &str)> = got["related"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["path"].as_str().unwrap(), one["relation"].as_str().unwrap()))
        .collect();
    assert_eq!(related, [("docs/a.md", "LINKS_TO"), ("docs/sub/c.md", "LINKS_TO")]);
    assert_eq!(got["related_truncated"], json!(false));
    assert!(library.ok("get", json!({ "name": "docs/b.md" })).get("related").is_none());
    assert!(
        error_of(library.call("get", json!({ "name": "docs/b.md", "graph": true, "depth": 9 })))
            .contains("depth must be at most 5")
    );
}

#[test]
fn near_duplicates_are_similar_by_their_words() {
    let library = TestLibrary::new();
    let words: Vec<String> = (0..400).map(|at| format!("word{}", at * 7_919 % 1_009)).collect();
    add(&library, "one.txt", &words.join(" "));
    let mut edited = words;
    edited[200] = "changed".into();
    add(&library, "two.txt", &edited.join(" "));
    let other: Vec<String> = (0..400).map(|at| format!("other{}", at * 104_729 % 997)).collect();
    add(&library, "other.txt", &other.join(" "));
    let reply = library.ok(
        "graph",
        json!({ "name": "one.txt", "relation": "SIMILAR_TO", "depth": 1, "include_edge_properties": true }),
    );
    let found: Vec<&Value> = reply["edges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|edge| edge["properties"]["basis"] == "words")
        .collect();
    assert_eq!(found.len(), 1, "{reply}");
    assert!(found[0]["properties"]["score"].as_f64().unwrap() >= 0.5);
}

#[test]
fn citations_connect_documents() {
    let library = TestLibrary::new();
    let added = library.ok(
        "add",
        json!({ "content": "line one\nline two\n", "name": "source.txt", "resource_id": "source" }),
    );
    let id = added["document_id"].as_str().unwrap();
    add(
        &library,
        "claim.md",
        &format!("As text://source#lines=2 says, and text://{id}#lines=1; not text://absent#lines=1.\n"),
    );
    let reply = library
        .ok("graph", json!({ "name": "claim.md", "relation": "CITES", "include_edge_properties": true }));
    assert_eq!(told(&reply), ["CITES claim.md -> source.txt", "CITES claim.md -> text://absent#lines=1"]);
    assert_eq!(reply["edges"][0]["properties"]["count"], json!(2));
    let back = library.ok("graph", json!({ "name": "source.txt", "relation": "CITES", "reverse": true }));
    assert_eq!(told(&back), ["CITES claim.md -> source.txt"]);
}

#[test]
fn an_edge_that_is_met_twice_counts_once() {
    let library = TestLibrary::new();
    add(&library, "b.rs", "fn zz() {}\nfn yy() { zz(); }\n");
    for depth in 1..=3 {
        let arguments = json!({ "name": "b.rs", "depth": depth, "include_edge_properties": true });
        let reply = library.ok("graph", arguments);
        let calls =
            reply["edges"].as_array().unwrap().iter().find(|edge| edge["relation"] == "CALLS").unwrap();
        assert_eq!(calls["properties"].get("count"), None, "{depth}: {reply}");
    }
}

#[test]
fn guesses_are_followed_only_when_they_are_asked_for() {
    let library = TestLibrary::new();
    add(&library, "one.py", "class One:\n    def strange_name(self):\n        pass\n");
    add(&library, "two.py", "class Two:\n    def strange_name(self):\n        pass\n");
    add(&library, "user.py", "def use(thing):\n    thing.strange_name()\n");
    let got = library.ok("get", json!({ "name": "user.py", "graph": true }));
    assert_eq!(got["related"].as_array().map_or(0, Vec::len), 0, "{got}");
    let all = library.ok("graph", json!({ "name": "user.py", "include_edge_properties": true }));
    assert!(all["edges"].as_array().unwrap().iter().all(|edge| edge["relation"] != "CALLS"), "{all}");
    let calls = library
        .ok("graph", json!({ "name": "user.py", "relation": "CALLS", "include_edge_properties": true }));
    for edge in calls["edges"].as_array().unwrap() {
        assert!(edge["properties"]["confidence"].as_f64().unwrap() <= 0.5, "{calls}");
    }
}

#[test]
fn details_are_those_of_the_snapshot() {
    let library = TestLibrary::new();
    let first = library.ok("add", json!({ "content": "one\n", "name": "doc.txt" }));
    library.ok("add", json!({ "content": "one and two\n", "name": "doc.txt" }));
    let reply = library.ok(
        "graph",
        json!({ "name": "doc.txt", "scope_snapshot": first["snapshot_id"], "hydrate_fully": true }),
    );
    let document = &reply["origin"]["document"];
    assert_eq!((&reply["origin"]["hash"], &document["hash"]), (&first["hash"], &first["hash"]), "{reply}");
    assert_eq!((&document["size"], &document["version"]), (&json!(4), &json!(1)), "{reply}");
}

#[test]
fn lists_keep_to_the_relations_that_are_asked_for() {
    let library = small();
    let total = |arguments: Value| library.ok("graph", arguments)["total"].as_u64().unwrap();
    let all = total(json!({ "list_type": "document" }));
    let linked = total(json!({ "list_type": "document", "relation": "LINKS_TO" }));
    let isolated = total(json!({ "list_type": "document", "relation": "LINKS_TO", "isolated": true }));
    assert!(linked > 0 && isolated > 0, "{linked} {isolated}");
    assert_eq!(linked + isolated, all);
    let refused = error_of(library.call("graph", json!({ "list_types": true, "name": "lonely.txt" })));
    assert!(refused.contains("list_types"), "{refused}");
}
