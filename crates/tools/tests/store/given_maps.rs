//! Maps that people, models and other programs give, and evidence in every encoding.

use std::fs;

use serde_json::{Value, json};
use shelf_base::CallContext;
use shelf_engine::{Caller, CitationError, FileAccess};
use shelf_testkit::{TestLibrary, error_of};

fn node(id: &str, lines: [u32; 2]) -> Value {
    json!({ "id": id, "title": id, "type": "section", "location": { "modality": "text", "lines": lines } })
}

fn leading(id: &str, address: &str) -> Value {
    json!({ "id": id, "title": id, "type": "example", "location": { "modality": "virtual", "virtual_address": address } })
}

fn set(library: &TestLibrary, id: &str, map: &Value) -> Result<(), CitationError> {
    library.library.set_map(&Caller::owner(), id, &map.to_string(), "person", &CallContext::new()).map(drop)
}

fn with_notes() -> TestLibrary {
    let library = TestLibrary::new();
    let path = library.write("notes.md", "# One\n\nText.\n\n## Two\nMore.\n");
    library.ok("add", json!({ "path": path, "resource_id": "notes" }));
    library
}

#[test]
fn the_title_and_metadata_of_a_map_come_back() {
    let library = with_notes();
    let map = json!({
        "resource_id": "notes", "type": "text", "title": "All my notes", "nodes": [node("all", [1, 6])],
        "metadata": { "author": "Ann", "pages": { "count": 3 }, "source_hash": "0", "source_size": 1 },
    });
    set(&library, "notes", &map).unwrap();
    let structure = library.ok("getStructure", json!({ "resource_id": "notes" }));
    let metadata = &structure["metadata"];
    assert_eq!((&structure["title"], &metadata["author"]), (&json!("All my notes"), &json!("Ann")));
    assert_eq!((&metadata["pages"]["count"], &metadata["source_size"]), (&json!(3), &json!(27)));
    assert_eq!(metadata["source_hash"].as_str().unwrap().len(), 64);
    // Once more from what was exported: what the library adds itself is not kept as the map's.
    set(&library, "notes", &structure).unwrap();
    let again = library.ok("getStructure", json!({ "resource_id": "notes" }));
    assert_eq!((&again["title"], &again["metadata"]["map_version"]), (&json!("All my notes"), &json!(2)));
    library.library.unset_map(&Caller::owner(), "notes").unwrap();
    assert_eq!(library.ok("getStructure", json!({ "resource_id": "notes" }))["title"], "notes.md");
}

#[test]
fn what_maps_must_not_say() {
    let library = with_notes();
    library.ok("add", json!({ "content": "a\nb\n", "name": "other.txt", "resource_id": "other" }));
    set(&library, "other", &json!([node("part", [1, 1]), leading("on", "text://notes#lines=1")])).unwrap();
    // Ids of given maps need only be different.
    let mut parent = node("a", [1, 2]);
    parent["children"] = json!([node("b", [2, 2])]);
    for (map, says) in [
        (
            json!({ "resource_id": "other", "nodes": [node("a", [1, 1])] }),
            "the map of 'other', not of 'notes'",
        ),
        (json!([leading("v", "virtual://notes#v")]), "leads on to another"),
        (json!([leading("v", "virtual://notes#none")]), "node 'v': Node 'none' not found."),
        (json!([leading("v", "text://notes#lines=7")]), "node 'v': the text has 6 lines"),
        (json!([leading("v", "doc://none#pages=2")]), "node 'v': Resource 'none' not found."),
        (json!([leading("v", "text://other#lines=3")]), "node 'v': the text has 2 lines"),
        (json!([leading("v", "virtual://other#on")]), "leads on to another"),
        (json!([leading("v", "virtual://other")]), "names no node"),
    ] {
        let refused = set(&library, "notes", &map).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
    let good = json!([
        parent,
        leading("v", "virtual://notes#a"),
        leading("w", "virtual://other#part"),
        leading("x", "text://other#lines=2"),
    ]);
    set(&library, "notes", &good).unwrap();
    for (id, expected) in [("v", "# One\n\n"), ("w", "a\n"), ("x", "b\n")] {
        let asked = json!({ "address": format!("virtual://notes#{id}"), "include_content": true });
        let resolved = library.ok("resolve", asked);
        assert_eq!(resolved["content"], expected, "{id}");
        assert!(resolved["output_path"].as_str().unwrap().contains(&format!("/notes_{id}.")), "{resolved}");
    }
}

#[test]
fn a_map_is_imported_whole_or_not_at_all() {
    let library = TestLibrary::new();
    let (owner, call) = (Caller::owner(), CallContext::new());
    library.write("project/src/guide.md", "# Guide\n\nText.\n");
    let project = library.path("project");
    let import = |map: Value| {
        library.library.import_map(&owner, &map.to_string(), std::slice::from_ref(&project), &call)
    };
    let map = |id: &str, lines: [u32; 2]| json!({ "resource_id": id, "type": "text", "source_path": "src/guide.md", "nodes": [node(id, lines)] });
    // Refused: nothing is there afterwards.
    let refused = import(map("g0", [1, 9])).unwrap_err().to_string();
    assert!(refused.contains("the text has 3 lines"), "{refused}");
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": [] }));
    assert_eq!(library.ok("list", json!({}))["documents"], json!([]));
    let imported = import(map("g1", [1, 3])).unwrap();
    assert_eq!((imported.kept.resource_id.as_str(), imported.added), ("g1", true));
    // Another map of the same source.
    let refused = import(map("g2", [1, 2])).unwrap_err().to_string();
    assert!(refused.contains("is the resource 'g1'"), "{refused}");
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": ["g1"] }));
    assert_eq!(library.ok("getStructure", json!({ "resource_id": "g1" }))["nodes"][0]["id"], "g1");
    assert!(!import(map("g1", [1, 2])).unwrap().added);
    // A document that has no resource id yet gets one.
    let plain = library.write("plain.txt", "x\n");
    library.ok("add", json!({ "path": plain }));
    let named = json!({ "resource_id": "plain", "source_path": plain, "nodes": [node("x", [1, 1])] });
    assert_eq!(import(named).unwrap().kept.resource_id, "plain");
}

#[test]
fn a_resource_of_virtual_nodes_has_no_document_but_its_map() {
    let library = with_notes();
    let (owner, call) = (Caller::owner(), CallContext::new());
    let import = |map: &Value| library.library.import_map(&owner, &map.to_string(), &[], &call);
    let mut map = json!({
        "resource_id": "tour", "type": "virtual", "title": "A tour", "source_path": "",
        "nodes": [leading("stop", "virtual://notes#one.two"), leading("end", "text://notes#lines=1")],
        "metadata": { "by": "Ann" },
    });
    let imported = import(&map).unwrap();
    assert_eq!((imported.kept.resource_id.as_str(), imported.added), ("tour", true));
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": ["notes", "tour"] }));
    let structure = library.ok("getStructure", json!({ "resource_id": "tour" }));
    assert_eq!((&structure["type"], &structure["title"]), (&json!("virtual"), &json!("A tour")));
    assert_eq!(structure["metadata"]["by"], "Ann");
    let asked = json!({ "resource_id": "tour", "node_id": "stop", "include_content": true });
    let resolved = library.ok("resolve", asked);
    assert_eq!(
        (&resolved["content"], &resolved["address"], &resolved["modality"]),
        (&json!("## Two\nMore.\n"), &json!("virtual://tour#stop"), &json!("virtual"))
    );
    // Again, with another node; and by set-map.
    map["nodes"] = json!([leading("only", "text://notes#lines=2")]);
    assert!(!import(&map).unwrap().added);
    let structure = library.ok("getStructure", json!({ "resource_id": "tour" }));
    assert_eq!(
        (&structure["nodes"][0]["id"], structure["nodes"].as_array().unwrap().len()),
        (&json!("only"), 1)
    );
    map["nodes"] = json!([leading("last", "text://notes#lines=3")]);
    set(&library, "tour", &map).unwrap();
    assert_eq!(library.ok("getNode", json!({ "resource_id": "tour", "node_id": "last" }))["type"], "example");
    for (nodes, id, says) in [
        (json!([node("here", [1, 1])]), "tour2", "cited with virtual://, not with text://"),
        (json!([leading("v", "text://none#lines=1")]), "tour2", "Resource 'none' not found."),
        (json!([leading("v", "text://notes#lines=1")]), "notes", "a virtual map needs an ID of its own"),
    ] {
        let refused = import(&json!({ "resource_id": id, "type": "virtual", "nodes": nodes })).unwrap_err();
        assert!(refused.to_string().contains(says), "{refused}");
    }
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": ["notes", "tour"] }));
    assert!(library.library.check(&call).unwrap().findings.is_empty());
}

#[test]
fn a_resource_id_is_not_changed_in_passing() {
    let library = with_notes();
    let path = library.path("notes.md");
    let error = error_of(library.call("add", json!({ "path": path, "resource_id": "two" })));
    assert!(error.contains("resource_id must be 'notes'"), "{error}");
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": ["notes"] }));
    library.ok("add", json!({ "path": path, "resource_id": "notes" }));
    library.ok("add", json!({ "path": path }));
    assert_eq!(library.ok("listResources", json!({})), json!({ "resources": ["notes"] }));
}

#[test]
fn errors_over_http_show_no_paths_of_the_server() {
    let library = TestLibrary::new();
    let path = library.write("secret/broken.pdf", b"%PDF-1.4\nnonsense\0");
    library.ok("add", json!({ "path": path, "resource_id": "broken" }));
    let zip = library.write("secret/a.zip", b"PK\x03\x04\x14\0\0\0\0\0");
    library.ok("add", json!({ "path": zip, "resource_id": "zip" }));
    let film = library.write("secret/film.mp4", b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom nothing");
    library.ok("add", json!({ "path": film, "resource_id": "film" }));
    let mut caller = Caller::owner();
    caller.file_access = FileAccess::Configured;
    for (id, name) in [("broken", "broken.pdf"), ("zip", "a.zip"), ("film", "film.mp4")] {
        for (tool, arguments) in [
            ("getStructure", json!({ "resource_id": id })),
            ("getNode", json!({ "resource_id": id, "node_id": "x" })),
            ("resolve", json!({ "resource_id": id, "node_id": "x" })),
            ("resolve", json!({ "address": format!("doc://{id}#pages=1") })),
        ] {
            let error = error_of(library.call_as(&caller, tool, arguments));
            assert!(error.contains(&format!("'{name}'")) && !error.contains("secret"), "{error}");
        }
    }
}

#[test]
fn evidence_keeps_its_bytes_and_is_decoded_inline() {
    let library = TestLibrary::new();
    let text = "# Größe\nsüß\n\n# Ende\nfrüh, spät, schön, für ältere\n";
    let wide: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let narrow: Vec<u8> = text.chars().map(|each| each as u8).collect();
    let marked = format!("\u{feff}{text}").into_bytes();
    for (name, bytes) in [("wide.md", &wide), ("narrow.md", &narrow), ("marked.md", &marked)] {
        let path = library.write(name, bytes);
        library.ok("add", json!({ "path": path, "resource_id": name }));
        let structure = library.ok("getStructure", json!({ "resource_id": name }));
        assert_eq!(structure["nodes"][0]["title"], "Größe", "{name}");
        let asked = json!({ "resource_id": name, "node_id": "ende", "include_content": true });
        let resolved = library.ok("resolve", asked);
        assert_eq!(resolved["content"], "# Ende\nfrüh, spät, schön, für ältere\n", "{name}");
        let cut = fs::read(resolved["output_path"].as_str().unwrap()).unwrap();
        assert!(bytes.ends_with(&cut) && !cut.starts_with(&[0xFF, 0xFE]), "{name}");
        let whole = library.ok("resolve", json!({ "address": format!("text://{name}") }));
        assert_eq!(&fs::read(whole["output_path"].as_str().unwrap()).unwrap(), bytes, "{name}");
    }
}

#[test]
fn the_whole_of_an_image_is_its_node() {
    let library = TestLibrary::new();
    // What is in the picture does not matter here: all of it is given as it is stored.
    let path = library.write("pic.png", b"\x89PNG\r\n\x1a\n and nothing else");
    library.ok("add", json!({ "path": path, "resource_id": "pic" }));
    let resolved = library.ok("resolve", json!({ "address": "image://pic" }));
    assert_eq!(resolved["node"]["id"], "image");
    let same = library.ok("resolve", json!({ "address": resolved["address"] }));
    assert_eq!(same["output_path"], resolved["output_path"]);
}
