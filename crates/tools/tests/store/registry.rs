//! The registry: every tool is documented, its schemas are portable, its example runs and fits its schema.

use serde_json::{Map, Value, json};
use shelf_testkit::TestLibrary;
use shelf_tools::registry;

#[test]
fn tools_are_documented_and_their_schemas_are_portable() {
    for tool in registry() {
        assert!((40..=1_900).contains(&tool.description.len()), "{}: {}", tool.name, tool.description.len());
        let input = tool.input_schema();
        assert_eq!(input["type"], "object", "{}", tool.name);
        assert!(
            !input.keys().any(|key| ["oneOf", "anyOf", "allOf"].contains(&key.as_str())),
            "{}",
            tool.name
        );
        for (name, property) in input["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}.{name} has no description", tool.name);
        }
        for schema in [Value::Object((*input).clone()), Value::Object(tool.output_schema())] {
            let text = schema.to_string();
            for word in [
                "\"null\"",
                "uint",
                "int64",
                "$ref",
                "$defs",
                "\"default\":null",
                "additionalProperties\":false",
                "additionalProperties\":true",
            ] {
                assert!(!text.contains(word), "{}: {word} in {text}", tool.name);
            }
        }
    }
}

#[test]
fn names_are_those_of_the_contracts() {
    let names: Vec<&str> = registry().map(|tool| tool.name).collect();
    let expected = [
        "hello",
        "read_repo_file",
        "write_memory_entry",
        "search",
        "add",
        "grep",
        "get",
        "graph",
        "update",
        "status",
        "list",
        "download",
        "restore",
        "list_collections",
        "list_snapshots",
        "delete_by_name",
        "store_document_tool",
        "search_documents_tool",
        "get_document_tool",
        "list_documents_tool",
        "update_document_tool",
        "delete_document_tool",
        "create_collection_tool",
        "list_collections_tool",
        "get_collection_tool",
        "delete_collection_tool",
        "rename_collection_tool",
        "create_cat_tool",
        "list_cats_tool",
        "revoke_cat_tool",
        "rotate_cat_tool",
        "list_users_tool",
        "search_users_tool",
        "get_user_tool",
        "update_user_tool",
        "delete_user_tool",
        "read_content",
        "write_content",
        "delete_content",
        "read_summary",
        "write_summary",
        "delete_summary",
        "upload_asset",
        "get_asset",
        "list_assets",
        "glob_search",
        "grep_search",
        "list_books",
        "get_book_archive",
        "listResources",
        "getStructure",
        "getNode",
        "resolve",
        // Extras.
        "query_memory",
        "list_repo_files",
        "add_best_practice",
        "check_memory",
        "plan_build",
        "batch_hashes",
        "book_history",
        "edit",
        "describe_document",
        "read_text",
        "browse",
        "facets",
        "activity",
        "compare_snapshots",
        "audit_journal",
        "plan_gc",
        "check_library",
        "call_statistics",
        "page_image",
        "archive",
        "undelete_document",
        "create_user",
    ];
    assert_eq!(names, expected);
}

#[test]
fn every_example_runs_and_fits_the_output_schema() {
    // Tools that reach the outside world have their own tests with a test server.
    for tool in registry().filter(|tool| !tool.hints.open_world) {
        let library = TestLibrary::new();
        let example = with_real_ids(&library, tool.example);
        let reply = library.ok(tool.name, serde_json::from_str(&example).unwrap());
        check(tool.name, &tool.output_schema(), &reply);
    }
}

/// A PDF document with one page that says one word.
const PAGE: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
4 0 obj<</Length 40>>stream\nBT /F 24 Tf 20 40 Td (Heron) Tj ET      \nendstream endobj\n\
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n\
trailer<</Root 1 0 R/Size 6>>\n%%EOF\n";

/// Replaces the contract's ids in an example with ids of things that exist.
fn with_real_ids(library: &TestLibrary, example: &str) -> String {
    library.ok("add", json!({ "content": "Call the printer.", "name": "notes/monday.txt" }));
    if example.contains("ai-native-python") && !example.contains("content\"") {
        let lesson = "lessons/part-1/chapter-01/lesson-01.md";
        let (book, content) = ("ai-native-python", "We use OpenDAL.\n");
        library.ok("write_content", json!({ "book_id": book, "path": lesson, "content": content }));
        library
            .ok("write_summary", json!({ "book_id": book, "chapter_id": "chapter-01", "content": content }));
        let asset = json!({ "book_id": book, "asset_type": "images", "filename": "diagram.png", "binary_data": "QUJD" });
        library.ok("upload_asset", asset);
    }
    if example.contains("lecture_01") {
        let content = "# Chapter 1\n\n## Intro\n\nWelcome.\n";
        library
            .ok("add", json!({ "content": content, "name": "lecture_01.md", "resource_id": "lecture_01" }));
    }
    let user = library.user("alice", false);
    let collection = library.ok("create_collection_tool", json!({ "name": "contract" }))["id"].clone();
    let collection = collection.as_str().unwrap();
    let stored =
        json!({ "title": "Project", "content": "How authentication works.", "collection_id": collection });
    let document = library.ok("store_document_tool", stored)["document_id"].clone();
    let gone =
        library.ok("add", json!({ "content": "A heron.", "name": "birds/heron.txt" }))["document_id"].clone();
    library.ok("delete_document_tool", json!({ "document_id": gone }));
    let pages = json!({ "content": PAGE, "name": "page.pdf" });
    let pages = library.ok("add", pages)["document_id"].clone();
    let (key, _) = library.collection_token(&shelf_engine::Caller::owner(), collection, "read");
    if example.contains("446655440002") && !example.contains("label") {
        library.ok("revoke_cat_tool", json!({ "key_id": key }));
    }
    let snapshots = library.ok("list_snapshots", json!({}));
    let snapshot = snapshots["snapshots"][0]["snapshot_id"].as_str().unwrap();
    let id = |last: char| format!("550e8400-e29b-41d4-a716-44665544000{last}");
    example
        .replace(&id('0'), &user.id.to_string())
        .replace(&id('2'), collection)
        .replace(&id('3'), &key)
        .replace(&id('4'), document.as_str().unwrap())
        .replace(&id('5'), gone.as_str().unwrap())
        .replace(&id('6'), pages.as_str().unwrap())
        .replace("2026-01-31T10:00:00.000000Z", snapshot)
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

#[test]
fn hello_says_what_the_contract_says() {
    let reply = TestLibrary::new().ok("hello", json!({}));
    assert_eq!(reply["message"], "Hello from AI Practitioner Learning OS!");
    assert!(reply["timestamp"].as_str().unwrap().ends_with('Z'));
}

/// Tokens of a text, about: one for four characters, which is what JSON of this sort comes to.
fn tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(4)
}

#[test]
fn a_model_can_afford_the_list_of_tools() {
    let extra = |tool: &&shelf_tools::Tool| tool.toolset() != "extras";
    let listed = |with_output: bool| -> Vec<Value> {
        let one = |tool: &'static shelf_tools::Tool| {
            let hints = tool.hints;
            let mut value = json!({
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": &*tool.input_schema(),
                "annotations": {
                    "title": tool.title,
                    "readOnlyHint": hints.read_only,
                    "destructiveHint": hints.destructive,
                    "idempotentHint": hints.idempotent,
                    "openWorldHint": hints.open_world,
                },
            });
            if with_output {
                value["outputSchema"] = Value::Object(tool.output_schema());
            }
            value
        };
        registry().filter(extra).map(one).collect()
    };
    assert_eq!(listed(false).len(), 53);
    let (without, with) =
        (tokens(&json!({ "tools": listed(false) })), tokens(&json!({ "tools": listed(true) })));
    assert!(without <= 12_000, "{without} tokens without output schemas");
    assert!(with <= 25_000, "{with} tokens with output schemas");
}
