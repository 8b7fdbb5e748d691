//! `update`.

use serde_json::json;
use shelf_testkit::{TestLibrary, error_of};

#[test]
fn metadata_and_tags_change_and_content_stays() {
    let library = TestLibrary::new();
    let added = library
        .ok("add", json!({ "content": "x", "name": "a", "tags": ["old"], "metadata": { "keep": [1] } }));
    let update = json!({
        "hash": added["hash"],
        "metadata": ["status=completed", "formula=a=b"],
        "tags": ["+new", "-old", "plain"],
        "verbose": true,
    });
    let reply = library.ok("update", update.clone());
    assert_eq!(
        (&reply["updated"], &reply["hash"], &reply["document_id"]),
        (&json!(true), &added["hash"], &added["document_id"])
    );
    assert_eq!(reply["changes"].as_array().unwrap().len(), 5);
    assert_eq!(
        reply["changes"][0],
        json!({ "field": "metadata.status", "action": "set", "new": "completed" })
    );
    let got = library.ok("get", json!({ "name": "a" }));
    assert_eq!(got["metadata"], json!({ "keep": [1], "status": "completed", "formula": "a=b" }));
    assert_eq!((&got["tags"], &got["version"]), (&json!(["new", "plain"]), &json!(1)));
    assert_eq!(library.ok("update", update)["changes"], json!([]), "the same update again changes nothing");
    let object = library.ok("update", json!({ "name": "a", "metadata": { "status": { "deep": true } } }));
    assert_eq!(object["changes"], json!([{ "field": "metadata.status", "action": "set" }]));
}

#[test]
fn unknown_and_ambiguous_documents_are_refused() {
    let library = TestLibrary::new();
    library.ok("add", json!({ "content": "x", "name": "one/a" }));
    library.ok("add", json!({ "content": "x", "name": "two/a" }));
    let says = |arguments| error_of(library.call("update", arguments));
    assert_eq!(says(json!({ "name": "b", "metadata": ["k=v"] })), "Error: no document 'b'");
    assert!(says(json!({ "name": "a", "metadata": ["k=v"] })).contains("means 2 documents"));
    let hash = library.ok("get", json!({ "name": "one/a" }))["hash"].clone();
    assert!(says(json!({ "hash": hash, "metadata": ["k=v"] })).contains("means 2 documents"));
    assert_eq!(says(json!({ "name": "one/a" })), "Error: provide metadata or tags");
    assert_eq!(
        says(json!({ "name": "one/a", "metadata": ["novalue"] })),
        "Error: metadata 'novalue' must be key=value"
    );
}

#[test]
fn a_title_survives_new_content_and_a_new_type_is_read_anew() {
    let library = TestLibrary::new();
    let page =
        "<html><head><title>t</title></head><body><p>plover</p><script>var lapwing</script></body></html>";
    let added = library.ok("add", json!({ "content": page, "name": "bird", "mime_type": "text/plain" }));
    let id = added["document_id"].as_str().unwrap();
    library.ok("update_document_tool", json!({ "document_id": id, "title": "Birds of the shore" }));
    let hits = |query: &str| {
        let found = library.ok("search", json!({ "query": query, "type": "keyword" }));
        found["results"].as_array().unwrap().len()
    };
    assert_eq!((hits("plover"), hits("lapwing")), (1, 1), "plain text is all text");
    library.ok("add", json!({ "content": page, "name": "bird", "mime_type": "text/html" }));
    assert_eq!((hits("plover"), hits("lapwing")), (1, 0), "a script is not text of the page");
    library.ok("add", json!({ "content": "an avocet", "name": "bird" }));
    let got = library.ok("get", json!({ "name": "bird" }));
    assert_eq!(
        (&got["title"], &got["version"], hits("avocet")),
        (&json!("Birds of the shore"), &json!(2), 1)
    );
    assert_eq!(library.ok("get", json!({ "name": "Birds of the shore" }))["hash"], got["hash"]);
}
