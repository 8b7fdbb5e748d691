//! The registry: every tool is documented, and its schemas are portable.

use serde_json::{Value, json};
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
        // A field of a reply may be null, as a choice; an argument is left out instead.
        let output = Value::Object(tool.output_schema()).to_string().replace(r#"{"type":"null"}"#, "");
        for text in [Value::Object((*input).clone()).to_string(), output] {
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
fn hello_says_what_the_contract_says() {
    let reply = TestLibrary::new().ok("hello", json!({}));
    assert_eq!(reply["message"], "Hello from AI Practitioner Learning OS!");
    assert!(reply["timestamp"].as_str().unwrap().ends_with('Z'));
}

/// Tokens of a value as JSON, by the vocabulary o200k_base; its tables are part of the crate that counts.
fn tokens(value: &Value) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(&value.to_string()).len()
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
