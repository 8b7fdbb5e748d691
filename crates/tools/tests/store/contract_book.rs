//! The contract book: the example of every tool runs, its reply fits the schema, and call and reply are those of the
//! reference pages. Run with `UPDATE_EXAMPLES=1` to write the replies anew, and review the difference.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use serde_json::{Map, Value, json};
use shelf_engine::{DownloadSettings, Options};
use shelf_testkit::TestLibrary;
use shelf_tools::registry;

/// What the reference pages show.
const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/examples.json");

#[test]
fn every_example_runs_fits_its_schema_and_gives_the_reply_of_the_contract_book() {
    let mut replies = Map::new();
    for tool in registry() {
        let library = library(tool.hints.open_world);
        let (example, mut known) = with_real_ids(&library, tool.name, tool.example);
        let (example, web) = with_real_web(&example, tool.hints.open_world);
        known.extend(web);
        let reply = library.ok(tool.name, serde_json::from_str(&example).unwrap());
        check(tool.name, &tool.output_schema(), &reply);
        let mut plain =
            Plain { folder: library.path("").display().to_string(), known, others: BTreeMap::new() };
        replies.insert(tool.name.to_owned(), plain.value("", reply));
    }
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        let text = serde_json::to_string_pretty(&replies).unwrap();
        return std::fs::write(BOOK, text + "\n").unwrap();
    }
    let written: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(BOOK).unwrap()).unwrap();
    for (name, reply) in &replies {
        let expected = written.get(name).unwrap_or_else(|| panic!("{name} is not in the contract book"));
        // Sizes and hashes of what depends on times differ between runs; which fields there are does not.
        let hint = "run this test with UPDATE_EXAMPLES=1 and review the difference";
        assert_eq!(shape(reply), shape(expected), "{name}: {hint}");
        assert_eq!(shelf_tools::find(name).unwrap().example_reply(), Some(expected));
    }
    assert_eq!(written.len(), replies.len(), "the contract book has tools that are gone");
}

fn library(is_open_world: bool) -> TestLibrary {
    if !is_open_world {
        return TestLibrary::new();
    }
    let download = DownloadSettings { private_addresses: true, ..DownloadSettings::default() };
    TestLibrary::with(Options { download, ..Options::default() })
}

/// Has a local server give what an example downloads, and tells what stands for its address.
fn with_real_web(example: &str, is_open_world: bool) -> (String, Vec<(String, String)>) {
    if !is_open_world {
        return (example.to_owned(), Vec::new());
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            // The checksum of the example is that of nothing.
            let head =
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\nContent-Type: application/pdf";
            let _ = write!(stream, "{head}\r\n\r\n");
        }
    });
    let arguments: Value = serde_json::from_str(example).unwrap();
    let url = arguments["url"].as_str().unwrap();
    let host: String = url.split('/').take(3).collect::<Vec<_>>().join("/");
    let mut local = arguments.clone();
    local["url"] = json!(url.replace(&host, &address));
    (local.to_string(), vec![(address, host)])
}

/// Takes out of a reply what is different in every run.
struct Plain {
    folder: String,
    /// What a value is called in the example.
    known: Vec<(String, String)>,
    /// Ids that are in the reply alone, in the order in which they appear.
    others: BTreeMap<String, String>,
}

impl Plain {
    fn value(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::String(text) if key != "day" => Value::String(self.text(&text)),
            Value::Array(list) => list.into_iter().map(|item| self.value(key, item)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, field)| (name.clone(), self.value(&name, field))).collect()
            }
            Value::Number(_) if key.ends_with("_ms") || key == "node_id" => json!(1),
            Value::String(_) if key == "day" => json!("2026-01-31"),
            Value::Number(number) if number.is_f64() => {
                json!((number.as_f64().unwrap() * 100.0).round() / 100.0)
            }
            other => other,
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.replace(self.folder.trim_end_matches('/'), "/home/you");
        for (real, shown) in &self.known {
            text = text.replace(real, shown);
        }
        let text = replace(&text, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", |id| {
            if id.starts_with("550e8400-") || id.starts_with("00000000-") {
                return id.to_owned();
            }
            let next = self.others.len() + 10;
            let shown = || format!("550e8400-e29b-41d4-a716-4466554400{next}");
            self.others.entry(id.to_owned()).or_insert_with(shown).clone()
        });
        let text = (0..10).fold(text, |text, digits| {
            let fraction = if digits == 0 { String::new() } else { format!(".{}", "d".repeat(digits)) };
            let shape = format!("dddd-dd-ddTdd:dd:dd{fraction}Z");
            replace(&text, &shape, |_| "2026-01-31T10:00:00.000000Z".into())
        });
        let text = replace(&text, "_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", |_| "_live_…".into());
        replace(&text, "/hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh/", |_| "/…/".into())
    }
}

/// The fields of a reply with their types, without their values.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), shape(field))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("truth"),
        Value::Null => Value::Null,
    }
}

/// Replaces every part of a text that has a shape, in which `h` is a digit of a hexadecimal number, `d` a digit and `a` a
/// letter or digit.
fn replace(text: &str, shape: &str, mut with: impl FnMut(&str) -> String) -> String {
    let fits = |part: &[u8]| {
        part.len() == shape.len()
            && part.iter().zip(shape.bytes()).all(|(byte, kind)| match kind {
                b'h' => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
                b'd' => byte.is_ascii_digit(),
                b'a' => byte.is_ascii_alphanumeric() || b"-_".contains(byte),
                exact => *byte == exact,
            })
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        match rest.as_bytes().get(..shape.len()) {
            Some(part) if fits(part) => {
                out.push_str(&with(&rest[..shape.len()]));
                rest = &rest[shape.len()..];
            }
            _ => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

/// A PDF document with one page that says one word.
const PAGE: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
4 0 obj<</Length 40>>stream\nBT /F 24 Tf 20 40 Td (Heron) Tj ET      \nendstream endobj\n\
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n\
trailer<</Root 1 0 R/Size 6>>\n%%EOF\n";

/// Replaces the contract's ids in an example with ids of things that exist, and tells which stand for which.
fn with_real_ids(library: &TestLibrary, tool: &str, example: &str) -> (String, Vec<(String, String)>) {
    library.ok("add", json!({ "content": "Call the printer.", "name": "notes/monday.txt" }));
    if tool == "list_books" || (example.contains("ai-native-python") && !example.contains("content\"")) {
        let lesson = "lessons/part-1/chapter-01/lesson-01.md";
        let (book, content) = ("ai-native-python", "We use OpenDAL.\n");
        library.ok("write_content", json!({ "book_id": book, "path": lesson, "content": content }));
        library
            .ok("write_summary", json!({ "book_id": book, "chapter_id": "chapter-01", "content": content }));
        let asset = json!({ "book_id": book, "asset_type": "images", "filename": "diagram.png", "binary_data": "QUJD" });
        library.ok("upload_asset", asset);
    }
    if tool == "listResources" || example.contains("lecture_01") {
        let content = "# Chapter 1\n\n## Intro\n\nWelcome.\n";
        library
            .ok("add", json!({ "content": content, "name": "lecture_01.md", "resource_id": "lecture_01" }));
    }
    let collection = library.ok("create_collection_tool", json!({ "name": "contract" }))["id"].clone();
    let collection = collection.as_str().unwrap();
    let stored =
        json!({ "title": "Project", "content": "How authentication works.", "collection_id": collection });
    let document = library.ok("store_document_tool", stored)["document_id"].clone();
    let id = |last: char| format!("550e8400-e29b-41d4-a716-44665544000{last}");
    let gone = example.contains(&id('5')).then(|| {
        let added = library.ok("add", json!({ "content": "A heron.", "name": "birds/heron.txt" }));
        library.ok("delete_document_tool", json!({ "document_id": added["document_id"] }));
        added["document_id"].as_str().unwrap().to_owned()
    });
    let pages = example.contains(&id('6')).then(|| {
        let added = library.ok("add", json!({ "content": PAGE, "name": "page.pdf" }));
        added["document_id"].as_str().unwrap().to_owned()
    });
    let (key, _) = library.collection_token(&shelf_engine::Caller::owner(), collection, "read");
    if example.contains("446655440002") && !example.contains("label") {
        library.ok("revoke_cat_tool", json!({ "key_id": key }));
    }
    let snapshots = library.ok("list_snapshots", json!({}));
    let snapshot = snapshots["snapshots"][0]["snapshot_id"].as_str().unwrap();
    // Making an account takes long, as it must.
    let needs_user = tool.contains("_users_") || example.contains(&id('0'));
    let user = needs_user.then(|| library.user("alice", false).id.to_string());
    let known = vec![
        (user.unwrap_or_else(|| id('0')), id('0')),
        (collection.to_owned(), id('2')),
        (key, id('3')),
        (document.as_str().unwrap().to_owned(), id('4')),
        (gone.unwrap_or_else(|| id('5')), id('5')),
        (pages.unwrap_or_else(|| id('6')), id('6')),
        (snapshot.to_owned(), "2026-01-31T10:00:00.000000Z".to_owned()),
    ];
    let mut example = example.to_owned();
    for (real, shown) in &known {
        example = example.replace(shown, real);
    }
    (example, known)
}

/// A small validator: types, required fields, items and nested objects.
fn check(place: &str, schema: &Map<String, Value>, value: &Value) {
    let fits = match schema.get("type").and_then(Value::as_str) {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    assert!(fits, "{place}: {value} does not fit {schema:?}");
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{place}: {name} is missing");
    }
    if let (Some(Value::Object(properties)), Some(fields)) = (schema.get("properties"), value.as_object()) {
        for (name, field) in fields {
            let property =
                properties.get(name).unwrap_or_else(|| panic!("{place}: {name} is not in the schema"));
            if let Value::Object(property) = property {
                check(&format!("{place}.{name}"), property, field);
            }
        }
    }
    if let (Some(Value::Object(items)), Some(list)) = (schema.get("items"), value.as_array()) {
        list.iter().for_each(|item| check(place, items, item));
    }
}
