//! One engine behind five families: what one family writes, every other one finds, cites, restores and deletes.

use std::{fs, path::Path};

use serde_json::{Value, json};
use shelf_testkit::StdioClient;

use crate::{assert_sound, binary, shelf};

/// A document as some family wrote it.
struct Piece {
    id: String,
    collection: &'static str,
    path: String,
    heading: &'static str,
    text: String,
    /// The third line, which no other document has.
    line: String,
}

impl Piece {
    fn new(collection: &'static str, heading: &'static str, line: &str) -> Self {
        let text = format!("# {heading}\n\n{line}\n");
        Self { id: String::new(), collection, path: String::new(), heading, text, line: line.to_owned() }
    }
}

const BOOK: &str = "birds-101";
const LESSON: &str = "lessons/part-1/chapter-01/lesson-01.md";

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Writes one document through the store, one through the documents family, and one as a lesson of a book.
fn write(client: &mut StdioClient) -> Vec<Piece> {
    let mut note = Piece::new("field", "Herons", "The heron waits by the river.");
    let added = client.call(
        "add",
        json!({ "name": "notes/heron.md", "content": note.text, "collection": note.collection }),
    );
    (note.id, note.path) = (word(&added["document_id"]), "notes/heron.md".into());

    let mut paper = Piece::new("papers", "Egrets", "The egret hunts in the marsh.");
    let made = client.call("create_collection_tool", json!({ "name": paper.collection }));
    let stored = client.call(
        "store_document_tool",
        json!({
            "title": "Egrets", "content": paper.text, "collection_id": made["id"], "document_type": "markdown",
        }),
    );
    paper.id = word(&stored["document_id"]);
    paper.path = format!("documents/{}", paper.id);

    let mut lesson = Piece::new(BOOK, "Bitterns", "The bittern booms in the reeds.");
    let arguments = json!({ "book_id": BOOK, "path": LESSON, "content": lesson.text });
    assert_eq!(client.call("write_content", arguments)["mode"], "created");
    let listed = client.call("list", json!({ "collection": BOOK, "name": LESSON }));
    (lesson.id, lesson.path) = (word(&listed["documents"][0]["document_id"]), LESSON.into());
    vec![note, paper, lesson]
}

fn items(reply: &Value) -> &[Value] {
    reply["result"].as_array().map_or(&[], Vec::as_slice)
}

/// The store and the documents family find a document, whoever wrote it.
fn find(client: &mut StdioClient, piece: &Piece) {
    let found = client.call("search", json!({ "query": piece.line }));
    assert_eq!(found["results"][0]["document_id"], piece.id, "{found}");
    let lines = client.call("grep", json!({ "pattern": piece.line }));
    assert_eq!((&lines["total_matches"], &lines["matches"][0]["line"]), (&json!(1), &json!(piece.line)));
    let got = client.call("get", json!({ "name": piece.path, "include_content": true }));
    assert_eq!(got["content"], piece.text, "{got}");
    let got = client.call("get_document_tool", json!({ "document_id": piece.id }));
    assert_eq!((&got["content"], &got["hash"]), (&json!(piece.text), &lines["matches"][0]["hash"]));
    let answers = client.call("search_documents_tool", json!({ "query": piece.line }));
    assert_eq!(answers["results"][0]["document_id"], piece.id, "{answers}");
    let all = client.call("list_documents_tool", json!({}));
    assert!(items(&all).iter().any(|document| document["id"] == piece.id), "{all}");
    let graph = client.call("graph", json!({ "name": piece.path, "relation": "CONTAINS", "depth": 1 }));
    assert!(graph.to_string().contains(piece.heading), "its heading is a node: {graph}");
}

/// The citations family cites it: the address that a search gave leads to the very line.
fn cite(client: &mut StdioClient, piece: &Piece) {
    let structure = client.call("getStructure", json!({ "resource_id": piece.id }));
    assert_eq!(structure["nodes"][0]["title"], piece.heading, "{structure}");
    let node =
        client.call("getNode", json!({ "resource_id": piece.id, "node_id": structure["nodes"][0]["id"] }));
    assert_eq!(node["title"], piece.heading);
    let found = client.call("search_documents_tool", json!({ "query": piece.line }));
    let address = word(&found["results"][0]["address"]);
    let resolved = client.call("resolve", json!({ "address": address }));
    let evidence = fs::read_to_string(word(&resolved["output_path"])).unwrap();
    assert!(evidence.contains(&piece.line), "{evidence}");
    let got = client.call("get", json!({ "name": address, "include_content": true }));
    assert!(word(&got["content"]).contains(&piece.line), "{got}");
}

/// Restores a snapshot into the workspace and reads it there.
fn restore(client: &mut StdioClient, workspace: &Path, round: &str, piece: &Piece) {
    let folder = format!("docs/{round}/{}", piece.collection);
    let arguments = json!({ "snapshot_label": format!("{} label", piece.collection), "output_directory": workspace.join(&folder) });
    let restored = client.call("restore", arguments);
    assert_eq!(
        (&restored["restored_count"], &restored["failed_count"]),
        (&json!(1), &json!(0)),
        "{restored}"
    );
    let bytes = fs::read(workspace.join(&folder).join(&piece.path)).unwrap();
    assert_eq!(bytes, piece.text.as_bytes());
    if piece.path.ends_with(".md") {
        let read = client.call("read_repo_file", json!({ "path": format!("{folder}/{}", piece.path) }));
        assert_eq!(read["content"], piece.text);
    }
}

#[test]
fn what_one_family_writes_every_other_one_works_with() {
    let folder = tempfile::tempdir().unwrap();
    let (library, workspace) = (folder.path().join("library"), folder.path().join("workspace"));
    fs::create_dir_all(workspace.join("docs")).unwrap();
    let mut client = StdioClient::spawn(binary(), &library, &["--workspace", workspace.to_str().unwrap()]);
    client.initialize();
    let pieces = write(&mut client);
    for piece in &pieces {
        find(&mut client, piece);
        cite(&mut client, piece);
        let label = format!("{} label", piece.collection);
        let (code, _, err) = shelf(&library, &["snapshot", "create", piece.collection, "--label", &label]);
        assert_eq!(code, 0, "{err}");
        restore(&mut client, &workspace, "before", piece);
    }
    books_and_others_change_the_same_lesson(&mut client, &pieces[2]);
    delete_through_another_family(&mut client, &pieces);
    for piece in &pieces {
        assert_gone(&mut client, piece);
        restore(&mut client, &workspace, "after", piece);
    }
    assert_eq!(client.finish(), Some(0));
    assert_sound(&library);
}

/// A lesson that the documents family changes and one that the store adds are lessons like any other.
fn books_and_others_change_the_same_lesson(client: &mut StdioClient, lesson: &Piece) {
    let text = "# Bitterns\n\nThe bittern hides among the stalks.\n";
    client.call("update_document_tool", json!({ "document_id": lesson.id, "content": text }));
    let read = client.call("read_content", json!({ "book_id": BOOK, "path": LESSON }));
    assert_eq!(read["content"], text, "{read}");
    let second = "lessons/part-1/chapter-01/lesson-02.md";
    client.call(
        "add",
        json!({ "name": second, "content": "# Spoonbills\n\nIt sweeps.\n", "collection": BOOK }),
    );
    let found = client.call("grep_search", json!({ "book_id": BOOK, "pattern": "stalks|sweeps" }));
    assert_eq!(items(&found).len(), 2, "{found}");
    let files = client.call("glob_search", json!({ "book_id": BOOK, "pattern": "**/*.md" }));
    assert!(files.to_string().contains(second), "{files}");
    let deleted = client.call("delete_by_name", json!({ "name": second }));
    assert_eq!(deleted["count"], 1, "{deleted}");
    let gone = client.request(
        "tools/call",
        json!({ "name": "read_content", "arguments": { "book_id": BOOK, "path": second } }),
    );
    assert!(word(&gone["result"]["content"][0]["text"]).contains("ContentNotFoundError"), "{gone}");
}

fn delete_through_another_family(client: &mut StdioClient, pieces: &[Piece]) {
    client.call("delete_document_tool", json!({ "document_id": pieces[0].id }));
    let deleted = client.call("delete_by_name", json!({ "name": pieces[1].path }));
    assert_eq!((&deleted["count"], &deleted["deleted"][0]["document_id"]), (&json!(1), &json!(pieces[1].id)));
    client.call("delete_content", json!({ "book_id": BOOK, "path": LESSON }));
}

/// No family finds it any more.
fn assert_gone(client: &mut StdioClient, piece: &Piece) {
    let found = client.call("search", json!({ "query": piece.line, "collection": piece.collection }));
    let ids: Vec<&Value> =
        found["results"].as_array().unwrap().iter().map(|hit| &hit["document_id"]).collect();
    assert!(!ids.contains(&&json!(piece.id)), "{found}");
    assert_eq!(client.call("get", json!({ "name": piece.path }))["found"], false);
    assert_eq!(client.call("grep", json!({ "pattern": piece.line }))["total_matches"], 0);
    for (tool, arguments) in [
        ("get_document_tool", json!({ "document_id": piece.id })),
        ("getStructure", json!({ "resource_id": piece.id })),
        ("resolve", json!({ "address": format!("text://{}#lines=3", piece.id) })),
    ] {
        let reply = client.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(reply["result"]["isError"], true, "{tool}: {reply}");
    }
}
